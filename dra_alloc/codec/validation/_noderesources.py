"""What a device means for the resources of its node (KEP-5517)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dra_alloc.api import (
    DeviceCapacity,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    Quantity,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._problems import Problem, at, invalid, required

__all__ = ["node_resource"]

_NODE_RESOURCE_RE = re.compile(r"cpu|memory|ephemeral-storage|hugepages-.+")


def node_resource(
    resource: str, entry: NodeAllocatableResource, capacity: Mapping[str, DeviceCapacity]
) -> Iterator[Problem]:
    """One entry of `nodeAllocatableResources`, of a device with these capacities."""
    if not _NODE_RESOURCE_RE.fullmatch(resource) or formats.label_name(resource):
        hint = "cpu, memory, ephemeral-storage or hugepages-<size>"
        yield invalid(resource, "is no resource that nodes have by themselves", hint)
    if entry.mapping is None and entry.overhead is None:
        yield required("mapping, overhead or both")
    if entry.mapping is not None:
        yield from at("mapping", _mapping(entry.mapping, capacity))
    if entry.overhead is not None:
        yield from at("overhead", _overhead(entry.overhead))


def _mapping(mapping: NodeAllocatableMapping, capacity: Mapping[str, DeviceCapacity]) -> Iterator[Problem]:
    if mapping.capacity_key is not None:
        if mapping.capacity_key not in capacity:
            names = ", ".join(sorted(capacity)[:8]) or "none"
            yield from at(
                "capacityKey",
                [invalid(mapping.capacity_key, "is no capacity of the device", f"one of its capacities: {names}")],
            )
        if mapping.capacity_multiplier is None:
            yield from at("capacityMultiplier", [required("with capacityKey")])
    elif mapping.capacity_multiplier is not None:
        yield from at("capacityKey", [required("with capacityMultiplier")])
    yield from at("capacityMultiplier", _positive(mapping.capacity_multiplier))
    yield from at("deviceMultiplier", _positive(mapping.device_multiplier))
    if (mapping.capacity_key is None) == (mapping.device_multiplier is None):
        fault = "sets neither" if mapping.capacity_key is None else "sets both"
        yield Problem("", f"{fault} of capacityKey and deviceMultiplier", "exactly one")


def _positive(amount: Quantity | None) -> Iterator[Problem]:
    if amount is not None and amount.nano <= 0:
        yield invalid(amount, "is not greater than zero")


def _overhead(overhead: NodeAllocatableOverhead) -> Iterator[Problem]:
    if overhead.per_pod is None and overhead.per_container is None:
        yield required("perPod, perContainer or both")
    for field, amount in {"perPod": overhead.per_pod, "perContainer": overhead.per_container}.items():
        if amount is not None and amount.nano < 0:
            yield from at(field, [invalid(amount, "is negative")])
