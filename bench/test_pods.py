"""Pods planned, written and ended; groups planned as a unit; searching on for devices that the node is enough for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import Pod

Measure = Callable[..., Any]

GPU = "gpu.example.com"


def fleet(nodes: int, gpus: int = 8) -> list[Any]:
    """Nodes with so many GPUs, a class, and templates for one and two of them."""
    found: list[Any] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]},
        }
    ]
    for name, count in (("one", 1), ("two", 2)):
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]
        found.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"spec": {"devices": {"requests": requests}}},
            }
        )
    for number in range(nodes):
        name = f"node-{number}"
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": "64", "memory": "256Gi"}},
            }
        )
        found.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{name}-gpus"},
                "spec": {
                    "driver": GPU,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"gpu-{index}"} for index in range(gpus)],
                },
            }
        )
    return found


def pod(name: str, template: str = "one", **spec: Any) -> Pod:
    return Pod.from_dict(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
                **spec,
            },
        }
    )


@pytest.mark.parametrize("nodes", [50, 500, 5000])
def test_pods_planned_written_and_ended(measure: Measure, nodes: int) -> None:
    """The same pods over ever more nodes: what one costs must not depend on their number."""
    cluster = dra.Cluster.from_objects(dra.load(fleet(nodes)))
    allocator = dra.Allocator(cluster)
    pods = [pod(f"p{number}") for number in range(200)]

    def run() -> list[str]:
        names = []
        for each in pods:
            plan = allocator.allocate_pod(each)
            assert plan is not None
            cluster.commit(plan)
            names.append(plan.node)
        for each in pods:
            cluster.release(each)
        return names

    placed = measure(run, n=nodes, units=len(pods))
    assert placed == [f"node-{number // 8}" for number in range(200)]
    assert cluster.claims() == []


@pytest.mark.parametrize("size", [50, 200, 1000])
def test_a_group_that_shares_one_claim(measure: Measure, size: int) -> None:
    objects = fleet(20)
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "uid-g"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": size}},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        },
    }
    objects.append(group)
    for item in objects:
        if item["kind"] == "Node":
            item["status"]["allocatable"]["cpu"] = "1000"
    members = [pod(f"m{number}", schedulingGroup={"podGroupName": "g"}) for number in range(size)]
    cluster = dra.Cluster.from_objects([*dra.load(objects), *members])
    allocator = dra.Allocator(cluster, dra.Features.all())
    plan = measure(lambda: allocator.allocate_group("default/g"), n=size, units=size)
    assert len(plan.plans) == size
    assert len(plan.claims) == 1


@pytest.mark.parametrize("nodes", [4, 8, 16])
def test_a_gang_whose_nodes_must_be_tried(measure: Measure, nodes: int) -> None:
    """One GPU a node short for whoever comes first: the small pods must leave the pairs to the others."""
    cluster = dra.Cluster.from_objects(dra.load([*fleet(nodes, 2), *fleet(nodes + 1, 1)[-2:]]))
    pods = [pod("small"), *(pod(f"large-{number}", "two") for number in range(nodes))]
    allocator = dra.Allocator(cluster)
    plan = measure(lambda: allocator.allocate_group(pods), n=nodes, units=len(pods))
    assert plan.nodes["default/small"] == f"node-{nodes}"
    assert len(plan.plans) == nodes + 1


@pytest.mark.parametrize("devices", [8, 32, 128])
def test_searching_on_past_devices_that_take_too_much(measure: Measure, devices: int) -> None:
    objects = fleet(1, devices)
    for number, device in enumerate(objects[-1]["spec"]["devices"]):
        cpu = "4" if number >= devices - 2 else "100"
        device["nodeAllocatableResources"] = {"cpu": {"mapping": {"deviceMultiplier": cpu}}}
    allocator = dra.Allocator(dra.Cluster.from_objects(dra.load(objects)), dra.Features.all())
    asking = pod("p", "two")
    plan = measure(lambda: allocator.allocate_pod(asking, node_resources="search"), n=devices)
    assert [each.device for each in plan.allocations[0].devices.results] == [f"gpu-{devices - 2}", f"gpu-{devices - 1}"]
