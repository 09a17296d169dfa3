"""What a call costs at run time, function by function, as the API server counts it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dra_alloc.cel.declarations import COMPARABLE
from dra_alloc.cel.values import (
    CIDR,
    IP,
    URL,
    Halt,
    NamedFormat,
    Optional,
    Quantity,
    Semver,
    Value,
    map_keys,
    size_of,
)

__all__ = ["CHARGED_BEFORE", "LIMIT", "LIST", "MAP", "TEXT_ORDERS", "call_cost"]

#: `CELSelectorExpressionMaxCost` of the API: what one evaluation may cost.
LIMIT: Final = 1_000_000

LIST: Final = 10
MAP: Final = 30

#: A tenth of a unit for a character that is looked at, a quarter for one of a pattern.
PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25

#: The overloads that order texts, which are paid by length.
TEXT_ORDERS: Final = tuple(
    f"{order}_{kind}" for order in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
)

Cost = Callable[[Sequence[Any], Any], int]


def _own_size(value: Value) -> int:
    """The size that Kubernetes' functions count: an optional is not looked into."""
    return 1 if type(value) is Optional else size_of(value)


def _per(value: Value, factor: float) -> int:
    return math.ceil(_own_size(value) * factor)


def _traversal(value: Value) -> int:
    """The cost of walking over a value, in whole characters of text."""
    total = 0
    work: list[tuple[Value, int]] = [(value, 0)]
    while work:
        current, depth = work.pop()
        if isinstance(current, str):
            total += int(len(current.encode(errors="surrogatepass")) * PER_CHARACTER)
        elif isinstance(current, bytes):
            total += int(len(current) * PER_CHARACTER)
        elif isinstance(current, (tuple, list)):
            work.extend((element, depth + 1) for element in current)
        elif isinstance(current, dict):
            for key in map_keys(current):
                work.append((key, depth + 1))
            work.extend((held, depth + 1) for held in current.values())
        else:
            total += 1
        if len(work) > 4 * LIMIT or total > 4 * LIMIT:
            raise Halt("operation cancelled: actual cost limit exceeded")
    return total


def _one(arguments: Sequence[Any], result: Any) -> int:
    return 1


def _traverse_first(arguments: Sequence[Any], result: Any) -> int:
    return _traversal(arguments[0])


def _scan_first(arguments: Sequence[Any], result: Any) -> int:
    return _per(arguments[0], PER_CHARACTER)


def _scan_first_twice(arguments: Sequence[Any], result: Any) -> int:
    return _per(arguments[0], 2 * PER_CHARACTER)


def _scan_result_twice(arguments: Sequence[Any], result: Any) -> int:
    return _per(result, 2 * PER_CHARACTER)


def _search(arguments: Sequence[Any], result: Any) -> int:
    text = math.ceil((1.0 + _own_size(arguments[0])) * PER_CHARACTER)
    return text * _per(arguments[1], PER_PATTERN_CHARACTER)


def _contains_address(parse: bool, subnet: bool) -> Cost:
    def cost(arguments: Sequence[Any], result: Any) -> int:
        size = _own_size(arguments[0])
        total = math.ceil((size + size) * PER_CHARACTER)
        if subnet:
            total += math.ceil(size * PER_CHARACTER) + 1
        return total + (_per(arguments[1], PER_CHARACTER) if parse else 0)

    return cost


def _validate(arguments: Sequence[Any], result: Any) -> int:
    if type(arguments[0]) is not NamedFormat:
        return 1
    text = math.ceil((1.0 + _own_size(arguments[1])) * PER_CHARACTER)
    return text * math.ceil(arguments[0].pattern_size * PER_PATTERN_CHARACTER)


def _compare(arguments: Sequence[Any], result: Any) -> int:
    return math.ceil(min(size_of(arguments[0]), size_of(arguments[1])) * PER_CHARACTER)


_KUBERNETES: Final = (Quantity, Semver, IP, CIDR, URL, NamedFormat)


def _equals(arguments: Sequence[Any], result: Any) -> int:
    if isinstance(arguments[0], _KUBERNETES):
        return 1
    return _compare(arguments, result)


def _concatenate(arguments: Sequence[Any], result: Any) -> int:
    return math.ceil((size_of(arguments[0]) + size_of(arguments[1])) * PER_CHARACTER)


def _contains(arguments: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(arguments[0]) * PER_CHARACTER) * math.ceil(size_of(arguments[1]) * PER_CHARACTER)


def _size_of_second(arguments: Sequence[Any], result: Any) -> int:
    return size_of(arguments[1])


def _allocates(size: int, factor: float) -> int:
    return int(size * factor) + 1 + LIST


def _result_list(arguments: Sequence[Any], result: Any) -> int:
    return _allocates(size_of(result), 1)


def _flatten(arguments: Sequence[Any], result: Any) -> int:
    depth = arguments[1] if len(arguments) == 2 and type(arguments[1]) is int else 1
    return max(0, _allocates(size_of(arguments[0]), depth))


def _compares_all(position: int) -> Cost:
    def cost(arguments: Sequence[Any], result: Any) -> int:
        elements = arguments[position]
        if not isinstance(elements, (tuple, list)) or not elements:
            return _allocates(0, 2)
        factor = 2 + PER_CHARACTER if type(elements[0]) in (str, bytes) else 2.0
        return _allocates(len(elements) ** 2, factor)

    return cost


def _sets(factor: int) -> Cost:
    def cost(arguments: Sequence[Any], result: Any) -> int:
        return 1 + size_of(arguments[0]) * size_of(arguments[1]) * factor

    return cost


#: By overload, before anything else: the extensions of CEL that count for themselves.
_TRACKERS: Final[dict[str, Cost]] = {
    "list_slice": _result_list,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _result_list,
    "list_reverse": _result_list,
    "list_distinct": _compares_all(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_LONG: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
for _name in COMPARABLE:
    _TRACKERS[f"list_{_LONG.get(_name, _name)}_sort"] = _compares_all(0)
    _TRACKERS[f"list_{_LONG.get(_name, _name)}_sortByAssociatedKeys"] = _compares_all(1)

#: By name of the function, with what Kubernetes counts.
_FUNCTIONS: Final[dict[str, Cost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traverse_first),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _scan_first),
    **dict.fromkeys(("replace", "split"), _scan_first_twice),
    "join": _scan_result_twice,
    **dict.fromkeys(("find", "findAll"), _search),
    **dict.fromkeys(("ip", "cidr", "isIP", "isCIDR"), _scan_first),
    "ip.isCanonical": _scan_first_twice,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _scan_first),
    "validate": _validate,
    "_==_": _equals,
}

#: By overload, with what CEL itself counts.
_OVERLOADS: Final[dict[str, Cost]] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote"), _scan_first
    ),
    "string_format": _scan_first,
    "in_list": _size_of_second,
    **dict.fromkeys(TEXT_ORDERS, _compare),
    "equals": _compare,
    "not_equals": _compare,
    "add_string": _concatenate,
    "add_bytes": _concatenate,
    "matches_string": _search,
    "contains_string": _contains,
    "cidr_ip": _one,
    "cidr_contains_ip_ip": _contains_address(False, False),
    "cidr_contains_ip_string": _contains_address(True, False),
    "cidr_contains_cidr": _contains_address(False, True),
    "cidr_contains_cidr_string": _contains_address(True, True),
}

#: Calls whose cost does not depend on the result and whose work may be quadratic: charged before they are made.
CHARGED_BEFORE: Final = frozenset(name for name in _TRACKERS if name not in ("list_slice", "lists_range"))


def call_cost(function: str, overload: str) -> Cost:
    """The cost of a call; `overload` is empty where several fit and the values decide."""
    tracker = _TRACKERS.get(overload)
    if tracker is not None:
        return tracker
    if function in ("containsIP", "containsCIDR") or overload == "cidr_ip":
        found = _OVERLOADS.get(overload)
        return found or _contains_address(False, function == "containsCIDR")
    return _FUNCTIONS.get(function) or _OVERLOADS.get(overload) or _one
