"""Pools: which slices count, what is wrong with a pool, and in which order its devices are tried."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dra_alloc.api import CounterSet, Device, Node, ResourceSlice
from dra_alloc.gates import Features
from dra_alloc.testing._plain.nodes import slice_concerns

DeviceID = tuple[str, str, str]
"""Driver, pool and name of a device."""


@attrs.frozen
class Pool:
    """The newest generation of a pool. `fault` is "", "incomplete" or "invalid"; `local` are the slices of the node."""

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...]
    local: tuple[ResourceSlice, ...]
    fault: str

    def devices(self) -> Iterator[Device]:
        """All devices of the pool, on whatever node."""
        return (device for item in self.slices for device in item.spec.devices)

    def counters(self) -> dict[tuple[str, str], int]:
        """The value of each counter in nanos, by counter set and counter."""
        return {
            (counter_set.name, name): counter.value.nano
            for counter_set in _counter_sets(self.slices)
            for name, counter in counter_set.counters.items()
        }


@attrs.frozen(eq=False)
class Offer:
    """A device in its place in the search order."""

    position: int
    id: DeviceID
    pool: Pool
    slice: ResourceSlice
    device: Device


def gather_pools(node: Node, slices: list[ResourceSlice], features: Features) -> list[Pool]:
    """The pools of the node in search order, faulty ones included."""
    groups: dict[tuple[str, str], list[ResourceSlice]] = {}
    for item in slices:
        if _known(item, features):
            groups.setdefault((item.spec.driver, item.spec.pool.name), []).append(item)
    pools = []
    for (driver, name), members in sorted(groups.items()):
        newest = max(item.spec.pool.generation for item in members)
        current = sorted(
            (item for item in members if item.spec.pool.generation == newest), key=lambda item: item.metadata.name
        )
        usable = [item for item in current if _usable(item, features)]
        local = tuple(_of_one_kind(item) for item in usable if slice_concerns(item, node))
        if local:
            whole = tuple(map(_of_one_kind, usable))
            fault = _fault(whole, features) if _is_complete(current) else "incomplete"
            pools.append(Pool(driver, name, whole, local, fault))
    return sorted(pools, key=_waits_for_binding)


def list_offers(pools: list[Pool]) -> list[Offer]:
    """The devices of all sound pools on the node in search order."""
    places = [
        ((pool.driver, pool.name, device.name), pool, item, device)
        for pool in pools
        if not pool.fault
        for item in pool.local
        for device in item.spec.devices
    ]
    return [Offer(position, *place) for position, place in enumerate(places)]


def _known(item: ResourceSlice, features: Features) -> bool:
    """Whether the slice is there at all: without compatibility groups, those that declare some are not."""
    return features.DRADeviceCompatibilityGroups or not any(
        consumption.compatibility_groups for device in item.spec.devices for consumption in device.consumes_counters
    )


def _usable(item: ResourceSlice, features: Features) -> bool:
    """Whether the slice offers anything to any node; one that does not counts for its pool all the same."""
    spec = item.spec
    return features.DRAPartitionableDevices or not (spec.per_device_node_selection or spec.shared_counters)


def _is_complete(slices: list[ResourceSlice]) -> bool:
    return {item.spec.pool.resource_slice_count for item in slices} == {len(slices)}


def _of_one_kind(item: ResourceSlice) -> ResourceSlice:
    """Counter sets live in slices of their own: what a slice with counter sets has of devices is not there."""
    return attrs.evolve(item, spec=attrs.evolve(item.spec, devices=())) if item.spec.shared_counters else item


def _waits_for_binding(pool: Pool) -> bool:
    """Faulty pools offer nothing, so that their devices do not count here."""
    return not pool.fault and any(device.binding_conditions for item in pool.local for device in item.spec.devices)


def _fault(slices: tuple[ResourceSlice, ...], features: Features) -> str:
    """What is wrong with a complete pool: "invalid" or nothing."""
    names = [device.name for item in slices for device in item.spec.devices]
    if len(names) != len(set(names)):
        return "invalid"
    if not features.DRAPartitionableDevices:
        return ""
    sets = _counter_sets(slices)
    known = {(entry.name, name): counter.value.nano for entry in sets for name, counter in entry.counters.items()}
    consumed = [
        (consumption.counter_set, name, counter.value.nano)
        for item in slices
        for device in item.spec.devices
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    ]
    referenced = {
        consumption.counter_set
        for item in slices
        for device in item.spec.devices
        for consumption in device.consumes_counters
    }
    sound = (
        len(sets) == len({entry.name for entry in sets})
        and referenced <= {entry.name for entry in sets}
        and all(value >= 0 for value in known.values())
        and all((owner, name) in known and amount >= 0 for owner, name, amount in consumed)
    )
    return "" if sound else "invalid"


def _counter_sets(slices: tuple[ResourceSlice, ...]) -> list[CounterSet]:
    return [entry for item in slices for entry in item.spec.shared_counters]
