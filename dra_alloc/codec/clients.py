"""Objects of other Python clients as mappings: `kubernetes` (both generations), `lightkube`, `kr8s`, kopf."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from dra_alloc.codec.versions import KINDS
from dra_alloc.errors import DecodeError

__all__ = ["as_mapping", "is_object"]

#: Class names of the official client: `V1beta1ResourceSlice`, `ResourceV1ResourceClaim`, `V1ResourceSliceList`.
_GENERATED = re.compile(r"(?:Core|Resource)?V(?P<version>\d+(?:(?:alpha|beta)\d+)?)(?P<kind>[A-Z]\w*)")


def is_object(obj: object) -> bool:
    """Whether `as_mapping` knows what to do with an object."""
    return (
        isinstance(obj, Mapping)
        or isinstance(getattr(type(obj), "attribute_map", None), Mapping)
        or isinstance(getattr(obj, "raw", None), Mapping)
        or callable(getattr(obj, "to_dict", None))
    )


def as_mapping(obj: object) -> Mapping[str, Any]:
    """The mapping that an object of a client stands for, with `apiVersion` and `kind`.

    Raises DecodeError for what is no such object.
    """
    if isinstance(obj, Mapping):
        return obj
    if isinstance(getattr(type(obj), "attribute_map", None), Mapping):
        return _generated(obj)
    raw = getattr(obj, "raw", None)
    if isinstance(raw, Mapping):
        return raw
    to_dict = getattr(obj, "to_dict", None)
    data = to_dict() if callable(to_dict) else None
    if isinstance(data, Mapping):
        return data
    hint = "give a dict, an API object, or an object of a client"
    if isinstance(obj, (str, os.PathLike)):
        hint += "; dra_alloc.load reads files"
    raise DecodeError("", f"{type(obj).__name__} is not a Kubernetes object", hint)


def _generated(obj: Any) -> Mapping[str, Any]:
    """An object of the official client.

    The objects that the server sends in a list have neither apiVersion nor kind: the class tells.
    """
    data: dict[str, Any] = _plain(obj)
    found = _GENERATED.fullmatch(type(obj).__name__)
    if found is not None:
        kind = found["kind"]
        for group, name in KINDS:
            if name == kind.removesuffix("List"):
                version = f"v{found['version']}"
                data = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, **data}
    return data


def _plain(value: Any) -> Any:
    names = getattr(type(value), "attribute_map", None)
    if isinstance(names, Mapping):
        given = ((json, getattr(value, name)) for name, json in names.items())
        return {json: _plain(entry) for json, entry in given if entry is not None}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
