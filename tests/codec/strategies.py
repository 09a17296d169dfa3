"""Any object of any API class, field by field from the declared types; not meant to be valid, only to be written."""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from dra_alloc.api import Model, Quantity, QuantityFormat
from dra_alloc.codec.schema import fields
from dra_alloc.codec.versions import LACKING, Shape

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="{"), max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)
_AMOUNTS = st.builds(
    Quantity, st.integers(-(2**63) + 1, 2**63 - 1).map(lambda value: value * 10**6), st.sampled_from(QuantityFormat)
)
_TIMES = st.datetimes(
    min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC), allow_imaginary=False
).map(lambda time: time.replace(microsecond=0, fold=0))

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: _TEXT,
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    Quantity: _AMOUNTS,
    datetime: _TIMES,
    Any: _JSON,
}


def objects(cls: type[Model], shape: Shape = Shape.V1, depth: int = 0) -> st.SearchStrategy[Any]:
    """Objects of a class that a shape of the API can hold."""
    lacking = LACKING[shape].get(cls, frozenset())
    return st.builds(
        cls,
        **{
            field.name: st.just(field.default_value) | _values(field.type, shape, depth)
            for field in fields(cls)
            if field.name not in lacking
        },
    )


def _values(kind: Any, shape: Shape, depth: int) -> st.SearchStrategy[Any]:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if origin is tuple:
        most = 2 if depth < 5 else 0
        return st.lists(st.deferred(lambda: _values(parts[0], shape, depth + 1)), max_size=most).map(tuple)
    if origin is dict:
        return st.dictionaries(_TEXT, st.deferred(lambda: _values(parts[1], shape, depth + 1)), max_size=2)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (part for part in parts if part is not type(None))
        return st.none() | _values(inner, shape, depth)
    return st.deferred(lambda: objects(kind, shape, depth + 1))
