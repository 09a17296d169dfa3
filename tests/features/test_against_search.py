"""What the features say of taints, partitions and shares is what the search then does."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceToleration,
    Node,
    ObjectMeta,
    Quantity,
    ResourceClaim,
)
from dra_alloc.features.poolstatus import pool_status
from dra_alloc.features.taints import DeviceId, DeviceTaints, untolerated
from tests.features.building import claim, result, rule, slice_of

ON = dra.Features(DRAPartitionableDevicesType=True)
CLASS = DeviceClass(metadata=ObjectMeta(name="any"))
NODE = Node(metadata=ObjectMeta(name="node-1"))
PROFILE = "gpu.example.com/profile"

KEYS, VALUES = st.sampled_from(["a", "b"]), st.sampled_from([None, "x", "y"])
TAINTS = st.builds(
    DeviceTaint, key=KEYS, value=VALUES, effect=st.sampled_from(["None", "NoSchedule", "NoExecute", "Later"])
)
TOLERATIONS = st.builds(
    DeviceToleration,
    key=st.none() | KEYS,
    operator=st.sampled_from([None, "Equal", "Exists"]),
    value=VALUES,
    effect=st.sampled_from([None, "NoSchedule", "NoExecute"]),
    toleration_seconds=st.sampled_from([None, 0]),
)
SELECTORS = st.none() | st.fixed_dictionaries(
    {}, optional={"pool": st.sampled_from(["node-1", "node-2"]), "device": st.sampled_from(["gpu-0", "gpu-1"])}
)


def asking(count: int = 1, **exactly: Any) -> ResourceClaim:
    request = {"name": "gpu", "exactly": {"deviceClassName": "any", "count": count, **exactly}}
    return claim("asking", spec={"devices": {"requests": [request]}})


def fits(wanted: ResourceClaim, *objects: Any) -> bool:
    cluster = dra.Cluster.from_objects([NODE, CLASS, *objects])
    return dra.Allocator(cluster).allocate([wanted], node="node-1") is not None


@settings(deadline=None)
@given(
    st.lists(TAINTS, max_size=2), st.lists(st.tuples(TAINTS, SELECTORS), max_size=3), st.lists(TOLERATIONS, max_size=2)
)
def test_a_device_is_allocated_exactly_if_no_taint_is_left(
    own: list[DeviceTaint], ruled: list[tuple[DeviceTaint, dict[str, str] | None]], tolerations: list[DeviceToleration]
) -> None:
    part = slice_of(Device(name="gpu-0", taints=tuple(own)))
    rules = [rule(f"r{index}", item, selector) for index, (item, selector) in enumerate(ruled)]
    left = untolerated(DeviceTaints([part], rules).of(DeviceId("gpu.example.com", "node-1", "gpu-0")), tolerations)
    wanted = asking(tolerations=[item.to_dict() for item in tolerations])
    assert fits(wanted, part, *rules) is not bool(left)


def partition(name: str, kind: str, memory: int) -> Device:
    amount = Counter(value=Quantity.parse(memory))
    return Device(
        name=name,
        attributes={"profile": DeviceAttribute(string=kind)},
        consumes_counters=(DeviceCounterConsumption(counter_set="card", counters={"memory": amount}),),
    )


@settings(deadline=None)
@given(
    st.integers(0, 12),
    st.lists(st.integers(0, 5), min_size=2, max_size=2),
    st.lists(st.integers(0, 1), min_size=1, max_size=5),
    st.sets(st.integers(0, 4)),
)
def test_as_many_more_of_a_type_can_be_allocated_as_the_status_says(
    memory: int, costs: list[int], kinds: list[int], used: set[int]
) -> None:
    devices = [partition(f"d-{index}", f"T{kind}", costs[kind]) for index, kind in enumerate(kinds)]
    card = CounterSet(name="card", counters={"memory": Counter(value=Quantity.parse(memory))})
    slices = [
        slice_of(name="counters", count=2, shared_counters=(card,)),
        slice_of(*devices, name="devices", count=2, partition_type_attribute=PROFILE),
    ]
    held = [claim(f"c-{index}", result(f"d-{index}")) for index in used if index < len(devices)]
    (pool,) = pool_status(slices, held, features=ON)
    for entry in pool.partition_summary:
        chosen = {"cel": {"expression": f'device.attributes["gpu.example.com"].profile == "{entry.type}"'}}
        if entry.allocatable:
            assert fits(asking(entry.allocatable, selectors=[chosen]), *slices, *held)
        assert not fits(asking(entry.allocatable + 1, selectors=[chosen]), *slices, *held)


@settings(deadline=None)
@given(st.lists(st.integers(1, 10), min_size=1, max_size=3), st.lists(st.integers(1, 5), max_size=4))
def test_what_is_left_of_a_shared_device_is_what_can_be_asked_for(values: list[int], asked: list[int]) -> None:
    devices = [
        Device.from_dict(
            {"name": f"nic-{index}", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": str(value)}}}
        )
        for index, value in enumerate(values)
    ]
    cluster = dra.Cluster.from_objects([NODE, CLASS, slice_of(*devices)])
    total = sum(values)
    for index, amount in enumerate(asked):
        request = {
            "name": "nic",
            "exactly": {"deviceClassName": "any", "capacity": {"requests": {"bandwidth": amount}}},
        }
        wanted = claim(f"c-{index}", spec={"devices": {"requests": [request]}})
        found = dra.Allocator(cluster).allocate([wanted], node="node-1")
        if found is not None:
            cluster.commit(wanted, found[0])
            total -= amount
        (pool,) = pool_status(cluster.slices(), cluster.claims())
        assert pool.shareable_summary is not None
        (bandwidth,) = pool.shareable_summary.capacity
        assert bandwidth.available == Quantity.parse(total)
