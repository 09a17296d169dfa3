"""One object at a time: `decode`, `encode`, and the way of parts of objects (`structure`, `unstructure`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from dra_alloc.api import KubernetesObject, Model
from dra_alloc.codec.clients import as_mapping
from dra_alloc.codec.reading import noting, read
from dra_alloc.codec.unknown import Unknown, unknown_fields
from dra_alloc.codec.versions import Kind, Shape, kind_of, resolve, split_version
from dra_alloc.codec.writing import write
from dra_alloc.errors import DecodeError, DraError

__all__ = ["decode", "decode_as", "decode_known", "encode", "identify", "label", "refusal", "structure", "unstructure"]

_M = TypeVar("_M", bound=Model)
_Object = TypeVar("_Object", bound=KubernetesObject)


def decode(obj: object, strict: bool = False) -> KubernetesObject:
    """The API object that a dict, an object of a client library or an API object stands for.

    Any API version that the library reads; keys in camelCase or snake_case. Fields that the API does not know are left
    out, or refused when `strict`. Raises DecodeError, also for kinds that have nothing to do with DRA.
    """
    if isinstance(obj, KubernetesObject):
        return obj
    data = as_mapping(obj)
    found = identify(data)
    if found is None:
        api_version, kind = _type_of(data)
        raise DecodeError("", f"{kind} of {api_version} is not a kind that decides about devices", "")
    model, unknown = decode_known(data, *found)
    if strict and unknown:
        raise refusal(f"{label(data)}: {unknown[0].path}", unknown[0])
    return model


def decode_as(kind: type[_Object], obj: object) -> _Object:
    """The object of this kind that a dict, an object of a client library or an API object stands for.

    Raises DraError for an object of another kind, and DecodeError as `decode` does.
    """
    found = decode(obj)
    if not isinstance(found, kind):
        raise DraError(f"a {kind.kind} is needed here, not a {found.kind}")
    return found


def refusal(path: str, unknown: Unknown) -> DecodeError:
    """The error for a field that strict reading does not accept."""
    return DecodeError(path, "unknown field", unknown.hint or "strict reading accepts no others")


def identify(data: Mapping[str, Any]) -> tuple[Kind, Shape] | None:
    """What to read a whole object as; None for kinds that have nothing to do with DRA. Raises DecodeError."""
    api_version, kind = _type_of(data)
    try:
        return resolve(api_version, kind)
    except DecodeError as error:
        raise DecodeError(label(data), error.message, error.hint) from None


def decode_known(data: Mapping[str, Any], kind: Kind, shape: Shape) -> tuple[KubernetesObject, list[Unknown]]:
    """The object, and the fields that were left out."""
    body = {key: value for key, value in data.items() if key not in _TYPE_KEYS}
    try:
        with noting() as names:
            model = read(shape, kind.cls, body)
        unknown = list(unknown_fields(shape, kind.cls, body)) if names else []
    except DecodeError as error:
        raise DecodeError(
            f"{label(data)}: {error.path}" if error.path else label(data), error.message, error.hint
        ) from None
    return model, unknown


_TYPE_KEYS = frozenset({"apiVersion", "api_version", "kind"})


def _type_of(data: Mapping[str, Any]) -> tuple[str, str]:
    api_version = data.get("apiVersion", data.get("api_version"))
    kind = data.get("kind")
    missing = [name for name, value in (("apiVersion", api_version), ("kind", kind)) if not isinstance(value, str)]
    if missing:
        raise DecodeError(
            label(data),
            f"no {' and no '.join(missing)}: this is not a whole object",
            "give whole objects: `apiVersion: resource.k8s.io/v1`, `kind: ResourceSlice`, `metadata: …`, `spec: …`",
        )
    assert isinstance(api_version, str)
    assert isinstance(kind, str)
    return api_version, kind


def label(data: Mapping[str, Any]) -> str:
    """How messages name an object: `ResourceClaim default/c`."""
    kind = data.get("kind")
    metadata = data.get("metadata")
    parts = [kind] if isinstance(kind, str) else []
    if isinstance(metadata, Mapping):
        name = metadata.get("name") or metadata.get("generateName") or metadata.get("generate_name")
        if isinstance(name, str):
            namespace = metadata.get("namespace")
            parts.append(f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name)
    return " ".join(parts)


def encode(obj: KubernetesObject, version: str | None = None) -> dict[str, Any]:
    """The Kubernetes form of a whole object in an API version.

    version: `v1beta1` or `resource.k8s.io/v1beta1`; None is the preferred one.
    Raises DecodeError naming the field that the version cannot hold.
    """
    kind = kind_of(type(obj))
    if kind is None:
        raise DecodeError(type(obj).__name__, "is a part of an object, not an object of its own", "use its to_dict()")
    name = split_version(obj.api_version if version is None else version)[1]
    if name not in kind.versions or version not in (None, name, kind.api_version(name)):
        known = ", ".join(kind.api_version(known) for known in kind.versions)
        raise DecodeError(kind.name, f"has no version {version!r}", f"known are {known}")
    head = {"apiVersion": kind.api_version(name), "kind": kind.name}
    try:
        return {**head, **write(kind.versions[name], obj)}
    except DecodeError as error:
        where = f"{kind.name} {obj.metadata.key}".rstrip()
        raise DecodeError(f"{where}: {error.path}", error.message, error.hint) from None


def structure(cls: type[_M], data: Mapping[str, Any]) -> _M:
    """Read an object of a known class, or a part of an object in the form of v1. See `Model.from_dict`.

    Raises DecodeError, also for an object of another kind.
    """
    if not issubclass(cls, KubernetesObject):
        return read(Shape.V1, cls, data)
    typed = {"apiVersion": cls.api_version, "kind": cls.kind, **as_mapping(data)}
    found = decode(typed)
    if not isinstance(found, cls):
        raise DecodeError(label(typed), f"is not a {cls.__name__}")
    return found


def unstructure(obj: Model) -> dict[str, Any]:
    """The form of v1 of an object or a part of one. See `Model.to_dict`."""
    return encode(obj) if isinstance(obj, KubernetesObject) else write(Shape.V1, obj)
