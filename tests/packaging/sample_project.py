"""A user's program: checked strictly against the installed package, then run."""

from __future__ import annotations

import dra_alloc as dra
from dra_alloc import api
from dra_alloc.sweeps import Outcome, Scenario
from dra_alloc.testing.kit import Kit

node = api.Node(metadata=api.ObjectMeta(name="node-1"))
offered = api.ResourceSlice(
    metadata=api.ObjectMeta(name="node-1-gpu"),
    spec=api.ResourceSliceSpec(
        driver="gpu.example.com",
        node_name="node-1",
        pool=api.ResourcePool(name="node-1", generation=1, resource_slice_count=1),
        devices=(api.Device(name="gpu-0", attributes={"model": api.DeviceAttribute(string="R48")}),),
    ),
)
gpu = api.DeviceClass(metadata=api.ObjectMeta(name="gpu"))
claim = api.ResourceClaim(
    metadata=api.ObjectMeta(name="one", namespace="default"),
    spec=api.ResourceClaimSpec(
        devices=api.DeviceClaim(
            requests=(api.DeviceRequest(name="gpu", exactly=api.ExactDeviceRequest(device_class_name="gpu")),)
        )
    ),
)

cluster = dra.Cluster.from_objects([node, offered, gpu])
allocator = dra.Allocator(cluster, features=dra.Features.for_version("1.37"))
nodes: list[str] = list(allocator.feasible_nodes([claim]))
found: list[api.AllocationResult] | None = allocator.allocate([claim], node=nodes[0])
assert found is not None
devices: list[str] = [result.device for result in found[0].devices.results]
assert devices == ["gpu-0"], devices

outcomes: list[Outcome] = list(dra.sweep([Scenario(name="x", workload=[claim])], cluster=cluster))
assert outcomes[0].fits
Kit(allocator).assert_allocates(claim, node="node-1", devices=["gpu-0"])

try:
    dra.load({"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "spec": 3})
except dra.DecodeError as error:
    message: str = error.message
    path: str = error.path
else:
    raise AssertionError("a claim whose spec is a number was read")
