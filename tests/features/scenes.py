"""Clusters for the tests of pods and groups: nodes with GPUs, pods written as in YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import dra_alloc as dra
from dra_alloc.api import Device, DeviceClass, Node, Pod, PodGroup, ResourceClaim, ResourceClaimTemplate
from tests.features.building import slice_of

GPU = "gpu.example.com"


def node(name: str, allocatable: Mapping[str, str] | None = None, **metadata: Any) -> Node:
    return Node.from_dict(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, **metadata},
            "status": {"allocatable": dict(allocatable or {})},
        }
    )


def gpu_node(name: str, *devices: Device | str, allocatable: Mapping[str, str] | None = None) -> list[Any]:
    """A node and the slice with its GPUs."""
    return [node(name, allocatable), slice_of(*(devices or ("gpu-0",)), pool=name, node=name)]


def gpu_class(name: str = "gpu", resource: str | None = None, driver: str = GPU, **metadata: Any) -> DeviceClass:
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": f"device.driver == {driver!r}"}}]}
    if resource is not None:
        spec["extendedResourceName"] = resource
    return DeviceClass.from_dict(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
    )


def asking(count: int = 1, device_class: str = "gpu", **request: Any) -> dict[str, Any]:
    """The spec of a claim for devices of a class."""
    exactly = {"deviceClassName": device_class, "count": count, **request}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def template(name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> ResourceClaimTemplate:
    return ResourceClaimTemplate.from_dict(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"metadata": metadata, "spec": spec or asking()},
        }
    )


def pending(name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> ResourceClaim:
    return ResourceClaim.from_dict(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
            "spec": spec or asking(),
        }
    )


def container(name: str, requests: Mapping[str, Any] | None = None, *claims: str, **fields: Any) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": dict(requests or {})}
    if claims:
        resources["claims"] = [{"name": each} for each in claims]
    return {"name": name, "image": "example.com/app:1", "resources": resources, **fields}


def a_pod(
    name: str,
    *containers: Mapping[str, Any],
    claims: Mapping[str, str] | None = None,
    templates: Mapping[str, str] | None = None,
    group: str | None = None,
    **spec: Any,
) -> Pod:
    """A pod that waits. claims: of these objects; templates: from these; by the pod's name for the claim."""
    entries = [{"name": key, "resourceClaimName": value} for key, value in (claims or {}).items()]
    entries += [{"name": key, "resourceClaimTemplateName": value} for key, value in (templates or {}).items()]
    return Pod.from_dict(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [dict(each) for each in containers] or [container("main")],
                "resourceClaims": entries,
                **({"schedulingGroup": {"podGroupName": group}} if group else {}),
                **spec,
            },
        }
    )


def a_group(
    name: str,
    claims: Iterable[Mapping[str, str]] = (),
    min_count: int | None = None,
    **spec: Any,
) -> PodGroup:
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return PodGroup.from_dict(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"schedulingPolicy": policy, "resourceClaims": [dict(each) for each in claims], **spec},
        }
    )


def scene(*objects: Any, features: dra.Features | None = None, **options: Any) -> tuple[dra.Cluster, dra.Allocator]:
    """A cluster of the objects (lists among them count as what they hold), and an allocator with every feature."""
    flat = [item for each in objects for item in (each if isinstance(each, list) else [each])]
    cluster = dra.Cluster.from_objects(flat)
    letters: Iterator[int] = count(1)
    allocator = dra.Allocator(
        cluster,
        features=features or dra.Features.all(),
        suffixes=lambda: f"{next(letters):05d}",
        **options,
    )
    return cluster, allocator


def devices(plan: Any) -> list[str]:
    """The devices of a plan, claim by claim."""
    return [result.device for allocation in plan.allocations for result in allocation.devices.results]
