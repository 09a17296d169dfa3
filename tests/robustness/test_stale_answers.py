"""What an allocator remembers of a cluster never outlives the state that it was true of."""

from __future__ import annotations

import dra_alloc as dra
from bench import workloads

CLAIM = workloads.claim("one", [workloads.request("gpu", "gpu")])


def test_versions_come_again_after_a_revert_and_answers_do_not() -> None:
    cluster = dra.Cluster.from_objects([*workloads.CLASSES, *workloads.gpu_node("node-1")])
    allocator = dra.Allocator(cluster)
    before = cluster.version
    cluster.upsert(workloads.device_class("gpu", "nobody"))
    after = cluster.version
    assert allocator.allocate(CLAIM, node="node-1") is None
    cluster.revert(before)
    cluster.upsert(workloads.node("node-2"))
    assert cluster.version == after
    assert allocator.allocate(CLAIM, node="node-1") is not None


def test_a_claim_asked_for_again_sees_what_was_committed_and_taken_back() -> None:
    cluster = dra.Cluster.from_objects([*workloads.CLASSES, *workloads.gpu_node("node-1")])
    allocator = dra.Allocator(cluster)
    all_gpus = workloads.claim("all", [workloads.request("gpu", "gpu", 8)])
    found = allocator.allocate(all_gpus, node="node-1")
    assert found is not None
    start = cluster.version
    for _ in range(3):
        cluster.commit(all_gpus, found[0])
        assert allocator.feasible_nodes(CLAIM) == []
        assert allocator.allocate(CLAIM, node="node-1") is None
        cluster.revert(start)
        assert allocator.feasible_nodes(CLAIM) == ["node-1"]
        assert allocator.allocate(CLAIM, node="node-1") is not None
