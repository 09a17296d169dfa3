"""KEP-6132: whom the scheduler wakes in worked examples, and whom the index does."""

from __future__ import annotations

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import DeviceTaint, DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector, ObjectMeta
from tests.requeue.objects import CLASSES, GPU, claim, device, holding, node, pod, slice_of

TAINT = DeviceTaint(key="broken", effect="NoSchedule")
RULE = DeviceTaintRule(
    metadata=ObjectMeta(name="broken"),
    spec=DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(driver=GPU), taint=TAINT),
)


@pytest.fixture
def cluster() -> dra.Cluster:
    """Two GPUs, of which another claim has one; a claim that waits for each of two pods."""
    return dra.Cluster.from_objects(
        [
            *CLASSES,
            node("node-0"),
            slice_of(device("gpu-0"), device("gpu-1")),
            claim("c1"),
            claim("c2"),
            holding(claim("c9"), "gpu-1"),
        ]
    )


@pytest.fixture
def index(cluster: dra.Cluster) -> dra.RequeueIndex:
    index = dra.RequeueIndex(cluster)
    index.add(pod("p1", "c1"))
    index.add(pod("p2", "c2"))
    return index


def test_worked_example_a(index: dra.RequeueIndex) -> None:
    """A status concerns the users of the claim; what a claim gives back, all who may have it."""
    c1 = claim("c1")
    assert index.affected(dra.Event("updated", holding(c1, "gpu-0"), old=c1)) == ["default/p1"]
    freed = dra.Event("updated", claim("c9"), old=holding(claim("c9"), "gpu-1"))
    assert index.affected(freed) == ["default/p1", "default/p2"]


def test_worked_example_b(cluster: dra.Cluster, index: dra.RequeueIndex) -> None:
    """A rule that goes frees devices of their taint; a finalizer of a claim means nothing."""
    cluster.upsert(RULE)
    assert index.affected(dra.Event("deleted", RULE)) == ["default/p1", "default/p2"]
    c1 = claim("c1")
    protected = attrs.evolve(c1, metadata=attrs.evolve(c1.metadata, finalizers=("example.com/keep",)))
    assert index.affected(dra.Event("updated", protected, old=c1)) == []
