"""Binding conditions (KEP-5007): whether a pod may be bound to its node yet, and what to undo when it may not.

Gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus, both needed. Devices that are attached after
allocation name conditions, which their driver reports in `status.devices[].conditions`; the scheduler waits for them
before it binds. Everything here is a function of objects and a time; nothing waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import Enum

import attrs

from dra_alloc.api import AllocatedDeviceStatus, Pod, ResourceClaim
from dra_alloc.features._consumers import refers_to
from dra_alloc.features._objects import DeviceId, aware, key_of, refused
from dra_alloc.gates import Features

__all__ = [
    "DEFAULT_TIMEOUT",
    "POLL_PERIOD",
    "BindingState",
    "Readiness",
    "RetryPlan",
    "claim_readiness",
    "deallocate",
    "pod_readiness",
    "retry_plan",
    "unreserve",
]

#: How long the scheduler waits unless `DynamicResourcesArgs.bindingTimeout` says otherwise.
DEFAULT_TIMEOUT = timedelta(seconds=600)
#: How often it looks.
POLL_PERIOD = timedelta(seconds=5)


class BindingState(Enum):
    """Where a claim, or a pod with all its claims, stands on the way to being bound."""

    UNALLOCATED = "unallocated"
    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


@attrs.frozen
class Readiness:
    """The state at a time, and the reason for it.

    claim: `namespace/name` of the claim that decides, empty when ready. device, condition: what is waited for, or what
    failed; None and empty where no single one does. deadline: when a pending claim times out; None without one.
    """

    state: BindingState
    claim: str = ""
    device: DeviceId | None = None
    condition: str = ""
    deadline: datetime | None = None

    def __str__(self) -> str:
        device = f"device {self.device} of claim {self.claim}"
        match self.state:
            case BindingState.READY:
                return "ready to bind"
            case BindingState.UNALLOCATED:
                return f"claim {self.claim} is not allocated"
            case BindingState.PENDING:
                return f"{device} waits for condition {self.condition}"
            case BindingState.FAILED:
                return f"{device} has failure condition {self.condition}"
            case BindingState.TIMED_OUT:
                return f"{device} did not reach condition {self.condition} in time"


def claim_readiness(
    claim: ResourceClaim, *, now: datetime, timeout: timedelta = DEFAULT_TIMEOUT, features: Features | None = None
) -> Readiness:
    """Whether the devices of a claim let its pod be bound.

    Results are looked at in order, and the first device that is not ready decides: with a failure condition that is
    True the claim has failed, otherwise it is pending while a binding condition is missing or not True. Only the first
    entry of `status.devices` for driver, pool and device counts. A pending claim has timed out when
    `allocationTimestamp` + timeout lies before `now`; without timestamp it never does.

    With a gate off nothing is waited for. Raises ValidationError for a timeout under a second, or a time without zone.
    """
    moment = aware(now)
    limit = _checked(timeout)
    key = key_of(claim.metadata)
    if claim.status is None or claim.status.allocation is None:
        return Readiness(BindingState.UNALLOCATED, key)
    if not _enabled(features):
        return Readiness(BindingState.READY)
    started = claim.status.allocation.allocation_timestamp
    deadline = _later(started, limit) if started else None
    for result in claim.status.allocation.devices.results:
        if not result.binding_conditions:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        true = _true_conditions(claim.status.devices, device)
        failed = next((name for name in result.binding_failure_conditions if name in true), None)
        if failed is not None:
            return Readiness(BindingState.FAILED, key, device, failed)
        missing = next((name for name in result.binding_conditions if name not in true), None)
        if missing is not None:
            late = deadline is not None and deadline < moment
            return Readiness(BindingState.TIMED_OUT if late else BindingState.PENDING, key, device, missing, deadline)
    return Readiness(BindingState.READY)


def pod_readiness(
    claims: Iterable[ResourceClaim],
    *,
    now: datetime,
    waiting_since: datetime | None = None,
    timeout: timedelta = DEFAULT_TIMEOUT,
    features: Features | None = None,
) -> Readiness:
    """Whether a pod with these claims may be bound: what its first claim that is not ready says.

    claims: in the order of the pod's specification.
    waiting_since: when the scheduler began to wait for this pod; the wait too is bounded by the timeout, whatever the
    timestamps of the claims say. Raises what `claim_readiness` raises.
    """
    for claim in claims:
        found = claim_readiness(claim, now=now, timeout=timeout, features=features)
        if found.state is BindingState.READY:
            continue
        if found.state is BindingState.PENDING and waiting_since is not None:
            end = _later(aware(waiting_since), timeout)
            deadline = min(end, found.deadline or end)
            state = BindingState.TIMED_OUT if end <= aware(now) else found.state
            return attrs.evolve(found, state=state, deadline=deadline)
        return found
    return Readiness(BindingState.READY)


@attrs.frozen
class RetryPlan:
    """What the scheduler undoes for a pod that cannot be bound.

    unreserved: claims (new versions) without the pod in `reservedFor`; written at once, their allocation stays.
    candidates: claims, as `namespace/name`, that cannot become ready and belong to nobody else; once no node is left
    for the pod, the scheduler deallocates one of them and tries the pod again.
    blocked: claims that cannot become ready but are reserved for others too: the pod waits until those have gone.
    """

    unreserved: tuple[ResourceClaim, ...]
    candidates: tuple[str, ...]
    blocked: tuple[str, ...]

    @property
    def deallocated(self) -> ResourceClaim | None:
        """The first candidate without its allocation, to be written when no node is left; the scheduler takes any."""
        return next((deallocate(claim) for claim in self.unreserved if key_of(claim.metadata) in self.candidates), None)


def retry_plan(
    pod: Pod,
    claims: Sequence[ResourceClaim],
    *,
    now: datetime,
    timeout: timedelta = DEFAULT_TIMEOUT,
    features: Features | None = None,
) -> RetryPlan:
    """What to release and retry for a pod whose claims failed or timed out (Unreserve and PostFilter of the scheduler).

    claims: the pod's, in order. Raises what `claim_readiness` raises.
    """
    broken = [
        key_of(claim.metadata)
        for claim in claims
        if claim_readiness(claim, now=now, timeout=timeout, features=features).state
        in (BindingState.FAILED, BindingState.TIMED_OUT)
    ]
    unreserved = tuple(unreserve(claim, pod) for claim in claims)
    shared = {key_of(claim.metadata) for claim in unreserved if claim.status and claim.status.reserved_for}
    return RetryPlan(
        unreserved=unreserved,
        candidates=tuple(key for key in broken if key not in shared),
        blocked=tuple(key for key in broken if key in shared),
    )


def unreserve(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The claim without the pod in `status.reservedFor`; its allocation stays."""
    if claim.status is None:
        return claim
    kept = tuple(consumer for consumer in claim.status.reserved_for if not refers_to(consumer, pod))
    return attrs.evolve(claim, status=attrs.evolve(claim.status, reserved_for=kept))


def deallocate(claim: ResourceClaim) -> ResourceClaim:
    """The claim without allocation, reservations and device status, so that its conditions do not outlive them."""
    if claim.status is None:
        return claim
    return attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=None, reserved_for=(), devices=()))


def _enabled(features: Features | None) -> bool:
    features = features or Features()
    return features.DRADeviceBindingConditions and features.DRAResourceClaimDeviceStatus


def _checked(timeout: timedelta) -> timedelta:
    if timeout < timedelta(seconds=1):
        raise refused("bindingTimeout", f"{timeout.total_seconds():g} s is too short", "at least 1 s")
    return timeout


def _later(start: datetime, delay: timedelta) -> datetime:
    try:
        return start + delay
    except OverflowError:
        return datetime.max.replace(tzinfo=start.tzinfo)


def _true_conditions(entries: Iterable[AllocatedDeviceStatus], device: DeviceId) -> frozenset[str]:
    """The conditions with status True in the first entry of the device; its share does not matter."""
    entry = next((item for item in entries if (item.driver, item.pool, item.device) == device), None)
    return frozenset(item.type for item in entry.conditions if item.status == "True") if entry else frozenset()
