"""ResourceSlice: devices, counters, and the nodes that reach them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dra_alloc.api import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation import _parts as parts
from dra_alloc.codec.validation._attributes import attribute, is_list, names_and_values
from dra_alloc.codec.validation._meta import metadata, node_selector
from dra_alloc.codec.validation._noderesources import node_resource
from dra_alloc.codec.validation._policies import request_policy
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    forbidden,
    immutable,
    invalid,
    keyed,
    listed,
    required,
    too_many,
    unique,
)
from dra_alloc.gates import Features

__all__ = ["COUNTERS_WITH_DEVICES", "resource_slice"]

COUNTERS_WITH_DEVICES = "has both devices and sharedCounters"

DEVICES_MAX = 128
DEVICES_MAX_ADVANCED = 64
COUNTER_SETS_MAX = 8
COUNTERS_MAX = 32
CONSUMPTIONS_MAX = 2
GROUPS_MAX = 2
TAINTS_MAX = 16


def resource_slice(new: ResourceSlice, old: ResourceSlice | None, features: Features) -> Iterator[Problem]:
    """All problems of a slice; with `old`, of the update from that."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=False))
    yield from at("spec", _spec(new.spec, old.spec if old else None, features))


def _spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, features: Features) -> Iterator[Problem]:
    yield from at("driver", formats.driver_name(spec.driver))
    yield from at("pool", _pool(spec.pool))
    if old is not None:
        yield from at("pool", immutable("name", spec.pool.name, old.pool.name))
        yield from immutable("driver", spec.driver, old.driver)
        yield from immutable("nodeName", spec.node_name, old.node_name)
    yield from _nodes(spec)
    if spec.devices and spec.shared_counters:
        yield forbidden(COUNTERS_WITH_DEVICES, "counter sets in a slice of their own, in the same pool (since 1.35)")
    yield from _devices(spec, old, features)
    yield from keyed(spec.shared_counters, COUNTER_SETS_MAX, _counter_set, lambda item: item.name, "sharedCounters")
    if spec.partition_type_attribute is not None:
        yield from _partition_type(spec, spec.partition_type_attribute)
    yield from parts.skip_node_operations(spec.skip_node_operations)


def _pool(pool: ResourcePool) -> Iterator[Problem]:
    yield from at("name", formats.pool_name(pool.name))
    if pool.resource_slice_count <= 0:
        hint = "the number of slices in the pool, greater than zero"
        yield from at("resourceSliceCount", [invalid(pool.resource_slice_count, "is not greater than zero", hint)])
    if pool.generation < 0:
        yield from at("generation", [invalid(pool.generation, "is negative")])


def _nodes(spec: ResourceSliceSpec) -> Iterator[Problem]:
    yield from _where(spec.node_name, spec.node_selector, spec.all_nodes, single_term=True)
    if spec.per_device_node_selection is False:
        yield from at("perDeviceNodeSelection", [_true_or_unset()])
    yield from _exactly_one(
        {
            "nodeName": bool(spec.node_name),
            "nodeSelector": spec.node_selector is not None,
            "allNodes": bool(spec.all_nodes),
            "perDeviceNodeSelection": bool(spec.per_device_node_selection),
        }
    )


def _where(
    node_name: str | None, selector: NodeSelector | None, all_nodes: bool | None, *, single_term: bool
) -> Iterator[Problem]:
    if node_name is not None:
        yield from at("nodeName", formats.subdomain(node_name))
    if selector is not None:
        yield from at("nodeSelector", node_selector(selector))
        terms = len(selector.node_selector_terms)
        if single_term and terms > 1:
            yield from at("nodeSelector.nodeSelectorTerms", [forbidden(f"has {terms} terms", "exactly one")])
    if all_nodes is False:
        yield from at("allNodes", [_true_or_unset()])


def _true_or_unset() -> Problem:
    return invalid("false", "says nothing", "true, or left out")


def _exactly_one(fields: Mapping[str, bool]) -> Iterator[Problem]:
    chosen = [field for field, is_set in fields.items() if is_set]
    if not chosen:
        yield Problem("", "does not say which nodes reach the devices", f"exactly one of {', '.join(fields)}")
    elif len(chosen) > 1:
        yield Problem("", f"sets {' and '.join(chosen)}", f"exactly one of {', '.join(fields)}")


def _devices(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, features: Features) -> Iterator[Problem]:
    limit = DEVICES_MAX
    why = ""
    if len(spec.devices) > DEVICES_MAX_ADVANCED and (reason := _advanced(spec.devices)):
        limit, why = DEVICES_MAX_ADVANCED, f" in a slice with {reason}"
    if len(spec.devices) > limit:
        yield from at("devices", [too_many(len(spec.devices), limit, why)])
        return
    before = {device.name: device for device in old.devices} if old else {}
    per_device = bool(spec.per_device_node_selection)
    for index, device in enumerate(spec.devices):
        yield from at(f"devices[{index}]", _device(device, before.get(device.name), per_device, features))
    yield from unique(spec.devices, lambda device: device.name, "devices")


def _advanced(devices: Sequence[Device]) -> str:
    """What about these devices lowers the number that a slice may have; empty if nothing does."""
    if any(device.taints for device in devices):
        return "taints"
    if any(device.consumes_counters for device in devices):
        return "devices that consume counters"
    if any(is_list(value) for device in devices for value in device.attributes.values()):
        return "list attributes"
    return ""


def _device(device: Device, old: Device | None, per_device: bool, features: Features) -> Iterator[Problem]:
    yield from at("name", formats.label(device.name))
    yield from names_and_values(device)
    for name, value in device.attributes.items():
        if problems := attribute(value, features):
            yield from at(f"attributes[{name[:96]}]", problems)
    if old is None or old.capacity != device.capacity:
        yield from _capacities(device, features)
    if old is None or old.taints != device.taints:
        yield from listed(device.taints, TAINTS_MAX, parts.taint, "taints")
    if device.consumes_counters:
        yield from keyed(
            device.consumes_counters, CONSUMPTIONS_MAX, _consumption, lambda item: item.counter_set, "consumesCounters"
        )
    yield from _device_nodes(device, per_device)
    if device.binding_conditions or device.binding_failure_conditions:
        yield from parts.bindings(device.binding_conditions, device.binding_failure_conditions)
    for resource, entry in device.node_allocatable_resources.items():
        yield from at(f"nodeAllocatableResources[{resource[:64]}]", node_resource(resource, entry, device.capacity))


def _capacities(device: Device, features: Features) -> Iterator[Problem]:
    for name, capacity in device.capacity.items():
        if problems := formats.qualified_name(name):
            yield from at("capacity", problems)
        if capacity.request_policy is not None:
            yield from at(f"capacity[{name[:96]}].requestPolicy", _policy(device, capacity, features))


def _policy(device: Device, capacity: DeviceCapacity, features: Features) -> Iterator[Problem]:
    if not device.allow_multiple_allocations:
        yield forbidden("is set on a device that serves one request", "allowMultipleAllocations: true, or no policy")
    elif capacity.request_policy is not None:
        yield from request_policy(capacity.value, capacity.request_policy, features)


def _counter_set(item: CounterSet) -> Iterator[Problem]:
    yield from at("name", formats.label(item.name))
    yield from _counters(item.counters)


def _consumption(item: DeviceCounterConsumption) -> Iterator[Problem]:
    yield from at("counterSet", formats.label(item.counter_set))
    yield from _counters(item.counters)
    yield from keyed(item.compatibility_groups, GROUPS_MAX, formats.label, str, "compatibilityGroups")


def _counters(counters: Mapping[str, Counter]) -> Iterator[Problem]:
    if not counters:
        yield from at("counters", [required(f"1 to {COUNTERS_MAX} counters")])
    elif len(counters) > COUNTERS_MAX:
        yield from at("counters", [too_many(len(counters), COUNTERS_MAX)])
    else:
        for name in counters:
            yield from at("counters", formats.label(name))


def _device_nodes(device: Device, per_device: bool) -> Iterator[Problem]:
    if not per_device:
        if device.node_name is not None or device.node_selector is not None or device.all_nodes is not None:
            yield forbidden(
                "has its own nodeName, nodeSelector or allNodes", "only in a slice with perDeviceNodeSelection: true"
            )
        return
    yield from _where(device.node_name, device.node_selector, device.all_nodes, single_term=False)
    yield from _exactly_one(
        {
            "nodeName": bool(device.node_name),
            "nodeSelector": device.node_selector is not None,
            "allNodes": bool(device.all_nodes),
        }
    )


def _partition_type(spec: ResourceSliceSpec, name: str) -> Iterator[Problem]:
    field = "partitionTypeAttribute"
    if problems := formats.fully_qualified_name(name):
        yield from at(field, problems)
        return
    if not any(device.consumes_counters for device in spec.devices):
        hint = "only in a slice with devices that consume counters"
        yield from at(field, [invalid(name, "says how partitions are called where there are none", hint)])
        return
    # In the driver's own domain the devices may leave the domain out.
    bare = name.removeprefix(f"{spec.driver}/")
    for index, device in enumerate(spec.devices):
        if device.consumes_counters:
            attribute = device.attributes.get(name) or device.attributes.get(bare)
            yield from at(f"devices[{index}].attributes[{name}]", _partition_name(attribute))


def _partition_name(attribute: DeviceAttribute | None) -> Iterator[Problem]:
    if attribute is None:
        yield required("a string that names the type of partition, since partitionTypeAttribute says so")
    elif attribute.string is None:
        yield Problem("", "is no string", "a string, since partitionTypeAttribute names this attribute")
