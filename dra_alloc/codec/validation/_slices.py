"""ResourceSlice: devices, counters, and the nodes that reach them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dra_alloc.api import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    NodeSelector,
    Quantity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation import _parts as parts
from dra_alloc.codec.validation._meta import metadata, node_selector
from dra_alloc.codec.validation._policies import request_policy
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    each,
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
ATTRIBUTES_MAX = 32
ATTRIBUTE_VALUES_MAX = 48
COUNTER_SETS_MAX = 8
COUNTERS_MAX = 32
CONSUMPTIONS_MAX = 2
GROUPS_MAX = 2
TAINTS_MAX = 16

_NODE_RESOURCE_RE = re.compile(r"cpu|memory|ephemeral-storage|hugepages-.+")


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
    if any(_is_list(attribute) for device in devices for attribute in device.attributes.values()):
        return "list attributes"
    return ""


def _is_list(attribute: DeviceAttribute) -> bool:
    return (
        attribute.ints is not None
        or attribute.bools is not None
        or attribute.strings is not None
        or attribute.versions is not None
    )


def _device(device: Device, old: Device | None, per_device: bool, features: Features) -> Iterator[Problem]:
    yield from at("name", formats.label(device.name))
    yield from _names_and_values(device)
    for name, attribute in device.attributes.items():
        if problems := _attribute(attribute, features):
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
        yield from at(f"nodeAllocatableResources[{resource[:64]}]", _node_resource(resource, entry, device.capacity))


def _names_and_values(device: Device) -> Iterator[Problem]:
    names = len(device.attributes) + len(device.capacity)
    if names > ATTRIBUTES_MAX:
        yield Problem("", f"has {names} attributes and capacities together", f"at most {ATTRIBUTES_MAX}")
    values = len(device.attributes) + sum(
        _number_of_values(attribute) - 1 for attribute in device.attributes.values() if _is_list(attribute)
    )
    if values > ATTRIBUTE_VALUES_MAX:
        yield Problem("", f"has {values} attribute values", f"at most {ATTRIBUTE_VALUES_MAX}, list items one by one")
    for name in device.attributes:
        if problems := formats.qualified_name(name):
            yield from at("attributes", problems)


def _number_of_values(attribute: DeviceAttribute) -> int:
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    return sum(len(values) for values in lists if values is not None) or 1


_NO_LISTS = "; lists need the feature gate DRAListTypeAttributes"


def _attribute(value: DeviceAttribute, features: Features) -> list[Problem]:
    """Problems of an attribute, as a list, since there are hundreds of thousands and next to none has any."""
    problems: list[Problem] = []
    fields = 0
    if value.int is not None:
        fields += 1
    if value.bool is not None:
        fields += 1
    if value.string is not None:
        fields += 1
        problems.extend(at("string", formats.text(value.string)))
    if value.version is not None:
        fields += 1
        problems.extend(at("version", formats.version(value.version)))
    if fields != 1 or _is_list(value):
        problems.extend(_list_attribute(value))
        fields += sum(item is not None for item in (value.ints, value.bools, value.strings, value.versions))
    if fields != 1:
        hint = "exactly one of int, bool, string, version"
        hint += ", ints, bools, strings, versions" if features.DRAListTypeAttributes else _NO_LISTS
        problems.append(Problem("", f"has {fields} values" if fields else "has no value", hint))
    return problems


def _list_attribute(value: DeviceAttribute) -> Iterator[Problem]:
    lists: Mapping[str, Sequence[object] | None] = {
        "ints": value.ints,
        "bools": value.bools,
        "strings": value.strings,
        "versions": value.versions,
    }
    for field, items in lists.items():
        if items is not None and not items:
            yield from at(field, [Problem("", "is empty", "at least one value")])
    yield from each(value.strings or (), formats.text, "strings")
    yield from each(value.versions or (), formats.version, "versions")


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


def _node_resource(
    resource: str, entry: NodeAllocatableResource, capacity: Mapping[str, DeviceCapacity]
) -> Iterator[Problem]:
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
