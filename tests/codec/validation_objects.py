"""Valid objects to break, and what validation says about them in short."""

from __future__ import annotations

from typing import Any

from dra_alloc import Features, validate

Json = dict[str, Any]
ALL = Features.all()


def device(name: str = "gpu-0", **fields: Any) -> Json:
    return {"name": name, **fields}


def resource_slice(*devices: Json, **spec: Any) -> Json:
    where = {} if {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"} & set(spec) else {"nodeName": "n1"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
            **where,
            **({"devices": list(devices)} if devices else {}),
            **spec,
        },
    }


def device_class(**spec: Any) -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def exactly(name: str = "gpu", **fields: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **fields}}


def alternatives(*items: Json, name: str = "gpu") -> Json:
    return {"name": name, "firstAvailable": [{"deviceClassName": "gpu", **item} for item in items]}


def claim(*requests: Json, status: Json | None = None, **devices: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": {"requests": list(requests), **devices}},
        **({"status": status} if status else {}),
    }


def template(*requests: Json, metadata: Json | None = None, **devices: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "template", "namespace": "default"},
        "spec": {
            "metadata": metadata or {},
            "spec": {"devices": {"requests": list(requests), **devices}},
        },
    }


def result(device_name: str = "gpu-0", **fields: Any) -> Json:
    return {"request": "gpu", "driver": "gpu.example.com", "pool": "pool", "device": device_name, **fields}


def reported(device_name: str = "gpu-0", **fields: Any) -> Json:
    return {"driver": "gpu.example.com", "pool": "pool", "device": device_name, **fields}


def allocated(*results: Json, config: list[Json] | None = None, **status: Any) -> Json:
    """A status with these results; further fields of `allocation` under that name."""
    more = status.pop("allocation", {})
    return {"allocation": {"devices": {"results": list(results), "config": config or []}, **more}, **status}


def consumer(number: int = 0) -> Json:
    return {"resource": "pods", "name": f"pod-{number}", "uid": f"uid-{number}"}


def rule(taint: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"taint": taint or {"key": "example.com/broken", "effect": "NoSchedule"}, **spec},
        **({"status": status} if status else {}),
    }


def condition(kind: str = "Ready", **fields: Any) -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        **fields,
    }


def pool_request(**spec: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": "question"},
        "spec": {"driver": "gpu.example.com", **spec},
    }


def pod(*claims: Json, containers: list[Json] | None = None, **more: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default"},
        "spec": {"resourceClaims": list(claims), "containers": containers or [{"name": "main"}]},
        **more,
    }


def pod_group(*claims: Json, **more: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "group", "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(claims)},
        **more,
    }


def workload(*templates: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "workload", "namespace": "default"},
        "spec": {"podGroupTemplates": list(templates), **spec},
    }


def problems(obj: object, old: object = None, features: Features = ALL, **more: Any) -> list[str]:
    """Path and message of each problem."""
    return [f"{problem.path}: {problem.message}" for problem in validate(obj, old, features, **more)]
