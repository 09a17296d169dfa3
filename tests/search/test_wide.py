"""Amounts that do not fit into 64 bits in a common unit are exact all the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from bench import workloads
from dra_alloc import api
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from tests.properties.asking import MODEL_EXAMPLES, compare_with_model
from tests.search.test_shortcuts import HEAVY, LIGHT, held_share

GPU = workloads.GPU

#: From a nano to beyond 64 bits, with neighbours that only exact arithmetic tells apart.
AMOUNTS = ("0", "1n", "2n", "1", "9223372036854775807", "9223372036854775807000000001n", "1e25", "10E", "5E", "1e60")


def amounts(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, api.Counter]]:
    amount = st.sampled_from(AMOUNTS).map(lambda text: api.Counter(value=api.Quantity.parse(text)))
    return st.fixed_dictionaries(dict.fromkeys(names, amount))


@st.composite
def counted(draw: st.DrawFn) -> list[api.ResourceSlice]:
    """A card with wide counters and up to four devices on it."""
    sets = [api.CounterSet(name="card", counters=draw(amounts(("x", "y"))))]
    devices = [
        api.Device(
            name=f"dev-{i}",
            consumes_counters=(api.DeviceCounterConsumption(counter_set="card", counters=draw(amounts(draw(names)))),),
        )
        for names in [st.sampled_from((("x",), ("x", "y")))]
        for i in range(draw(st.integers(1, 4)))
    ]
    return [
        workloads.pool_slice(GPU, "node-0", on="node-0", name="a", count=2, counters=sets),
        workloads.pool_slice(GPU, "node-0", devices, on="node-0", name="b", count=2),
    ]


@st.composite
def shared(draw: st.DrawFn) -> list[api.ResourceSlice]:
    """Up to two devices with wide capacities."""
    devices = [
        api.Device(
            name=f"dev-{i}",
            allow_multiple_allocations=True,
            capacity={
                name: api.DeviceCapacity(value=counter.value) for name, counter in draw(amounts(("x", "y"))).items()
            },
        )
        for i in range(draw(st.integers(1, 2)))
    ]
    return [workloads.pool_slice(GPU, "node-0", devices, on="node-0")]


@st.composite
def wide(draw: st.DrawFn) -> Scenario:
    slices = draw(st.one_of(counted(), shared()))
    devices = [device for item in slices for device in item.spec.devices]
    held = []
    if devices[0].allow_multiple_allocations and draw(st.booleans()):
        held.append(held_share(devices[0], draw(st.sampled_from(AMOUNTS))))
    claims = []
    for i in range(draw(st.integers(1, 3))):
        names = draw(st.sets(st.sampled_from("xy"))) if devices[0].allow_multiple_allocations else ()
        capacity = {name: draw(st.sampled_from(AMOUNTS)) for name in sorted(names)}
        claims.append(workloads.claim(f"claim-{i}", [workloads.request("gpu", "gpu", capacity=capacity or None)]))
    return Scenario(
        nodes=(workloads.node("node-0"),),
        slices=tuple(slices),
        classes=workloads.CLASSES,
        allocated_claims=tuple(held),
        claims=tuple(claims),
        features=dra.Features.all(),
    )


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(wide())
def test_wide_amounts(scenario: Scenario) -> None:
    compare_with_model(scenario, HEAVY, LIGHT)


def two_on_a_card(room: str) -> Outcome:
    """Whether two devices fit on a card, one of which takes a nano and the other more than 64 bits of them."""

    def units(amount: str) -> dict[str, api.Counter]:
        return {"x": api.Counter(value=api.Quantity.parse(amount))}

    devices = [
        api.Device(
            name=f"dev-{i}",
            consumes_counters=(api.DeviceCounterConsumption(counter_set="card", counters=units(amount)),),
        )
        for i, amount in enumerate(("1n", "1e25"))
    ]
    slices = [
        workloads.pool_slice(
            GPU, "p", on="node-0", name="a", count=2, counters=[api.CounterSet(name="card", counters=units(room))]
        ),
        workloads.pool_slice(GPU, "p", devices, on="node-0", name="b", count=2),
    ]
    cluster = dra.Cluster.from_objects([*workloads.CLASSES, workloads.node("node-0"), *slices])
    both = workloads.claim("both", [workloads.request("gpu", "gpu", 2)])
    return Outcome.of(lambda: dra.Allocator(cluster).allocate(both, "node-0"))


@pytest.mark.parametrize(
    ("room", "verdict"), [("10000000000000000000000000000000001n", "fits"), ("1e25", "does-not-fit")]
)
def test_a_nano_decides(room: str, verdict: str) -> None:
    assert two_on_a_card(room).verdict == verdict


def test_devices_that_differ_in_wide_amounts_alone_are_no_twins() -> None:
    def units(**amounts: str) -> dict[str, api.Counter]:
        return {name: api.Counter(value=api.Quantity.parse(amount)) for name, amount in amounts.items()}

    most = str(2**63 - 1)
    taken = ({"x": most, "y": most}, {"x": "1n"}, {"x": "1n"}, {"x": "0", "y": "1n"})
    devices = [
        api.Device(
            name=f"dev-{i}",
            consumes_counters=(api.DeviceCounterConsumption(counter_set="card", counters=units(**amounts)),),
        )
        for i, amounts in enumerate(taken)
    ]
    counters = [api.CounterSet(name="card", counters=units(x=most, y=most))]
    slices = [
        workloads.pool_slice(GPU, "p", on="node-0", name="a", count=2, counters=counters),
        workloads.pool_slice(GPU, "p", devices, on="node-0", name="b", count=2),
    ]
    cluster = dra.Cluster.from_objects([*workloads.CLASSES, workloads.node("node-0"), *slices])
    claims = [workloads.claim(f"claim-{i}", [workloads.request("gpu", "gpu")]) for i in range(2)]
    for budget in (HEAVY, LIGHT):
        found = dra.Allocator(cluster, budget=budget).allocate(claims, "node-0")
        assert found is not None
        assert [result.device for each in found for result in each.devices.results] == ["dev-1", "dev-2"]
