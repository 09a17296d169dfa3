"""KEP-5963: which devices may be placed on one counter set together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import Device, ResourceSlice
from tests.features.building import slice_of
from tests.features.scenes import asking, gpu_class, node, pending, scene

#: Of each device: the groups that it declares, and what it takes of the memory of its card.
Parts = Mapping[str, tuple[list[str], int]]


def card(parts: Parts) -> list[ResourceSlice]:
    """A card with 100 of memory, and its parts."""
    counters = ({"name": "gpu0", "counters": {"memory": {"value": "100"}}},)
    devices = [
        {
            "name": name,
            "attributes": {"name": {"string": name}},
            "consumesCounters": [
                {"counterSet": "gpu0", "counters": {"memory": {"value": str(memory)}}, "compatibilityGroups": groups}
            ],
        }
        for name, (groups, memory) in parts.items()
    ]
    return [
        slice_of(*map(Device.from_dict, devices), name="devices", count=2),
        slice_of(name="counters", count=2, shared_counters=tuple(map(dra.api.CounterSet.from_dict, counters))),
    ]


def taken(parts: Parts, *wanted: str, features: dra.Features | None = None) -> list[str]:
    """Which of the devices can be had, one after the other."""
    cluster, allocator = scene(node("node-1"), gpu_class(), card(parts), features=features)
    found = []
    for name in wanted:
        selector = {"cel": {"expression": f'device.attributes["gpu.example.com"].name == "{name}"'}}
        claim = pending(name, asking(selectors=[selector]))
        allocations = allocator.allocate(claim, node="node-1")
        if allocations is not None:
            cluster.commit(claim, allocations[0])
            found.append(name)
    return found


MIG: Parts = {"mig-0": (["mig"], 20), "mig-1": (["mig"], 20), "vgpu-0": (["vgpu"], 50)}
CHAIN: Parts = {
    "a": (["foo", "foobar"], 1),
    "b": (["bar", "foobar"], 1),
    "c": (["foo", "bar"], 1),
    "d": ([], 1),
    "e": ([], 1),
}


def test_worked_example_1() -> None:
    assert taken(MIG, "mig-0", "vgpu-0", "mig-1") == ["mig-0", "mig-1"]
    assert taken(MIG, "vgpu-0", "mig-0") == ["vgpu-0"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param("abcd", "ab", id="one-group-is-common-to-all-not-to-each-two"),
        pytest.param("cab", "ca", id="the-first-come-decide"),
        pytest.param("dae", "de", id="devices-without-groups-keep-to-themselves"),
    ],
)
def test_worked_example_2(order: str, expected: str) -> None:
    assert taken(CHAIN, *order) == list(expected)


def test_counters_hold_besides() -> None:
    parts: Parts = {"a": (["mig"], 60), "b": (["mig"], 60)}
    assert taken(parts, "a", "b") == ["a"]


def test_with_the_gate_off_nothing_of_the_pool_can_be_had() -> None:
    features = dra.Features.all().replace(DRADeviceCompatibilityGroups=False)
    assert taken(MIG, "mig-0", "mig-1", "vgpu-0", features=features) == []
    ungrouped: Parts = {"d": ([], 1), "e": ([], 1)}
    assert taken(ungrouped, "d", "e", features=features) == ["d", "e"]


@pytest.mark.parametrize(
    ("groups", "problem"),
    [(["a", "b", "c"], "has 3 entries, too many"), (["a", "a"], "is there already"), ([""], "is required")],
)
def test_groups_that_the_api_refuses(groups: list[Any], problem: str) -> None:
    (devices, _) = card({"a": (groups, 1)})
    problems = [str(each) for each in dra.validate(devices, features=dra.Features.all())]
    assert [each for each in problems if "compatibilityGroups" in each and problem in each], problems
