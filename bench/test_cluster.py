"""Many nodes, and a cluster that changes: what is looked at again, and what is not."""

from __future__ import annotations

import copy
import resource
import sys
from typing import Any

import attrs
import pytest

import dra_alloc as dra
from bench import workloads
from bench.conftest import Measure

GPU = workloads.GPU


@pytest.mark.parametrize("n", [625, 1250, 2500, 5000])
@pytest.mark.parametrize("name", ["fleet", "full"])
def test_feasible_nodes(measure: Measure, name: str, n: int) -> None:
    """All nodes on which the claims fit, asked again: warm."""
    work = getattr(workloads, name)(n)
    alloc = dra.Allocator(dra.Cluster.from_objects(work.objects))
    expected = alloc.feasible_nodes(work.claims)
    some = alloc.cluster.node_names()[:50]
    found = measure(
        lambda: alloc.feasible_nodes(work.claims),
        n=n,
        family=f"feasible_nodes {name}",
        units=n,
        plain=lambda: [alloc.allocate(work.claims, node) for node in some],
        plain_units=len(some),
        what="allocate node by node",
    )
    assert found == expected
    assert len(found) == (1 if name == "full" else n)


@pytest.mark.parametrize("n", [500, 5000])
def test_cold_allocator(measure: Measure, n: int) -> None:
    """A new allocator over a loaded cluster, and its first question to all nodes."""
    objects = [item.to_dict() for item in workloads.fleet(n).objects]  # type: ignore[attr-defined]
    claims = workloads.fleet(1).claims
    dra.Allocator(dra.Cluster.from_objects(dra.load(objects[:10]))).feasible_nodes(claims)

    def setup() -> tuple[tuple[dra.Cluster], dict[str, Any]]:
        return (dra.Cluster.from_objects(dra.load(objects)),), {}

    found = measure(lambda cluster: dra.Allocator(cluster).feasible_nodes(claims), n=n, units=n, setup=setup, rounds=5)
    assert len(found) == n


@pytest.mark.parametrize("n", [500, 5000])
def test_changed_slice(measure: Measure, n: int) -> None:
    """One slice changes, and a node that fits is asked for."""
    work = workloads.fleet(n)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    alloc.feasible_nodes(work.claims)
    item = cluster.get("ResourceSlice", f"node-00003-{GPU}")
    fewer = attrs.evolve(item, spec=attrs.evolve(item.spec, devices=item.spec.devices[:-1]))
    state = [item, fewer]

    def change() -> list[str]:
        state.reverse()
        cluster.upsert(state[0])
        return alloc.feasible_nodes(work.claims, limit=1)

    def anew() -> list[str]:
        return dra.Allocator(dra.Cluster.from_objects(work.objects)).feasible_nodes(work.claims, limit=1)

    assert measure(change, n=n, plain=anew, what="a new cluster") == ["node-00000"]


@pytest.mark.parametrize("n", [500, 5000])
def test_fork(measure: Measure, n: int) -> None:
    """A fork of a cluster that is warm."""
    work = workloads.fleet(n)
    cluster = dra.Cluster.from_objects(work.objects)
    dra.Allocator(cluster).feasible_nodes(work.claims)
    found = measure(cluster.fork, n=n, plain=lambda: copy.deepcopy(list(cluster)), what="a deep copy of the objects")
    assert len(found) == len(cluster)


@pytest.mark.parametrize("n", [500, 5000])
def test_simulate(measure: Measure, n: int) -> None:
    """Pods come one by one: a node is found, devices are allocated and committed, and released at the end."""
    work = workloads.fleet(n)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    claims = [
        attrs.evolve(work.claims[0], metadata=attrs.evolve(work.claims[0].metadata, name=f"pod-{i}", uid=f"uid-{i}"))
        for i in range(100)
    ]
    alloc.feasible_nodes(claims[0])

    def simulate() -> int:
        placed = 0
        for claim in claims:
            (name,) = alloc.feasible_nodes(claim, limit=1)
            found = alloc.allocate(claim, name)
            assert found is not None
            cluster.commit(claim, found[0])
            placed += 1
        for claim in claims:
            cluster.release(claim)
            cluster.delete("ResourceClaim", claim.metadata.key)
        return placed

    assert measure(simulate, n=n, units=len(claims)) == len(claims)


def test_parallel(measure: Measure) -> None:
    """Eight nodes that differ, each with a packing that takes a long search: two threads against one."""
    objects: list[object] = [*workloads.CLASSES]
    for i in range(8):
        objects += workloads.packing(18, seed=i, node_name=f"node-{i}").objects[2:]
    claims = workloads.packing(18).claims
    cluster = dra.Cluster.from_objects(objects)

    def ask(parallel: int) -> list[str]:
        cluster._caches.questions.clear()
        return dra.Allocator(cluster.fork()).feasible_nodes(claims, parallel=parallel)

    assert measure(lambda: ask(2), n=8, plain=lambda: ask(1), what="one thread") == []


def test_memory(measure: Measure) -> None:
    """60,000 devices: what cluster, objects and a warm allocator take. Megabytes are in `extra_info`."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def fill() -> int:
        cluster = dra.Cluster.from_objects(workloads.fleet(5000).objects)
        return len(dra.Allocator(cluster).feasible_nodes(workloads.gpu_and_nic()))

    def setup() -> tuple[tuple[()], dict[str, Any]]:
        return (), {}

    assert measure(fill, n=60_000, setup=setup, rounds=1) == 5000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2_000_000 if sys.platform == "linux" else True
