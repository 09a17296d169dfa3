"""KEP-4816: the score of nodes for prioritized lists."""

from __future__ import annotations

from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
)
from dra_alloc.features.score import WEIGHT, normalize, score_allocations
from tests.features.scenes import a_pod, gpu_class, gpu_node, pending, scene, template


def lists(*names: tuple[str, ...]) -> dict[str, Any]:
    """The spec of a claim with one list of alternatives a request, each for devices of that size."""
    return {
        "devices": {
            "requests": [
                {
                    "name": f"r{number}",
                    "firstAvailable": [
                        {
                            "name": name,
                            "deviceClassName": "gpu",
                            "selectors": [
                                {"cel": {"expression": f'device.attributes["gpu.example.com"].size == "{name}"'}}
                            ],
                        }
                        for name in alternatives
                    ],
                }
                for number, alternatives in enumerate(names)
            ]
        }
    }


def sized(name: str, size: str) -> Device:
    return Device(name=name, attributes={"size": DeviceAttribute(string=size)})


def served(*requests: str) -> AllocationResult:
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(
                DeviceRequestAllocationResult(request=name, driver="d", pool="p", device=f"x{number}")
                for number, name in enumerate(requests)
            )
        )
    )


EIGHT = tuple(f"s{index}" for index in range(8))


def test_worked_example_a() -> None:
    _, allocator = scene(
        gpu_node("node1", sized("a", "big")),
        gpu_node("node2", sized("a", "small")),
        gpu_node("node3", sized("a", "other")),
        gpu_class(),
        pending("c", lists(("big", "mid", "small"))),
    )
    assert allocator.score("default/c") == {"node1": 8, "node2": 6}
    assert allocator.score("default/c", normalized=True) == {"node1": 100, "node2": 75}


def test_worked_example_b() -> None:
    claim = pending("c", lists(EIGHT, EIGHT))
    raw = {
        "n1": score_allocations([(claim, served("r0/s0", "r1/s7"))]),
        "n2": score_allocations([(claim, served("r0/s2", "r1/s2"))]),
    }
    assert raw == {"n1": 9, "n2": 12}
    assert normalize(raw) == {"n1": 75, "n2": 100}
    assert [WEIGHT * score for score in normalize(raw).values()] == [150, 200]


def test_a_request_counts_once_however_many_devices_it_has() -> None:
    claim = pending("c", lists(EIGHT))
    assert score_allocations([(claim, served("r0/s1", "r0/s1", "r0/s1"))]) == 7


def test_requests_with_exactly_count_nothing() -> None:
    assert score_allocations([(pending("c"), served("gpu"))]) == 0
    assert normalize({"a": 0, "b": 0}) == {"a": 0, "b": 0}
    assert normalize({}) == {}


def test_scores_are_rounded_down() -> None:
    assert normalize({"a": 1, "b": 3, "c": 2}) == {"a": 33, "b": 100, "c": 66}


def big_and_small() -> list[Any]:
    return [
        gpu_node("node1", sized("a", "small")),
        gpu_node("node2", sized("a", "big")),
        gpu_node("node3", sized("a", "big")),
        gpu_class(),
        template("t", lists(("big", "small"))),
    ]


def test_a_pod_is_planned_on_the_node_with_the_best_score_if_asked() -> None:
    _, allocator = scene(*big_and_small())
    pod = a_pod("p", templates={"gpu": "t"})
    assert allocator.score(pod=pod) == {"node1": 7, "node2": 8, "node3": 8}
    assert allocator.score(pod=pod, nodes=["node3", "node1"], normalized=True) == {"node3": 100, "node1": 87}
    first, best = allocator.allocate_pod(pod), allocator.allocate_pod(pod, choose="score")
    assert first is not None
    assert best is not None
    assert [(plan.node, plan.score) for plan in (first, best)] == [("node1", 7), ("node2", 8)]


def test_a_claim_that_is_allocated_counts_for_all_nodes_that_it_is_available_on() -> None:
    cluster, allocator = scene(*big_and_small(), pending("c", lists(("big", "small"))))
    found = allocator.allocate("default/c", node="node2")
    assert found is not None
    cluster.commit("default/c", found[0])
    assert allocator.score("default/c") == {"node2": 8}


def test_with_the_gate_off_such_claims_are_refused_and_others_score_nothing() -> None:
    off = dra.Features(DRAPrioritizedList=False)
    assert score_allocations([(pending("c", lists(EIGHT)), served("r0/s1"))], off) == 0
    _, allocator = scene(*big_and_small(), pending("c", lists(EIGHT)), pending("plain"), features=off)
    with pytest.raises(dra.AllocationError) as caught:
        allocator.score("default/c")
    assert caught.value.kind == "unsupported"
    assert allocator.score("default/plain") == {"node1": 0, "node2": 0, "node3": 0}


def test_bad_questions() -> None:
    _, allocator = scene(*big_and_small())
    with pytest.raises(ValueError, match="claims or a pod, not both"):
        allocator.score([], pod=a_pod("p"))
    with pytest.raises(ValueError, match="claims or a pod, not both"):
        allocator.feasible_nodes([], pod=a_pod("p"))
    with pytest.raises(ValueError, match="choose is 'first' or 'score', not 'best'"):
        allocator.allocate_pod(a_pod("p"), choose="best")  # type: ignore[arg-type]
