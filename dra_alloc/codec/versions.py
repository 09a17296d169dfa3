"""Which kinds are read and written, in which API versions, and how the versions differ.

v1 and v1beta2 of resource.k8s.io have one shape. v1beta1 wraps devices in `basic` and has the fields of `exactly` in
the request itself. v1alpha3 does so too, gives capacities as plain quantities, and ended with Kubernetes 1.33: it lacks
what came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from dra_alloc import api
from dra_alloc.api import KubernetesObject, Model
from dra_alloc.codec.schema import fields
from dra_alloc.errors import DecodeError

__all__ = ["KINDS", "LACKING", "MISPLACED", "Kind", "Shape", "kind_of", "resolve", "split_version"]


class Shape(Enum):
    """The JSON forms of one object that differ from version to version."""

    V1 = "v1"
    V1BETA1 = "v1beta1"
    V1ALPHA3 = "v1alpha3"


@attrs.frozen
class Kind:
    """A kind of object: its class and the versions of its group that can hold it, the preferred one first."""

    cls: type[KubernetesObject]
    name: str
    group: str
    versions: Mapping[str, Shape]

    def api_version(self, version: str) -> str:
        """The `apiVersion` of a version of the group."""
        return f"{self.group}/{version}" if self.group else version


_DRA = {"v1": Shape.V1, "v1beta2": Shape.V1, "v1beta1": Shape.V1BETA1, "v1alpha3": Shape.V1ALPHA3}
_RULE = {"v1": Shape.V1, "v1beta2": Shape.V1, "v1alpha3": Shape.V1}
_SCHEDULING = {"v1beta1": Shape.V1, "v1alpha3": Shape.V1}
_RESOURCE_GROUP = "resource.k8s.io"
_SCHEDULING_GROUP = "scheduling.k8s.io"

KINDS: Mapping[tuple[str, str], Kind] = {
    (kind.group, kind.name): kind
    for kind in (
        Kind(api.ResourceSlice, "ResourceSlice", _RESOURCE_GROUP, _DRA),
        Kind(api.DeviceClass, "DeviceClass", _RESOURCE_GROUP, _DRA),
        Kind(api.ResourceClaim, "ResourceClaim", _RESOURCE_GROUP, _DRA),
        Kind(api.ResourceClaimTemplate, "ResourceClaimTemplate", _RESOURCE_GROUP, _DRA),
        Kind(api.DeviceTaintRule, "DeviceTaintRule", _RESOURCE_GROUP, _RULE),
        Kind(api.ResourcePoolStatusRequest, "ResourcePoolStatusRequest", _RESOURCE_GROUP, {"v1alpha3": Shape.V1}),
        Kind(api.PodGroup, "PodGroup", _SCHEDULING_GROUP, _SCHEDULING),
        Kind(api.Workload, "Workload", _SCHEDULING_GROUP, _SCHEDULING),
        Kind(api.Pod, "Pod", "", {"v1": Shape.V1}),
        Kind(api.Node, "Node", "", {"v1": Shape.V1}),
        Kind(api.Namespace, "Namespace", "", {"v1": Shape.V1}),
    )
}

_BY_CLASS: Mapping[type, Kind] = {kind.cls: kind for kind in KINDS.values()}

_CLASSIC = frozenset({"v1alpha1", "v1alpha2"})


def kind_of(cls: type) -> Kind | None:
    """The kind of a top-level class; None for classes that are only parts of objects."""
    return _BY_CLASS.get(cls)


def split_version(api_version: str) -> tuple[str, str]:
    """Group and version of an `apiVersion`; the core group is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


def resolve(api_version: str, kind: str) -> tuple[Kind, Shape] | None:
    """What to read an object as, or None for a kind that has nothing to do with devices.

    Raises DecodeError for versions of DRA that cannot be read and for kinds that resource.k8s.io does not have: what is
    left out there might change who gets which device.
    """
    group, version = split_version(api_version)
    found = KINDS.get((group, kind))
    if found is not None and version in found.versions:
        return found, found.versions[version]
    if group == _RESOURCE_GROUP and version in _CLASSIC:
        raise DecodeError(
            "",
            f"{kind} of {api_version} is classic Dynamic Resource Allocation, which Kubernetes 1.32 removed",
            "rewrite it for structured parameters, resource.k8s.io/v1",
        )
    if found is not None:
        known = ", ".join(found.api_version(known) for known in found.versions)
        raise DecodeError("", f"{kind} has no version {api_version!r}", f"known are {known}")
    if group == _RESOURCE_GROUP:
        names = ", ".join(sorted(known.name for known in KINDS.values() if known.group == group))
        raise DecodeError("", f"{api_version} has no kind {kind!r}", f"known are {names}")
    if not group:
        _refuse_misnamed(api_version, kind)
    return None


def _refuse_misnamed(api_version: str, kind: str) -> None:
    """The core group has no kind of DRA: whoever writes one there has forgotten the group."""
    for known in KINDS.values():
        if known.name == kind:
            right = known.api_version(next(iter(known.versions)))
            raise DecodeError("", f"{api_version} has no kind {kind!r}", f"its apiVersion is {right}")


def _without_name(cls: type[Model]) -> tuple[str, ...]:
    return tuple(key for field in fields(cls) if field.name != "name" for key in {field.json, field.name})


def _all(cls: type[Model], keys: tuple[str, ...], hint: str) -> dict[tuple[type[Model], str], str]:
    return {(cls, key): hint for key in keys}


_NO_CLASSIC = "a field of classic Dynamic Resource Allocation, which Kubernetes 1.32 removed: rewrite the object for v1"
_AMISS: Mapping[tuple[type[Model], str], str] = {
    **_all(api.ResourceClaimSpec, ("requests", "constraints", "config"), "this belongs under `devices`"),
    (
        api.ResourceClaimSpec,
        "spec",
    ): "this is the form of a ResourceClaimTemplate: in a ResourceClaim `devices` follows",
    (api.ResourceClaimTemplateSpec, "devices"): "in a template this belongs under a further `spec`",
    (api.DeviceSelector, "expression"): "this belongs under `cel`: indent it",
    **_all(
        api.ResourceClaimSpec,
        ("controller", "resourceClassName", "resource_class_name", "parametersRef", "parameters_ref", "allocationMode"),
        _NO_CLASSIC,
    ),
    **_all(
        api.ResourceClaimStatus,
        ("deallocationRequested", "deallocation_requested", "driverName", "driver_name"),
        _NO_CLASSIC,
    ),
    **_all(
        api.AllocationResult,
        ("controller", "resourceHandles", "resource_handles", "availableOnNodes", "available_on_nodes", "shareable"),
        _NO_CLASSIC,
    ),
    **_all(api.DeviceClassSpec, ("suitableNodes", "suitable_nodes"), _NO_CLASSIC),
    **_all(
        api.DeviceTaintSelector,
        ("deviceClassName", "device_class_name", "selectors"),
        "rules no longer select by class or CEL: name driver, pool and device",
    ),
}

#: Fields of the model that a shape has no place for.
LACKING: Mapping[Shape, Mapping[type[Model], frozenset[str]]] = {
    Shape.V1: {},
    Shape.V1BETA1: {},
    Shape.V1ALPHA3: {
        api.ResourceSliceSpec: frozenset({"partition_type_attribute", "skip_node_operations"}),
        api.Device: frozenset(
            {
                "binds_to_node",
                "binding_conditions",
                "binding_failure_conditions",
                "allow_multiple_allocations",
                "node_allocatable_resources",
            }
        ),
        api.DeviceAttribute: frozenset({"ints", "bools", "strings", "versions"}),
        api.DeviceCapacity: frozenset({"request_policy"}),
        api.DeviceCounterConsumption: frozenset({"compatibility_groups"}),
        api.DeviceClassSpec: frozenset({"extended_resource_name"}),
        api.ExactDeviceRequest: frozenset({"capacity", "derived_attributes"}),
        api.DeviceSubRequest: frozenset({"capacity", "derived_attributes"}),
        api.DeviceConstraint: frozenset({"distinct_attribute"}),
        api.DeviceRequestAllocationResult: frozenset(
            {
                "binding_conditions",
                "binding_failure_conditions",
                "share_id",
                "consumed_capacity",
                "skip_node_operations",
            }
        ),
        api.AllocationResult: frozenset({"allocation_timestamp"}),
        api.AllocatedDeviceStatus: frozenset({"share_id"}),
    },
}


def _later() -> dict[tuple[type[Model], str], str]:
    return {
        (cls, key): "resource.k8s.io/v1alpha3 does not have it: use resource.k8s.io/v1"
        for cls, names in LACKING[Shape.V1ALPHA3].items()
        for field in fields(cls)
        if field.name in names
        for key in {field.json, field.name}
    }


_BASIC = "in v1beta1 the fields of a device are under `basic`: move them there, or set apiVersion to resource.k8s.io/v1"
_OLD: Mapping[tuple[type[Model], str], str] = {
    **_AMISS,
    **_all(api.Device, _without_name(api.Device), _BASIC),
    (
        api.DeviceRequest,
        "exactly",
    ): "v1beta1 has these fields in the request itself: set apiVersion to resource.k8s.io/v1",
}

#: Keys that a shape does not have but another version of the object does, or the object in another place, with what to
#: do about them. Such an object is refused: dropping them would leave half of it.
MISPLACED: Mapping[Shape, Mapping[tuple[type[Model], str], str]] = {
    Shape.V1: {
        **_AMISS,
        (api.Device, "basic"): "this is the form of v1beta1: move the fields up into the device, or set apiVersion to "
        "resource.k8s.io/v1beta1",
        **_all(
            api.DeviceRequest,
            _without_name(api.ExactDeviceRequest),
            "since v1beta2 this belongs under `exactly`: move it there, or set apiVersion to resource.k8s.io/v1beta1",
        ),
    },
    Shape.V1BETA1: _OLD,
    Shape.V1ALPHA3: {**_OLD, **_later()},
}
