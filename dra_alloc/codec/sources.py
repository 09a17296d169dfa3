"""`load`: whole objects from files, directories, streams, dicts and objects of clients, and mixtures of them."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson

from dra_alloc._collector import paused_collector
from dra_alloc.api import KubernetesObject, Pod
from dra_alloc.codec.clients import as_mapping, is_object
from dra_alloc.codec.convert import decode_known, identify, label, refusal
from dra_alloc.codec.reading import forget
from dra_alloc.codec.yamltext import documents
from dra_alloc.errors import DecodeError

__all__ = ["DecodeWarning", "Loaded", "Origin", "load"]

_SUFFIXES = (".yaml", ".yml", ".json")


#: So many warnings say what was probably meant; more are no slips of the pen.
_HINTS = 100


@attrs.frozen
class DecodeWarning:
    """Something that was left out: where (file, document, object, field path), what it was, and what was meant.

    index: the position in `Loaded` of the object that lost the field `field`; -1 for an object that was skipped.
    """

    path: str
    message: str
    hint: str = ""
    index: int = -1
    field: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


@attrs.frozen
class Origin:
    """Where an object comes from: file, document and item as messages name them, and the API version it was written in.

    Both are empty for an object that was an API object already.
    """

    where: str = ""
    api_version: str = ""


class Loaded(list[KubernetesObject]):
    """The objects that `load` found, in order.

    origins: where each of them comes from, in the same order.
    skipped: how many objects of which other kinds there were, by `apiVersion kind` (`apps/v1 Deployment`).
    warnings: fields that were left out because the API does not know them, and, if there is no Pod at all, kinds that
    were skipped although their pods ask for devices (a Deployment with claims).
    """

    def __init__(self) -> None:
        super().__init__()
        self.origins: list[Origin] = []
        self.skipped: Counter[str] = Counter()
        self.warnings: list[DecodeWarning] = []


#: Where kinds that make pods have the specification of those: a Deployment, a Job and their like, and a CronJob.
_POD_TEMPLATES = (("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))


def load(*sources: object, strict: bool = False) -> Loaded:
    """Read Kubernetes objects.

    A source is a path, a directory (its .yaml, .yml and .json files in order of name), "-" (standard input), a text or
    binary stream, a dict, an object of a client library, an API object, or an iterable of these. Files hold YAML
    documents or JSON, single objects or lists (`kind: List`). Objects of kinds that have nothing to do with DRA are
    counted in `skipped`. Fields that the API does not know are left out with a warning; `strict` refuses them.
    Raises DecodeError with file, document, object and field path, also for the error of an API server (`kind: Status`)
    in the place of what it was asked for.
    """
    loaded = Loaded()
    makers: list[DecodeWarning] = []
    try:
        with paused_collector():
            for source in sources:
                for where, obj in _read(source):
                    _add(loaded, makers, where, obj, strict)
    except RecursionError:
        raise DecodeError("", "lists nested too deep") from None
    finally:
        forget()
    if not any(isinstance(found, Pod) for found in loaded):
        loaded.warnings += makers
    return loaded


def _add(loaded: Loaded, makers: list[DecodeWarning], where: str, obj: object, strict: bool) -> None:
    """Read one object, or all in a list, into `loaded`. makers: takes what there is to say of kinds that make pods."""
    if isinstance(obj, KubernetesObject):
        loaded.append(obj)
        loaded.origins.append(Origin(where))
        return
    try:
        data = as_mapping(obj)
    except DecodeError as error:
        raise _within(where, error) from None
    kind = data.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and "items" in data:
        _add_items(loaded, makers, where, data, kind, strict)
        return
    try:
        found = identify(data)
        if found is None:
            _refuse_failure(data)
            loaded.skipped[f"{data.get('apiVersion', data.get('api_version'))} {kind}"] += 1
            makers += _maker(where, data)
            return
        _refuse_template(data)
        model, unknown = decode_known(data, *found)
    except DecodeError as error:
        raise _within(where, error) from None
    for field in unknown:
        path = _spaced(where, f"{label(data)}: {field.path}")
        if strict:
            raise refusal(path, field)
        hint = field.hint if len(loaded.warnings) < _HINTS else ""
        loaded.warnings.append(DecodeWarning(path, "unknown field", hint, len(loaded), field.path))
    loaded.append(model)
    loaded.origins.append(Origin(where, str(data.get("apiVersion", data.get("api_version")))))


def _add_items(
    loaded: Loaded, makers: list[DecodeWarning], where: str, data: Mapping[str, Any], kind: str, strict: bool
) -> None:
    """The objects of a list. Those of a typed list (`ResourceSliceList`) may leave out apiVersion and kind."""
    items = data["items"]
    if items is None:
        return
    if not isinstance(items, (list, tuple)):
        raise DecodeError(_spaced(where, f"{kind}: items"), "expected a list")
    single = kind.removesuffix("List")
    head = {"apiVersion": data.get("apiVersion", data.get("api_version")), "kind": single}
    for index, item in enumerate(items):
        if single and isinstance(item, Mapping) and item.get("kind") is None:
            item = {**head, **{key: value for key, value in item.items() if value is not None}}
        _add(loaded, makers, _spaced(where, f"items[{index}]"), item, strict)


def _maker(where: str, data: Mapping[str, Any]) -> Iterator[DecodeWarning]:
    """A remark on an object of another kind whose pods have claims."""
    for path in _POD_TEMPLATES:
        found: Any = data
        for key in (*path, "resourceClaims"):
            found = found.get(key) if isinstance(found, Mapping) else None
        if found:
            yield DecodeWarning(
                _spaced(where, f"{label(data)}: {'.'.join(path)}.resourceClaims"),
                "the pods of this would ask for devices, but only Pods are looked at",
                "give a Pod with this specification",
            )


def _refuse_failure(data: Mapping[str, Any]) -> None:
    if data.get("kind") == "Status" and data.get("status") == "Failure":
        raise DecodeError("Status", f"the API server has answered with an error: {data.get('message')}", "ask it again")


def _refuse_template(data: Mapping[str, Any]) -> None:
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping):
        for key in ("name", "generateName", "namespace"):
            value = metadata.get(key)
            if isinstance(value, str) and "{{" in value:
                raise DecodeError(f"{label(data)}: metadata.{key}", "has a placeholder", _TEMPLATE)


_TEMPLATE = "this is a template with {{placeholders}}: render it first"


def _spaced(where: str, rest: str) -> str:
    return f"{where} {rest}" if where else rest


def _within(where: str, error: DecodeError) -> DecodeError:
    return DecodeError(_spaced(where, error.path).rstrip(), error.message, error.hint)


def _read(source: object) -> Iterator[tuple[str, object]]:
    """All objects of a source, each with where it came from."""
    if is_object(source):
        yield "", source
    elif isinstance(source, (str, os.PathLike)):
        yield from _read_path(source)
    elif hasattr(source, "read"):
        yield from _read_stream(source)
    elif isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray)):
        for part in source:
            yield from _read(part)
    else:
        raise DecodeError(
            "", f"cannot read from {type(source).__name__}", "give a path, a stream, a dict, or an object"
        )


def _read_path(source: str | os.PathLike[str]) -> Iterator[tuple[str, object]]:
    name = os.fspath(source)
    if name == "-":
        yield from _read_stream(sys.stdin)
        return
    if "\n" in name:
        raise DecodeError("", "text given where a path is wanted", "wrap text in io.StringIO")
    path = Path(name)
    try:
        if path.is_dir():
            for entry in sorted(path.iterdir()):
                if entry.suffix in _SUFFIXES and entry.is_file():
                    yield from _parse(str(entry), entry.read_bytes())
            return
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DecodeError(name, f"cannot be read: {reason}") from None
    yield from _parse(name, content)


def _read_stream(stream: Any) -> Iterator[tuple[str, object]]:
    name = getattr(stream, "name", None)
    try:
        content = stream.read()
    except (OSError, ValueError) as error:
        raise DecodeError(str(name or "stream"), f"cannot be read: {error}") from None
    yield from _parse(name if isinstance(name, str) else "stream", content)


def _parse(name: str, content: str | bytes) -> Iterator[tuple[str, object]]:
    """The objects of a text: JSON if it looks like it and is, else YAML."""
    found = _documents(name, content)
    for index, document in enumerate(found, 1):
        where = name if len(found) == 1 else f"{name}[{index}]"
        if isinstance(document, list):
            yield from ((f"{where}[{position}]", _object(where, part)) for position, part in enumerate(document))
        else:
            yield where, _object(where, document)


def _documents(name: str, content: str | bytes) -> list[Any]:
    try:
        return [orjson.loads(content)]
    except orjson.JSONDecodeError:
        pass
    text = _text(name, content)
    fault: DecodeError | None = None
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _json(text)
        except DecodeError as error:
            fault = error
    try:
        return [document for _, document in documents(text)]
    except DecodeError as error:
        fault = fault or error
        hint = _TEMPLATE if "{{" in text else fault.hint
        raise _within(name, DecodeError(fault.path, fault.message, hint)) from None


def _object(where: str, document: object) -> object:
    if isinstance(document, Mapping):
        return document
    text = repr(document)
    raise DecodeError(where, f"expected a Kubernetes object, found {text if len(text) < 60 else text[:57] + '…'}")


def _text(name: str, content: str | bytes) -> str:
    """Text without its byte order mark; some shells write UTF-16."""
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DecodeError(name, f"no text: {error.reason} at byte {error.start}", "files are in UTF-8") from None


def _json(text: str) -> list[Any]:
    """The JSON values that stand one after the other in a text, such as those of several kubectl calls."""
    found = []
    decoder = json.JSONDecoder()
    at = _skip_blanks(text, 0)
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
            at = _skip_blanks(text, at)
    except (ValueError, RecursionError) as error:
        message = f"no valid JSON: {error}" if isinstance(error, ValueError) else "nested too deep"
        raise DecodeError("", message) from None
    return found


_BLANKS = re.compile(r"\s*")


def _skip_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()
