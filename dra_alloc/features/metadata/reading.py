"""Reading metadata files in a container, or anywhere else (KEP-5304)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from dra_alloc.api import ObjectMeta
from dra_alloc.codec import structure
from dra_alloc.errors import DecodeError
from dra_alloc.features.metadata.objects import VERSIONS, DeviceMetadata, MetadataDevice, MetadataRequest

__all__ = ["merge", "read_claim", "read_file", "read_stream", "read_template_claim"]

#: Bytes of a file that are read at most. A file has 32 devices with 32 attributes of some hundred bytes at most.
MAX_BYTES = 16 << 20
#: How often a file that keeps changing is read again.
MAX_READS = 10

_BLANK = re.compile(r"[ \t\n\r]*")
_HINT = f"a stream of JSON objects, one of them {DeviceMetadata.kind} of {' or '.join(VERSIONS)}"


def read_stream(data: bytes, path: str = "") -> DeviceMetadata:
    """The first object of a known version in a stream of JSON values; unknown versions before it are skipped.

    path: how messages name the stream. Raises DecodeError for a stream without objects or with unknown versions only,
    which it names, and for what is no JSON or no DeviceMetadata before the first known object is read.
    """
    unknown: list[str] = []
    for index, value in enumerate(_values(data, path)):
        where = f"{path}[{index}]"
        if not isinstance(value, dict):
            raise DecodeError(where, "is no object", _HINT)
        version = value.get("apiVersion")
        if not isinstance(version, str):
            raise DecodeError(f"{where}.apiVersion", "is no string", _HINT)
        if version not in VERSIONS:
            unknown.append(version[:100])
            continue
        if value.get("kind") != DeviceMetadata.kind:
            raise DecodeError(f"{where}.kind", f"is not {DeviceMetadata.kind}", _HINT)
        body = {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}
        try:
            return structure(DeviceMetadata, body)
        except DecodeError as error:
            raise DecodeError(f"{where}.{error.path}".rstrip("."), error.message, error.hint) from None
    if unknown:
        raise DecodeError(path, f"only versions that are not known: {', '.join(unknown[:10])}", _HINT)
    raise DecodeError(path, "no metadata objects found", _HINT)


def read_file(path: Path) -> DeviceMetadata:
    """`read_stream` of a file. Raises DecodeError also if it cannot be read or is too large.

    Drivers rewrite files in place, so what is read once may be old in part: it is read until it stays the same.
    """
    data = _read(path)
    for _ in range(MAX_READS):
        again = _read(path)
        if again == data:
            break
        data = again
    return read_stream(data, str(path))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DecodeError(str(path), f"cannot be read: {error.strerror}", "the path of a metadata file") from None
    if len(data) > MAX_BYTES:
        raise DecodeError(str(path), "is too large", f"at most {MAX_BYTES >> 20} MiB")
    return data


def read_claim(root: Path, claim: str, request: str) -> DeviceMetadata:
    """All drivers' files of a request of a claim that the pod names directly, merged.

    root: `CONTAINER_ROOT`, or where that folder is from here. Raises DecodeError if there is no file or one is bad.
    """
    return _read_folder(root / "resourceclaims" / claim / request)


def read_template_claim(root: Path, pod_claim: str, request: str) -> DeviceMetadata:
    """All drivers' files of a request of a claim made from a template, by the name that the pod gives it, merged.

    root, errors: as for `read_claim`.
    """
    return _read_folder(root / "resourceclaimtemplates" / pod_claim / request)


def _read_folder(folder: Path) -> DeviceMetadata:
    files = sorted(folder.glob("*-metadata.json"), key=lambda file: file.name)
    if not files:
        hint = "claim and request as in the pod, and a container that uses this request"
        raise DecodeError(str(folder), "no metadata files found", hint)
    return merge(read_file(file) for file in files)


def merge(parts: Iterable[DeviceMetadata]) -> DeviceMetadata:
    """One object of several: the devices of requests with equal names together, the first `podClaimName`, no metadata.

    A single one stays as it is.
    """
    found = tuple(parts)
    if len(found) == 1:
        return found[0]
    devices: dict[str, tuple[MetadataDevice, ...]] = {}
    for request in (request for part in found for request in part.requests):
        devices[request.name] = (*devices.get(request.name, ()), *request.devices)
    return DeviceMetadata(
        metadata=ObjectMeta(),
        pod_claim_name=next((part.pod_claim_name for part in found if part.pod_claim_name), None),
        requests=tuple(MetadataRequest(name=name, devices=items) for name, items in devices.items()),
    )


def _values(data: bytes, path: str) -> Iterator[object]:
    """The JSON values of a stream, one after the other, as far as they are asked for."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(path, f"is not UTF-8: {error}", _HINT) from None
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    position = _skip_blank(text, 0)
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise DecodeError(path, f"is no JSON: {error}", _HINT) from None
        yield value
        position = _skip_blank(text, position)


def _skip_blank(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    assert found is not None, "the pattern matches the empty text"
    return found.end()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
