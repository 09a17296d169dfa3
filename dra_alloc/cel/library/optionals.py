"""Optional values, and the insertions of the macros that build maps."""

from __future__ import annotations

from dra_alloc.cel.library.registry import implements
from dra_alloc.cel.values import (
    MIN_SECONDS,
    NANOS,
    NONE,
    Duration,
    Fault,
    Optional,
    Timestamp,
    Uint,
    Value,
    map_find,
    map_key,
    map_keys,
)


@implements("optional_of")
def optional_of(value: Value) -> Optional:
    """`optional.of(value)`."""
    return Optional(value)


def is_zero(value: Value) -> bool:
    """Whether `optional.ofNonZeroValue` takes a value for none. Types without a zero value are never zero."""
    if value is None:
        return True
    kind = type(value)
    if kind in (bool, int, Uint, float):
        return not value
    if isinstance(value, (str, bytes, tuple, list, dict)):
        return not len(value)
    if kind is Duration:
        return bool(value.nanos == 0)
    return kind is Timestamp and bool(value.nanos == MIN_SECONDS * NANOS)


@implements("optional_ofNonZeroValue")
def optional_of_non_zero(value: Value) -> Optional:
    """`optional.ofNonZeroValue(value)`."""
    return NONE if is_zero(value) else Optional(value)


@implements("optional_none")
def optional_none() -> Optional:
    """`optional.none()`."""
    return NONE


@implements("optional_value")
def optional_value(optional: Optional) -> Value:
    """`optional.value()`: an error if there is none."""
    if optional is NONE:
        raise Fault("optional.none() dereference")
    return optional.value


@implements("optional_hasValue")
def optional_has_value(optional: Optional) -> bool:
    """`optional.hasValue()`."""
    return optional is not NONE


@implements("list_first")
def first(elements: Value) -> Optional:
    """`list.first()`."""
    return Optional(elements[0]) if elements else NONE


@implements("list_last")
def last(elements: Value) -> Optional:
    """`list.last()`."""
    return Optional(elements[-1]) if elements else NONE


@implements("optional_unwrap", "optional_unwrapOpt")
def unwrap(elements: Value) -> tuple[Value, ...]:
    """`optional.unwrap(list)`: the values of those that have one."""
    for element in elements:
        if type(element) is not Optional:
            raise Fault(f"value {element!r} is not optional")
    return tuple(element.value for element in elements if element is not NONE)


@implements("@mapInsert_map_key_value")
def insert(mapping: Value, key: Value, value: Value) -> Value:
    """The map with one more entry; an error if the key is there. Changes the accumulator of a macro in place."""
    try:
        map_find(mapping, key)
    except KeyError:
        mapping[map_key(key)] = value
        return mapping
    raise Fault(f"insert failed: key {key!r} already exists")


@implements("@mapInsert_map_map")
def insert_all(mapping: Value, entries: Value) -> Value:
    """The map with the entries of another; an error if a key is there."""
    for key in map_keys(entries):
        insert(mapping, key, map_find(entries, key))
    return mapping
