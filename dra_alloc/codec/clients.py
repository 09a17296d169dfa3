"""Objects of other Python clients as mappings: `kubernetes` (both generations), `lightkube`, `kr8s`, kopf."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dra_alloc.codec.versions import KINDS
from dra_alloc.errors import DecodeError

__all__ = ["as_mapping"]

#: Class names of the official client: `V1beta1ResourceSlice`, `ResourceV1ResourceClaim`, `V1ResourceSliceList`.
_GENERATED = re.compile(r"(?:Core|Resource)?V(?P<version>\d+(?:(?:alpha|beta)\d+)?)(?P<kind>[A-Z]\w*)")


def as_mapping(obj: object) -> Mapping[str, Any]:
    """The mapping that an object of a client stands for, with `apiVersion` and `kind`. Raises DecodeError for others."""
    if isinstance(obj, Mapping):
        return obj
    if isinstance(getattr(type(obj), "attribute_map", None), Mapping):
        return _generated(obj)
    raw = getattr(obj, "raw", None)
    if isinstance(raw, Mapping):
        return raw
    to_dict = getattr(obj, "to_dict", None)
    if callable(to_dict):
        data = to_dict()
        if isinstance(data, Mapping):
            return data
    raise DecodeError(
        "", f"{type(obj).__name__} is not a Kubernetes object", "a dict, an API object, or one of a client"
    )


def _generated(obj: Any) -> Mapping[str, Any]:
    """An object of the official client. What the server sends in lists has neither apiVersion nor kind: the class tells."""
    data: dict[str, Any] = _plain(obj)
    found = _GENERATED.fullmatch(type(obj).__name__)
    if found is not None:
        kind = found["kind"]
        groups = [group for group, name in KINDS if name == kind.removesuffix("List")]
        if groups:
            version = f"{groups[0]}/{found['version']}" if groups[0] else found["version"]
            if data.get("apiVersion") is None:
                data["apiVersion"] = version if found["version"].startswith("v") else _with_v(version)
            if data.get("kind") is None:
                data["kind"] = kind
    return data


def _with_v(version: str) -> str:
    group, slash, number = version.rpartition("/")
    return f"{group}{slash}v{number}"


def _plain(value: Any) -> Any:
    names = getattr(type(value), "attribute_map", None)
    if isinstance(names, Mapping):
        return {json: _plain(getattr(value, name)) for name, json in names.items() if getattr(value, name) is not None}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
