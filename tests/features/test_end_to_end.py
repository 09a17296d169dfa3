"""A pod's whole life, each object on the way judged by the models of kubernetes==37.0.2 and by validation."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import AllocatedDeviceStatus, Condition, Device, NetworkDeviceData, PodStatus, ResourceClaimStatus
from dra_alloc.features import pod_node_calls, put_device_status
from dra_alloc.features.binding import BindingState
from dra_alloc.features.taints import plan_evictions, try_rule
from tests.features.building import accepted, at, rule, slice_of, taint
from tests.features.scenes import a_pod, asking, container, gpu_class, node, pending, scene, template

NODE = "n1"


def world() -> tuple[dra.Cluster, dra.Allocator]:
    attached = Device.from_dict(
        {
            "name": "gpu-0",
            "bindingConditions": ["attached"],
            "bindingFailureConditions": ["broken"],
            "nodeAllocatableResources": {"memory": {"overhead": {"perPod": "1Gi"}}},
        }
    )
    spare = attrs.evolve(attached, name="gpu-1")
    tolerant = asking(
        tolerations=[
            {"key": "example.com/health", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
        ]
    )
    return scene(
        node(NODE, {"memory": "16Gi", "cpu": "8"}),
        slice_of(attached, spare, pool=NODE, node=NODE),
        slice_of("nic-0", driver="nic.example.com", pool=NODE, node=NODE),
        gpu_class(),
        gpu_class("nic", resource="example.com/nic", driver="nic.example.com"),
        template("one-gpu", tolerant),
        pending("shared", asking(device_class="nic")),
        clock=lambda: at(0),
    )


def judged(cluster: dra.Cluster) -> None:
    """All objects are what the client and the API server accept."""
    for item in cluster:
        accepted(item)
        assert dra.validate(item, features=dra.Features.all()) == []


def test_the_life_of_a_pod() -> None:
    cluster, allocator = world()
    pod = a_pod("p", container("main", {"cpu": "1", "memory": "2Gi"}, "gpu"), templates={"gpu": "one-gpu"})
    cluster.upsert(pod)
    judged(cluster)

    # Plan.
    assert allocator.feasible_nodes(pod="default/p") == [NODE]
    plan = allocator.allocate_pod("default/p")
    assert plan is not None
    for item in plan.status_updates():
        accepted(item)
    assert (plan.created, plan.drivers) == (("default/p-gpu-00002",), ("gpu.example.com",))
    assert plan.to_dict()["nodeResources"] == {"cpu": "1", "memory": "3Gi"}
    assert plan.readiness(at(1)).state is BindingState.PENDING

    # Commit.
    cluster.commit(plan)
    judged(cluster)
    claim = cluster.get("ResourceClaim", "default/p-gpu-00002")
    bound = cluster.get("Pod", "default/p")
    assert claim == plan.claims[0]
    assert bound == plan.pod
    assert [call.prepare for call in pod_node_calls(bound, cluster.claims())] == [("gpu.example.com",)]

    # The driver attaches the device and reports.
    (result,) = plan.allocations[0].devices.results
    report = AllocatedDeviceStatus(
        driver=result.driver,
        pool=result.pool,
        device=result.device,
        conditions=(Condition(type="attached", status="True", reason="Attached", last_transition_time=at(5)),),
        network_data=NetworkDeviceData(interface_name="net1", ips=("192.0.2.5/24",)),
    )
    cluster.upsert(put_device_status(claim, report))
    judged(cluster)
    assert attrs.evolve(plan, claims=tuple(cluster.claims()[1:])).readiness(at(6)).state is BindingState.READY
    running = attrs.evolve(bound, status=attrs.evolve(bound.status, phase="Running"))
    cluster.upsert(running)
    judged(cluster)

    # A taint, first as information, then in earnest.
    selector = {"driver": result.driver, "pool": result.pool, "device": result.device}
    dry = try_rule(rule("sick", taint("example.com/health=bad:None"), selector), cluster, now=at(100))
    assert [item.pod for item in dry.evictions] == ["default/p"]
    cluster.upsert(rule("sick", taint("example.com/health=bad:NoExecute", 100), selector))
    judged(cluster)
    (eviction,) = plan_evictions(cluster, now=at(110))
    assert (eviction.pod, eviction.when, eviction.node) == ("default/p", at(160), NODE)
    assert eviction.claims == ("default/p-gpu-00002",)
    condition = eviction.condition(at(160))
    cluster.upsert(attrs.evolve(running, status=attrs.evolve(running.status, conditions=(condition,))))
    judged(cluster)

    # Its successor, made by its controller, gets the other device, and waits while both are there.
    successor = a_pod("q", container("main", {"memory": "2Gi"}, "gpu"), templates={"gpu": "one-gpu"})
    second = allocator.allocate_pod(successor)
    assert second is not None
    assert [each.device for each in second.allocations[0].devices.results] == [
        "gpu-0" if result.device == "gpu-1" else "gpu-1"
    ]

    # The end: nothing is left of the pod, and the plan of its successor still holds.
    cluster.release(running)
    judged(cluster)
    assert [item.metadata.name for item in cluster.claims()] == ["shared"]
    assert len(plan_evictions(cluster, now=at(200))) == 0
    cluster.commit(second)
    judged(cluster)
    cluster.release(successor)
    assert cluster.pods() == []


def test_the_life_of_a_claim_that_pods_share() -> None:
    cluster, allocator = world()
    pods = [a_pod(name, claims={"nic": "shared"}) for name in ("a", "b")]
    for pod in pods:
        plan = allocator.allocate_pod(pod)
        assert plan is not None
        cluster.commit(plan)
        judged(cluster)
    third = a_pod("c", container("x", {"example.com/nic": "1"}))
    assert allocator.allocate_pod(third) is None
    cluster.release(pods[0])
    judged(cluster)
    assert allocator.allocate_pod(third) is None
    done = cluster.get("Pod", "default/b")
    assert done is not None
    cluster.upsert(attrs.evolve(done, status=PodStatus(phase="Succeeded")))
    cluster.release(pods[1])
    judged(cluster)
    shared: Any = cluster.get("ResourceClaim", "default/shared")
    assert shared.status == ResourceClaimStatus()
    plan = allocator.allocate_pod(third)
    assert plan is not None
    cluster.commit(plan)
    judged(cluster)
    assert plan.created == ("default/c-extended-resources-00001",)


@pytest.mark.parametrize("features", [dra.Features(), dra.Features.none(), dra.Features.for_version("1.36")])
def test_the_life_of_a_pod_without_the_newer_features(features: dra.Features) -> None:
    cluster, _ = world()
    cluster.upsert(slice_of("plain", pool="plain", node=NODE))
    allocator = dra.Allocator(cluster, features)
    plan = allocator.allocate_pod(a_pod("p", templates={"gpu": "one-gpu"}))
    assert plan is not None
    if not features.DRADeviceBindingConditions:
        assert [each.device for each in plan.allocations[0].devices.results] == ["plain"]
    assert plan.pod.status is not None
    assert plan.pod.status.node_allocatable_resource_claim_statuses == ()
    cluster.commit(plan)
    judged(cluster)
    cluster.release(plan.pod)
    assert [claim.metadata.name for claim in cluster.claims()] == ["shared"]
