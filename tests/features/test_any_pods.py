"""Whatever pods, groups, classes and slices say: planned, committed and released, or refused by the library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc import api
from dra_alloc.features.quota import quota_usage
from tests.codec.strategies import objects
from tests.features.scenes import gpu_class, gpu_node, template
from tests.robustness.fuzzing import ROOT, changed_documents, documents

EXAMPLES = [
    [document for path in sorted((ROOT / "examples" / name).glob("*.yaml")) for document in documents(path)]
    for name in (
        "prioritized-list",
        "admin-access",
        "extended-resources",
        "workload-claims",
        "node-allocatable",
        "binding-conditions",
        "consumable-capacity",
    )
]
GATES = st.sampled_from([dra.Features(), dra.Features.all(), dra.Features.none()])
CAREFREE = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=80,
)


def refusing(act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What it gives; an exception that is not one of the library fails the test."""
    with suppress(dra.DraError):
        return act(*arguments, **options)
    return None


def cluster_of(found: Iterable[Any]) -> dra.Cluster:
    """Of those that have a name."""
    return dra.Cluster.from_objects([item for item in found if item.metadata.name])


def live(cluster: dra.Cluster, features: dra.Features, search: bool) -> None:
    """Plan, write and end all that is there."""
    budget = dra.Budget(max_steps=20_000)
    allocator = dra.Allocator(cluster, features, budget=budget)
    resources = "search" if search else "check"
    names = cluster.node_names()
    for pod in cluster.pods():
        refusing(allocator.feasible_nodes, pod=pod, node_resources=resources)
        refusing(allocator.score, pod=pod)
        if names:
            refused = refusing(allocator.refusal, pod, names[0])
            assert refused is None or str(refused)
    for group in cluster.pod_groups():
        with cluster.fork() as trial:
            there = dra.Allocator(trial, features, budget=budget)
            plan = refusing(there.allocate_group, group, max_tries=50)
            if plan is not None:
                refusing(trial.commit, plan)
                refusing(plan.to_dict)
    for pod in cluster.pods():
        plan = refusing(allocator.allocate_pod, pod, node_resources=resources)
        if plan is None:
            continue
        refusing(plan.to_dict)
        before = [*cluster]
        try:
            cluster.commit(plan)
        except dra.Conflict:
            assert [*cluster] == before
    for namespace in {pod.metadata.namespace or "default" for pod in cluster.pods()}:
        quota_usage(cluster.pods(), cluster.claims(), cluster.classes(), namespace=namespace, features=features)
    for item in [*cluster.pods(), *cluster.pod_groups()]:
        refusing(cluster.release, item)


@CAREFREE
@given(changed_documents(EXAMPLES), GATES, st.booleans())
def test_examples_that_went_wrong(found: list[Any], features: dra.Features, search: bool) -> None:
    loaded = refusing(dra.load, found)
    if loaded is not None:
        live(cluster_of(loaded), features, search)


@CAREFREE
@given(
    st.lists(objects(api.Pod), max_size=2),
    st.lists(objects(api.PodGroup), max_size=1),
    st.lists(objects(api.ResourceSlice), max_size=2),
    objects(api.Node),
    GATES,
    st.booleans(),
)
def test_any_objects(
    pods: list[Any], groups: list[Any], slices: list[Any], node: Any, features: dra.Features, search: bool
) -> None:
    here = [*gpu_node("n1", "a", "b"), gpu_class(resource="example.com/gpu"), template("t")]
    live(cluster_of([*here, *pods, *groups, *slices, node]), features, search)
