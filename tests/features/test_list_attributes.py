"""KEP-5491: attributes with several values, which constraints compare as sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import Device
from tests.features.building import slice_of
from tests.features.scenes import asking, gpu_class, node, pending, scene

OFF = dra.Features.all().replace(DRAListTypeAttributes=False)
ROOT = "gpu.example.com/root"


def device(name: str, **root: Any) -> Device:
    return Device.from_dict({"name": name, "attributes": {"root": root} if root else {}})


def world(*devices: Device, features: dra.Features | None = None) -> dra.Allocator:
    return scene(node("node-1"), gpu_class(), slice_of(*devices), features=features)[1]


def found(allocator: dra.Allocator, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    results = allocator.allocate(pending("c", spec), node="node-1")
    return None if results is None else results[0].to_dict()


def answer(*names: str) -> dict[str, Any]:
    place = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    return {
        "devices": {"results": [{**place, "device": name} for name in names]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }


def constrained(count: int, **constraint: str) -> dict[str, Any]:
    spec = asking(count)
    spec["devices"]["constraints"] = [constraint]
    return spec


def matching(count: int = 2) -> dict[str, Any]:
    return constrained(count, matchAttribute=ROOT)


def distinct(count: int = 2) -> dict[str, Any]:
    return constrained(count, distinctAttribute=ROOT)


#: Each two of the first three have a value in common, all three have none; the last agrees with a and c.
RING = [device("a", ints=[1, 2]), device("b", ints=[3, 1]), device("c", ints=[2, 3]), device("d", int=2)]


def test_all_devices_of_a_match_have_a_value_in_common() -> None:
    assert found(world(*RING), matching(2)) == answer("a", "b")
    # That each two of a, b and c agree is not enough.
    assert found(world(*RING[:3]), matching(3)) is None
    # What b took from the values in common with a comes back when the search gives b up.
    assert found(world(*RING), matching(3)) == answer("a", "c", "d")
    assert found(world(*RING), matching(4)) is None


def test_no_two_devices_of_a_distinction_have_any_value_in_common() -> None:
    assert found(world(*RING), distinct(2)) == answer("b", "d")
    assert found(world(*RING), distinct(3)) is None
    apart = [device("a", ints=[1, 2]), device("b", ints=[2, 3]), device("c", int=3), device("d", ints=[4, 5])]
    assert found(world(*apart), distinct(3)) == answer("a", "c", "d")


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ({"ints": [1, 2]}, {"int": 2}, True),
        ({"strings": ["x", "y"]}, {"strings": ["y"]}, True),
        ({"strings": ["x", "y"]}, {"string": "z"}, False),
        ({"bools": [True, False]}, {"bool": False}, True),
        ({"bools": [True]}, {"ints": [1]}, False),
        ({"versions": ["1.0.0", "2.0.0"]}, {"version": "2.0.0"}, True),
        ({"versions": ["1.0.0"]}, {"strings": ["1.0.0"]}, False),
        ({"ints": [1, 1]}, {"ints": [1]}, True),
    ],
)
def test_values_agree_by_type_and_value(one: dict[str, Any], other: dict[str, Any], match: bool) -> None:
    allocator = world(device("a", **one), device("b", **other))
    assert found(allocator, matching()) == (answer("a", "b") if match else None)
    assert found(allocator, distinct()) == (None if match else answer("a", "b"))


def test_a_device_without_the_attribute_satisfies_neither() -> None:
    allocator = world(device("none"), device("a", ints=[1]), device("b", ints=[1]), device("c", ints=[2]))
    assert found(allocator, matching()) == answer("a", "b")
    assert found(allocator, distinct()) == answer("a", "c")


def selecting(expression: str) -> dict[str, Any]:
    return asking(selectors=[{"cel": {"expression": expression}}])


def test_selectors_see_lists_and_includes_takes_both_forms() -> None:
    allocator = world(device("a", int=1), device("b", ints=[2, 3]))
    attribute = 'device.attributes["gpu.example.com"].root'
    assert found(allocator, selecting(f"{attribute}.includes(1)")) == answer("a")
    assert found(allocator, selecting(f"{attribute}.includes(3)")) == answer("b")
    assert found(allocator, selecting(f"{attribute}.includes(4)")) is None
    assert found(world(device("b", ints=[2, 3])), selecting(f"{attribute}.exists(x, x > 2)")) == answer("b")
    # A single value is no list for what only lists have.
    with pytest.raises(dra.AllocationError) as caught:
        found(allocator, selecting(f"{attribute}.exists(x, x > 2)"))
    assert (caught.value.kind, caught.value.device) == ("cel", "gpu.example.com/node-1/a")


def test_with_the_gate_off_a_list_never_matches() -> None:
    allocator = world(device("a", ints=[1]), device("b", ints=[1]), features=OFF)
    assert found(allocator, matching(1)) is None
    assert found(allocator, distinct(1)) is None
    assert found(allocator, asking(2)) == answer("a", "b")
    singles = world(device("a", ints=[1]), device("b", int=1), device("c", int=1), features=OFF)
    assert found(singles, matching()) == answer("b", "c")


def test_a_list_with_a_version_that_is_none_fails_every_selector() -> None:
    with pytest.raises(dra.AllocationError, match="'1' is not a semantic version") as caught:
        found(world(device("a", versions=["1.0.0", "1"])), asking())
    assert (caught.value.kind, caught.value.device) == ("cel", "gpu.example.com/node-1/a")


def test_what_is_no_value_of_the_list_is_refused_when_it_is_read() -> None:
    with pytest.raises(dra.DecodeError, match="expected true or false, found 'x'") as caught:
        device("a", bools=[True, "x"])
    assert caught.value.path == "attributes[root].bools[1]"


ATTRIBUTE = "spec.devices[0].attributes[root]"


@pytest.mark.parametrize(
    ("root", "features", "paths"),
    [
        ({"ints": [1, 2]}, dra.Features.all(), []),
        ({"ints": [1, 2]}, OFF, [ATTRIBUTE]),
        ({"ints": []}, dra.Features.all(), [f"{ATTRIBUTE}.ints"]),
        ({"ints": [1], "int": 1}, dra.Features.all(), [ATTRIBUTE]),
        ({"versions": ["1.0.0", "1"]}, dra.Features.all(), [f"{ATTRIBUTE}.versions[1]"]),
        ({"ints": list(range(49))}, dra.Features.all(), ["spec.devices[0]"]),
    ],
    ids=["right", "gate-off", "empty", "list-and-value", "no-version", "too-many"],
)
def test_lists_that_the_api_refuses(root: dict[str, Any], features: dra.Features, paths: list[str]) -> None:
    assert [problem.path for problem in dra.validate(slice_of(device("a", **root)), features=features)] == paths
