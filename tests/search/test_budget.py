"""Budgets, cancelling, and signals: a search ends when it must, and says that it did not finish."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import dra_alloc as dra
from bench import workloads
from dra_alloc import api

HARD = workloads.packing(24)


@pytest.fixture(scope="module")
def cluster() -> dra.Cluster:
    return dra.Cluster.from_objects(HARD.objects)


CLAIMS = HARD.claims


def test_out_of_steps_is_not_a_verdict(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster, budget=dra.Budget(max_steps=2000))
    with pytest.raises(dra.BudgetExceeded, match=r"node node-00000: .* of 2000 steps .* is not known") as caught:
        alloc.allocate(CLAIMS, HARD.node)
    assert caught.value.kind == "budget-exceeded"
    assert caught.value.steps >= 2000
    assert all(name.startswith("default/claim-") for name in caught.value.hard)
    assert caught.value.hard


def test_out_of_time(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster, budget=dra.Budget(timeout=0.05))
    with pytest.raises(dra.BudgetExceeded, match=r"budget of 0\.05 s"):
        alloc.allocate(CLAIMS, HARD.node)
    with pytest.raises(dra.BudgetExceeded):
        alloc.feasible_nodes(CLAIMS)


def test_many_nodes_share_one_budget() -> None:
    work = workloads.fleet(50)
    alloc = dra.Allocator(dra.Cluster.from_objects(work.objects), budget=dra.Budget(timeout=1e-9))
    with pytest.raises(dra.BudgetExceeded, match=r"the time of 1e-09 s was over before node node-00000"):
        alloc.feasible_nodes(work.claims)
    cancel = dra.Cancel()
    assert not cancel.is_set()
    cancel.set()
    with pytest.raises(dra.Cancelled):
        dra.Allocator(alloc.cluster).feasible_nodes(work.claims, cancel=cancel)


@pytest.mark.parametrize("bounds", [{"max_steps": 0}, {"timeout": -1.0}, {"timeout": float("nan")}, {"memory": -1}])
def test_bounds_that_nothing_can_keep_are_refused(bounds: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        dra.Budget(**bounds)  # type: ignore[arg-type]


def test_memory_bounds_what_is_remembered_not_the_answer(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster, budget=dra.Budget(memory=0, max_steps=5000))
    with pytest.raises(dra.BudgetExceeded):
        alloc.allocate(CLAIMS, HARD.node)
    few = CLAIMS[:3]
    assert alloc.allocate(few, HARD.node) == dra.Allocator(cluster).allocate(few, HARD.node)


def test_cancel_from_another_thread(cluster: dra.Cluster) -> None:
    cancel = dra.Cancel()
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            dra.Allocator(cluster).allocate(CLAIMS, HARD.node, cancel=cancel)
        except dra.DraError as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    cancel.set()
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error) for error in caught] == [dra.Cancelled]


def test_ctrl_c_reaches_a_search_in_c(cluster: dra.Cluster) -> None:
    # A process that a shell started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            dra.Allocator(cluster).allocate(CLAIMS, HARD.node)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_a_question_with_too_many_devices_ends_before_the_stack_does() -> None:
    work = workloads.toomany(4)
    devices = [api.Device(name=f"dev-{i}") for i in range(128)]
    slices = [
        workloads.pool_slice(workloads.GPU, f"pool-{i:03}", devices, on="node-00000", name=f"slice-{i:03}")
        for i in range(60)
    ]
    cluster = dra.Cluster.from_objects([*workloads.CLASSES, workloads.node("node-00000"), *slices])
    claims = [workloads.claim(f"claim-{i}", [workloads.request("gpu", "gpu", 32)]) for i in range(220)]
    with pytest.raises(dra.BudgetExceeded, match="devices in one question"):
        dra.Allocator(cluster).allocate(claims, work.node)
    found = dra.Allocator(cluster).allocate(claims[:40], work.node)
    assert found is not None
    assert len({(each.pool, each.device) for result in found for each in result.devices.results}) == 40 * 32
