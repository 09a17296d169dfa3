"""The shortcuts of the search change nothing: with its heavy means from the first step on it answers as the model.

The scenarios here are what the shortcuts feed on: devices that nothing tells apart, cards that differ in name only,
few values, little room. The general ones of tests/properties are asked once more with the heavy means.
"""

from __future__ import annotations

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from bench import workloads
from dra_alloc import api
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from tests.properties.asking import MODEL_EXAMPLES, compare_with_model

HEAVY = dra.Budget(light_steps=0)
LIGHT = dra.Budget(light_steps=1 << 60)
SWITCHING = dra.Budget(light_steps=3)

GPU = workloads.GPU
RACK = f"{GPU}/rack"
SIZES = ("1", "2", "3")


@st.composite
def plain_devices(draw: st.DrawFn) -> list[api.Device]:
    """Up to 8 devices of few kinds: rack, model, some shared."""
    devices = []
    for index in range(draw(st.integers(1, 8))):
        shared = draw(st.integers(0, 3)) == 0
        racks = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
        rack = api.DeviceAttribute(ints=tuple(racks)) if len(racks) > 1 else workloads.number(racks[0])
        devices.append(
            api.Device(
                name=f"dev-{index}",
                attributes={"rack": rack, "model": workloads.text(draw(st.sampled_from("ab")))},
                allow_multiple_allocations=True if shared else None,
                capacity={"bandwidth": api.DeviceCapacity(value=api.Quantity.parse(draw(st.sampled_from("24"))))},
            )
        )
    return devices


@st.composite
def card_designs(draw: st.DrawFn) -> tuple[dict[str, str], list[tuple[dict[str, str], tuple[str, ...], bool]]]:
    """Counters of a card, and its parts: what each consumes, its groups, whether it is shared."""
    counters = {name: draw(st.sampled_from("3456")) for name in ("mem", "sm")}
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        consumed = {name: draw(st.sampled_from(SIZES)) for name in draw(st.sampled_from((("mem",), ("mem", "sm"))))}
        groups = draw(st.sampled_from(((), (), (), ("g",), ("g", "h"), ("h",))))
        parts.append((consumed, groups, draw(st.integers(0, 5)) == 0))
    return counters, parts


def counters(amounts: dict[str, str]) -> dict[str, api.Counter]:
    return {name: api.Counter(value=api.Quantity.parse(amount)) for name, amount in amounts.items()}


@st.composite
def partitioned_slices(draw: st.DrawFn) -> list[api.ResourceSlice]:
    """Up to 3 cards, most of one design."""
    designs = draw(st.lists(card_designs(), min_size=1, max_size=2))
    sets, devices = [], []
    for card in range(draw(st.integers(2, 3))):
        supply, parts = designs[min(len(designs) - 1, draw(st.sampled_from((0, 0, 0, 1))))]
        sets.append(api.CounterSet(name=f"card-{card}", counters=counters(supply)))
        devices += [
            api.Device(
                name=f"card-{card}-{number}",
                attributes={"rack": workloads.number(card % 2), "model": workloads.text("ab"[consumed["mem"] == "1"])},
                allow_multiple_allocations=True if shared else None,
                consumes_counters=(
                    api.DeviceCounterConsumption(
                        counter_set=f"card-{card}", counters=counters(consumed), compatibility_groups=groups
                    ),
                ),
            )
            for number, (consumed, groups, shared) in enumerate(parts)
        ]
    if draw(st.integers(0, 3)) == 0:
        both = tuple(
            api.DeviceCounterConsumption(
                counter_set=each.name, counters=counters({"mem": draw(st.sampled_from("012"))})
            )
            for each in sets[:2]
        )
        devices.append(
            api.Device(
                name="across",
                attributes={"rack": workloads.number(0), "model": workloads.text("a")},
                consumes_counters=both,
            )
        )
    if draw(st.booleans()):
        devices = draw(st.permutations(devices))
    return [
        workloads.pool_slice(GPU, "node-0", on="node-0", name="a-counters", count=2, counters=sets),
        workloads.pool_slice(GPU, "node-0", devices, on="node-0", name="b-devices", count=2),
    ]


@st.composite
def requests(draw: st.DrawFn, name: str) -> api.DeviceRequest:
    """A request for one to three devices, or a choice of such."""
    model = f'device.attributes["{GPU}"].model'
    selector = draw(st.sampled_from((None, f'{model} == "a"', f'{model} == "b"')))
    amount = draw(st.sampled_from((None, {"bandwidth": "1"}, {"bandwidth": "2"})))
    one = workloads.request(name, "gpu", draw(st.sampled_from((1, 1, 1, 2, 3))), selector, amount)
    if draw(st.integers(0, 3)):
        return one
    assert one.exactly is not None
    body = attrs.asdict(one.exactly, recurse=False)
    del body["admin_access"]
    choices = tuple(
        api.DeviceSubRequest(name=f"sub-{i}", **(body | {"count": draw(st.integers(1, 3))})) for i in range(2)
    )
    return api.DeviceRequest(name=name, first_available=choices)


@st.composite
def asked(draw: st.DrawFn) -> list[api.ResourceClaim]:
    """One to three claims with constraints on the rack."""
    claims = []
    for number in range(draw(st.integers(1, 4))):
        wanted = [draw(requests(f"r{i}")) for i in range(draw(st.integers(1, 3)))]
        constraints = []
        for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
            names = draw(st.lists(st.sampled_from([each.name for each in wanted]), unique=True, max_size=2))
            if draw(st.booleans()):
                constraints.append(api.DeviceConstraint(match_attribute=RACK, requests=tuple(names)))
            else:
                constraints.append(api.DeviceConstraint(distinct_attribute=RACK, requests=tuple(names)))
        claims.append(workloads.claim(f"claim-{number}", wanted, constraints))
    return claims


def held_share(device: api.Device, amount: str) -> api.ResourceClaim:
    """A claim that holds a share of a device."""
    result = api.DeviceRequestAllocationResult(
        request="r",
        driver=GPU,
        pool="node-0",
        device=device.name,
        share_id="00000000-0000-4000-8000-000000000000",
        consumed_capacity={name: api.Quantity.parse(amount) for name in device.capacity},
    )
    allocation = api.AllocationResult(devices=api.DeviceAllocationResult(results=(result,)))
    claim = workloads.claim(f"share-{device.name}", [workloads.request("r", "gpu")])
    return attrs.evolve(claim, status=api.ResourceClaimStatus(allocation=allocation))


@st.composite
def symmetric(draw: st.DrawFn) -> Scenario:
    """A node full of things that are alike, some of them in use."""
    if draw(st.booleans()):
        slices = [workloads.pool_slice(GPU, "node-0", draw(plain_devices()), on="node-0")]
    else:
        slices = draw(partitioned_slices())
    devices = [device for item in slices for device in item.spec.devices]
    exclusive = [device.name for device in devices if not device.allow_multiple_allocations]
    shared = [device for device in devices if device.allow_multiple_allocations]
    held = []
    if exclusive:
        taken = draw(st.lists(st.sampled_from(exclusive), unique=True, max_size=3))
        held.append(workloads.held("held", [(GPU, "node-0", name) for name in taken]))
    if shared:
        for device in draw(st.lists(st.sampled_from(shared), unique_by=lambda each: each.name, max_size=3)):
            held.append(held_share(device, draw(st.sampled_from("123"))))
    return Scenario(
        nodes=(workloads.node("node-0"),),
        slices=tuple(slices),
        classes=workloads.CLASSES,
        allocated_claims=tuple(held),
        claims=tuple(draw(asked())),
        features=dra.Features.all(),
    )


@settings(max_examples=MODEL_EXAMPLES // 2)
@given(symmetric())
def test_things_that_are_alike(scenario: Scenario) -> None:
    compare_with_model(scenario, HEAVY, LIGHT, SWITCHING)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters())
def test_every_feature(scenario: Scenario) -> None:
    compare_with_model(scenario, HEAVY, SWITCHING)


def test_a_counter_that_is_overdrawn_concerns_those_that_draw_on_it() -> None:
    """One card is used beyond what it has; a device that shares a block with it, but not that counter, is free."""

    def consumption(**amounts: str) -> tuple[api.DeviceCounterConsumption, ...]:
        return tuple(
            api.DeviceCounterConsumption(counter_set=name.replace("_", "-"), counters=counters({"mem": amount}))
            for name, amount in amounts.items()
        )

    sets = [api.CounterSet(name=f"card-{card}", counters=counters({"mem": "1"})) for card in (0, 1)]
    devices = [
        api.Device(name="free", consumes_counters=consumption(card_0="0")),
        api.Device(name="both", consumes_counters=consumption(card_0="0", card_1="2")),
    ]
    scenario = Scenario(
        nodes=(workloads.node("node-0"),),
        slices=(
            workloads.pool_slice(GPU, "node-0", on="node-0", name="a", count=2, counters=sets),
            workloads.pool_slice(GPU, "node-0", devices, on="node-0", name="b", count=2),
        ),
        classes=workloads.CLASSES,
        allocated_claims=(workloads.held("held", [(GPU, "node-0", "both")]),),
        claims=(workloads.claim("one", [workloads.request("gpu", "gpu")]),),
        features=dra.Features.all(),
    )
    cluster = dra.Cluster.from_objects(scenario.cluster_objects())
    for budget in (HEAVY, LIGHT):
        found = dra.Allocator(cluster, scenario.features, budget=budget).allocate(scenario.claims, "node-0")
        assert found is not None
        assert found[0].devices.results[0].device == "free"
