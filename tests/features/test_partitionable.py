"""KEP-4815: one piece of hardware as several devices that share counters, or that different nodes reach."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import CounterSet, Device, ResourceSlice
from tests.features.building import slice_of
from tests.features.scenes import asking, gpu_class, node, pending, scene

OFF = dra.Features.all().replace(DRAPartitionableDevices=False)


def part(name: str, memory: str, engines: int, counter_set: str = "card") -> Device:
    counters = {"memory": {"value": memory}, "engines": {"value": str(engines)}}
    consumed = [{"counterSet": counter_set, "counters": counters}]
    return Device.from_dict({"name": name, "consumesCounters": consumed})


def card(memory: str = "80Gi", engines: int = 7) -> CounterSet:
    counters = {"memory": {"value": memory}, "engines": {"value": str(engines)}}
    return CounterSet.from_dict({"name": "card", "counters": counters})


def counters_of(*sets: CounterSet, **where: Any) -> ResourceSlice:
    return slice_of(name="counters", count=2, shared_counters=sets, **where)


def parts_of(*devices: Device | str, **where: Any) -> ResourceSlice:
    return slice_of(*devices, name="parts", count=2, **where)


#: A card of 80Gi and 7 engines: whole, as two halves, and as a quarter that takes many engines.
CARD = [
    counters_of(card()),
    parts_of(part("whole", "80Gi", 7), part("half-0", "40Gi", 3), part("busy", "20Gi", 5), part("half-1", "40Gi", 3)),
]


def world(*objects: Any, **options: Any) -> tuple[dra.Cluster, dra.Allocator]:
    return scene(node("node-1"), node("node-2"), gpu_class(), *objects, **options)


def answer(*names: str) -> dict[str, Any]:
    """The whole result for devices of the card, all of them on node-1."""
    place = {"driver": "gpu.example.com", "pool": "node-1"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    return {
        "devices": {"results": [{"request": "gpu", **place, "device": name} for name in names]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }


def found(allocator: dra.Allocator, *counts: int) -> list[dict[str, Any]] | None:
    results = allocator.allocate(
        [pending(f"c{place}", asking(count)) for place, count in enumerate(counts)], node="node-1"
    )
    return None if results is None else [result.to_dict() for result in results]


def test_parts_together_stay_within_each_counter() -> None:
    _, allocator = world(CARD)
    assert found(allocator, 1) == [answer("whole")]
    # Beside the whole there is nothing, and half and busy together would need too many engines.
    assert found(allocator, 2) == [answer("half-0", "half-1")]
    assert found(allocator, 1, 1) == [answer("half-0"), answer("half-1")]
    assert found(allocator, 3) is None


def test_what_is_allocated_is_charged_until_it_is_released() -> None:
    cluster, allocator = world(CARD, pending("first"), pending("second", asking(2)))
    first = allocator.allocate("default/first", node="node-1")
    assert first is not None
    cluster.commit("default/first", first[0])
    assert allocator.allocate("default/second", node="node-1") is None
    cluster.release("default/first")
    second = allocator.allocate("default/second", node="node-1")
    assert second is not None
    assert [result.to_dict() for result in second] == [answer("half-0", "half-1")]


def test_counters_of_pools_of_the_same_name_are_apart() -> None:
    npu = [counters_of(card(), driver="npu.example.com"), parts_of(part("npu", "80Gi", 7), driver="npu.example.com")]
    for place, item in enumerate(npu):
        npu[place] = attrs.evolve(item, metadata=attrs.evolve(item.metadata, name=f"npu-{place}"))
    _, allocator = world(CARD, npu, gpu_class("npu", driver="npu.example.com"))
    results = allocator.allocate([pending("c"), pending("n", asking(device_class="npu"))], node="node-1")
    assert results is not None
    assert [result.devices.results[0].device for result in results] == ["whole", "npu"]


def test_the_slice_leaves_it_to_its_devices_which_nodes_reach_them() -> None:
    corners = slice_of(
        Device.from_dict({"name": "corner-1", "nodeName": "node-1"}),
        Device.from_dict({"name": "corner-2", "nodeName": "node-2"}),
        Device.from_dict({"name": "torus", "allNodes": True}),
        node=None,
        per_device_node_selection=True,
    )
    _, allocator = world(corners)
    assert found(allocator, 2) == [answer("corner-1", "torus")]
    assert found(allocator, 3) is None
    there = allocator.allocate(pending("c"), node="node-2")
    assert there is not None
    assert [result.device for result in there[0].devices.results] == ["corner-2"]
    assert found(world(corners, features=OFF)[1], 1) is None


def test_a_device_for_all_nodes_binds_to_none() -> None:
    torus = Device.from_dict({"name": "torus", "allNodes": True})
    _, allocator = world(slice_of(torus, node=None, per_device_node_selection=True))
    assert found(allocator, 1) == [{"devices": answer("torus")["devices"]}]


def test_with_the_gate_off_devices_that_consume_counters_are_not_offered() -> None:
    mixed = slice_of("plain", part("half", "40Gi", 3))
    _, allocator = world(mixed, features=OFF)
    assert found(allocator, 1) == [answer("plain")]
    assert found(allocator, 2) is None


def test_with_the_gate_off_slices_that_are_ignored_count_for_their_pool() -> None:
    pool = [counters_of(card()), parts_of("plain", part("half", "40Gi", 3))]
    assert found(world(pool, features=OFF)[1], 1) == [answer("plain")]
    assert found(world(pool, features=OFF)[1], 2) is None
    assert found(world(pool[1:], features=OFF)[1], 1) is None  # half a pool is incomplete, whatever the missing half is


def test_with_the_gate_off_a_newer_generation_of_ignored_slices_ends_the_older_one() -> None:
    old = slice_of("plain")
    new = attrs.evolve(old.spec, pool=attrs.evolve(old.spec.pool, generation=2), devices=(), shared_counters=(card(),))
    newer = attrs.evolve(old, metadata=attrs.evolve(old.metadata, name="newer"), spec=new)
    assert found(world(old, features=OFF)[1], 1) == [answer("plain")]
    assert found(world(old, newer, features=OFF)[1], 1) is None


@pytest.mark.parametrize(
    ("counters", "device", "message"),
    [
        (card(), part("a", "1Gi", 1, "other"), "device a consumes counter set 'other', which is not there"),
        (card(), part("a", "-1Gi", 1), "device a consumes a negative amount of card/memory (-1Gi)"),
        (card("-1Gi"), part("a", "1Gi", 1), "counter card/memory"),
        (
            CounterSet.from_dict({"name": "card", "counters": {"memory": {"value": "1Gi"}}}),
            part("a", "1Gi", 1),
            "device a consumes counter card/engines, which is not there",
        ),
    ],
    ids=["no-such-set", "negative", "negative-counter", "no-such-counter"],
)
def test_a_pool_whose_counters_are_wrong_offers_nothing(counters: CounterSet, device: Device, message: str) -> None:
    _, allocator = world(counters_of(counters), parts_of("plain", device))
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate(pending("c"), node="node-1")
    assert (caught.value.kind, caught.value.node) == ("invalid-pool", "node-1")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("item", "paths"),
    [
        (slice_of("a", shared_counters=(card(),)), ["spec"]),
        (slice_of(shared_counters=(card(), card())), ["spec.sharedCounters[1]"]),
        (slice_of(shared_counters=(CounterSet(name="card"),)), ["spec.sharedCounters[0].counters"]),
        (slice_of("a", node=None, per_device_node_selection=True), ["spec.devices[0]"]),
        (slice_of("a", per_device_node_selection=True), ["spec", "spec.devices[0]"]),
        (slice_of(Device(name="a", node_name="node-1")), ["spec.devices[0]"]),
    ],
    ids=["devices-and-counters", "set-twice", "no-counters", "no-node", "two-nodes", "not-per-device"],
)
def test_slices_that_the_api_refuses(item: ResourceSlice, paths: list[str]) -> None:
    assert [problem.path for problem in dra.validate(item)] == paths
