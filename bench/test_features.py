"""The features around the search on a fleet: 5,000 nodes of 12 GPUs, of which 8 are in use, and 200 taint rules.

Rules are looked up by what they select; trying each on every device would take twenty times as long.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.workloads import GPU, pool_slice
from dra_alloc import api
from dra_alloc.features.poolstatus import pool_status
from dra_alloc.features.taints import eviction_plan

NODES, DEVICES, USED, RULES = 5_000, 12, 8, 200
NOW = datetime(2026, 9, 1, tzinfo=UTC)

Fleet = tuple[list[api.ResourceSlice], list[api.ResourceClaim], list[api.Pod], list[api.DeviceTaintRule]]


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """The objects of the fleet; each rule drives pods off one node."""
    devices = [api.Device(name=f"gpu-{index}") for index in range(DEVICES)]
    slices = [pool_slice(GPU, f"node-{node}", devices, on=f"node-{node}") for node in range(NODES)]
    users = [_user(f"p-{node}-{index}", f"node-{node}", index) for node in range(NODES) for index in range(USED)]
    rules = [_rule(f"node-{node}") for node in range(RULES)]
    return slices, [claim for claim, _ in users], [pod for _, pod in users], rules


def _user(name: str, node: str, index: int) -> tuple[api.ResourceClaim, api.Pod]:
    result = api.DeviceRequestAllocationResult(request="gpu", driver=GPU, pool=node, device=f"gpu-{index}")
    status = api.ResourceClaimStatus(
        allocation=api.AllocationResult(devices=api.DeviceAllocationResult(results=(result,))),
        reserved_for=(api.ResourceClaimConsumerReference(resource="pods", name=name, uid=name),),
    )
    claim = api.ResourceClaim(metadata=api.ObjectMeta(name=name, namespace="default"), status=status)
    spec = api.PodSpec(node_name=node, resource_claims=(api.PodResourceClaim(name="gpu", resource_claim_name=name),))
    return claim, api.Pod(metadata=api.ObjectMeta(name=name, namespace="default", uid=name), spec=spec)


def _rule(node: str) -> api.DeviceTaintRule:
    taint = api.DeviceTaint(key="example.com/repair", effect="NoExecute", time_added=NOW)
    spec = api.DeviceTaintRuleSpec(device_selector=api.DeviceTaintSelector(pool=node), taint=taint)
    return api.DeviceTaintRule(metadata=api.ObjectMeta(name=node), spec=spec)


@pytest.mark.benchmark(group="features")
def test_eviction_plan(benchmark: BenchmarkFixture, fleet: Fleet) -> None:
    plan = benchmark(eviction_plan, *fleet, now=NOW)
    assert len(plan) == RULES * USED


@pytest.mark.benchmark(group="features")
def test_pool_status(benchmark: BenchmarkFixture, fleet: Fleet) -> None:
    slices, claims, _, rules = fleet
    pools = benchmark(pool_status, slices, claims, rules)
    assert len(pools) == NODES
    assert sum(pool.unavailable_devices or 0 for pool in pools) == RULES * (DEVICES - USED)
