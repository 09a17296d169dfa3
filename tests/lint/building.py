"""Small clusters to lint, and what is found in them."""

from __future__ import annotations

from typing import Any

from dra_alloc import Features
from dra_alloc.lint import check

Json = dict[str, Any]
ALL = Features.all()


CLUSTER_SCOPED = {"ResourceSlice", "DeviceClass", "DeviceTaintRule", "Node", "Namespace"}


def obj(kind: str, name: str, api_version: str = "resource.k8s.io/v1", **fields: Any) -> Json:
    namespaced = (
        {} if kind in {"ResourceSlice", "DeviceClass", "DeviceTaintRule", "Node", "Namespace"} else {"namespace": "ns"}
    )
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **namespaced}, **fields}


def node(name: str = "n1", **labels: str) -> Json:
    found = obj("Node", name, "v1")
    return {**found, "metadata": {"name": name, "labels": labels}}


def device(name: str = "d0", attributes: Json | None = None, **fields: Any) -> Json:
    """A device; values of attributes are given as they are in Python."""
    kinds = {bool: "bool", int: "int", str: "string", list: "ints"}
    typed = {key: {kinds[type(value)]: value} for key, value in (attributes or {}).items()}
    return {"name": name, "attributes": typed, **fields}


def pool(*devices: Json, driver: str = "gpu.example.com", name: str = "n1", count: int = 1, **spec: Any) -> Json:
    where = {} if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & set(spec) else {"nodeName": name}
    own = {"pool": {"name": name, "generation": 1, "resourceSliceCount": count}, **spec}
    return obj(
        "ResourceSlice",
        f"{driver}-{name}".replace("/", "-"),
        spec={"driver": driver, "devices": list(devices), **where, **own},
    )


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Json:
    selectors = [{"cel": {"expression": text}} for text in expressions or (f'device.driver == "{name}.example.com"',)]
    return obj("DeviceClass", name, spec={"selectors": selectors, **spec})


def request(name: str = "gpu", *expressions: str, **fields: Any) -> Json:
    """A request of the class of its name up to the first dash."""
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return {"name": name, "exactly": {"deviceClassName": name.partition("-")[0], "selectors": selectors, **fields}}


def either(name: str, *items: Json) -> Json:
    return {"name": name, "firstAvailable": [{"name": item["name"], **item["exactly"]} for item in items]}


def claim(*requests: Json, status: Json | None = None, **devices: Any) -> Json:
    more = {"status": status} if status else {}
    return obj("ResourceClaim", "claim", spec={"devices": {"requests": list(requests), **devices}}, **more)


def found(*objects: Json, features: Features | None = None) -> list[str]:
    """Code and path of each finding."""
    return [f"{finding.code} {finding.path}".strip() for finding in check(objects, features=features)]


def codes(*objects: Json, features: Features | None = None) -> list[str]:
    return [finding.code for finding in check(objects, features=features)]
