"""Pool status (KEP-5677): the answer to a ResourcePoolStatusRequest, as the controller would fill it in.

Gate DRAResourcePoolStatus; DRAPartitionableDevicesType for the attributes that tell partition types apart. The answer
is of one moment and is never updated: a request that has a status keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import attrs

from dra_alloc.api import (
    Condition,
    DeviceTaintRule,
    PartitionTypeStatus,
    PoolStatus,
    Quantity,
    ResourceClaim,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestStatus,
    ResourceSlice,
    ShareableSummaryStatus,
)
from dra_alloc.codec.validation import validate
from dra_alloc.errors import ValidationError
from dra_alloc.features._objects import ClusterObjects, DeviceId, aware, gate_off, newest_slices
from dra_alloc.features._poolviews import Pool, ViewError, partition_summary, shareable_summary
from dra_alloc.features.taints import BLOCKING_EFFECTS, DeviceTaints
from dra_alloc.gates import Features

__all__ = [
    "COMPLETED_TTL",
    "DEFAULT_LIMIT",
    "PENDING_TTL",
    "answer",
    "answer_request",
    "expired",
    "failed",
    "pool_status",
]

#: How many pools an answer holds if `spec.limit` is absent.
DEFAULT_LIMIT = 100
#: How long after its condition an answered request is deleted.
COMPLETED_TTL = timedelta(hours=1)
#: How long after its creation a request without answer is deleted.
PENDING_TTL = timedelta(hours=24)

#: Bytes that `validationError` holds at most.
_ERROR_BYTES = 256


def answer_request(
    request: ResourcePoolStatusRequest,
    cluster: ClusterObjects,
    *,
    now: datetime,
    features: Features | None = None,
) -> ResourcePoolStatusRequest:
    """`answer` for the objects of a cluster."""
    return answer(request, cluster.slices(), cluster.claims(), cluster.rules(), now=now, features=features)


def answer(
    request: ResourcePoolStatusRequest,
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    rules: Iterable[DeviceTaintRule] = (),
    *,
    now: datetime,
    features: Features | None = None,
) -> ResourcePoolStatusRequest:
    """The request with its status. One that has a status comes back as it is.

    Pools are sorted by driver and name; `poolCount` counts all that match, `pools` holds the first `spec.limit`. An
    incomplete pool is answered with its `validationError`; the controller tries such a request a few times before.

    Raises AllocationError (`unsupported`) with the gate off, ValidationError for a request that the API would refuse.
    """
    features = features or Features()
    if not features.DRAResourcePoolStatus:
        raise gate_off(f"ResourcePoolStatusRequest {request.metadata.name}", "DRAResourcePoolStatus")
    if request.status is not None:
        return request
    if problems := validate(request, features=features):
        raise ValidationError(problems)
    moment = aware(now).replace(microsecond=0)
    spec = request.spec
    wanted = [
        item for item in slices if item.spec.driver == spec.driver and spec.pool_name in (None, "", item.spec.pool.name)
    ]
    pools = pool_status(
        wanted, claims, rules, default_partition_type=spec.default_partition_type_attribute, features=features
    )
    shown = pools[: DEFAULT_LIMIT if spec.limit is None else spec.limit]
    incomplete = sum(pool.validation_error is not None for pool in shown)
    message = f"Calculated status for {len(shown)} pools" + (f" ({incomplete} incomplete)" if incomplete else "")
    done = Condition(
        type="Complete", status="True", reason="CalculationComplete", message=message, last_transition_time=moment
    )
    status = ResourcePoolStatusRequestStatus(pool_count=len(pools), pools=shown, conditions=(done,))
    return attrs.evolve(request, status=status)


def failed(request: ResourcePoolStatusRequest, message: str, *, now: datetime) -> ResourcePoolStatusRequest:
    """The request with the status of a calculation that failed, for instance because objects could not be listed.

    One that has a status comes back as it is.
    """
    if request.status is not None:
        return request
    condition = Condition(
        type="Failed",
        status="True",
        reason="CalculationFailed",
        message=message,
        last_transition_time=aware(now).replace(microsecond=0),
    )
    return attrs.evolve(request, status=ResourcePoolStatusRequestStatus(conditions=(condition,)))


def pool_status(
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    rules: Iterable[DeviceTaintRule] = (),
    *,
    default_partition_type: str | None = None,
    features: Features | None = None,
) -> tuple[PoolStatus, ...]:
    """The state of every pool in these slices, by driver and name; no request and no gate needed.

    Of the devices in the newest slices, a device counts as allocated (once, however many shares), else as
    unavailable with a taint NoSchedule or NoExecute, else as available: the numbers add up. Results with admin access
    use nothing up. default_partition_type: the attribute that names partition types in slices that declare none; with
    it and DRAPartitionableDevicesType off, raises AllocationError (`unsupported`).
    """
    features = features or Features()
    if default_partition_type and not features.DRAPartitionableDevicesType:
        raise gate_off(f"grouping by {default_partition_type}", "DRAPartitionableDevicesType")
    slices = tuple(slices)
    taints = DeviceTaints(slices, rules, features)
    in_use, consumed = _usage(claims)
    pools = (
        Pool(
            driver=key[0],
            name=key[1],
            slices=tuple(parts),
            in_use=frozenset(in_use.get(key, ())),
            consumed=consumed.get(key, {}),
            partition_attribute=default_partition_type,
            with_types=features.DRAPartitionableDevicesType,
        )
        for key, parts in sorted(newest_slices(slices).items())
    )
    return tuple(_status(pool, taints) for pool in pools)


def expired(request: ResourcePoolStatusRequest, now: datetime) -> bool:
    """Whether the controller deletes the request: an hour after its answer, or a day after its creation."""
    moment = aware(now)
    created = request.metadata.creation_timestamp
    if request.status is None:
        return created is not None and moment - created > PENDING_TTL
    done = (item for item in request.status.conditions if item.type in ("Complete", "Failed"))
    since = next((item.last_transition_time for item in done), created)
    return since is not None and moment - since > COMPLETED_TTL


_Key = tuple[str, str]


def _usage(claims: Iterable[ResourceClaim]) -> tuple[dict[_Key, set[str]], dict[_Key, dict[str, Quantity]]]:
    """By pool: the names of devices in use, and what is consumed of each capacity. Results with admin access aside."""
    in_use: dict[_Key, set[str]] = {}
    consumed: dict[_Key, dict[str, Quantity]] = {}
    for claim in claims:
        if claim.status is None or claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            if result.admin_access:
                continue
            key = (result.driver, result.pool)
            in_use.setdefault(key, set()).add(result.device)
            sums = consumed.setdefault(key, {})
            for name, amount in result.consumed_capacity.items():
                sums[name] = amount.with_nano(amount.nano + sums[name].nano) if name in sums else amount
    return in_use, consumed


def _status(pool: Pool, taints: DeviceTaints) -> PoolStatus:
    first = pool.slices[0].spec.pool
    nodes = {part.spec.node_name or None for part in pool.slices}
    status = PoolStatus(
        driver=pool.driver,
        pool_name=pool.name,
        generation=first.generation,
        node_name=nodes.pop() if len(nodes) == 1 else None,
    )
    if len(pool.slices) < first.resource_slice_count:
        error = (
            f"PoolIncomplete: pool {pool.driver}/{pool.name} is incomplete: observed "
            f"{len(pool.slices)}/{first.resource_slice_count} slices at generation {first.generation}"
        )
        return attrs.evolve(status, validation_error=_cut(error))
    return _with_views(_with_counts(status, pool, taints), pool)


def _with_counts(status: PoolStatus, pool: Pool, taints: DeviceTaints) -> PoolStatus:
    devices = pool.devices
    allocated = sum(device.name in pool.in_use for device in devices)
    unavailable = sum(
        any(item.taint.effect in BLOCKING_EFFECTS for item in taints.of(DeviceId(pool.driver, pool.name, device.name)))
        for device in devices
        if device.name not in pool.in_use
    )
    return attrs.evolve(
        status,
        resource_slice_count=len(pool.slices),
        total_devices=len(devices),
        allocated_devices=allocated,
        available_devices=len(devices) - allocated - unavailable,
        unavailable_devices=unavailable,
    )


def _with_views(status: PoolStatus, pool: Pool) -> PoolStatus:
    """With both summaries, or the error of the first that fails; such an error leaves no partition summary."""
    errors: list[str] = []
    partitions: tuple[PartitionTypeStatus, ...] = ()
    shareable: ShareableSummaryStatus | None = None
    try:
        partitions = partition_summary(pool)
    except ViewError as error:
        errors.append(str(error))
    try:
        shareable = shareable_summary(pool)
    except ViewError as error:
        errors.append(str(error))
    return attrs.evolve(
        status,
        partition_summary=() if errors else partitions,
        shareable_summary=shareable,
        validation_error=_cut(errors[0]) if errors else None,
    )


def _cut(error: str) -> str:
    return error.encode()[:_ERROR_BYTES].decode(errors="ignore")
