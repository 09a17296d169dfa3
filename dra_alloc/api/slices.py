"""ResourceSlice and what drivers publish in it: pools, devices, attributes, capacities, counters, taints."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model
from dra_alloc.api.meta import KubernetesObject, NodeSelector, ObjectMeta
from dra_alloc.api.quantity import Quantity

__all__ = [
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceCounterConsumption",
    "DeviceTaint",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableResource",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


@attrs.frozen(kw_only=True)
class DeviceAttribute(Model):
    """The value of an attribute: exactly one field is set in a valid object.

    `version` is a semantic version (semver 2.0.0). The list forms (KEP-5491) are None when absent and `()` when empty.
    """

    int: builtins.int | None = None
    bool: builtins.bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[builtins.int, ...] | None = None
    bools: tuple[builtins.bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class CapacityRequestPolicyRange(Model):
    """Amounts from `min` to `max` (None: the device's value) in steps of `step` from `min` (None: any)."""

    min: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)
    max: Quantity | None = None
    step: Quantity | None = None


@attrs.frozen(kw_only=True)
class CapacityRequestPolicy(Model):
    """How much of a capacity a request may consume (KEP-5075).

    `default` is consumed by a request that does not name the capacity. `valid_values` and `valid_range` exclude
    each other.
    """

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


@attrs.frozen(kw_only=True)
class DeviceCapacity(Model):
    """One capacity of a device; `request_policy` matters to devices that allow multiple allocations."""

    value: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)
    request_policy: CapacityRequestPolicy | None = None


@attrs.frozen(kw_only=True)
class Counter(Model):
    """The amount of a counter: available in a counter set, or consumed by a device (KEP-4815)."""

    value: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class CounterSet(Model):
    """Counters that devices of the pool share (KEP-4815)."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    counters: dict[str, Counter] = attrs.field(factory=dict, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class DeviceCounterConsumption(Model):
    """What a device consumes of one counter set (KEP-4815), and the groups it is compatible with there (KEP-5963)."""

    counter_set: str = attrs.field(default="", metadata=REQUIRED)
    counters: dict[str, Counter] = attrs.field(factory=dict, metadata=REQUIRED)
    compatibility_groups: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceTaint(Model):
    """A taint of a device (KEP-5055). `effect` is None (information only), NoSchedule or NoExecute, as a string."""

    key: str = attrs.field(default="", metadata=REQUIRED)
    value: str | None = None
    effect: str = attrs.field(default="", metadata=REQUIRED)
    time_added: datetime | None = None


@attrs.frozen(kw_only=True)
class NodeAllocatableMapping(Model):
    """How an allocation of the device counts as a node resource (KEP-5517).

    Either consumed `capacity_key` × `capacity_multiplier`, or number of devices × `device_multiplier`.
    """

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


@attrs.frozen(kw_only=True)
class NodeAllocatableOverhead(Model):
    """Node resources needed besides: once a pod, and once for each container that refers to the claim (KEP-5517)."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


@attrs.frozen(kw_only=True)
class NodeAllocatableResource(Model):
    """What a device means for one resource of its node, such as cpu or memory (KEP-5517)."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


@attrs.frozen(kw_only=True)
class Device(Model):
    """One device of a pool.

    `node_name`, `node_selector`, `all_nodes` count only in slices with `per_device_node_selection` (KEP-4815).
    `allow_multiple_allocations` lets several requests share it by capacity (KEP-5075). `binding_conditions`,
    `binding_failure_conditions`, `binds_to_node` are of KEP-5007, `node_allocatable_resources` (by resource
    name) of KEP-5517.
    Names of attributes and capacities are as published: qualified (`domain/name`) or in the domain of the driver.
    """

    name: str = attrs.field(default="", metadata=REQUIRED)
    attributes: dict[str, DeviceAttribute] = attrs.field(factory=dict)
    capacity: dict[str, DeviceCapacity] = attrs.field(factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ResourcePool(Model):
    """The pool that a slice is a part of: consumers use the newest `generation` if all its slices are there."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    generation: int = attrs.field(default=0, metadata=REQUIRED)
    resource_slice_count: int = attrs.field(default=0, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class ResourceSliceSpec(Model):
    """Devices, or the counter sets (KEP-4815), of a part of a pool, and the nodes that reach them.

    Exactly one of `node_name`, `node_selector`, `all_nodes`, `per_device_node_selection` is set in a valid object.
    `skip_node_operations` (KEP-5945) holds NodePrepareResources, NodeUnprepareResources or "*".
    `partition_type_attribute` is the qualified attribute that pool status groups partitions by (KEP-5677).
    """

    driver: str = attrs.field(default="", metadata=REQUIRED)
    pool: ResourcePool = attrs.field(factory=ResourcePool, metadata=REQUIRED)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ResourceSlice(KubernetesObject):
    """A part of a pool of devices, published by a driver (KEP-4381)."""

    kind: ClassVar[str] = "ResourceSlice"
    api_version: ClassVar[str] = "resource.k8s.io/v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ResourceSliceSpec = attrs.field(factory=ResourceSliceSpec, metadata=REQUIRED)
