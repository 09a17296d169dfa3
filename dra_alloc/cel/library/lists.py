"""Lists: the extension (version 3), sets, and the functions of Kubernetes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from dra_alloc.cel.declarations import COMPARABLE, SUMMABLE
from dra_alloc.cel.library.registry import OVERLOADS, implements
from dra_alloc.cel.library.standard import add, list_contains
from dra_alloc.cel.values import (
    MAX_ELEMENTS,
    Duration,
    Fault,
    Halt,
    Timestamp,
    Uint,
    Value,
    compare,
    equal,
    no_overload,
)
from dra_alloc.cel.work import spend

_COMPARABLE = (bool, int, Uint, float, str, bytes, Timestamp, Duration)


@implements("list_slice")
def slice_list(elements: Value, start: int, end: int) -> Value:
    """`list.slice(start, end)`."""
    if start < 0 or end < 0:
        raise Fault(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise Fault(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        raise Fault(f"cannot slice({start}, {end}), list is length {len(elements)}")
    spend(end - start)
    return tuple(elements[start:end])


@implements("list_flatten", "list_flatten_int")
def flatten(elements: Value, depth: int = 1) -> Value:
    """`list.flatten(depth)`: lists inside of the list, `depth` deep, put in place of themselves."""
    if depth < 0:
        raise Fault("level must be non-negative")
    current = tuple(elements)
    while depth and any(isinstance(element, tuple) for element in current):
        flat: list[Value] = []
        for element in current:
            if isinstance(element, tuple):
                flat.extend(element)
            else:
                flat.append(element)
            spend(1 + len(element) if isinstance(element, tuple) else 1)
            if len(flat) > MAX_ELEMENTS:
                raise Halt(f"a list of more than {MAX_ELEMENTS} elements")
        current = tuple(flat)
        depth -= 1
    return current


def sort_by_keys(elements: Value, keys: Value) -> Value:
    """The elements in the order of their keys, which must be of one comparable type."""
    if len(elements) != len(keys):
        raise Fault("@sortByAssociatedKeys() expected a list of the same size as the associated keys list")
    if not keys:
        return elements
    kind = type(keys[0])
    if kind not in _COMPARABLE:
        raise Fault("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not kind for key in keys):
        raise Fault("list elements must have the same type")
    order = sorted(range(len(keys)), key=cmp_to_key(lambda i, j: _ordered(keys[i], keys[j])))
    return tuple(elements[index] for index in order)


def _ordered(one: Value, other: Value) -> int:
    try:
        return compare(one, other)
    except Fault:  # NaN: the reference takes what cannot be ordered as not less
        return 0


def sort(elements: Value) -> Value:
    """`list.sort()`."""
    return sort_by_keys(elements, elements)


@implements("lists_range")
def list_range(count: int) -> Value:
    """`lists.range(n)`: 0 to n-1."""
    if count > MAX_ELEMENTS:
        raise Halt(f"a list of more than {MAX_ELEMENTS} elements")
    return tuple(range(count))


@implements("list_reverse")
def reverse(elements: Value) -> Value:
    """`list.reverse()`."""
    spend(len(elements))
    return tuple(elements[::-1])


@implements("list_distinct")
def distinct(elements: Value) -> Value:
    """`list.distinct()`: each value once, where it is first."""
    result: list[Value] = []
    seen: set[Any] = set()
    spend(4 * len(elements))
    for element in elements:
        if type(element) in (str, int, bool):
            # The bulk of all values, without comparing all with all; numbers of other types still go the long way.
            if (type(element), element) in seen:
                continue
            if type(element) is not int or not any(type(other) in (float, Uint) for other in result):
                seen.add((type(element), element))
                result.append(element)
                continue
        spend(4 * len(result))
        if not _in(element, result):
            result.append(element)
    return tuple(result)


def _in(element: Value, others: list[Value]) -> bool:
    for other in others:
        try:
            if equal(element, other):
                return True
        except Fault:
            continue
    return False


@implements("list_sets_contains_list")
def sets_contains(elements: Value, others: Value) -> bool:
    """`sets.contains(list, others)`: all of the others are in the list."""
    return all(list_contains(elements, other) for other in others)


@implements("list_sets_equivalent_list")
def sets_equivalent(one: Value, other: Value) -> bool:
    """`sets.equivalent(one, other)`: each contains the other."""
    return sets_contains(one, other) and sets_contains(other, one)


@implements("list_sets_intersects_list")
def sets_intersects(one: Value, other: Value) -> bool:
    """`sets.intersects(one, other)`: an element is in both."""
    return any(list_contains(other, element) for element in one)


# Kubernetes ---------------------------------------------------------------------------------------------------------


def is_sorted(elements: Value) -> bool:
    """`list.isSorted()`: no element is greater than the next."""
    for element in elements:
        if type(element) not in _COMPARABLE:
            raise no_overload("isSorted", elements)
    return all(_not_above(one, other) for one, other in itertools.pairwise(elements))


def _not_above(one: Value, other: Value) -> bool:
    try:
        return compare(one, other) <= 0
    except Fault:
        return True


def _sum_from(zero: Value) -> Callable[[Value], Value]:
    def total(elements: Value) -> Value:
        result = zero
        for element in elements:
            result = add(result, element)
        return result

    return total


def _extreme(name: str, sign: int) -> Callable[[Value], Value]:
    def extreme(elements: Value) -> Value:
        result: Value = None
        for index, element in enumerate(elements):
            if type(element) not in _COMPARABLE:
                raise no_overload(name, elements)
            if not index or _sign(result, element) == sign:
                result = element
        if not elements:
            raise Fault(f"{name} called on empty list")
        return result

    return extreme


def _sign(one: Value, other: Value) -> int:
    try:
        return compare(one, other)
    except Fault:
        return 0


@implements("list_a_index_of_int")
def index_of(elements: Value, wanted: Value) -> int:
    """`list.indexOf(element)`: -1 if it is not there."""
    return next((index for index, element in enumerate(elements) if _same(element, wanted)), -1)


@implements("list_a_last_index_of_int")
def last_index_of(elements: Value, wanted: Value) -> int:
    """`list.lastIndexOf(element)`: -1 if it is not there."""
    return next((index for index in range(len(elements) - 1, -1, -1) if _same(elements[index], wanted)), -1)


def _same(element: Value, wanted: Value) -> bool:
    try:
        return equal(element, wanted)
    except Fault:
        return False


@implements("list_includes_dyn_dyn")
def includes(target: Value, wanted: Value) -> bool:
    """`target.includes(value)`: an element of a list, or the value itself (KEP-5491)."""
    if isinstance(target, (tuple, list)):
        if len(target) > 64:  # no list of a device
            spend(len(target))
        return any(_same(element, wanted) for element in target)
    return _same(target, wanted)


_ZERO: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_LONG = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}

for _name in COMPARABLE:
    OVERLOADS[f"list_{_LONG.get(_name, _name)}_sort"] = sort
    OVERLOADS[f"list_{_LONG.get(_name, _name)}_sortByAssociatedKeys"] = sort_by_keys
    OVERLOADS[f"list_{_name}_is_sorted_bool"] = is_sorted
    OVERLOADS[f"list_{_name}_max_{_name}"] = _extreme("max", -1)
    OVERLOADS[f"list_{_name}_min_{_name}"] = _extreme("min", 1)
for _name in SUMMABLE:
    OVERLOADS[f"list_{_name}_sum_{_name}"] = _sum_from(_ZERO[_name])
