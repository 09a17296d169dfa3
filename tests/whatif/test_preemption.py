"""Victims are chosen as the scheduler chooses them."""

from __future__ import annotations

import pytest

import dra_alloc as dra
from tests.explain.building import GPU_CLASS, cluster, gpu, gpus, template

CLASS = "---".join([GPU_CLASS, template("one", 1), template("two", 2)])


def node(name: str, devices: int = 2) -> str:
    return f"""
{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{cpu: 8}}}}}}
---{gpus(name, *map(gpu, range(devices)))}"""


def pod(name: str, priority: int, claims: str = "one", *, start: str = "", policy: str = "", cpu: str = "0") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  priority: {priority}
  {f"preemptionPolicy: {policy}" if policy else ""}
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: {claims}}}]
  containers: [{{name: main, resources: {{requests: {{cpu: {cpu}}}, claims: [{{name: gpu}}]}}}}]
status: {{phase: Pending{f", startTime: '{start}'" if start else ""}}}
"""


def running(objects: dra.Cluster, **nodes: str) -> dra.Allocator:
    """Let pods run: name=node."""
    alloc = dra.Allocator(objects)
    for name, on in nodes.items():
        plan = alloc.allocate_pod(f"default/{name}", on)
        assert plan is not None
        objects.commit(plan)
    return alloc


def test_the_lowest_highest_priority_comes_first() -> None:
    objects = cluster(
        CLASS, node("a", 1), node("b", 2), pod("a1", 5), pod("b1", 1), pod("b2", 4), pod("new", 10, "two")
    )
    alloc = running(objects, a1="a", b1="b", b2="b")
    found = alloc.preempt("default/new")
    assert found is not None
    assert (found.node, found.victims, found.candidates) == ("b", ("default/b2", "default/b1"), 1)
    assert found.text() == "pod default/new: fits on node b without pods default/b2, default/b1"
    assert found.plan.node == "b"


def test_a_pod_that_can_stay_stays_the_most_important_first() -> None:
    objects = cluster(CLASS, node("a"), pod("low", 1), pod("high", 5), pod("new", 10))
    alloc = running(objects, low="a", high="a")
    found = alloc.preempt("default/new")
    assert found is not None
    assert found.victims == ("default/low",)


@pytest.mark.parametrize(
    ("on_a", "on_b", "expected"),
    [
        ([3], [2], "b"),  # the highest priority of the victims
        ([2, 2], [2, 1], "b"),  # their sum
        ([2], [2], "a"),  # the first node
    ],
)
def test_nodes_are_ranked_by_their_victims(on_a: list[int], on_b: list[int], expected: str) -> None:
    pods = {
        f"{name}{place}": (name, priority)
        for name, on in (("a", on_a), ("b", on_b))
        for place, priority in enumerate(on)
    }
    gpus = len(on_a)
    objects = cluster(
        CLASS,
        node("a", gpus),
        node("b", gpus),
        *(pod(name, priority) for name, (_, priority) in pods.items()),
        pod("new", 10, "one" if gpus == 1 else "two"),
    )
    alloc = running(objects, **{name: on for name, (on, _) in pods.items()})
    found = alloc.preempt("default/new")
    assert found is not None
    assert found.node == expected
    assert found.candidates == 2


def test_fewer_victims_come_before_later_starts() -> None:
    objects = cluster(
        CLASS, node("a", 2), node("b", 2), pod("a0", 0, "two"), pod("b0", -1), pod("b1", -1), pod("new", 10, "two")
    )
    alloc = running(objects, a0="a", b0="b", b1="b")
    found = alloc.preempt("default/new")
    assert found is not None
    assert found.victims == ("default/b0", "default/b1")  # a lower highest priority counts before the number


def test_the_latest_start_goes() -> None:
    objects = cluster(
        CLASS,
        node("a", 1),
        node("b", 1),
        pod("old", 1, start="2026-09-01T12:00:00Z"),
        pod("young", 1, start="2026-09-02T12:00:00Z"),
        pod("new", 10),
    )
    alloc = running(objects, old="a", young="b")
    found = alloc.preempt("default/new")
    assert found is not None
    assert found.victims == ("default/young",)


def test_node_resources_count_too() -> None:
    objects = cluster(CLASS, node("a", 3), pod("big", 1, cpu="6"), pod("small", 2, cpu="1"), pod("new", 10, cpu="4"))
    alloc = running(objects, big="a", small="a")
    found = alloc.preempt("default/new")
    assert found is not None
    assert found.victims == ("default/big",)


def test_nobody_goes_for_what_fits_or_for_nothing() -> None:
    objects = cluster(
        CLASS, node("a", 1), pod("old", 1), pod("new", 10), pod("never", 10, policy="Never"), pod("wide", 10, "two")
    )
    alloc = dra.Allocator(objects)
    fits = alloc.preempt("default/new")
    assert fits is not None
    assert (fits.victims, fits.trials) == ((), 0)
    alloc = running(objects, old="a")
    assert alloc.preempt("default/never") is None
    assert alloc.preempt("default/wide") is None
    assert alloc.preempt(objects.get("Pod", "default/old"), nodes=["a"]) is not None


def test_a_claim_that_others_share_stays() -> None:
    shared = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""
    use = pod("x", 1).replace("resourceClaimTemplateName: one", "resourceClaimName: shared")
    objects = cluster(
        CLASS,
        node("a", 1),
        shared,
        use.replace("name: x,", "name: weak,"),
        use.replace("name: x,", "name: strong,").replace("priority: 1", "priority: 20"),
        pod("new", 10),
    )
    alloc = running(objects, weak="a", strong="a")
    assert alloc.preempt("default/new") is None


def test_a_budget_that_ends_is_an_error() -> None:
    objects = cluster(CLASS, node("a", 2), pod("low", 1), pod("high", 5), pod("new", 10))
    alloc = running(objects, low="a", high="a")
    with pytest.raises(dra.BudgetExceeded, match="1 trials did not suffice"):
        alloc.preempt("default/new", max_trials=1)
