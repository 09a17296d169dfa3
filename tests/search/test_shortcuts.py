"""The shortcuts of the search change nothing: with its heavy means from the first step on it answers as the plain model.

The scenarios here are what the shortcuts feed on: devices that nothing tells apart, cards that differ in name only,
few values, little room. The general ones of tests/properties are asked once more with the heavy means.
"""

from __future__ import annotations

import attrs
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from bench import workloads
from dra_alloc import api
from dra_alloc.errors import BudgetExceeded
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from tests.properties.asking import MODEL_EXAMPLES, MODEL_STEPS

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
def partitioned_slices(draw: st.DrawFn) -> list[api.ResourceSlice]:
    """Up to 3 cards with equal or nearly equal partitions over one or two counters."""
    sets, devices = [], []
    for card in range(draw(st.integers(1, 3))):
        counters = {name: api.Counter(value=api.Quantity.parse(draw(st.sampled_from("345")))) for name in ("mem", "sm")}
        sets.append(api.CounterSet(name=f"card-{card}", counters=counters))
        for part in range(draw(st.integers(1, 3))):
            consumed = {
                name: api.Counter(value=api.Quantity.parse(draw(st.sampled_from(SIZES))))
                for name in draw(st.sampled_from((("mem",), ("mem", "sm"))))
            }
            groups = draw(st.sampled_from(((), (), ("g",), ("g", "h"), ("h",))))
            devices.append(
                api.Device(
                    name=f"card-{card}-{part}",
                    attributes={
                        "rack": workloads.number(card % 2),
                        "model": workloads.text(draw(st.sampled_from("ab"))),
                    },
                    allow_multiple_allocations=True if draw(st.integers(0, 5)) == 0 else None,
                    consumes_counters=(
                        api.DeviceCounterConsumption(
                            counter_set=f"card-{card}", counters=consumed, compatibility_groups=groups
                        ),
                    ),
                )
            )
    return [
        workloads.pool_slice(GPU, "node-0", on="node-0", name="a-counters", count=2, counters=sets),
        workloads.pool_slice(GPU, "node-0", devices, on="node-0", name="b-devices", count=2),
    ]


@st.composite
def requests(draw: st.DrawFn, name: str) -> api.DeviceRequest:
    """A request for one to three devices, or a choice of such."""
    selector = draw(st.sampled_from((None, None, f'device.attributes["{GPU}"].model == "a"')))
    amount = draw(st.sampled_from((None, {"bandwidth": "1"}, {"bandwidth": "2"})))
    one = workloads.request(name, "gpu", draw(st.integers(1, 3)), selector, amount)
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
    for number in range(draw(st.integers(1, 3))):
        wanted = [draw(requests(f"r{i}")) for i in range(draw(st.integers(1, 3)))]
        constraints = []
        for _ in range(draw(st.integers(0, 2))):
            names = draw(st.lists(st.sampled_from([each.name for each in wanted]), unique=True, max_size=2))
            if draw(st.booleans()):
                constraints.append(api.DeviceConstraint(match_attribute=RACK, requests=tuple(names)))
            else:
                constraints.append(api.DeviceConstraint(distinct_attribute=RACK, requests=tuple(names)))
        claims.append(workloads.claim(f"claim-{number}", wanted, constraints))
    return claims


@st.composite
def symmetric(draw: st.DrawFn) -> Scenario:
    """A node full of things that are alike, some of them in use."""
    if draw(st.booleans()):
        slices = [workloads.pool_slice(GPU, "node-0", draw(plain_devices()), on="node-0")]
    else:
        slices = draw(partitioned_slices())
    exclusive = [
        device.name for item in slices for device in item.spec.devices if not device.allow_multiple_allocations
    ]
    taken = draw(st.lists(st.sampled_from(exclusive), unique=True, max_size=2)) if exclusive else []
    return Scenario(
        nodes=(workloads.node("node-0"),),
        slices=tuple(slices),
        classes=workloads.CLASSES,
        allocated_claims=(workloads.held("held", [(GPU, "node-0", name) for name in taken]),) if taken else (),
        claims=tuple(draw(asked())),
        features=dra.Features.all(),
    )


@settings(max_examples=MODEL_EXAMPLES // 2)
@given(symmetric())
def test_things_that_are_alike(scenario: Scenario) -> None:
    compare(scenario, (HEAVY, LIGHT, SWITCHING))


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters())
def test_every_feature(scenario: Scenario) -> None:
    compare(scenario, (HEAVY, SWITCHING))


def compare(scenario: Scenario, budgets: tuple[dra.Budget, ...]) -> None:
    """Ask model and search on every node with each budget, and `feasible_nodes` besides."""
    cluster = dra.Cluster.from_objects(scenario.cluster_objects())
    for node in scenario.nodes:
        try:
            expected = Outcome.of(lambda node=node: scenario.plain_allocate(node, max_steps=MODEL_STEPS))
        except BudgetExceeded:
            event("too hard for the model")
            continue
        event(expected.verdict)
        for budget in budgets:
            alloc = dra.Allocator(cluster, scenario.features, budget=budget)
            found = Outcome.of(lambda node=node, alloc=alloc: alloc.allocate(scenario.claims, node=node.metadata.name))
            difference = expected.difference(found, ("model", "search"))
            if difference:
                case = attrs.evolve(scenario, nodes=(node,)).to_yaml()
                pytest.fail(f"on node {node.metadata.name} with {budget}:\n{case}\n{difference}", pytrace=False)
