"""What must be equal for a selector to be true: the equalities among the terms of its conjunction.

They let an index pass over selectors without evaluating them. `a && b` is false where one of them is false, even if
the other is an error, so a device whose value is another one of the same type is refused, and refused without error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from dra_alloc.cel.checker import DEVICE_BINDING
from dra_alloc.cel.program import Program
from dra_alloc.cel.syntax import Call, Ident, Node, Select

__all__ = ["DRIVER", "Equality", "Path", "equalities", "plain_equalities"]

#: Domain and name of an attribute; DRIVER stands for the driver's name.
Path = tuple[str, str]
DRIVER: Path = ("", "")


@attrs.frozen
class Equality:
    """A term `path == value` of a conjunction. value: a str, int or bool."""

    path: Path
    value: str | int | bool


#: A selector in the way that most are written. Text that has more to it than its letters is left to the parser.
_PLAIN = re.compile(
    r'device\.(?:driver|attributes\["(?P<domain>[a-z0-9.-]+)"\]\.(?P<name>[A-Za-z0-9_]+)) == '
    r'(?:"(?P<text>[A-Za-z0-9_./: -]*)"|(?P<int>0|[1-9][0-9]{0,17})|(?P<bool>true|false))'
)
#: A name that begins with a digit or is one of these is not a name in CEL, or not everywhere.
_RESERVED = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    )
)
_MAX_PLAIN = 1000


def plain_equalities(expression: str) -> tuple[Equality, ...] | None:
    """The equalities of a selector that is obviously nothing but these, without compiling it; None for any other.

    Such a selector compiles, and reads what it compares and nothing else.
    """
    if len(expression) > _MAX_PLAIN:
        return None
    found = []
    for term in expression.split(" && "):
        match = _PLAIN.fullmatch(term)
        if match is None:
            return None
        domain, name, text, number, boolean = match.groups()
        if name is None:
            if text is None:
                return None
            path = DRIVER
        elif name in _RESERVED or name[0].isdigit():
            return None
        else:
            path = domain, name
        found.append(Equality(path, text if text is not None else int(number) if number else boolean == "true"))
    return tuple(found)


def equalities(program: Program) -> tuple[tuple[Equality, ...], bool]:
    """The equalities that a true selector implies, and whether there is nothing else in it."""
    found = [_equality(term, program) for term in _terms(program._root)]
    return tuple(entry for entry in found if entry is not None), None not in found


def _terms(root: Node) -> Iterator[Node]:
    work = [root]
    while work:
        node = work.pop()
        if type(node) is Call and node.function == "_&&_":
            work.extend(reversed(node.operands()))
        else:
            yield node


def _equality(term: Node, program: Program) -> Equality | None:
    if type(term) is not Call or term.function != "_==_":
        return None
    left, right = term.operands()
    for side, other in ((left, right), (right, left)):
        path = _path(side, program)
        if path is not None and other in program._constants:
            value = program._constants[other]
            return Equality(path, value) if type(value) in (str, int, bool) else None
    return None


def _path(node: Node, program: Program) -> Path | None:
    """What of a device a node reads, if it is the driver or an attribute of a constant name."""
    step = _step(node, program)
    if step is None:
        return None
    operand, name = step
    if _is_device(operand):
        return DRIVER if name == "driver" else None
    inner = _step(operand, program)
    if inner is None or type(inner[0]) is not Select or inner[0].test or inner[0].field != "attributes":
        return None
    return (inner[1], name) if _is_device(inner[0].operand) else None


def _step(node: Node, program: Program) -> tuple[Node, str] | None:
    if type(node) is Select and not node.test:
        return node.operand, node.field
    if type(node) is Call and node.function == "_[_]":
        operand, key = node.operands()
        if key in program._constants and type(program._constants[key]) is str:
            return operand, program._constants[key]
    return None


def _is_device(node: Node) -> bool:
    return type(node) is Ident and node.binding is DEVICE_BINDING
