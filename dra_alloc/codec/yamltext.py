"""YAML as Kubernetes tools read it, from the events of PyYAML's C parser.

Only the types of JSON: `0003:00:02.0`, `2026-01-31` and `yes` are strings. Anchors, aliases and merge keys work, but an
alias may not stand for more nodes than a reader can bear, and nesting is bounded. A key given twice is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs
import yaml
from yaml.reader import ReaderError

from dra_alloc.errors import DecodeError

__all__ = ["documents", "is_text"]

#: Deepest nesting of lists and objects.
MAX_DEPTH = 100

#: Most nodes that aliases may stand for in a document; the reader visits each of them.
MAX_ALIASED = 4_000_000

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)")
_OCTAL = re.compile(r"[-+]?0[0-7]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NO_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG = "tag:yaml.org,2002:"

#: A line of a console transcript above the output that it pasted: a document of its own to skip.
_PROMPT = re.compile(r"^\$ .*$", re.MULTILINE)
_ELLIPSIS = re.compile(r"^\s*\.\.\.\s*$", re.MULTILINE)


def documents(text: str) -> Iterator[tuple[int, Any]]:
    """The documents of a text with the line (from 1) that each starts on; empty ones are left out.

    Prompt lines (`$ kubectl get …`) count as separators. Raises DecodeError whose path is `line N`.
    """
    try:
        yield from _Builder().run(_PROMPT.sub("---", text))
    except UnicodeError as error:
        raise DecodeError("", f"no text: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "no reason given"
        where = "" if mark is None else f"line {mark.line + 1}"
        raise DecodeError(where, f"no valid YAML: {problem}", _dots(text)) from None
    except yaml.YAMLError as error:
        where = f"line {text.count(chr(10), 0, error.position) + 1}" if isinstance(error, ReaderError) else ""
        raise DecodeError(where, f"no valid YAML: {str(error).splitlines()[0]}", _dots(text)) from None


def _dots(text: str) -> str:
    """A hint for excerpts: what people leave out as `...` has a meaning of its own in YAML."""
    return "a line `...` ends a document: write out what it stands for" if _ELLIPSIS.search(text) else ""


@attrs.define
class _Open:
    """A list or object whose end has not come yet. `size` counts nodes, aliased ones at their full size."""

    value: Any
    anchor: str | None
    line: int
    size: int = 1
    key: str | None = None
    merges: list[tuple[int, Any]] = attrs.field(factory=list)


class _Builder:
    """Makes values from events, with a stack of its own instead of recursion."""

    def __init__(self) -> None:
        self.words: dict[str, Any] = dict(_WORDS)
        self.keys: dict[str, str] = {}
        self.reset()

    def reset(self) -> None:
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        self.aliased = 0
        self.root: Any = None

    def run(self, text: str) -> Iterator[tuple[int, Any]]:
        line = 1
        events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self.scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self.start(event, {} if kind is yaml.MappingStartEvent else [])
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.end(event)
            elif kind is yaml.AliasEvent:
                self.alias(event)
            elif kind is yaml.DocumentStartEvent:
                self.reset()
                line = event.start_mark.line + 1
            elif kind is yaml.DocumentEndEvent and self.root is not None:
                yield line, self.root

    def scalar(self, event: Any) -> None:
        value: Any
        frame = self.open[-1] if self.open else None
        if frame is not None and type(frame.value) is dict and frame.key is None:
            if event.value == "<<" and not event.style:
                frame.key = _MERGE
            else:
                self.set_key(frame, event)
            if event.anchor is not None:
                self.anchors[event.anchor] = (event.value, 1)
            return
        if event.tag is not None and event.tag != "!":
            value = _tagged(event)
        elif not event.style and event.tag is None:
            value = self.plain(event)
        else:
            value = event.value
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)
        self.put(value, 1, event)

    def plain(self, event: Any) -> Any:
        """The value of a scalar without quotes; most texts come again and again."""
        text = event.value
        words = self.words
        if text in words:
            return words[text]
        value = _resolve(text, event)
        if len(words) < 1 << 16:
            words[text] = value
        return value

    def set_key(self, frame: _Open, event: Any) -> None:
        key = self.keys.setdefault(event.value, event.value)
        if key in frame.value:
            raise DecodeError(_line(event), f"key {key!r} is given twice in one object", "keep one of them")
        frame.key = key

    def put(self, value: Any, size: int, event: Any) -> None:
        """Hand a finished node to the list or object around it."""
        if not self.open:
            self.root = value
            return
        frame = self.open[-1]
        frame.size += size
        if type(frame.value) is list:
            frame.value.append(value)
        elif frame.key is None:
            raise DecodeError(
                _line(event),
                "a list or object stands where a key belongs",
                "put text with braces or brackets in quotes",
            )
        elif frame.key is _MERGE:
            frame.merges.append((event.start_mark.line + 1, value))
            frame.key = None
        else:
            frame.value[frame.key] = value
            frame.key = None

    def start(self, event: Any, value: Any) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise DecodeError(_line(event), f"nested deeper than {MAX_DEPTH} levels")
        if self.open and type(self.open[-1].value) is dict and self.open[-1].key is None:
            raise DecodeError(
                _line(event),
                "a list or object stands where a key belongs",
                "put text with braces or brackets in quotes",
            )
        if event.tag not in (None, "!", f"{_TAG}map", f"{_TAG}seq"):
            raise DecodeError(_line(event), f"tag {event.tag!r} has no meaning in JSON", "leave it out")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.open.append(_Open(value, event.anchor, event.start_mark.line + 1))

    def end(self, event: Any) -> None:
        frame = self.open.pop()
        for line, merged in frame.merges:
            _merge(frame.value, merged, line)
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (frame.value, frame.size)
        self.put(frame.value, frame.size, event)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise DecodeError(_line(event), f"alias *{event.anchor} has no anchor before it")
        found = self.anchors[event.anchor]
        if found is None:
            raise DecodeError(_line(event), f"alias *{event.anchor} is inside of its own anchor")
        value, size = found
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            raise DecodeError(_line(event), f"aliases stand for more than {MAX_ALIASED} nodes", "write them out")
        frame = self.open[-1] if self.open else None
        if frame is not None and type(frame.value) is dict and frame.key is None and isinstance(value, str):
            if value in frame.value:
                raise DecodeError(_line(event), f"key {value!r} is given twice in one object", "keep one of them")
            frame.key = value
            return
        self.put(value, size, event)


#: Stands for the key `<<`; compared by identity, so that a quoted "<<" is a key like others.
_MERGE = "<" + "<"


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _merge(target: dict[str, Any], source: Any, line: int) -> None:
    """Keys of merged objects stand back behind the object's own, and later ones behind earlier ones."""
    for part in source if isinstance(source, list) else [source]:
        if not isinstance(part, dict):
            raise DecodeError(
                f"line {line}", "`<<` merges objects only", "give an alias of an object, or a list of them"
            )
        for key, value in part.items():
            target.setdefault(key, value)


def is_text(text: str) -> bool:
    """Whether a scalar is read as text even without quotes."""
    if text in _WORDS:
        return False
    return not any(form.fullmatch(text) for form in (_INT, _BASED, _OCTAL, _FLOAT, _NO_JSON))


def _resolve(text: str, event: Any) -> Any:
    """What a scalar without quotes is, if it is none of the words."""
    first = text[0]
    if first not in "+-.0123456789":
        return text
    if _INT.fullmatch(text):
        return _whole(text, 10, event)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _OCTAL.fullmatch(text):
        return int(text, 8)
    if _FLOAT.fullmatch(text):
        return _float(text, event)
    if _NO_JSON.fullmatch(text):
        raise DecodeError(_line(event), f"{text} has no JSON form", "put it in quotes if it is text")
    return text


def _whole(text: str, base: int, event: Any) -> int:
    if len(text) > 400:
        raise DecodeError(_line(event), f"a number of {len(text)} digits", "put it in quotes if it is text")
    return int(text, base)


def _float(text: str, event: Any) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise DecodeError(_line(event), f"{text} has no JSON form", "put it in quotes")
    return value


def _tagged(event: Any) -> Any:
    """A scalar with an explicit type."""
    kind, text = event.tag.removeprefix(_TAG), event.value
    if kind == "str":
        return text
    value = _WORDS[text] if text in _WORDS else _resolve(text, event)
    wanted: Any = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(kind)
    if wanted is None:
        raise DecodeError(_line(event), f"tag {event.tag!r} has no meaning in JSON", "leave it out")
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
        raise DecodeError(_line(event), f"{text!r} is not of type {kind}")
    return float(value) if kind == "float" else value
