"""Constants: what the reference computes when it compiles, with the errors that it then reports.

Literals, lists and maps of constants, and conversions of one constant (`int("3")`, `duration("1h")`) are constants.
A conversion that fails is an error of the expression, as is a constant pattern that RE2 does not take.
"""

from __future__ import annotations

from typing import Any, Final

from dra_alloc.cel import static
from dra_alloc.cel.library import implementation, regex
from dra_alloc.cel.library.standard import ConstantSet
from dra_alloc.cel.library.text import ClauseError, clauses
from dra_alloc.cel.syntax import (
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
from dra_alloc.cel.values import Fault, Halt, Uint, map_key
from dra_alloc.errors import CelError

__all__ = ["Constants", "fold"]

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)


class Constants:
    """The values of the nodes that are constants, and the sets that `in` with constants looks into."""

    def __init__(self) -> None:
        self.values: dict[Node, Any] = {}
        self.sets: dict[Node, ConstantSet] = {}

    def __contains__(self, node: Node) -> bool:
        return node in self.values

    def __getitem__(self, node: Node) -> Any:
        return self.values[node]


def fold(root: Node, expression: str, *, mixed: bool = False) -> Constants:
    """Find the constants of a checked tree. Raises CelError for those that are errors.

    mixed: lists and maps may hold values of several static types.
    """
    folder = _Folder(expression)
    run(folder.visit(root, mixed))
    return folder.constants


class _Folder:
    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.constants = Constants()
        self.seen: set[tuple[Node, bool]] = set()

    def fail(self, node: Node, message: str) -> CelError:
        return CelError(message, self.expression, node.offset)

    def visit(self, node: Node, exempt: bool) -> Pass[None]:
        """Visit a node; `exempt` inside of a call of `format`, whose lists may hold anything."""
        if type(node) is Literal:
            self.constants.values[node] = node.value
            return
        if type(node) is Ident:
            if node.constant is not None:
                self.constants.values[node] = node.constant
            return
        if (node, exempt) in self.seen:
            return
        self.seen.add((node, exempt))
        yield _PASSES[type(node)](self, node, exempt)

    def select(self, node: Select, exempt: bool) -> Pass[None]:
        if node.constant is not None:
            self.constants.values[node] = node.constant
            return
        yield self.visit(node.operand, exempt)

    def call(self, node: Call, exempt: bool) -> Pass[None]:
        function = node.function
        operands = node.operands()
        inside = exempt or function == "format"
        for operand in operands:
            yield self.visit(operand, inside)
        constants = self.constants
        if function in _CONVERSIONS and len(operands) == 1 and operands[0] in constants:
            act = implementation(function, node.overloads)
            try:
                constants.values[node] = act(constants[operands[0]])
            except (Fault, Halt) as fault:
                raise self.fail(node, fault.message) from None
        elif function == "_in_" and node.overloads[0].id == "in_list" and operands[1] in constants:
            self.membership(node, operands)
        elif function in ("matches", "find", "findAll"):
            self.pattern(node, operands)
        elif function == "format" and type(node.target) is Literal and type(node.arguments[0]) is ListLiteral:
            _FormatCheck(self, node, node.arguments[0]).check(node.target.value)

    def membership(self, node: Call, operands: list[Node]) -> None:
        if len(node.overloads) > 1:
            return
        elements = self.constants[operands[1]]
        if not elements:
            self.constants.values[node] = False
        elif all(type(element) in (bool, int, float, str, Uint) for element in elements):
            self.constants.sets[node] = ConstantSet(elements)

    def pattern(self, node: Call, operands: list[Node]) -> None:
        # The validator of the reference looks at the first argument, which for the global form is the text.
        suspects = [operands[1]] if operands[1] in self.constants else []
        if node.function == "matches" and type(node.arguments[0]) is Literal:
            suspects.append(node.arguments[0])
        for suspect in suspects:
            pattern = self.constants[suspect]
            if type(pattern) is str:
                try:
                    regex.compiled(pattern)
                except Fault as fault:
                    raise self.fail(suspect, fault.message) from None

    def list_literal(self, node: ListLiteral, exempt: bool) -> Pass[None]:
        for element in node.elements:
            yield self.visit(element, exempt)
        if not exempt:
            self.homogeneous([(e, self.entry_type(e, i in node.optional)) for i, e in enumerate(node.elements)])
        if not node.optional and all(element in self.constants for element in node.elements):
            self.constants.values[node] = tuple(self.constants[element] for element in node.elements)

    def map_literal(self, node: MapLiteral, exempt: bool) -> Pass[None]:
        for key, value in node.entries:
            yield self.visit(key, exempt)
            yield self.visit(value, exempt)
        if not exempt:
            self.homogeneous([(key, key.type) for key, _ in node.entries])
            self.homogeneous([(v, self.entry_type(v, i in node.optional)) for i, (_, v) in enumerate(node.entries)])
        if not node.optional and all(k in self.constants and v in self.constants for k, v in node.entries):
            try:
                self.constants.values[node] = {
                    map_key(self.constants[key]): self.constants[value] for key, value in node.entries
                }
            except Halt as halt:
                raise self.fail(node, halt.message) from None

    def entry_type(self, node: Node, optional: bool) -> static.StaticType:
        if not optional:
            return node.type
        if not node.type.parameters:
            raise self.fail(node, "an optional entry needs an optional value, not one of unknown type")
        return node.type.parameters[0]

    def homogeneous(self, entries: list[tuple[Node, static.StaticType]]) -> None:
        for node, found in entries[1:]:
            if not static.equivalent(entries[0][1], found):
                raise self.fail(node, f"expected type '{entries[0][1]}' but found '{found}'")

    def comprehension(self, node: Comprehension, exempt: bool) -> Pass[None]:
        for inner in (node.range, node.init, node.condition, node.step, node.result):
            yield self.visit(inner, exempt)


_PASSES: Final[dict[type, Any]] = {
    Select: _Folder.select,
    Call: _Folder.call,
    ListLiteral: _Folder.list_literal,
    MapLiteral: _Folder.map_literal,
    Comprehension: _Folder.comprehension,
}

_NUMBERS: Final = ("int", "uint")
_CLAUSE_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "s": (
        *("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type"),
        "null",
    ),
    "d": _NUMBERS,
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": (*_NUMBERS, "bool"),
    "x": (*_NUMBERS, "string", "bytes"),
    "X": (*_NUMBERS, "string", "bytes"),
    "o": _NUMBERS,
}


class _FormatCheck:
    """A literal format string with a literal list: as many values as clauses, of types that fit them."""

    def __init__(self, folder: _Folder, node: Call, values: ListLiteral) -> None:
        self.folder = folder
        self.node = node
        self.values = values

    def check(self, text: str) -> None:
        try:
            parts = clauses(text)
        except ClauseError as error:
            raise self.folder.fail(self.node, str(error)) from None
        wanted = [part[0] for part in parts if not isinstance(part, str)]
        values = self.values.elements
        if len(wanted) > len(values):
            raise self.folder.fail(self.node, f"index {len(values)} out of range")
        if len(values) > len(wanted):
            count = f"expected {len(wanted)}, got {len(values)}"
            raise self.folder.fail(self.node, f"too many arguments supplied to string.format ({count})")
        for letter, value in zip(wanted, values, strict=True):
            self.fits(letter, value)

    def fits(self, letter: str, value: Node) -> None:
        work = [value]
        while work:
            node = work.pop()
            if node.type.kind != "dyn" and node.type.kind not in _CLAUSE_TYPES[letter]:
                raise self.folder.fail(node, f"the clause %{letter} does not take a value of type {node.type}")
            if letter == "s" and type(node) is ListLiteral:
                work.extend(node.elements)
            elif letter == "s" and type(node) is MapLiteral:
                work.extend(inner for entry in node.entries for inner in entry)
