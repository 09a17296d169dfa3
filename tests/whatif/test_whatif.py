"""What would help: the least changes, each of them needed, none of them untried."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import event, given

import dra_alloc as dra
from dra_alloc.errors import AllocationError
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from dra_alloc.whatif import Remedy, WhatIfBudget
from dra_alloc.whatif._search import _combinations
from dra_alloc.whatif._trial import Case, Trial
from dra_alloc.whatif.model import Change
from tests.explain.building import GPUS, NODES, cluster, pod
from tests.properties.asking import allocator

REASONS = Path(__file__).parents[2] / "examples" / "reasons"


def of_example(code: str) -> tuple[dra.Allocator, str]:
    objects = dra.Cluster.from_objects(dra.load(REASONS / code / "objects.yaml"))
    return dra.Allocator(objects, features=dra.Features.all()), "default/wanted"


def texts(remedies: tuple[Remedy, ...]) -> list[tuple[int, list[str]]]:
    return [(remedy.cost, [change.text for change in remedy.changes]) for remedy in remedies]


@pytest.mark.parametrize(
    ("code", "cost", "text"),
    [
        ("taint", 10, "tolerate the taint example.com/maintenance:NoSchedule in request gpus of claim default/wanted"),
        ("too-few", 10, "ask for 2 instead of 3 devices in request gpus of claim default/wanted"),
        ("capacity-short", 20, "ask for 20Gi instead of 25Gi of memory in request gpus of default/wanted"),
        (
            "request-selector",
            20,
            'drop device.attributes["gpu.example.com"].model == "big" from the selectors of request gpus of claim '
            "default/wanted",
        ),
        (
            "constraint-attribute",
            30,
            "drop the constraint matchAttribute resource.kubernetes.io/numaNode from claim default/wanted",
        ),
        (
            "class-selector",
            40,
            'drop device.attributes["gpu.example.com"].model == "big" from the selectors of DeviceClass gpu',
        ),
        ("in-use", 50, "release claim default/first"),
        ("groups", 50, "release claim default/other"),
        ("conflict", 100, "add 1 device such as gpu.example.com/node-1/gpu-0"),
    ],
)
def test_the_cheapest_change(code: str, cost: int, text: str) -> None:
    alloc, claim = of_example(code)
    found = alloc.whatif(claim)
    assert not found.fits
    assert texts(found.remedies)[0] == (cost, [text])


def test_a_new_node_when_all_devices_are_in_use() -> None:
    alloc, claim = of_example("in-use")
    found = alloc.whatif(claim, budget=WhatIfBudget(changes=1))
    assert texts(found.remedies)[-1] == (150, ["add a node like node-1"])
    assert found.remedies[-1].node == "node-1-new"
    assert found.complete
    assert alloc.cluster.node_names() == ("node-1",)


def test_text() -> None:
    alloc, claim = of_example("too-few")
    assert alloc.whatif(claim).text() == (
        "claim default/wanted: does not fit; what would help, the least first:\n"
        "  1. ask for 2 instead of 3 devices in request gpus of claim default/wanted\n"
        "      cost 10; on node node-1 it would get gpus: gpu.example.com/node-1/gpu-0, gpu-1\n"
        "  2. add 1 device such as gpu.example.com/node-1/gpu-0\n"
        "      cost 100; on node node-1 it would get gpus: gpu.example.com/node-1/gpu-0, gpu-1, gpu-0-new-0\n"
        "  (3 trials on 1 of 1 nodes)"
    )


def test_what_fits_needs_nothing() -> None:
    alloc = dra.Allocator(cluster(NODES, GPUS, pod("p")))
    found = alloc.whatif(pod="default/p")
    assert found.fits
    assert found.text() == "pod default/p: fits as it is"


def with_priority(name: str, priority: int) -> str:
    return pod(name, more=f"priority: {priority}")


def test_pods_of_lower_priority_give_way_those_of_the_lowest_first() -> None:
    objects = cluster(NODES, GPUS, with_priority("low", 1), with_priority("middle", 5), with_priority("high", 9))
    alloc = dra.Allocator(objects)
    for name, node in (("low", "b"), ("middle", "a")):
        plan = alloc.allocate_pod(f"default/{name}", node)
        assert plan is not None
        objects.commit(plan)
    found = alloc.whatif(pod="default/high", budget=WhatIfBudget(changes=1))
    preempted = [remedy for remedy in found.remedies if remedy.changes[0].kind == "preempt"]
    assert [remedy.node for remedy in preempted] == ["b", "a"]
    assert [remedy.cost for remedy in preempted] == [50, 55]
    assert preempted[0].changes[0].text.startswith("preempt pod default/low, which has claim default/low-gpus-")


def test_pods_of_the_same_priority_stay() -> None:
    objects = cluster(NODES, GPUS, pod("first"), pod("second"), pod("third"))
    alloc = dra.Allocator(objects)
    for name in ("first", "second"):
        plan = alloc.allocate_pod(f"default/{name}")
        assert plan is not None
        objects.commit(plan)
    found = alloc.whatif(pod="default/third")
    assert "preempt" not in {change.kind for remedy in found.remedies for change in remedy.changes}
    assert [[change.kind for change in remedy.changes] for remedy in found.remedies[-1:]] == [["add-devices"]]


def test_two_changes_together() -> None:
    alloc, _ = of_example("taint")
    claim = alloc.cluster.get("ResourceClaim", "default/wanted").to_dict()  # type: ignore[union-attr]
    claim["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    found = alloc.whatif(claim)
    kinds = [[change.kind for change in remedy.changes] for remedy in found.remedies]
    assert ["toleration", "toleration"] in kinds
    assert all("fewer-devices" not in each for each in kinds[:1])


def test_a_spent_budget_is_said() -> None:
    alloc, claim = of_example("conflict")
    found = alloc.whatif(claim, budget=WhatIfBudget(trials=1))
    assert (found.trials, found.complete, found.remedies) == (1, False, ())
    assert "not all combinations were tried" in found.text()


def test_what_no_change_can_mend() -> None:
    alloc, claim = of_example("class-not-found")
    found = alloc.whatif(claim)
    assert (found.fits, found.remedies, found.complete) == (False, (), True)


def test_combinations_come_in_the_order_of_their_cost_each_once() -> None:
    costs = (10, 10, 20, 50)
    changes = [Change("toleration", cost, str(place), apply=lambda trial: None) for place, cost in enumerate(costs)]
    found = list(_combinations(changes, 3))
    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found)
    assert len({frozenset(combination) for _, combination in found}) == len(found) == 4 + 6 + 4
    assert all(cost == sum(change.cost for change in combination) for cost, combination in found)


@given(clusters())
def test_remedies_help_and_no_change_can_be_left_out(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    budget = WhatIfBudget(trials=20, changes=2, remedies=3, timeout=None)
    found = alloc.whatif(scenario.claims, budget=budget)
    assert found.fits == alloc.explain(scenario.claims).fits
    event("fits" if found.fits else f"{len(found.remedies)} remedies")
    case = Case(alloc, scenario.claims)
    before = alloc.cluster.version
    for remedy in found.remedies:
        trial = Trial(case)
        for change in remedy.changes:
            change.apply(trial)
        assert trial.outcome(found.nodes) == (remedy.node, remedy.chosen)
        for left_out in remedy.changes:
            trial = Trial(case)
            for change in remedy.changes:
                if change is not left_out:
                    change.apply(trial)
            assert trial.outcome(found.nodes) is None, (remedy, left_out)
    assert alloc.cluster.version == before


@given(clusters())
def test_any_claims_have_an_answer(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    for node in scenario.nodes:
        found = alloc.whatif(scenario.claims, node, budget=WhatIfBudget(trials=5, timeout=None))
        try:
            results = alloc.allocate(scenario.claims, node)
        except AllocationError:
            results = None
        assert found.fits == (results is not None)
