"""Public objects survive pickle and copy, and what comes back is the same."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import dra_alloc as dra
from bench import workloads
from dra_alloc.api import Pod, Quantity
from dra_alloc.sweeps import read_plan, table
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters

ROOT = Path(__file__).parents[2]
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def copies(value: Any) -> list[Any]:
    """The value through every way of copying."""
    through = [pickle.loads(pickle.dumps(value, protocol)) for protocol in PROTOCOLS]
    return [*through, copy.copy(value), copy.deepcopy(value)]


def example_objects() -> list[Any]:
    return [
        *dra.load(
            *(str(path) for path in sorted(ROOT.glob("examples/*/*.yaml")) if path.parent.name not in ("lint", "sweep"))
        )
    ]


@pytest.mark.parametrize("item", example_objects(), ids=lambda item: f"{item.kind}-{item.metadata.name}")
def test_objects_of_the_api(item: Any) -> None:
    for other in copies(item):
        assert other == item
        assert type(other) is type(item)
        assert dra.encode(other) == dra.encode(item)


@given(clusters())
def test_scenarios(scenario: Scenario) -> None:
    assert pickle.loads(pickle.dumps(scenario)) == scenario


@pytest.mark.parametrize(
    "value",
    [
        Quantity.parse("1.5Gi"),
        Quantity.parse("9Ei"),
        dra.Features.all(),
        dra.Features.for_version("1.35"),
        dra.Budget(max_steps=7, timeout=2.5),
        dra.Event("added", workloads.node("node-1")),
        dra.Event("updated", workloads.node("node-1"), old=workloads.node("node-1")),
        dra.Problem("spec.x", "is wrong", "write y"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values(value: Any) -> None:
    for other in copies(value):
        assert other == value
        assert str(other) == str(value)
        if not isinstance(value, dra.Event):  # objects of the API hold dicts
            assert hash(other) == hash(value)


@pytest.mark.parametrize(
    "error",
    [
        dra.DraError("what"),
        dra.DecodeError("claims.yaml[2]", "is wrong", "write y"),
        dra.ValidationError([dra.Problem("spec.x", "is wrong", "write y")]),
        dra.CelError("no such key", "device.x\n + y", 9),
        dra.AllocationError("cel", "fails", claim="a/b", request="r", device="d/p/x", node="n"),
        dra.BudgetExceeded("too long", steps=9, hard=["a/b/r"]),
        dra.Cancelled("stopped"),
        dra.Conflict("taken"),
        dra.MissingExtra("install it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors(error: dra.DraError) -> None:
    for other in copies(error):
        assert type(other) is type(error)
        assert (other.kind, str(other), vars(other)) == (error.kind, str(error), vars(error))


def test_answers() -> None:
    work = workloads.fleet(3)
    allocator = dra.Allocator(dra.Cluster.from_objects(work.objects))
    node = allocator.feasible_nodes(work.claims)[0]
    found = allocator.allocate(work.claims, node=node)
    why = allocator.explain(work.claims)
    for other in copies(found):
        assert other == found
    for other in copies(why):
        assert other == why
        assert other.text() == why.text()


def test_answers_about_a_whole_cluster() -> None:
    """Status and its tables, chosen allocations, remedies, preemption, and the outcomes of sweeps."""
    demo = dra.load(str(ROOT / "examples" / "demo"))
    cluster = dra.Cluster.from_objects(demo)
    allocator = dra.Allocator(cluster)
    pods = [pod for pod in cluster.pods() if pod.spec.resource_claims]
    unlucky = [pod for pod in pods if (plan := allocator.allocate_pod(pod)) is None or cluster.commit(plan)]
    assert unlucky
    work = workloads.fleet(2)
    best = dra.Allocator(dra.Cluster.from_objects(work.objects)).allocate(work.claims, node=work.node, prefer="pack")
    plan = read_plan(ROOT / "examples" / "sweep" / "plan.yaml")
    outcomes = list(dra.sweep(plan))
    answers = [
        demo,
        best,
        dra.cluster_status(cluster),
        *(allocator.whatif(pod) for pod in unlucky),
        *(allocator.preempt(pod) for pod in unlucky),
        list(plan),
        outcomes,
        table(outcomes),
    ]
    for value in answers:
        for other in copies(value):
            assert other == value
            assert type(other) is type(value)


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, pickle.dumps], ids=lambda through: through.__name__)
def test_what_lives_is_not_copied_by_half(through: Callable[[Any], Any]) -> None:
    """A cancellation, an index and a queue are one thing for all who hold them."""
    index = dra.RequeueIndex(dra.Cluster())
    for value in (dra.Cancel(), index, dra.PendingQueue(index)):
        with pytest.raises(TypeError, match=rf"{type(value).__name__}.*cannot be copied or pickled"):
            through(value)


def test_plans_of_pods() -> None:
    cluster = dra.Cluster.from_objects(dra.load(str(ROOT / "examples" / "demo")))
    pod = next(pod for pod in cluster.pods() if isinstance(pod, Pod) and pod.spec.resource_claims)
    plan = dra.Allocator(cluster).allocate_pod(pod)
    assert plan is not None
    for other in copies(plan):
        assert other == plan
        with cluster.fork() as trial:
            trial.commit(other)
            assert trial.get("Pod", pod.metadata.key).spec.node_name == plan.node


def test_clusters_with_their_forks() -> None:
    work = workloads.fleet(4)
    cluster = dra.Cluster.from_objects(work.objects)
    allocator = dra.Allocator(cluster)
    nodes = allocator.feasible_nodes(work.claims)
    found = allocator.allocate(work.claims, node=nodes[0])
    assert found is not None
    cluster.commit(work.claims[0], found[0])
    later = workloads.claim("later", [workloads.request("gpu", "gpu", 2)])
    expected = allocator.feasible_nodes(later)
    for other in copies(cluster):
        assert other.version == cluster.version
        assert list(other) == list(cluster)
        assert dra.Allocator(other).feasible_nodes(later) == expected
        other.delete("ResourceSlice", other.slices()[0].metadata.name)
    assert allocator.feasible_nodes(later) == expected


def test_allocators_with_their_clusters() -> None:
    work = workloads.fleet(4)
    allocator = dra.Allocator(dra.Cluster.from_objects(work.objects), dra.Features.all(), budget=dra.Budget(timeout=9))
    expected = allocator.feasible_nodes(work.claims)
    for other in copies(allocator):
        assert (other.features, other.budget) == (allocator.features, allocator.budget)
        assert other.feasible_nodes(work.claims) == expected
        assert other.allocate(work.claims, node=expected[0]) == allocator.allocate(work.claims, node=expected[0])
