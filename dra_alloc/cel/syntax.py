"""The syntax tree of an expression, macros expanded: what parser, checker, cost, machine and compiler share.

Nodes may be shared (a macro that mentions its target twice refers to one node), so the tree is a graph without
cycles. Nothing here recurses: passes run on `walk`, since expressions may be nested deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from dra_alloc.cel import static
from dra_alloc.cel.static import StaticType

if TYPE_CHECKING:
    from dra_alloc.cel.declarations import Overload

__all__ = ["Binding", "Call", "Comprehension", "Ident", "ListLiteral", "Literal", "MapLiteral", "Node", "Select", "run"]

_T = TypeVar("_T")


class Node:
    """A node of the tree. `offset`: where it stands in the expression; `type`: set by the checker."""

    __slots__ = ("depth", "nesting", "offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: StaticType = static.ERROR
        #: Operators, selections and calls on the way down, and expressions inside of expressions: the parser of the
        #: reference bounds both.
        self.depth = 0
        self.nesting = 0


class Literal(Node):
    """A constant. `sign` is what may still be put before a number that stands alone."""

    __slots__ = ("bare", "value")

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value
        self.bare = True


class Ident(Node):
    """A name. The checker sets `binding` for a variable, or `constant` for the name of a type."""

    __slots__ = ("binding", "constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.binding: Binding | None = None
        self.constant: Any = None


class Select(Node):
    """`operand.field`, or with `test` the presence test `has(operand.field)`.

    The checker sets `constant` where the whole of it is the qualified name of a type.
    """

    __slots__ = ("constant", "field", "operand", "test")

    def __init__(self, offset: int, operand: Node, field: str, test: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test = test
        self.constant: Any = None


class Call(Node):
    """A call of a function, operators included; the target of a method is `target`.

    The checker puts the full name of the function in place and sets `overloads` to those that fit.
    """

    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> None:
        super().__init__(offset)
        self.function = function
        self.target = target
        self.arguments = arguments
        self.overloads: tuple[Overload, ...] = ()

    def operands(self) -> list[Node]:
        """Target and arguments."""
        return self.arguments if self.target is None else [self.target, *self.arguments]


class ListLiteral(Node):
    """`[a, ?b]`; `optional` holds the positions of entries that vanish when they have no value."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class MapLiteral(Node):
    """`{k: v, ?k: v}`."""

    __slots__ = ("entries", "optional")

    def __init__(self, offset: int, entries: list[tuple[Node, Node]], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.entries = entries
        self.optional = optional


class Comprehension(Node):
    """What a macro expands to: `accumulator := init; for variables in range: while condition: accumulator := step`.

    `macro` says which one it was: `all`, `exists`, `exists_one`, `map`, `filter`, `transformList`, `transformMap`,
    `transformMapEntry` or `bind`; `predicate` and `transform` are the expressions that the user gave it.
    For a `bind`, the range is empty and the condition false: `init` is bound and `result` evaluated.
    """

    __slots__ = (
        "accumulator",
        "accumulator_binding",
        "condition",
        "init",
        "macro",
        "predicate",
        "range",
        "result",
        "step",
        "transform",
        "variable",
        "variable2",
        "variable2_binding",
        "variable_binding",
    )

    def __init__(
        self,
        offset: int,
        macro: str,
        iteration_range: Node,
        variable: str,
        variable2: str | None,
        accumulator: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.macro = macro
        self.range = iteration_range
        self.variable = variable
        self.variable2 = variable2
        self.accumulator = accumulator
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result
        self.predicate: Node | None = None
        self.transform: Node | None = None
        self.variable_binding: Binding | None = None
        self.variable2_binding: Binding | None = None
        self.accumulator_binding: Binding | None = None


class Binding:
    """A variable: the `device`, or one of a comprehension. Identity is what tells variables of one name apart."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: StaticType) -> None:
        self.name = name
        self.type = type


#: A pass over the tree: yields the passes over the nodes below, which send back their results.
Pass = Generator[Any, Any, _T]


def run(task: Pass[_T]) -> _T:
    """Run a pass written as generators that yield each other, without using Python's stack for the depth."""
    stack: list[Pass[Any]] = [task]
    value: Any = None
    while True:
        try:
            below = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
            if not stack:
                result: _T = value
                return result
        else:
            stack.append(below)
            value = None
