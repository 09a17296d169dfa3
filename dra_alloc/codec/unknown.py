"""Where in an object the fields are that its API version does not know.

Reading only notices that there are some; this walk, slower and rare, finds their paths.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dra_alloc import api
from dra_alloc.api import Model
from dra_alloc.codec.reading import join
from dra_alloc.codec.schema import NOT_KEPT, Field, by_key, is_model, item_of, snake, some_of, value_of
from dra_alloc.codec.versions import Shape

__all__ = ["Unknown", "unknown_fields"]

#: Longer names are no slips of the pen, and would take long to compare.
_LONGEST = 64


@attrs.frozen
class Unknown:
    """A field that the API version does not know: its path, and the fields that could stand in its place."""

    path: str
    known: Mapping[str, Field]

    @property
    def hint(self) -> str:
        """The field that was probably meant, as far as one looks like it."""
        name = self.path.rpartition(".")[2]
        if len(name) > _LONGEST:
            return ""
        near = difflib.get_close_matches(name, [field.json for field in self.known.values()], n=1)
        return f"did you mean {near[0]}?" if near else ""

    def within(self, segment: str) -> Unknown:
        """The same field, seen from further out."""
        return Unknown(join(segment, self.path), self.known)


def unknown_fields(shape: Shape, cls: type[Model], data: Mapping[str, Any]) -> Iterator[Unknown]:
    """All fields that reading `data` as a `cls` leaves out although they might mean something."""
    known = _known(shape, cls)
    dropped = NOT_KEPT.get(cls, frozenset())
    quiet = dropped | {snake(key) for key in dropped}
    for key, value in data.items():
        if value is None or key in quiet:
            continue
        if shape is not Shape.V1 and cls is api.Device and key == "basic":
            found = unknown_fields(shape, cls, value)
        elif key in known:
            found = _inside(shape, known[key].type, value)
        else:
            found = iter([Unknown("", known)])
        for field in found:
            yield field.within(str(key))


def _known(shape: Shape, cls: type[Model]) -> Mapping[str, Field]:
    if shape is not Shape.V1 and cls is api.DeviceRequest:
        return {**by_key(api.ExactDeviceRequest), **by_key(cls)}
    return by_key(cls)


def _inside(shape: Shape, kind: Any, value: Any) -> Iterator[Unknown]:
    """Walk a value of a declared type."""
    item, entry, some = item_of(kind), value_of(kind), some_of(kind)
    if is_model(kind):
        if isinstance(value, Mapping):
            yield from unknown_fields(shape, kind, value)
    elif item is not None:
        for index, each in enumerate(value):
            for field in _inside(shape, item, each):
                yield field.within(f"[{index}]")
    elif entry is not None:
        for key, each in value.items():
            for field in _inside(shape, entry, each):
                yield field.within(f"[{key}]")
    elif some is not None:
        yield from _inside(shape, some, value)
