"""KEP-5075: devices that several claims share, each with a part of the capacities; fractions are exact."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import Device
from tests.features.building import slice_of
from tests.features.scenes import asking, gpu_class, node, pending, scene

OFF = dra.Features.all().replace(DRAConsumableCapacity=False)
WHOLE = dra.Features.all().replace(DRAFractionalCapacityRange=False)


def nic(name: str = "nic-0", value: str = "10", policy: Mapping[str, Any] | None = None, shared: bool = True) -> Device:
    bandwidth = {"value": value, **({"requestPolicy": policy} if policy else {})}
    fields = {"allowMultipleAllocations": True} if shared else {}
    attributes = {"port": {"string": name}}
    return Device.from_dict({"name": name, "attributes": attributes, "capacity": {"bandwidth": bandwidth}, **fields})


def wanting(amount: str | None, devices: int = 1, **more: str) -> dict[str, Any]:
    requests = {**({} if amount is None else {"bandwidth": amount}), **more}
    return asking(devices, capacity={"requests": requests})


def world(*devices: Device, features: dra.Features | None = None) -> tuple[dra.Cluster, dra.Allocator]:
    """A node with these devices; shares are named share-1, share-2, …"""

    share_ids = (f"share-{number}" for number in count(1))
    objects = (node("node-1"), gpu_class(), slice_of(*devices))
    return scene(*objects, features=features, share_ids=lambda: next(share_ids))


def answer(*results: Mapping[str, Any]) -> dict[str, Any]:
    place = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    return {
        "devices": {"results": [{**place, **result} for result in results]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }


def share(number: int, amount: str, device: str = "nic-0") -> dict[str, Any]:
    return {"device": device, "shareID": f"share-{number}", "consumedCapacity": {"bandwidth": amount}}


def found(allocator: dra.Allocator, *specs: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    results = allocator.allocate([pending(f"c{place}", spec) for place, spec in enumerate(specs)], node="node-1")
    return None if results is None else [result.to_dict() for result in results]


def test_claims_share_a_device_as_long_as_its_capacity_lasts() -> None:
    _, allocator = world(nic())
    assert found(allocator, wanting("4"), wanting("6")) == [answer(share(1, "4")), answer(share(2, "6"))]
    assert found(allocator, wanting("4"), wanting("6"), wanting("1n")) is None


def test_shares_that_are_held_count_until_they_are_released() -> None:
    cluster, allocator = world(nic())
    cluster.upsert(pending("held", wanting("7.5")))
    held = allocator.allocate("default/held", node="node-1")
    assert held is not None
    cluster.commit("default/held", held[0])
    assert found(allocator, wanting("2.500000001")) is None
    assert found(allocator, wanting("2.5")) == [answer(share(2, "2500m"))]
    cluster.release("default/held")
    assert found(allocator, wanting("10")) == [answer(share(3, "10"))]


def test_one_request_takes_a_device_once() -> None:
    _, allocator = world(nic())
    assert found(allocator, wanting("1", devices=2)) is None
    _, allocator = world(nic(), nic("nic-1"))
    assert found(allocator, wanting("1", devices=2)) == [answer(share(1, "1"), share(2, "1", "nic-1"))]


def test_distinct_attributes_spread_shares() -> None:
    spec = {
        "devices": {
            "requests": [
                {"name": name, "exactly": {"deviceClassName": "gpu", "capacity": {"requests": {"bandwidth": "1"}}}}
                for name in ("a", "b")
            ]
        }
    }
    _, allocator = world(nic(), nic("nic-1"))
    together = [{**share(1, "1"), "request": "a"}, {**share(2, "1"), "request": "b"}]
    assert found(allocator, spec) == [answer(*together)]
    spec["devices"]["constraints"] = [{"distinctAttribute": "gpu.example.com/port"}]
    apart = [{**share(3, "1"), "request": "a"}, {**share(4, "1", "nic-1"), "request": "b"}]
    assert found(allocator, spec) == [answer(*apart)]


def test_a_device_that_is_not_shared_must_be_large_enough_and_is_taken_whole() -> None:
    _, allocator = world(nic(value="2", shared=False), nic("nic-1", value="5", shared=False))
    assert found(allocator, wanting("3")) == [answer({"device": "nic-1"})]
    assert found(allocator, wanting("1"), wanting("1"), wanting("1")) is None


RANGE = {"default": "1", "validRange": {"min": "0.5", "step": "0.25", "max": "3"}}
VALUES = {"default": "2", "validValues": ["0.1", "2", "5"]}


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        (None, None, "10"),
        (None, "1.5", "1500m"),
        (None, "0", "0"),
        (RANGE, None, "1"),
        (RANGE, "0.1", "500m"),
        (RANGE, "0.5", "500m"),
        (RANGE, "0.500000001", "750m"),
        (RANGE, "1", "1"),
        (RANGE, "2.9", "3"),
        (RANGE, "3.1", None),
        (VALUES, None, "2"),
        (VALUES, "0.05", "100m"),
        (VALUES, "0.100000001", "2"),
        (VALUES, "5", "5"),
        (VALUES, "6", None),
        # Without a default, which the API asks for, it is all there is, if the policy lets that be.
        ({"validRange": {"min": "0.5", "step": "0.25"}}, None, "10"),
        ({"validRange": {"min": "1", "step": "4"}}, None, None),
        ({"validRange": {"min": "1", "max": "5"}}, None, None),
        ({"validValues": ["5", "10"]}, None, "10"),
        ({"validValues": ["5"]}, None, None),
        ({}, None, "10"),
    ],
)
def test_what_a_request_consumes(policy: Mapping[str, Any] | None, asked: str | None, consumed: str | None) -> None:
    _, allocator = world(nic(policy=policy))
    assert found(allocator, wanting(asked)) == (None if consumed is None else [answer(share(1, consumed))])


def test_ten_tenths_are_one() -> None:
    _, allocator = world(nic(value="1", policy={"default": "0.1", "validRange": {"min": "0.1", "step": "0.1"}}))
    tenths = [wanting("0.05")] * 10
    assert found(allocator, *tenths) == [answer(share(number, "100m")) for number in range(1, 11)]
    assert found(allocator, *tenths, wanting("0.05")) is None


@pytest.mark.parametrize(
    ("asked", "fractional", "whole"),
    [("0.1", "500m", "1"), ("1.1", "1250m", "2"), ("2", "2", "2"), ("2.6", "2750m", "3"), (None, "1", "1")],
)
def test_without_fractions_minimum_and_step_are_whole(asked: str | None, fractional: str, whole: str) -> None:
    for features, consumed in ((dra.Features.all(), fractional), (WHOLE, whole)):
        _, allocator = world(nic(policy=RANGE), features=features)
        assert found(allocator, wanting(asked)) == [answer(share(1, consumed))]


def test_with_the_gate_off_requests_for_capacity_are_an_error_and_devices_are_taken_whole() -> None:
    _, allocator = world(nic(), features=OFF)
    with pytest.raises(dra.AllocationError, match="capacity requests need the feature DRAConsumableCapacity") as caught:
        found(allocator, wanting("1"))
    assert (caught.value.kind, caught.value.claim, caught.value.request) == ("unsupported", "default/c0", "gpu")
    assert found(allocator, asking()) == [answer({"device": "nic-0"})]
    assert found(allocator, asking(), asking()) is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (wanting("-1"), "the amount of capacity bandwidth is negative"),
        (
            wanting("1", **{"gpu.example.com/bandwidth": "1"}),
            "capacity gpu.example.com/bandwidth is requested both with and without its domain",
        ),
    ],
    ids=["negative", "both-spellings"],
)
def test_amounts_that_mean_nothing(spec: Mapping[str, Any], message: str) -> None:
    _, allocator = world(nic())
    with pytest.raises(dra.AllocationError, match=message) as caught:
        found(allocator, spec)
    assert (caught.value.kind, caught.value.device) == ("capacity", "gpu.example.com/node-1/nic-0")


def test_a_capacity_that_the_device_lacks_does_not_fit() -> None:
    _, allocator = world(nic())
    assert found(allocator, wanting(None, memory="1")) is None


def test_what_is_no_quantity_is_refused_when_it_is_read() -> None:
    with pytest.raises(dra.DecodeError, match="'4 G' is not a quantity") as caught:
        pending("c", wanting("4 G"))
    assert caught.value.path == "ResourceClaim default/c: spec.devices.requests[0].exactly.capacity.requests[bandwidth]"


POLICY = "spec.devices[0].capacity[bandwidth].requestPolicy"


@pytest.mark.parametrize(
    ("device", "paths"),
    [
        (nic(policy=RANGE), []),
        (nic(policy=RANGE, shared=False), [POLICY]),
        (nic(policy={**RANGE, **VALUES}), [POLICY]),
        (nic(policy={"validRange": {"min": "1"}}), [f"{POLICY}.default"]),
        (nic(policy={"default": "3", "validValues": ["1", "2"]}), [f"{POLICY}.validValues"]),
        (nic(policy={**RANGE, "default": "1.1"}), [f"{POLICY}.validRange.step"]),
    ],
    ids=["right", "not-shared", "range-and-values", "no-default", "default-not-a-value", "default-between-steps"],
)
def test_policies_that_the_api_refuses(device: Device, paths: list[str]) -> None:
    assert [problem.path for problem in dra.validate(slice_of(device))] == paths
