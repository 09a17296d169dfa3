"""One question at one node: how fast an answer comes, and how the cost of no answer grows.

The plain cost is the plain-search model of `dra_alloc.testing`, at a size that it can do. A node remembers questions
that had no answer there; that is forgotten before each question, so that the search itself is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dra_alloc as dra
from bench import workloads
from bench.conftest import Measure
from bench.workloads import Workload
from dra_alloc import api
from dra_alloc.testing.model import plain_allocate

FEATURES = dra.Features.all()


def asking(work: Workload) -> tuple[dra.Allocator, Callable[[], Any]]:
    """An allocator over the workload, warm, and the question at its node."""
    alloc = dra.Allocator(dra.Cluster.from_objects(work.objects), FEATURES)

    node = alloc.cluster.get("Node", work.node)
    view = alloc.cluster.inventory(FEATURES).view(node)

    def ask() -> Any:
        view.refused.clear()
        return alloc.allocate(work.claims, work.node)

    ask()
    return alloc, ask


def plainly(work: Workload) -> Callable[[], Any]:
    """The same question by the plain model."""

    def kind(wanted: type) -> list[Any]:
        return [item for item in work.objects if isinstance(item, wanted)]

    node = next(item for item in kind(api.Node) if item.metadata.name == work.node)
    claims = [item for item in kind(api.ResourceClaim) if item.status is not None]
    slices, classes = kind(api.ResourceSlice), kind(api.DeviceClass)
    return lambda: plain_allocate(work.claims, node, slices, classes, allocated_claims=claims, features=FEATURES)


def test_fleet_node(measure: Measure) -> None:
    """Two GPUs and a NIC on one NUMA node, of one node of 500, with the whole result."""
    _, ask = asking(workloads.fleet(500))
    found = measure(ask, n=500, plain=plainly(workloads.fleet(1)), what="the plain model on one node")
    assert len(found[0].devices.results) == 3


def test_fleet_node_cold(measure: Measure) -> None:
    """The same on nodes that were not asked for before, 20 in turn; their pools are compiled on the way."""
    objects = [item.to_dict() for item in workloads.fleet(500).objects]  # type: ignore[attr-defined]
    alloc, _ = asking(workloads.fleet(1))
    claims = workloads.gpu_and_nic()
    fresh: list[str] = []

    def setup() -> tuple[tuple[list[str]], dict[str, Any]]:
        if not fresh:
            alloc.cluster = dra.Cluster.from_objects(dra.load(objects))
            alloc.cluster._caches = caches
            fresh.extend(alloc.cluster.node_names())
        return ([fresh.pop() for _ in range(20)],), {}

    def ask(names: list[str]) -> list[Any]:
        return [alloc.allocate(claims, name) for name in names]

    caches = alloc.cluster._caches
    found = measure(ask, n=500, setup=setup, rounds=75, units=20)
    assert [len(each[0].devices.results) for each in found] == [3] * 20


def test_full_node(measure: Measure) -> None:
    """The one node that has anything free."""
    _, ask = asking(workloads.full(500))
    found = measure(ask, n=500, plain=plainly(workloads.full(1)), what="the plain model on one node")
    assert len(found[0].devices.results) == 3


def test_pool(measure: Measure) -> None:
    """8 of 4096 network-attached devices on one root; only the last racks have them."""
    _, ask = asking(workloads.pool(4096))
    found = measure(ask, n=4096)
    results = found[0].devices.results
    assert [each.device for each in results] == [f"dev-{i:05}" for i in range(4080, 4088)]


def test_mig(measure: Measure) -> None:
    """A partition of one slice where 8 cards of 18 partitions each are in use but for one slice."""
    work = workloads.mig(8)
    _, ask = asking(work)
    found = measure(ask, n=8, plain=plainly(work), what="the plain model")
    assert found[0].devices.results[0].device.startswith("card-7-1g")


def test_shares(measure: Measure) -> None:
    """8 shares of 25G on distinct NICs of 64 that are in use by 60 % and more."""
    _, ask = asking(workloads.shares(64, 8))
    found = measure(ask, n=64)
    assert len({each.device for each in found[0].devices.results}) == 8


@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_trap(measure: Measure, n: int) -> None:
    """Four of any, then a pair on one root where each root has one. No answer."""
    _, ask = asking(workloads.trap(n))
    plain = {"plain": plainly(workloads.trap(8)), "what": "the plain model at n = 8"} if n == 64 else {}
    assert measure(ask, n=n, **plain) is None


@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_toomany(measure: Measure, n: int) -> None:
    """n equal devices, n + 1 claims. No answer."""
    _, ask = asking(workloads.toomany(n))
    plain = {"plain": plainly(workloads.toomany(5)), "what": "the plain model at n = 5"} if n == 64 else {}
    assert measure(ask, n=n, **plain) is None


@pytest.mark.parametrize(
    ("name", "n", "fits"),
    [
        *((name, n, False) for name in ("pigeons", "alternatives", "partitions", "bins") for n in (8, 16, 32, 64)),
        *(("triples", n, False) for n in (32, 64, 128, 256)),
        *(("late_pair", n, True) for n in (32, 64, 128, 256)),
    ],
)
def test_hard(measure: Measure, name: str, n: int, fits: bool) -> None:
    """Harder ones: what they are is told in bench/workloads.py."""
    _, ask = asking(getattr(workloads, name)(n))
    assert (measure(ask, n=n, family=name) is not None) is fits


def test_refused(measure: Measure) -> None:
    """A node that is full, asked again while nothing has changed."""
    work = workloads.full(2)
    alloc = dra.Allocator(dra.Cluster.from_objects(work.objects), FEATURES)
    assert alloc.allocate(work.claims, "node-00000") is None
    assert (
        measure(lambda: alloc.allocate(work.claims, "node-00000"), plain=plainly(work), what="the plain model") is None
    )
