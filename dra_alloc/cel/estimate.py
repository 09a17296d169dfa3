"""The estimated cost of an expression: what it may cost at most on a device within the limits of the API.

Follows the estimator of the reference, with the sizes that the API bounds: the API server refuses selectors whose
estimate is beyond the limit, so an estimate must be the same, not only safe.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dra_alloc.cel import static
from dra_alloc.cel.costs import LIST, MAP, PER_CHARACTER, PER_PATTERN_CHARACTER, TEXT_ORDERS
from dra_alloc.cel.declarations import COMPARABLE, Overload
from dra_alloc.cel.device import MAX_DOMAIN, MAX_DRIVER, MAX_ENTRIES, MAX_NAME, MAX_VALUE
from dra_alloc.cel.macros import ACCUMULATOR
from dra_alloc.cel.static import StaticType
from dra_alloc.cel.syntax import (
    Binding,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Pass,
    Select,
    run,
)

__all__ = ["UNBOUNDED", "estimate"]

#: The most that an estimate can be: it stands for no bound at all.
UNBOUNDED: Final = 2**64 - 1


class Span(NamedTuple):
    """From least to most, of a size or of a cost."""

    least: int
    most: int

    def plus(self, other: Span) -> Span:
        """The sum."""
        return Span(min(self.least + other.least, UNBOUNDED), min(self.most + other.most, UNBOUNDED))

    def times(self, other: Span) -> Span:
        """The product."""
        return Span(min(self.least * other.least, UNBOUNDED), min(self.most * other.most, UNBOUNDED))

    def scaled(self, factor: float) -> Span:
        """So many times, rounded up."""
        return Span(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Span) -> Span:
        """Both."""
        return Span(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    value = float(number)
    if value > 0 and factor > 0 and value > 2.0**64 / factor:
        return UNBOUNDED
    return min(math.ceil(value * factor), UNBOUNDED)


def _exactly(number: int) -> Span:
    return Span(number, number)


_NOTHING: Final = Span(0, 0)
_ONE: Final = Span(1, 1)
_UNKNOWN: Final = Span(0, UNBOUNDED)


class _Entries(NamedTuple):
    """The sizes of keys and values in a list or map."""

    kind: str
    keys: Span
    values: Span


class _Estimate(NamedTuple):
    """The cost of a call without its arguments, and the size of its result if it is known."""

    cost: Span
    size: Span | None = None


class _Operand(NamedTuple):
    """An operand of a call, as estimators see it."""

    node: Node
    type: StaticType
    path: tuple[str, ...]
    size: Span | None


def estimate(root: Node, *, safe: bool = False) -> int:
    """The most that a checked expression may cost; UNBOUNDED if nothing bounds it.

    The estimate of the reference is too low for a few functions. With `safe` those count what they may cost, and no
    device within the limits of the API exceeds it.
    """
    cost: Span = run(_Estimator(safe).cost(root))
    return cost.most


# Sizes of the device ------------------------------------------------------------------------------------------------

_NO_MAXIMUM: Final = 2**63 - 1


class _Declared(NamedTuple):
    size: int
    keys: Any = None
    values: Any = None
    fields: Any = None
    attributes: bool = False


_ATTRIBUTE: Final = _Declared(MAX_VALUE)
_NAMES: Final = _Declared(MAX_NAME)
_DOMAINS: Final = _Declared(MAX_DOMAIN)
_DEVICE: Final = _Declared(
    _NO_MAXIMUM,
    fields={
        "driver": _Declared(MAX_DRIVER),
        "attributes": _Declared(MAX_ENTRIES, _DOMAINS, _Declared(MAX_ENTRIES, _NAMES, _ATTRIBUTE, attributes=True)),
        "capacity": _Declared(MAX_ENTRIES, _DOMAINS, _Declared(MAX_ENTRIES, _NAMES, _Declared(_NO_MAXIMUM))),
        "allowMultipleAllocations": _Declared(1),
    },
)


def _declared_size(path: tuple[str, ...]) -> Span | None:
    if not path or path[0] != "device":
        return None
    current = _DEVICE
    for step in path[1:]:
        if step in ("@items", "@values"):
            below = current.values
        elif step == "@keys":
            below = current.keys
        else:
            below = (current.fields or {}).get(step) or (current.values if current.attributes else None)
        if below is None:
            return None
        current = below
    return Span(0, current.size)


# The estimator ------------------------------------------------------------------------------------------------------


class _Local:
    __slots__ = ("entries", "path", "size")

    def __init__(self, path: tuple[str, ...], size: Span | None, entries: _Entries | None) -> None:
        self.path = path
        self.size = size
        self.entries = entries


class _Estimator:
    def __init__(self, safe: bool) -> None:
        self.safe = safe
        self.paths: dict[Node, tuple[str, ...]] = {}
        self.sizes: dict[Node, Span] = {}
        self.entries: dict[Node, _Entries] = {}
        self.locals: dict[Binding, _Local] = {}
        self.costs: dict[Node, Span] = {}

    def cost(self, node: Node) -> Pass[Span]:
        kind = type(node)
        if kind is Literal:
            return _NOTHING
        found = self.costs.get(node)
        if found is None:
            if kind is Ident:
                self.paths[node] = self.path(node)
                found = _ONE
            else:
                found = yield _PASSES[kind](self, node)
            self.costs[node] = found
        return found

    def path(self, node: Node) -> tuple[str, ...]:
        if type(node) is Ident and node.binding is not None:
            local = self.locals.get(node.binding)
            return local.path if local is not None else (node.binding.name,)
        if type(node) is Ident:
            return (node.name,)
        return self.paths.get(node, ())

    def size(self, node: Node) -> Span | None:
        found = self.sizes.get(node)
        if found is not None:
            return found
        if type(node) is Literal:
            return _exactly(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if type(node) is ListLiteral:
            return _exactly(len(node.elements))
        if type(node) is MapLiteral:
            return _exactly(len(node.entries))
        declared = _declared_size(self.path(node))
        if declared is not None:
            self.sizes[node] = declared
            return declared
        if _is_scalar(node.type):
            return _ONE
        local = self.locals.get(node.binding) if type(node) is Ident and node.binding is not None else None
        return local.size if local is not None else None

    def size_or_unknown(self, node: Node) -> Span:
        return self.size(node) or _UNKNOWN

    def entry_sizes(self, node: Node) -> _Entries | None:
        found = self.entries.get(node)
        if found is None and type(node) is Ident and node.binding is not None and node.binding in self.locals:
            return self.locals[node.binding].entries
        return found

    def operand(self, node: Node) -> _Operand:
        path = self.path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return _Operand(node, node.type, path, self.size(node))

    # Nodes ----------------------------------------------------------------------------------------------------------

    def select(self, node: Select) -> Pass[Span]:
        if node.constant is not None:
            return _ONE
        below: Span = yield self.cost(node.operand)
        if node.test:
            return below
        self.paths[node] = (*self.path(node.operand), node.field)
        return below.plus(_ONE) if self.safe or node.operand.type.kind in ("map", "struct", "param") else below

    def list_literal(self, node: ListLiteral) -> Pass[Span]:
        total, sizes = _exactly(LIST), None
        for element in node.elements:
            total = total.plus((yield self.cost(element)))
            size = self.size_or_unknown(element)
            sizes = size if sizes is None else sizes.union(size)
        self.entries[node] = _Entries("list", _ONE, sizes or _NOTHING)
        return total

    def map_literal(self, node: MapLiteral) -> Pass[Span]:
        total, keys, values = _exactly(MAP), None, None
        for key, value in node.entries:
            total = total.plus((yield self.cost(key))).plus((yield self.cost(value)))
            size = self.size_or_unknown(key)
            keys = size if keys is None else keys.union(size)
            size = self.size_or_unknown(value)
            values = size if values is None else values.union(size)
        self.entries[node] = _Entries("map", keys or _NOTHING, values or _NOTHING)
        return total

    def comprehension(self, node: Comprehension) -> Pass[Span]:
        assert node.accumulator_binding is not None
        assert node.variable_binding is not None
        ranged: Span = yield self.cost(node.range)
        init: Span = yield self.cost(node.init)
        total = ranged.plus(init)
        self.locals[node.accumulator_binding] = _Local(
            self.path(node.init), self.size(node.init), self.entry_sizes(node.init)
        )
        if node.macro == "bind":
            inner: Span = yield self.cost(node.result)
            total = total.plus(inner)
            self.copy_sizes(node, node.result)
            return total
        self.iterate(node)
        loop: Span = yield self.cost(node.condition)
        step: Span = yield self.cost(node.step)
        result: Span = yield self.cost(node.result)
        total = total.plus(result)
        count = self.size_or_unknown(node.range)
        total = total.plus(count.times(step.plus(loop)))
        if type(node.init) is Literal:
            size = self.size(node.init)
            assert size is not None
            self.sizes[node] = size
        else:
            self.sizes[node] = count
            entries = self.entry_sizes(node.step)
            if entries is not None:
                self.entries[node] = entries
        return total

    def iterate(self, node: Comprehension) -> None:
        assert node.variable_binding is not None
        entries = self.entry_sizes(node.range)
        kind = entries.kind if entries is not None else node.range.type.kind
        path = self.path(node.range)
        keys, values = (entries.keys, entries.values) if entries is not None else (None, None)
        at_keys, at_values = ("@indices", "@items") if kind == "list" else ("@keys", "@values")
        if node.variable2_binding is not None:
            self.locals[node.variable_binding] = _Local((*path, at_keys), keys, None)
            self.locals[node.variable2_binding] = _Local((*path, at_values), values, None)
        elif kind == "list":
            self.locals[node.variable_binding] = _Local((*path, "@items"), values, None)
        else:
            self.locals[node.variable_binding] = _Local((*path, "@keys"), keys, None)

    def copy_sizes(self, node: Node, source: Node) -> None:
        size, entries = self.size(source), self.entry_sizes(source)
        if size is not None:
            self.sizes[node] = size
        if entries is not None:
            self.entries[node] = entries

    def call(self, node: Call) -> Pass[Span]:
        if node.function == "dyn":
            below: Span = yield self.cost(node.arguments[0])
            self.copy_sizes(node, node.arguments[0])
            return below.plus(_ONE)
        costs: list[Span] = []
        for argument in node.arguments:
            costs.append((yield self.cost(argument)))
        operands = [self.operand(argument) for argument in node.arguments]
        total, target = _NOTHING, None
        if node.target is not None:
            total = yield self.cost(node.target)
            target = self.operand(node.target)
        if node.function in ("_&&_", "_||_"):
            most = _NOTHING
            for cost in costs:
                most = most.plus(cost)
            return Span(costs[0].least, most.most)
        below = Span(UNBOUNDED, 0)
        size: Span | None = None
        for overload in node.overloads:
            found = self.overload(node, overload, target, operands, costs)
            below = below.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if overload.id in ("index_list", "index_map"):
                entries = self.entry_sizes(node.arguments[0])
                size = entries.values if entries is not None else None
                step = "@items" if overload.id == "index_list" else "@values"
                self.paths[node] = (*self.path(node.arguments[0]), step)
            if size is None:
                size = self.size(node)
        if size is not None:
            self.sizes[node] = size
        return total.plus(below)

    def overload(
        self, node: Call, overload: Overload, target: _Operand | None, operands: list[_Operand], costs: list[Span]
    ) -> _Estimate:
        """The cost of a call as one of its overloads, arguments included."""
        arguments = _NOTHING
        for cost in costs:
            arguments = arguments.plus(cost)
        estimator = _BY_OVERLOAD.get(overload.id) or _BY_FUNCTION.get(node.function)
        if self.safe:
            estimator = _SAFE.get(node.function, estimator)
        if estimator is not None:
            found = estimator(target, operands, overload.id)
            if found is not None:
                return _Estimate(found.cost.plus(arguments), found.size)
        if overload.id == "conditional":
            sizes = self.size_or_unknown(node.arguments[1]).union(self.size_or_unknown(node.arguments[2]))
            self.unite_entries(node, node.arguments[1], node.arguments[2])
            return _Estimate(costs[0].plus(costs[1].union(costs[2])), sizes)
        if overload.id in ("add_string", "add_bytes", "add_list"):
            sizes = self.size_or_unknown(node.arguments[0]).plus(self.size_or_unknown(node.arguments[1]))
            self.unite_entries(node, node.arguments[0], node.arguments[1])
            cost = _ONE if overload.id == "add_list" else sizes.scaled(PER_CHARACTER)
            return _Estimate(cost.plus(arguments), sizes)
        built_in = _BUILT_IN.get(overload.id)
        found = built_in(target, operands) if built_in is not None else None
        return _Estimate((found.cost if found else _ONE).plus(arguments), found.size if found else None)

    def unite_entries(self, node: Node, one: Node, other: Node) -> None:
        first, second = self.entry_sizes(one), self.entry_sizes(other)
        if first is not None and second is not None:
            self.entries[node] = _Entries(first.kind, first.keys.union(second.keys), first.values.union(second.values))


_PASSES: Final[dict[type, Any]] = {
    Select: _Estimator.select,
    Call: _Estimator.call,
    ListLiteral: _Estimator.list_literal,
    MapLiteral: _Estimator.map_literal,
    Comprehension: _Estimator.comprehension,
}


def _is_scalar(t: StaticType) -> bool:
    while static.is_optional(t):
        t = t.parameters[0]
    return t.kind in ("bool", "double", "duration", "int", "timestamp", "uint")


# Calls --------------------------------------------------------------------------------------------------------------


def _sized(operand: _Operand) -> Span:
    return operand.size or _declared_size(operand.path) or _UNKNOWN


def _fixed(cost: int) -> Callable[..., _Estimate | None]:
    return lambda target, operands, overload: _Estimate(_exactly(cost))


def _integer(operand: _Operand, default: int) -> int:
    if type(operand.node) is not Literal or type(operand.node.value) is not int:
        return default
    return max(0, operand.node.value)


def _allocating(factor: float, size: Span) -> _Estimate:
    return _Estimate(size.scaled(factor).plus(_exactly(1 + LIST)), size)


def _slice(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    assert target is not None
    start, end = _integer(operands[0], 0), _integer(operands[1], _sized(target).most)
    return _allocating(1, _exactly((end - start) % 2**64))


def _range(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    return _allocating(1, _exactly(_integer(operands[0], UNBOUNDED)))


def _reverse(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    assert target is not None
    return _allocating(1, _sized(target))


def _flatten(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    assert target is not None
    return _allocating(_integer(operands[0], UNBOUNDED) if operands else 1, _sized(target))


def _distinct(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    assert target is not None
    size = _sized(target)
    return _allocating(2, size.times(size))


def _sort(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    assert target is not None
    size = _sized(operands[0] if operands else target)
    factor = 2 + PER_CHARACTER if overload.startswith(("list_string_", "list_bytes_")) else 2
    return _allocating(factor, size.times(size))


def _sets(factor: int) -> Callable[..., _Estimate | None]:
    def cost(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
        return _Estimate(_sized(operands[0]).times(_sized(operands[1])).scaled(factor).plus(_ONE))

    return cost


def _element(target: _Operand) -> _Operand | None:
    """An element of a list, by its type and where it is found."""
    if not target.type.parameters:
        return None
    path = (*target.path, "@items") if target.path else ()
    return _Operand(target.node, target.type.parameters[0], path, None)


def _traversal(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    element = _element(target)
    if element is None:
        return _Estimate(_sized(target).scaled(PER_CHARACTER))
    cost = _ONE
    if element.type.kind in ("string", "bytes"):
        cost = cost.plus(_sized(element).scaled(PER_CHARACTER))
    return _Estimate(_sized(target).times(cost))


def _url(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    size = _sized(operands[0])
    return _Estimate(size.scaled(PER_CHARACTER), size)


def _scan(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    size = _sized(target)
    return _Estimate(size.scaled(PER_CHARACTER), size)


def _replace(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    size, old, new = _sized(target), _sized(operands[0]), _sized(operands[1])
    if old.least == 0:
        most_count, most_kept = min(size.most + 1, UNBOUNDED), size.most
    elif new.most <= old.least:
        most_count, most_kept = 0, size.most
    else:
        most_count, most_kept = math.ceil(size.most / old.least), 0
    if old.most == 0:
        least_count, least_kept = min(size.least + 1, UNBOUNDED), size.least
    elif old.most <= new.least:
        least_count, least_kept = 0, size.least
    else:
        least_count, least_kept = math.ceil(size.least / old.most), 0
    result = Span(least_count, most_count).times(new).plus(Span(least_kept, most_kept))
    return _Estimate(size.scaled(2 * PER_CHARACTER), result)


def _split(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    size = _sized(target)
    most = size.most
    if len(operands) > 1 and type(operands[1].node) is Literal and type(operands[1].node.value) is int:
        most = operands[1].node.value % 2**64
    return _Estimate(size.scaled(2 * PER_CHARACTER), Span(0, most))


def _join(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    count = _sized(target)
    element = _element(target)
    size = _NOTHING if element is None else count.times(_sized(element))
    if operands:
        size = size.plus(_sized(operands[0]).times(Span(max(0, count.least - 1), max(0, count.most - 1))))
    return _Estimate(size.scaled(PER_CHARACTER), size)


def _find(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    size = _sized(target)
    text = size.plus(_ONE).scaled(PER_CHARACTER)
    return _Estimate(text.times(_sized(operands[0]).scaled(PER_PATTERN_CHARACTER)), Span(0, size.most))


def _contains_address(subnet: bool) -> Callable[..., _Estimate | None]:
    def cost(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
        size = Span(4, 16)
        total = size.plus(size).scaled(PER_CHARACTER)
        if subnet:
            total = total.plus(size.scaled(PER_CHARACTER)).plus(_ONE)
        if overload.endswith("_string"):
            total = total.plus(_sized(operands[0]).scaled(PER_CHARACTER))
        return _Estimate(total)

    return cost


def _validate(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    if target is None:
        return None
    return _Estimate(_sized(operands[0]).scaled(PER_CHARACTER).scaled(128 * PER_PATTERN_CHARACTER))


def _includes(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    assert target is not None
    return _Estimate(_sized(target))


def _equals(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    left, right = operands
    if left.type.kind != "struct" or not left.type.is_exactly(right.type):
        return None
    name = left.type.name
    if name in ("kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"):
        return _Estimate(_ONE)
    if name == "kubernetes.NamedFormat":
        return _Estimate(Span(1, 64).scaled(PER_CHARACTER))
    if name == "kubernetes.URL":
        return _Estimate(Span(1, right.size.most if right.size else 1).scaled(PER_CHARACTER))
    return None


_LONG: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}

_BY_OVERLOAD: Final[dict[str, Callable[..., _Estimate | None]]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{
        f"list_{_LONG.get(name, name)}_{function}": _sort
        for name in COMPARABLE
        for function in ("sort", "sortByAssociatedKeys")
    },
}

_BY_FUNCTION: Final[dict[str, Callable[..., _Estimate | None]]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _scan),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    "containsIP": _contains_address(False),
    "containsCIDR": _contains_address(True),
    "validate": _validate,
    "check": _fixed(350_000),
    "includes": _includes,
    "_==_": _equals,
}


def _scan_all(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    total = _ONE
    for operand in [target, *operands]:
        if operand is not None:
            total = total.plus(_sized(operand).scaled(2 * PER_CHARACTER))
    return _Estimate(total)


def _deep_traversal(target: _Operand | None, operands: list[_Operand], overload: str) -> _Estimate | None:
    element = _element(target) if target is not None else None
    if element is not None and element.type.kind in ("list", "map", "dyn", "any", "opaque", "struct"):
        return _Estimate(_UNKNOWN)
    return _traversal(target, operands, overload)


#: Functions that may cost more than the reference estimates: they scan what they are called on or their argument, or
#: walk over the elements of elements.
_SAFE: Final[dict[str, Callable[..., _Estimate | None]]] = {
    **dict.fromkeys(
        (
            *("startsWith", "endsWith", "quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR"),
            "ip.isCanonical",
        ),
        _scan_all,
    ),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _deep_traversal),
}


def _scan_argument(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    return _Estimate((operands[0].size or _UNKNOWN).scaled(PER_CHARACTER))


def _to_bytes(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    size = operands[0].size or _UNKNOWN
    return _Estimate(size.scaled(PER_CHARACTER), Span(size.least, min(size.most * 4, UNBOUNDED)))


def _to_text(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    size = operands[0].size or _UNKNOWN
    return _Estimate(size.scaled(PER_CHARACTER), Span(size.least // 4, size.most))


def _quote(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    size = operands[0].size or _UNKNOWN
    return _Estimate(size.scaled(PER_CHARACTER), Span(size.least + 2, min(size.most * 2 + 2, UNBOUNDED)))


def _format(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    return None if target is None else _Estimate((target.size or _UNKNOWN).scaled(PER_CHARACTER))


def _in_list(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    return _Estimate(operands[1].size or _UNKNOWN)


def _matches(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    text = (target.size or _UNKNOWN).plus(_ONE).scaled(PER_CHARACTER)
    return _Estimate(text.times((operands[0].size or _UNKNOWN).scaled(PER_PATTERN_CHARACTER)))


def _contains(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    text = (target.size or _UNKNOWN).scaled(PER_CHARACTER)
    return _Estimate(text.times((operands[0].size or _UNKNOWN).scaled(PER_CHARACTER)))


def _compare(target: _Operand | None, operands: list[_Operand]) -> _Estimate | None:
    most = min((operand.size or _UNKNOWN).most for operand in operands)
    return _Estimate(Span(1 if most else 0, most).scaled(PER_CHARACTER))


_BUILT_IN: Final[dict[str, Callable[[_Operand | None, list[_Operand]], _Estimate | None]]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _scan_argument),
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quote,
    "string_format": _format,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(TEXT_ORDERS, _compare),
    "equals": _compare,
    "not_equals": _compare,
}
