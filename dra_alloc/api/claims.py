"""ResourceClaim and ResourceClaimTemplate: what is asked for, and what was allocated."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model, json_name
from dra_alloc.api.classes import DeviceSelector, OpaqueDeviceConfiguration
from dra_alloc.api.meta import Condition, KubernetesObject, NodeSelector, ObjectMeta
from dra_alloc.api.quantity import Quantity

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CapacityRequirements",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceConstraint",
    "DeviceDerivedAttribute",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSubRequest",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
]


@attrs.frozen(kw_only=True)
class DeviceToleration(Model):
    """A taint that a request accepts (KEP-5055).

    `operator` is Equal (also when None) or Exists; no key means all keys, no effect all effects. `toleration_seconds`
    bounds how long a NoExecute taint is tolerated; None is forever.
    """

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


@attrs.frozen(kw_only=True)
class CapacityRequirements(Model):
    """Amounts of capacities that a request needs, by name of the capacity (KEP-5075)."""

    requests: dict[str, Quantity] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class DeviceDerivedAttribute(Model):
    """An attribute that a CEL expression computes for constraints (KEP-6080); `name` is qualified (`domain/name`)."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    expression: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class ExactDeviceRequest(Model):
    """Devices of one class.

    `allocation_mode` is ExactCount (also when None) or All; `count` counts as 1 when absent or 0.
    `admin_access` (KEP-5018) asks for devices whoever uses them.
    """

    device_class_name: str = attrs.field(default="", metadata=REQUIRED)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceSubRequest(Model):
    """One alternative of `first_available` (KEP-4816), with the fields of ExactDeviceRequest but for admin access."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    device_class_name: str = attrs.field(default="", metadata=REQUIRED)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str | None = None
    count: int | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceRequest(Model):
    """A named request: `exactly`, or the first of the alternatives in `first_available` (KEP-4816) that can be had."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceConstraint(Model):
    """A condition over all devices of `requests` (none: of the whole claim).

    They have a common value of `match_attribute`, or no two have one of `distinct_attribute` in common; both names
    are qualified.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


@attrs.frozen(kw_only=True)
class DeviceClaimConfiguration(Model):
    """Configuration for the devices of `requests` (none: of the whole claim)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


@attrs.frozen(kw_only=True)
class DeviceClaim(Model):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


@attrs.frozen(kw_only=True)
class ResourceClaimSpec(Model):
    """The specification of a claim, immutable in the API."""

    devices: DeviceClaim = attrs.field(factory=DeviceClaim)


@attrs.frozen(kw_only=True)
class DeviceRequestAllocationResult(Model):
    """One device, or one share of it, that a request got.

    `request` is `request` or `request/subrequest`. `share_id` (a UUID) and `consumed_capacity` are set for devices that
    allow multiple allocations (KEP-5075); `skip_node_operations` is the slice's (KEP-5945).
    """

    request: str = attrs.field(default="", metadata=REQUIRED)
    driver: str = attrs.field(default="", metadata=REQUIRED)
    pool: str = attrs.field(default="", metadata=REQUIRED)
    device: str = attrs.field(default="", metadata=REQUIRED)
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = attrs.field(default=None, metadata=json_name("shareID"))
    consumed_capacity: dict[str, Quantity] = attrs.field(factory=dict)
    skip_node_operations: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceAllocationConfiguration(Model):
    """Configuration that goes with an allocation; `source` is FromClass or FromClaim, no `requests` means all."""

    source: str = attrs.field(default="", metadata=REQUIRED)
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


@attrs.frozen(kw_only=True)
class DeviceAllocationResult(Model):
    """The devices of an allocation and the configuration for them."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


@attrs.frozen(kw_only=True)
class AllocationResult(Model):
    """What a claim got, and the nodes it can be used on (`node_selector`, None: all).

    `allocation_timestamp` is set where binding conditions are used (KEP-5007).
    """

    devices: DeviceAllocationResult = attrs.field(factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


@attrs.frozen(kw_only=True)
class ResourceClaimConsumerReference(Model):
    """Who may use a claim: a pod (`api_group` None, `resource` pods) or, for instance, a PodGroup (KEP-5729)."""

    api_group: str | None = None
    resource: str = attrs.field(default="", metadata=REQUIRED)
    name: str = attrs.field(default="", metadata=REQUIRED)
    uid: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class NetworkDeviceData(Model):
    """Network facts of an allocated device (KEP-4817). `ips` are addresses with their prefix length (CIDR)."""

    interface_name: str | None = None
    ips: tuple[str, ...] = ()
    hardware_address: str | None = None


@attrs.frozen(kw_only=True)
class AllocatedDeviceStatus(Model):
    """What a driver reports about an allocated device (KEP-4817). `data` is any JSON value."""

    driver: str = attrs.field(default="", metadata=REQUIRED)
    pool: str = attrs.field(default="", metadata=REQUIRED)
    device: str = attrs.field(default="", metadata=REQUIRED)
    share_id: str | None = attrs.field(default=None, metadata=json_name("shareID"))
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: NetworkDeviceData | None = None


@attrs.frozen(kw_only=True)
class ResourceClaimStatus(Model):
    """The allocation of a claim (None: not allocated), who it is reserved for, and reports on its devices."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


@attrs.frozen(kw_only=True)
class ResourceClaim(KubernetesObject):
    """A claim to devices (KEP-4381)."""

    kind: ClassVar[str] = "ResourceClaim"
    api_version: ClassVar[str] = "resource.k8s.io/v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ResourceClaimSpec = attrs.field(factory=ResourceClaimSpec, metadata=REQUIRED)
    status: ResourceClaimStatus | None = None


@attrs.frozen(kw_only=True)
class ResourceClaimTemplateSpec(Model):
    """The claim that is made from a template; of its metadata only labels and annotations are used."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ResourceClaimSpec = attrs.field(factory=ResourceClaimSpec, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class ResourceClaimTemplate(KubernetesObject):
    """A template from which each pod, or PodGroup, gets a claim of its own."""

    kind: ClassVar[str] = "ResourceClaimTemplate"
    api_version: ClassVar[str] = "resource.k8s.io/v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ResourceClaimTemplateSpec = attrs.field(factory=ResourceClaimTemplateSpec, metadata=REQUIRED)
