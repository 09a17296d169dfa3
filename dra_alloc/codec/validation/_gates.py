"""Fields of features that are switched off: the API server drops them when an object is written.

It keeps them where the stored object uses the feature already. So does this module, from one table: which fields
belong to which gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import attrs

from dra_alloc.api import (
    DeviceClass,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Workload,
)
from dra_alloc.codec.schema import Field, fields
from dra_alloc.gates import Features

__all__ = ["Dropped", "disabled_fields", "drop_disabled"]

T = TypeVar("T")

#: Steps from an object to fields. `[]` goes through a list, `{}` through the values of a map; `a|b` are several fields.
Path = str

_REQUESTS = ("requests[].exactly", "requests[].first_available[]")


def _of_requests(devices: str, fields: str) -> tuple[Path, ...]:
    return tuple(f"{devices}.{request}.{fields}" for request in _REQUESTS)


def _claim_fields(devices: str) -> dict[str, tuple[Path, ...]]:
    """Fields of the specification of a claim by gate, below the given path."""
    return {
        "DRAAdminAccess": (f"{devices}.requests[].exactly.admin_access",),
        "DRAPrioritizedList": (f"{devices}.requests[].first_available",),
        "DRADeviceTaints": _of_requests(devices, "tolerations"),
        "DRAConsumableCapacity": (
            *_of_requests(devices, "capacity"),
            f"{devices}.constraints[].distinct_attribute",
        ),
        "DRADerivedAttributes": _of_requests(devices, "derived_attributes"),
    }


_RESULT = "status.allocation.devices.results[]"
_BINDING = "binding_conditions|binding_failure_conditions"

_CLAIM_STATUS: dict[str, tuple[Path, ...]] = {
    "DRAAdminAccess": (f"{_RESULT}.admin_access",),
    "DRADeviceTaints": (f"{_RESULT}.tolerations",),
    "DRADeviceBindingConditions": (f"{_RESULT}.{_BINDING}", "status.allocation.allocation_timestamp"),
    "DRAConsumableCapacity": (f"{_RESULT}.share_id|consumed_capacity", "status.devices[].share_id"),
    "DRAOptionalNodeOperations": (f"{_RESULT}.skip_node_operations",),
    "DRAResourceClaimDeviceStatus": ("status.devices",),
}

_DEVICE: dict[str, tuple[Path, ...]] = {
    "DRAPartitionableDevices": ("consumes_counters|node_name|node_selector|all_nodes",),
    "DRADeviceTaints": ("taints",),
    "DRADeviceBindingConditions": (f"{_BINDING}|binds_to_node",),
    "DRAConsumableCapacity": ("allow_multiple_allocations", "capacity{}.request_policy"),
    "DRADeviceCompatibilityGroups": ("consumes_counters[].compatibility_groups",),
    "DRAListTypeAttributes": ("attributes{}.ints|bools|strings|versions",),
    "DRANodeAllocatableResources": ("node_allocatable_resources",),
}

_SLICE: dict[str, tuple[Path, ...]] = {
    "DRAPartitionableDevices": ("spec.shared_counters|per_device_node_selection",),
    "DRAOptionalNodeOperations": ("spec.skip_node_operations",),
    "DRAPartitionableDevicesType": ("spec.partition_type_attribute",),
}


def _merged(*tables: Mapping[str, tuple[Path, ...]]) -> dict[str, tuple[Path, ...]]:
    gates = {gate for table in tables for gate in table}
    return {gate: tuple(path for table in tables for path in table.get(gate, ())) for gate in sorted(gates)}


def _below(prefix: str, table: Mapping[str, tuple[Path, ...]]) -> dict[str, tuple[Path, ...]]:
    return {gate: tuple(f"{prefix}.{path}" for path in paths) for gate, paths in table.items()}


_FIELDS: dict[type, dict[str, tuple[Path, ...]]] = {
    ResourceSlice: _merged(_SLICE, _below("spec.devices[]", _DEVICE)),
    DeviceClass: {"DRAExtendedResource": ("spec.extended_resource_name",)},
    ResourceClaim: _merged(_claim_fields("spec.devices"), _CLAIM_STATUS),
    ResourceClaimTemplate: _claim_fields("spec.spec.devices"),
    Pod: {
        "DRAExtendedResource": ("status.extended_resource_claim_status",),
        "DRANodeAllocatableResources": ("status.node_allocatable_resource_claim_statuses",),
    },
    PodGroup: {"DRAWorkloadResourceClaims": ("spec.resource_claims", "status.resource_claim_statuses")},
    Workload: {"DRAWorkloadResourceClaims": ("spec.pod_group_templates[].resource_claims",)},
}

#: Gates that work only together with another one.
_NEEDS = {
    "DRADeviceBindingConditions": "DRAResourceClaimDeviceStatus",
    "DRADeviceCompatibilityGroups": "DRAPartitionableDevices",
}


@attrs.frozen
class Dropped:
    """A field that is not stored, and the gate that it needs."""

    path: str
    gate: str


def disabled_fields(new: object, old: object, features: Features) -> Iterator[Dropped]:
    """The fields of `new` that are not stored because their gates are off and `old` does not use them."""
    for gate, paths in _off(new, old, features):
        for path in paths:
            for place in _places(new, _steps(path), ""):
                yield Dropped(place, gate)


def drop_disabled(new: T, old: object, features: Features) -> T:
    """The object as the API server stores it."""
    for _, paths in _off(new, old, features):
        for path in paths:
            new = _cleared(new, _steps(path))
    return new


def _off(new: object, old: object, features: Features) -> Iterator[tuple[str, tuple[Path, ...]]]:
    for gate, paths in _FIELDS.get(type(new), {}).items():
        needs = _NEEDS.get(gate, gate)
        on = getattr(features, gate) and getattr(features, needs)
        if not on and not any(_used(old, _steps(path)) for path in paths):
            yield gate, paths


@cache
def _steps(path: Path) -> tuple[str, ...]:
    return tuple(path.replace("[]", ".[]").replace("{}", ".{}").split("."))


@attrs.frozen
class _Leaf:
    """The fields of a class that the last step of a path names."""

    fields: tuple[Field, ...]
    defaults: tuple[object, ...]
    values: Callable[[Any], tuple[object, ...]]

    def set_in(self, value: object) -> list[Field]:
        """The fields that are not as the API leaves them out. Almost always none, which must cost next to nothing."""
        found = self.values(value)
        if found == self.defaults:
            return []
        return [field for field, got, default in zip(self.fields, found, self.defaults, strict=True) if got != default]


_LEAVES: dict[tuple[type[Any], str], _Leaf] = {}


def _leaf(cls: type[Any], step: str) -> _Leaf:
    """The leaf of a step. There are as many pairs of class and step as in the table."""
    found = _LEAVES.get((cls, step))
    if found is None:
        names = step.split("|")
        leaves = tuple(field for field in fields(cls) if field.name in names)
        getters = [attrgetter(field.name) for field in leaves]
        several = attrgetter(*(field.name for field in leaves))
        # One name alone is given as it is, several as a tuple.
        values = several if len(leaves) > 1 else lambda value: (getters[0](value),)
        found = _LEAVES[cls, step] = _Leaf(leaves, tuple(field.default_value for field in leaves), values)
    return found


def _used(value: Any, steps: tuple[str, ...]) -> bool:
    return next(_places(value, steps, ""), None) is not None


def _places(value: Any, steps: tuple[str, ...], at: str) -> Iterator[str]:
    """Paths of the fields that are set."""
    if value is None:
        return
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for index, item in enumerate(value):
            yield from _places(item, rest, f"{at}[{index}]")
    elif step == "{}":
        for key, item in value.items():
            if len(rest) == 1 and not _leaf(type(item), rest[0]).set_in(item):
                continue
            yield from _places(item, rest, f"{at}[{key[:96]}]")
    elif rest:
        yield from _places(getattr(value, step), rest, f"{at}.{_leaf(type(value), step).fields[0].json}")
    else:
        for field in _leaf(type(value), step).set_in(value):
            yield f"{at}.{field.json}".lstrip(".")


def _cleared(value: Any, steps: tuple[str, ...]) -> Any:
    """The value without the fields; the very same one if they are not set, so that nothing is copied for nothing."""
    if value is None:
        return value
    step, rest = steps[0], steps[1:]
    if step == "[]":
        items = tuple(_cleared(item, rest) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if step == "{}":
        changed = {key: new for key, item in value.items() if (new := _cleared(item, rest)) is not item}
        return {**value, **changed} if changed else value
    if rest:
        field = getattr(value, step)
        inner = _cleared(field, rest)
        return value if inner is field else attrs.evolve(value, **{step: inner})
    left_out = {field.name: field.default_value for field in _leaf(type(value), step).set_in(value)}
    return attrs.evolve(value, **left_out) if left_out else value
