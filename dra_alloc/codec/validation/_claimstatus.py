"""The status of a claim: its allocation, who it is reserved for, what drivers report (KEP-4817)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dra_alloc.api import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    Namespace,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation import _parts as parts
from dra_alloc.codec.validation._meta import node_selector, object_conditions
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    byte_length,
    duplicate,
    forbidden,
    immutable,
    keyed,
    listed,
    one_of,
    required,
    too_long,
)
from dra_alloc.codec.validation._references import request_names, request_reference, request_references
from dra_alloc.gates import Features

__all__ = ["claim_status", "without_stale_devices"]

RESULTS_MAX = 32
RESULT_CONFIG_MAX = 64
RESERVED_FOR_MAX = 256
CONDITIONS_MAX = 8
IPS_MAX = 16
INTERFACE_NAME_MAX = 256
HARDWARE_ADDRESS_MAX = 128

#: driver, pool, device, share: what tells the devices of an allocation apart.
Key = tuple[str, str, str, str | None]


def claim_status(
    new: ResourceClaim, old: ResourceClaim | None, features: Features, namespace: Namespace | None
) -> Iterator[Problem]:
    """All problems of the status, seen from it."""
    before = (old.status if old else None) or ResourceClaimStatus()
    status = without_stale_devices(new.status or ResourceClaimStatus(), before)
    yield from keyed(status.reserved_for, RESERVED_FOR_MAX, _consumer, lambda item: item.uid, "reservedFor")
    yield from at("reservedFor", _reservation(new, status, before))
    yield from _allocation(new, status, before, namespace)
    yield from _devices(status)


def without_stale_devices(status: ResourceClaimStatus, before: ResourceClaimStatus) -> ResourceClaimStatus:
    """The status without reports on devices that it no longer has allocated, which the server drops by itself."""
    gone = _allocated(before.allocation) - _allocated(status.allocation)
    kept = tuple(item for item in status.devices if _key(item) not in gone)
    return status if len(kept) == len(status.devices) else attrs.evolve(status, devices=kept)


def _key(item: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> Key:
    return item.driver, item.pool, item.device, item.share_id


def _allocated(allocation: AllocationResult | None) -> set[Key]:
    return set() if allocation is None else {_key(result) for result in allocation.devices.results}


def _consumer(item: ResourceClaimConsumerReference) -> Iterator[Problem]:
    for field, value in {"resource": item.resource, "name": item.name, "uid": item.uid}.items():
        if not value:
            yield from at(field, [required()])


def _reservation(claim: ResourceClaim, status: ResourceClaimStatus, before: ResourceClaimStatus) -> Iterator[Problem]:
    if not status.reserved_for:
        return
    if status.allocation is None:
        yield forbidden("is set on a claim that is not allocated", "allocation, or no reservation")
    elif claim.metadata.deletion_timestamp is not None and not set(status.reserved_for) <= set(before.reserved_for):
        yield forbidden("has new entries although the claim is being deleted", "entries can only be removed")


def _allocation(
    claim: ResourceClaim, status: ResourceClaimStatus, before: ResourceClaimStatus, namespace: Namespace | None
) -> Iterator[Problem]:
    allocation = status.allocation
    if allocation is None:
        return
    if before.allocation is not None:
        for problem in immutable("allocation", allocation, before.allocation):
            yield attrs.evolve(problem, hint="remove the allocation first, then set the new one")
        return
    names = request_names(claim.spec.devices)
    results, config = allocation.devices.results, allocation.devices.config
    field = "allocation.devices.results"
    yield from listed(results, RESULTS_MAX, lambda item: _result(item, names), field)
    yield from at("allocation.devices", listed(config, RESULT_CONFIG_MAX, lambda item: _config(item, names), "config"))
    if allocation.node_selector is not None:
        yield from at("allocation.nodeSelector", node_selector(allocation.node_selector))
    if namespace is not None:
        yield from _admin_access(results, namespace, field)


def _admin_access(
    results: Sequence[DeviceRequestAllocationResult], namespace: Namespace, field: str
) -> Iterator[Problem]:
    from dra_alloc.codec.validation._claims import ADMIN_ACCESS_LABEL, has_admin_access

    if has_admin_access(namespace):
        return
    for index, result in enumerate(results):
        if result.admin_access:
            fault = f"is not allowed in namespace {namespace.metadata.name!r}"
            hint = f'the namespace needs the label {ADMIN_ACCESS_LABEL}: "true"'
            yield from at(f"{field}[{index}].adminAccess", [forbidden(fault, hint)])
            return


def _result(item: DeviceRequestAllocationResult, names: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    yield from at("request", request_reference(item.request, names))
    yield from _device_id(item)
    yield from parts.bindings(item.binding_conditions, item.binding_failure_conditions)
    yield from parts.tolerations(item.tolerations)
    yield from parts.skip_node_operations(item.skip_node_operations)


def _device_id(item: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> Iterator[Problem]:
    yield from at("driver", formats.driver_name(item.driver))
    yield from at("pool", formats.pool_name(item.pool))
    yield from at("device", formats.label(item.device))
    if item.share_id is not None:
        yield from at("shareID", formats.share_id(item.share_id))


def _config(item: DeviceAllocationConfiguration, names: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    yield from at("source", one_of(item.source, ("FromClass", "FromClaim")))
    yield from request_references(item.requests, names)
    yield from parts.opaque(item.opaque)


def _devices(status: ResourceClaimStatus) -> Iterator[Problem]:
    allocated = _allocated(status.allocation)
    seen: set[Key] = set()
    for index, item in enumerate(status.devices):
        field, key = f"devices[{index}]", _key(item)
        yield from at(field, _device(item))
        share = f", share {item.share_id}" if item.share_id else ""
        if key not in allocated:
            name = f"{item.driver}/{item.pool}/{item.device}{share}"
            yield from at(field, [Problem("", f"{name} is not allocated to the claim", "one of allocation.devices")])
        if key in seen:
            yield from at(field, [duplicate(f"{item.driver}/{item.pool}/{item.device}{share}")])
        seen.add(key)


def _device(item: AllocatedDeviceStatus) -> Iterator[Problem]:
    yield from _device_id(item)
    yield from object_conditions(item.conditions, CONDITIONS_MAX)
    if item.data is not None:
        yield from at("data", parts.json_object(item.data))
    if item.network_data is not None:
        yield from at("networkData", _network(item.network_data))


def _network(data: NetworkDeviceData) -> Iterator[Problem]:
    limits = {
        "interfaceName": (data.interface_name, INTERFACE_NAME_MAX),
        "hardwareAddress": (data.hardware_address, HARDWARE_ADDRESS_MAX),
    }
    for field, (text, limit) in limits.items():
        if text is not None and (length := byte_length(text)) > limit:
            yield from at(field, [too_long(length, limit)])
    yield from keyed(data.ips, IPS_MAX, formats.interface_address, str, "ips")
