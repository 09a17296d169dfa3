"""Explaining why a pod does not fit on 5,000 nodes of 12 devices each, and why it does not on one."""

from __future__ import annotations

import random

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import dra_alloc as dra
from bench.workloads import GPU, NUMA, claim, fleet, held, match, request
from dra_alloc import api

NODES = 5_000


def used_fleet() -> dra.Cluster:
    """The fleet with devices in use at random, so that few nodes are alike."""
    chance = random.Random(7)
    cluster = dra.Cluster.from_objects(
        [item for item in fleet(NODES).objects if not isinstance(item, api.ResourceClaim)]
    )
    holders = []
    for resource_slice in cluster.slices():
        pool = resource_slice.spec.pool.name
        driver = resource_slice.spec.driver
        taken = [(driver, pool, device.name) for device in resource_slice.spec.devices if chance.random() < 0.4]
        if taken:
            holders.append(held(f"user-{driver}-{pool}", taken))
    cluster.upsert(*holders)
    return cluster


def fresh(cluster: dra.Cluster) -> tuple[tuple[()], dict[str, dra.Allocator]]:
    """An allocator that has compiled nothing yet."""
    copy = dra.Cluster.from_objects(list(cluster))
    return (), {"alloc": dra.Allocator(copy)}


@pytest.mark.benchmark(group="explain")
def test_too_many_devices(benchmark: BenchmarkFixture) -> None:
    cluster = used_fleet()
    wanted = claim("wanted", [request("gpus", "gpu", count=9)])
    found = benchmark.pedantic(lambda alloc: alloc.explain(wanted), setup=lambda: fresh(cluster), rounds=3)
    assert not found.fits
    assert sum(len(group.nodes) for group in found.groups) == NODES
    assert found.code == "too-few"


@pytest.mark.benchmark(group="explain")
def test_constraint(benchmark: BenchmarkFixture) -> None:
    cluster = used_fleet()
    wanted = claim(
        "wanted", [request("gpus", "gpu", count=5), request("nics", "nic", count=1)], [match(NUMA, "gpus", "nics")]
    )
    found = benchmark.pedantic(lambda alloc: alloc.explain(wanted), setup=lambda: fresh(cluster), rounds=3)
    assert not found.fits
    assert {group.code for group in found.groups} >= {"constraint", "in-use"}
    assert sum(len(group.nodes) for group in found.groups) == NODES


@pytest.mark.benchmark(group="explain")
def test_pod(benchmark: BenchmarkFixture) -> None:
    cluster = used_fleet()
    wanted = claim(
        "wanted", [request("gpus", "gpu", count=5), request("nics", "nic", count=1)], [match(NUMA, "gpus", "nics")]
    )
    pod = api.Pod(
        metadata=api.ObjectMeta(name="trainer", namespace="default"),
        spec=api.PodSpec(
            resource_claims=(api.PodResourceClaim(name="wanted", resource_claim_name="wanted"),),
            containers=(api.Container(name="main"),),
        ),
    )
    cluster.upsert(wanted, pod)
    found = benchmark.pedantic(
        lambda alloc: alloc.explain(pod="default/trainer"), setup=lambda: fresh(cluster), rounds=3
    )
    assert not found.fits
    assert sum(len(group.nodes) for group in found.groups) == NODES


@pytest.mark.benchmark(group="explain")
def test_selector(benchmark: BenchmarkFixture) -> None:
    cluster = used_fleet()
    wrong = f'device.driver == "{GPU}" && device.attributes["{GPU}"].?model.orValue("") == "none such"'
    wanted = claim("wanted", [request("gpus", "gpu", selector=wrong)])
    found = benchmark.pedantic(lambda alloc: alloc.explain(wanted), setup=lambda: fresh(cluster), rounds=3)
    assert [(group.code, len(group.nodes)) for group in found.groups] == [("request-selector", NODES)]


@pytest.mark.benchmark(group="explain")
def test_one_node(benchmark: BenchmarkFixture) -> None:
    cluster = used_fleet()
    wanted = claim("wanted", [request("gpus", "gpu", count=9), request("nics", "nic")])
    alloc = dra.Allocator(cluster)
    node = cluster.node_names()[17]
    found = benchmark(lambda: alloc.explain(wanted, node=node))
    assert found.only is not None
    assert found.only.code == "too-few"
    assert {entry.request for entry in found.only.requests} == {"gpus", "nics"}
