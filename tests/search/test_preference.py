"""`prefer`: the first answer, or the best by an objective."""

from __future__ import annotations

import pytest

import dra_alloc as dra
from bench import workloads
from dra_alloc import api

GPU = workloads.GPU


def two_pools(held_in_second: int) -> list[object]:
    """A node with two pools of four GPUs, of which some of the second are in use."""
    objects: list[object] = [*workloads.CLASSES, workloads.node("node-0")]
    for pool in ("a", "b"):
        devices = [api.Device(name=f"gpu-{i}") for i in range(4)]
        objects.append(workloads.pool_slice(GPU, pool, devices, on="node-0", name=f"slice-{pool}"))
    objects.append(workloads.held("held", [(GPU, "b", f"gpu-{i}") for i in range(held_in_second)]))
    return objects


def places(found: dra.Allocation | None) -> list[str]:
    assert found is not None
    return [f"{result.pool}/{result.device}" for result in found[0].devices.results]


@pytest.fixture
def alloc() -> dra.Allocator:
    return dra.Allocator(dra.Cluster.from_objects(two_pools(2)))


ONE = workloads.claim("one", [workloads.request("gpu", "gpu")])
TWO = workloads.claim("two", [workloads.request("gpu", "gpu", 2)])


def test_first_is_the_first_answer_of_the_search(alloc: dra.Allocator) -> None:
    found = alloc.allocate(ONE, "node-0")
    assert places(found) == ["a/gpu-0"]
    assert found is not None
    assert found.preferred is None


def test_pack_takes_devices_whose_neighbours_are_in_use(alloc: dra.Allocator) -> None:
    found = alloc.allocate(ONE, "node-0", prefer="pack")
    assert places(found) == ["b/gpu-2"]
    assert found is not None
    assert found.preferred is not None
    assert found.preferred.proven
    assert found.preferred.looked_at == 6


def test_spread_takes_devices_whose_neighbours_are_free(alloc: dra.Allocator) -> None:
    assert places(alloc.allocate(ONE, "node-0", prefer="spread")) == ["a/gpu-0"]
    # One of each pool: a second one of pool a would have a neighbour in use, too, but fewer than one of pool b has.
    assert places(alloc.allocate(TWO, "node-0", prefer="spread")) == ["a/gpu-0", "a/gpu-1"]
    assert places(alloc.allocate(TWO, "node-0", prefer="pack")) == ["b/gpu-2", "b/gpu-3"]


def test_a_function_gets_the_chosen_devices(alloc: dra.Allocator) -> None:
    found = alloc.allocate(ONE, "node-0", prefer=lambda chosen: int(chosen[0].device.removeprefix("gpu-")))
    assert places(found) == ["a/gpu-3"]


def test_a_bounded_look_says_that_the_best_is_not_proven() -> None:
    cluster = dra.Cluster.from_objects(two_pools(2))
    found = dra.Allocator(cluster, budget=dra.Budget(max_answers=2)).allocate(ONE, "node-0", prefer="pack")
    assert places(found) == ["a/gpu-0"]
    assert found is not None
    assert found.preferred == dra.Preferred(value=0.0, looked_at=2, proven=False)


def test_no_answer_is_no_answer_whatever_is_preferred(alloc: dra.Allocator) -> None:
    claim = workloads.claim("many", [workloads.request("gpu", "gpu", 7)])
    assert alloc.allocate(claim, "node-0", prefer="pack") is None


def test_an_unknown_preference_is_refused(alloc: dra.Allocator) -> None:
    with pytest.raises(ValueError, match="prefer is 'first'"):
        alloc.allocate(ONE, "node-0", prefer="best")  # type: ignore[arg-type]


def test_an_error_of_the_function_comes_out(alloc: dra.Allocator) -> None:
    with pytest.raises(ZeroDivisionError):
        alloc.allocate(ONE, "node-0", prefer=lambda chosen: 1 // 0)
