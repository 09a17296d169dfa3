"""Macros: `has`, the quantifiers and transformations of lists and maps, `cel.bind`, `optMap`, `sortBy`.

Each expands to the comprehension that the CEL specification gives for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dra_alloc.cel.syntax import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select

__all__ = ["ACCUMULATOR", "MACROS", "SyntaxFault", "expand"]

#: The name of the accumulator of a macro; no expression can spell it.
ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"


class SyntaxFault(Exception):
    """A fault of the syntax at an offset of the expression."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset


def expand(offset: int, name: str, target: Node | None, arguments: list[Node]) -> Node | None:
    """The expansion of a call, or None if it is not that of a macro."""
    macro = MACROS.get((name, len(arguments), target is not None))
    if macro is None:
        return None
    return macro(offset, target, arguments)


def _variable(node: Node) -> str:
    if type(node) is not Ident or node.name.startswith("."):
        raise SyntaxFault("the variable of a macro must be a simple name", node.offset)
    if node.name == "__result__":
        raise SyntaxFault("iteration variable overwrites accumulator variable", node.offset)
    return node.name


def _variables(arguments: list[Node]) -> tuple[str, str]:
    first, second = _variable(arguments[0]), _variable(arguments[1])
    if first == second:
        raise SyntaxFault(f"duplicate variable name: {first}", arguments[1].offset)
    return first, second


def _accu(offset: int) -> Ident:
    return Ident(offset, ACCUMULATOR)


def _call(offset: int, function: str, *arguments: Node) -> Call:
    return Call(offset, function, None, list(arguments))


def _has(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    select = arguments[0]
    if type(select) is not Select:
        raise SyntaxFault("has() takes a selection, as in has(device.attributes['domain'].name)", select.offset)
    return Select(select.offset, select.operand, select.field, test=True)


def _quantifier(name: str, two: bool) -> Callable[[int, Node | None, list[Node]], Node]:
    def build(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        assert target is not None
        second: str | None = None
        if two:
            first, second = _variables(arguments)
        else:
            first = _variable(arguments[0])
        predicate = arguments[-1]
        init: Literal
        if name == "all":
            init = Literal(offset, True)
            condition: Node = _call(offset, "@not_strictly_false", _accu(offset))
            step = _call(offset, "_&&_", _accu(offset), predicate)
            result: Node = _accu(offset)
        elif name == "exists":
            init = Literal(offset, False)
            condition = _call(offset, "@not_strictly_false", _call(offset, "!_", _accu(offset)))
            step = _call(offset, "_||_", _accu(offset), predicate)
            result = _accu(offset)
        else:
            init = Literal(offset, 0)
            condition = Literal(offset, True)
            one_more = _call(offset, "_+_", _accu(offset), Literal(offset, 1))
            step = _call(offset, "_?_:_", predicate, one_more, _accu(offset))
            result = _call(offset, "_==_", _accu(offset), Literal(offset, 1))
        node = Comprehension(offset, name, target, first, second, ACCUMULATOR, init, condition, step, result)
        node.predicate = predicate
        return node

    return build


def _list_of(
    offset: int, macro: str, target: Node | None, names: tuple[str, str | None], predicate: Node | None, transform: Node
) -> Node:
    """A comprehension that appends `transform` for every element of which `predicate` is true."""
    step = _call(offset, "_+_", _accu(offset), ListLiteral(offset, [transform]))
    return _collected(offset, macro, target, names, predicate, transform, ListLiteral(offset, []), step)


def _collected(
    offset: int,
    macro: str,
    target: Node | None,
    names: tuple[str, str | None],
    predicate: Node | None,
    transform: Node,
    empty: Node,
    step: Node,
) -> Node:
    """A comprehension from `empty` that takes `step` for every element of which `predicate` is true."""
    assert target is not None
    if predicate is not None:
        step = _call(offset, "_?_:_", predicate, step, _accu(offset))
    every = Literal(offset, True)
    node = Comprehension(offset, macro, target, *names, ACCUMULATOR, empty, every, step, _accu(offset))
    node.predicate, node.transform = predicate, transform
    return node


def _map(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    predicate = arguments[1] if len(arguments) == 3 else None
    return _list_of(offset, "map", target, (_variable(arguments[0]), None), predicate, arguments[-1])


def _filter(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    return _list_of(offset, "filter", target, (_variable(arguments[0]), None), arguments[1], arguments[0])


def _transform_list(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    predicate = arguments[2] if len(arguments) == 4 else None
    return _list_of(offset, "transformList", target, _variables(arguments), predicate, arguments[-1])


def _transform_map(entry: bool) -> Callable[[int, Node | None, list[Node]], Node]:
    macro = "transformMapEntry" if entry else "transformMap"

    def build(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        names = _variables(arguments)
        predicate = arguments[2] if len(arguments) == 4 else None
        transform = arguments[-1]
        added = [transform] if entry else [Ident(offset, names[0]), transform]
        step = _call(offset, "cel.@mapInsert", _accu(offset), *added)
        return _collected(offset, macro, target, names, predicate, transform, MapLiteral(offset, []), step)

    return build


def _bound(offset: int, name: str, init: Node, result: Node) -> Node:
    empty = ListLiteral(offset, [])
    return Comprehension(
        offset, "bind", empty, UNUSED, None, name, init, Literal(offset, False), Ident(offset, name), result
    )


def _bind(offset: int, target: Node | None, arguments: list[Node]) -> Node | None:
    if type(target) is not Ident or target.name != "cel":
        return None
    if type(arguments[0]) is not Ident or arguments[0].name.startswith("."):
        raise SyntaxFault("cel.bind() variable names must be simple identifiers", arguments[0].offset)
    return _bound(offset, arguments[0].name, arguments[1], arguments[2])


def _optional_map(flat: bool) -> Callable[[int, Node | None, list[Node]], Node]:
    def build(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        if type(arguments[0]) is not Ident or arguments[0].name.startswith("."):
            raise SyntaxFault("the variable of optMap() and optFlatMap() must be a simple name", arguments[0].offset)
        value = Call(offset, "value", target, [])
        mapped: Node = _bound(offset, arguments[0].name, value, arguments[1])
        if not flat:
            mapped = _call(offset, "optional.of", mapped)
        return _call(offset, "_?_:_", Call(offset, "hasValue", target, []), mapped, _call(offset, "optional.none"))

    return build


def _sort_by(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    if isinstance(target, (Literal, MapLiteral)):
        raise SyntaxFault("sortBy can only be applied to a list", target.offset)
    assert target is not None
    name = "@__sortBy_input__"
    keys = _list_of(offset, "map", Ident(offset, name), (_variable(arguments[0]), None), None, arguments[1])
    return _bound(offset, name, target, Call(offset, "@sortByAssociatedKeys", Ident(offset, name), [keys]))


#: Name, number of arguments, whether it is a method; and what expands it.
MACROS: Final[dict[tuple[str, int, bool], Callable[[int, Node | None, list[Node]], Node | None]]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all", False),
    ("exists", 2, True): _quantifier("exists", False),
    ("exists_one", 2, True): _quantifier("exists_one", False),
    ("existsOne", 2, True): _quantifier("exists_one", False),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("all", 3, True): _quantifier("all", True),
    ("exists", 3, True): _quantifier("exists", True),
    ("exists_one", 3, True): _quantifier("exists_one", True),
    ("existsOne", 3, True): _quantifier("exists_one", True),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(False),
    ("transformMap", 4, True): _transform_map(False),
    ("transformMapEntry", 3, True): _transform_map(True),
    ("transformMapEntry", 4, True): _transform_map(True),
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional_map(False),
    ("optFlatMap", 2, True): _optional_map(True),
    ("sortBy", 2, True): _sort_by,
}
