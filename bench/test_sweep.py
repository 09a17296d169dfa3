"""Thousands of what-ifs over 500 nodes: each takes nodes away and places a small workload.

For processes the table tells the speed-up over one process in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import dra_alloc as dra
from bench import workloads
from dra_alloc.sweeps import Outcome, Scenario

NODES = 500
SCENARIOS = (1_000, 10_000)
WORKERS = 2
#: Measured in one process for the speed-up.
SAMPLE = 1_000

CLUSTER = dra.Cluster.from_objects(workloads.fleet(NODES).objects)


def scenarios(count: int) -> Iterator[Scenario]:
    """Each loses two nodes and places up to five claims of two GPUs and a NIC on one NUMA node."""
    claims = [
        workloads.claim(
            f"train-{number}",
            [workloads.request("gpu", "gpu", 2), workloads.request("nic", "nic")],
            [workloads.match(workloads.NUMA)],
        )
        for number in range(5)
    ]
    for number in range(count):
        yield Scenario(
            name=str(number),
            labels={"size": 1 + number % 5},
            delete=[("Node", f"node-{(number + step) % NODES:05}") for step in (0, 1)],
            workload=claims[: 1 + number % 5],
        )


def play(count: int, executor: Any = None) -> list[Outcome]:
    return list(dra.sweep(scenarios(count), executor, cluster=CLUSTER))


def check(outcomes: list[Outcome], count: int) -> None:
    assert len(outcomes) == count
    assert all(outcome.fits for outcome in outcomes)
    assert [outcome.placed for outcome in outcomes[:6]] == [1, 2, 3, 4, 5, 1]
    assert outcomes[0].placements[0].node not in ("node-00000", "node-00001")


def test_one_process(benchmark: BenchmarkFixture) -> None:
    play(1)  # what is compiled once
    outcomes = benchmark.pedantic(play, (SAMPLE,), rounds=1, iterations=1)
    check(outcomes, SAMPLE)
    benchmark.extra_info.update(n=SAMPLE, units=SAMPLE)


@pytest.mark.parametrize("count", SCENARIOS)
def test_processes(benchmark: BenchmarkFixture, count: int) -> None:
    """Two of them; that they have to start counts."""
    play(1)
    start = time.perf_counter()
    expected = play(SAMPLE)
    alone = (time.perf_counter() - start) / SAMPLE
    outcomes = benchmark.pedantic(play, (count, WORKERS), rounds=1, iterations=1)
    check(outcomes, count)
    assert outcomes[:SAMPLE] == expected
    speed_up = alone / (benchmark.stats.stats.min / count)
    benchmark.extra_info.update(n=count, units=count, plain="one process", ratio=speed_up)
