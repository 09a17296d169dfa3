"""A claim from its allocation over device status, taint and eviction to its release, with all that surrounds it.

What is produced on the way is accepted by the models of the Kubernetes client at each step.
"""

from __future__ import annotations

from pathlib import Path

import attrs

import dra_alloc as dra
from dra_alloc.api import (
    AllocatedDeviceStatus,
    AllocationResult,
    Condition,
    NetworkDeviceData,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.features.binding import BindingState, deallocate, pod_readiness, retry_plan, unreserve
from dra_alloc.features.devicestatus import cluster_addresses, put_device_status
from dra_alloc.features.metadata import (
    VERSIONS,
    MetadataWriter,
    container_files,
    published_metadata,
    read_file,
)
from dra_alloc.features.nodeoperations import NodeCalls, pod_node_calls
from dra_alloc.features.poolstatus import pool_status
from dra_alloc.features.taints import create_rule, plan_evictions, rule_condition, try_rule, update_rule, with_condition
from tests.features.building import accepted, at, consumer, pod, rule, slice_of, taint

ATTACHED = "gpu.example.com/attached"
CONTAINERS = {"containers": [{"name": "main", "resources": {"claims": [{"name": "c"}]}}]}


def cluster_with_one_gpu() -> dra.Cluster:
    gpu = {
        "name": "gpu-0",
        "attributes": {"model": {"string": "R80"}},
        "bindingConditions": [ATTACHED],
        "bindingFailureConditions": ["gpu.example.com/failed"],
    }
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    return dra.Cluster.from_objects(
        [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}},
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
            slice_of(dra.api.Device.from_dict(gpu)),
            ResourceClaim.from_dict({"metadata": {"name": "c", "namespace": "default", "uid": "uid-c"}, "spec": spec}),
            pod("p", "c", node=None, spec=CONTAINERS),
        ]
    )


def claim_of(cluster: dra.Cluster) -> ResourceClaim:
    found = cluster.get("ResourceClaim", "default/c")
    assert isinstance(found, ResourceClaim)
    accepted(found)
    return found


def allocated(cluster: dra.Cluster) -> AllocationResult:
    found = dra.Allocator(cluster).allocate(["default/c"], node="node-1")
    assert found is not None
    return found[0]


def available(cluster: dra.Cluster) -> int | None:
    (pool,) = pool_status(cluster.slices(), cluster.claims(), cluster.rules())
    return pool.available_devices


def test_the_life_of_a_claim(tmp_path: Path) -> None:
    cluster = cluster_with_one_gpu()
    user = cluster.get("Pod", "default/p")
    assert isinstance(user, Pod)
    assert available(cluster) == 1

    # The scheduler allocates and reserves it, and waits for the driver.
    cluster.commit("default/c", attrs.evolve(allocated(cluster), allocation_timestamp=at(0)))
    held = claim_of(cluster)
    assert held.status is not None
    cluster.upsert(attrs.evolve(held, status=attrs.evolve(held.status, reserved_for=(consumer(user),))))
    assert pod_readiness([claim_of(cluster)], now=at(5), waiting_since=at(0)).state is BindingState.PENDING
    assert available(cluster) == 0

    # The driver attaches the device and gives it an address; the pod is bound.
    cluster.upsert(
        put_device_status(
            claim_of(cluster),
            AllocatedDeviceStatus(
                driver="gpu.example.com",
                pool="node-1",
                device="gpu-0",
                conditions=(Condition(type=ATTACHED, status="True", reason="Attached", last_transition_time=at(8)),),
                network_data=NetworkDeviceData(interface_name="fabric0", ips=("10.9.0.7/16",)),
            ),
        )
    )
    assert pod_readiness([claim_of(cluster)], now=at(10), waiting_since=at(0)).state is BindingState.READY
    user = attrs.evolve(user, spec=attrs.evolve(user.spec, node_name="node-1"))
    cluster.upsert(user)
    accepted(user)
    assert [item.pods for item in cluster_addresses(cluster)] == [("default/p",)]

    # The kubelet calls the driver, which tells the container about the device.
    assert pod_node_calls(user, cluster.claims()) == (
        NodeCalls("default/c", ("gpu.example.com",), ("gpu.example.com",)),
    )
    writer = MetadataWriter("gpu.example.com", tmp_path / "plugin", VERSIONS, cdi_dir=tmp_path / "cdi")
    (published,) = cluster.slices()[0].spec.devices
    writer.prepare(claim_of(cluster), {"gpu": [published_metadata("gpu.example.com", "node-1", published)]})
    (file,) = container_files(user, "main", cluster.claims())
    assert read_file(writer.host_path("default", "c", file.request)).requests[0].devices[0].name == "gpu-0"

    # An administrator tries a rule, then makes it serious.
    dry = create_rule(rule("repair", taint("example.com/repair:None"), {"pool": "node-1"}), at(100))
    cluster.upsert(with_condition(dry, rule_condition(dry, *objects(cluster), now=at(100))))
    accepted(cluster.rules()[0])
    assert try_rule(dry, cluster, now=at(101)).claims == ("default/c",)
    assert len(plan_evictions(cluster, now=at(101))) == 0
    serious = attrs.evolve(dry.spec, taint=attrs.evolve(dry.spec.taint, effect="NoExecute"))
    (stored,) = cluster.rules()
    cluster.upsert(update_rule(stored, attrs.evolve(stored, spec=serious), at(200)))
    (eviction,) = plan_evictions(cluster, now=at(200)).due(at(200))
    assert (eviction.pod, eviction.when, eviction.claims) == ("default/p", at(200), ("default/c",))
    assert user.status is not None
    accepted(attrs.evolve(user, status=attrs.evolve(user.status, conditions=(eviction.condition(at(200)),))))

    # The pod is gone: files are removed, the claim is given up and its reports with it.
    writer.cleanup("default", "c", "uid-c")
    cluster.delete(user)
    free = deallocate(unreserve(claim_of(cluster), user))
    cluster.upsert(free)
    assert claim_of(cluster).status == dra.api.ResourceClaimStatus()
    assert cluster_addresses(cluster) == ()
    assert len(plan_evictions(cluster, now=at(201))) == 0

    # While the taint is there, nobody gets the device; then it can be had again.
    assert available(cluster) == 0
    assert dra.Allocator(cluster).allocate(["default/c"], node="node-1") is None
    cluster.delete(cluster.rules()[0])
    assert dra.Allocator(cluster).allocate(["default/c"], node="node-1") is not None


def objects(cluster: dra.Cluster) -> tuple[list[ResourceSlice], list[ResourceClaim], list[Pod]]:
    return cluster.slices(), cluster.claims(), cluster.pods()


def test_a_device_that_cannot_be_attached_is_tried_again_elsewhere() -> None:
    cluster = cluster_with_one_gpu()
    user = cluster.get("Pod", "default/p")
    assert isinstance(user, Pod)
    cluster.commit("default/c", attrs.evolve(allocated(cluster), allocation_timestamp=at(0)))
    assert pod_readiness([claim_of(cluster)], now=at(601)).state is BindingState.TIMED_OUT

    plan = retry_plan(user, [claim_of(cluster)], now=at(601))
    assert plan.deallocated is not None
    cluster.upsert(plan.deallocated)
    # The driver has a second device by now, and withdraws the first.
    second = dra.api.Device(name="gpu-1")
    cluster.upsert(slice_of(second, name=cluster.slices()[0].metadata.name, generation=2))
    assert [item.device for item in allocated(cluster).devices.results] == ["gpu-1"]
