"""From the text of an expression to its syntax tree, with Lark and the grammar of `grammar`."""

from __future__ import annotations

import re
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dra_alloc.cel import macros
from dra_alloc.cel.syntax import Call, Ident, ListLiteral, Literal, MapLiteral, Node, Select
from dra_alloc.cel.values import INT_MAX, UINT_MAX, Uint
from dra_alloc.errors import CelError

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["MAX_LENGTH", "parse"]

#: Bytes of UTF-8 that an expression may have (`CELSelectorExpressionMaxLength` of the API).
MAX_LENGTH: Final = 10 * 1024

#: Depth of operators, selections and calls, and of expressions inside of expressions; the reference has the same bound.
MAX_DEPTH: Final = 250

RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    }
)

_BINARY: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">": "_>_",
    ">=": "_>=_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "_in_",
    "+": "_+_",
    "-": "_-_",
    "*": "_*_",
    "/": "_/_",
    "%": "_%_",
}


def parse(expression: str) -> Node:
    """Parse an expression and expand its macros. Raises CelError with the place of the fault."""
    try:
        length = len(expression.encode())
    except UnicodeEncodeError as error:
        raise CelError("the expression is not valid text: a lone surrogate", expression, error.start) from None
    if length > MAX_LENGTH:
        raise CelError(f"the expression has {length} bytes; at most {MAX_LENGTH} are allowed", expression[:80])
    from lark.exceptions import UnexpectedInput

    try:
        tree: Any = _lark().parse(expression)
    except UnexpectedInput as error:
        raise _syntax_error(expression, error) from None
    except macros.SyntaxFault as fault:
        raise CelError(fault.message, expression, fault.offset) from None
    root: Node = tree
    return root


def _syntax_error(expression: str, error: Any) -> CelError:
    token = getattr(error, "token", None)
    if token is None:
        offset = int(error.pos_in_stream)
        return CelError(f"unexpected {expression[offset]!r}", expression, offset)
    if token.type == "$END":
        return CelError("the expression ends too early", expression, len(expression))
    return CelError(f"unexpected {str(token)[:40]!r}", expression, int(token.start_pos))


_LOCK: Final = threading.Lock()


def _lark() -> Lark:
    """The parser, built when it is first needed (some 150 ms)."""
    with _LOCK:
        return _build_lark()


@cache
def _build_lark() -> Lark:
    from lark import Lark

    from dra_alloc.cel.grammar import grammar_text

    return Lark(
        grammar_text(),
        parser="lalr",
        start="expr",
        maybe_placeholders=False,
        keep_all_tokens=True,
        transformer=_Builder(),
    )


def _nest(node: Node, *, step: bool, inside: list[Node], nested: list[Node]) -> Node:
    """Set the depths of a node over what stands directly inside, and over expressions of their own in it."""
    depth = nesting = 0
    for child in inside:
        if child.depth > depth:
            depth = child.depth
        if child.nesting > nesting:
            nesting = child.nesting
    for child in nested:
        if child.depth > depth:
            depth = child.depth
        if child.nesting >= nesting:
            nesting = child.nesting + 1
    node.depth = depth + step
    node.nesting = nesting
    if node.depth > MAX_DEPTH or nesting > MAX_DEPTH:
        raise macros.SyntaxFault(f"nested deeper than {MAX_DEPTH}", node.offset)
    return node


class _Builder:
    """Callbacks of the parser: one method a rule, from the children (nodes and tokens) to a node."""

    # Operators ------------------------------------------------------------------------------------------------------

    def conditional(self, c: list[Any]) -> Node:
        node = Call(c[1].start_pos, "_?_:_", None, [c[0], c[2], c[4]])
        return _nest(node, step=True, inside=[c[0], c[2]], nested=[c[4]])

    def logical_or(self, c: list[Any]) -> Node:
        return _nest(Call(c[1].start_pos, "_||_", None, c[::2]), step=False, inside=c[::2], nested=[])

    def logical_and(self, c: list[Any]) -> Node:
        return _nest(Call(c[1].start_pos, "_&&_", None, c[::2]), step=False, inside=c[::2], nested=[])

    def _half(self, c: list[Any]) -> tuple[Node, Any]:
        return c[0], c[1]

    relation_lt = relation_le = relation_gt = relation_ge = relation_eq = relation_ne = relation_in = _half
    addition_add = addition_sub = multiplication_mul = multiplication_div = multiplication_mod = _half

    def _binary(self, c: list[Any]) -> Node:
        (left, operator), right = c
        node = Call(operator.start_pos, _BINARY[operator.value], None, [left, right])
        return _nest(node, step=True, inside=node.arguments, nested=[])

    relation = addition = multiplication = _binary

    def unary_not(self, c: list[Any]) -> Node:
        operand = c.pop()
        if c[-1].value == "-":
            operand = _signed(operand, c.pop())
        if len(c) % 2 == 0:
            return _as_node(operand)
        return _nest(Call(c[0].start_pos, "!_", None, [operand]), step=False, inside=[operand], nested=[])

    def unary_neg(self, c: list[Any]) -> Node:
        operand = c.pop()
        number = _leading_number(operand)
        if len(c) == 1 and number is not None:
            return _signed(operand, c[0])
        if len(c) % 2 == 0:
            return _as_node(operand)
        return _nest(Call(c[0].start_pos, "-_", None, [operand]), step=False, inside=[operand], nested=[])

    # Selections and calls -------------------------------------------------------------------------------------------

    def member_dot(self, c: list[Any]) -> Node:
        field = c[-1].value.strip("`")
        node: Node
        if len(c) == 4:
            name = Literal(c[-1].start_pos, field)
            node = Call(c[1].start_pos, "_?._", None, [c[0], name])
        else:
            node = Select(c[1].start_pos, c[0], field)
        return _nest(node, step=True, inside=[c[0]], nested=[])

    def member_dot_arg(self, c: list[Any]) -> Node:
        target, name, opened = c[0], c[2].value, c[3]
        arguments = c[4] if len(c) == 6 else []
        node = macros.expand(opened.start_pos, name, target, arguments)
        if node is None:
            node = Call(c[2].start_pos, name, target, arguments)
        return _nest(node, step=True, inside=[target], nested=arguments)

    def member_index(self, c: list[Any]) -> Node:
        function = "_[?_]" if len(c) == 5 else "_[_]"
        node = Call(c[1].start_pos, function, None, [c[0], c[-2]])
        return _nest(node, step=True, inside=[c[0]], nested=[c[-2]])

    def member_object(self, c: list[Any]) -> Node:
        raise macros.SyntaxFault("messages cannot be created in the expressions of devices", c[1].start_pos)

    def fieldinits(self, c: list[Any]) -> None:
        return None

    def ident(self, c: list[Any]) -> Node:
        return _name(c[0], "")

    def dot_ident(self, c: list[Any]) -> Node:
        return _name(c[1], ".")

    def ident_arg(self, c: list[Any]) -> Node:
        return self._global_call(c, "")

    def dot_ident_arg(self, c: list[Any]) -> Node:
        return self._global_call(c[1:], ".")

    def _global_call(self, c: list[Any], dot: str) -> Node:
        _check_reserved(c[0])
        name = dot + c[0].value
        arguments = c[2] if len(c) == 4 else []
        node = macros.expand(c[1].start_pos, name, None, arguments)
        if node is None:
            node = Call(c[0].start_pos, name, None, arguments)
        return _nest(node, step=False, inside=[], nested=arguments)

    def exprlist(self, c: list[Any]) -> list[Node]:
        return c[::2]

    # Literals -------------------------------------------------------------------------------------------------------

    def paren_expr(self, c: list[Any]) -> Node:
        node = c[1]
        if type(node) is Literal:
            node.bare = False
        return _nest(node, step=False, inside=[], nested=[_depths(node)])

    def optional_expr(self, c: list[Any]) -> _OptionalEntry:
        return _OptionalEntry(c[1])

    def first_element(self, c: list[Any]) -> list[Any]:
        return [c[0]]

    def next_element(self, c: list[Any]) -> list[Any]:
        elements: list[Any] = c[0]
        elements.append(c[2])
        return elements

    def list_lit(self, c: list[Any]) -> Node:
        entries: list[Any] = c[1] if isinstance(c[1], list) else []
        elements = [_as_node(entry) for entry in entries]
        optional = frozenset(i for i, entry in enumerate(entries) if type(entry) is _OptionalEntry)
        return _nest(ListLiteral(c[0].start_pos, elements, optional), step=False, inside=[], nested=elements)

    def first_entry(self, c: list[Any]) -> list[Any]:
        return [(c[0], c[2])]

    def next_entry(self, c: list[Any]) -> list[Any]:
        entries: list[Any] = c[0]
        entries.append((c[2], c[4]))
        return entries

    def map_lit(self, c: list[Any]) -> Node:
        found: list[Any] = c[1] if isinstance(c[1], list) else []
        entries = [(_as_node(key), value) for key, value in found]
        optional = frozenset(i for i, (key, _) in enumerate(found) if type(key) is _OptionalEntry)
        inner = [node for entry in entries for node in entry]
        return _nest(MapLiteral(c[0].start_pos, entries, optional), step=False, inside=[], nested=inner)

    def literal(self, c: list[Any]) -> Node:
        token = c[0]
        return Literal(token.start_pos, _LITERALS[token.type](token.value, token.start_pos))


class _OptionalEntry:
    """An entry of a list or map with `?` before it."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node


def _as_node(entry: Any) -> Node:
    node: Node = entry.node if type(entry) is _OptionalEntry else entry
    return node


def _depths(node: Node) -> Node:
    """A node that has nothing but the depths of another, to count them once more."""
    copy = Node(node.offset)
    copy.depth, copy.nesting = node.depth, node.nesting
    return copy


def _check_reserved(token: Any) -> None:
    if token.value in RESERVED:
        raise macros.SyntaxFault(f"reserved identifier: {token.value}", token.start_pos)


def _name(token: Any, dot: str) -> Node:
    _check_reserved(token)
    return Ident(token.start_pos, dot + token.value)


def _leading_number(node: Node) -> Literal | None:
    """The number that stands first in a chain of selections and calls and could take a sign, if there is one."""
    while True:
        if type(node) is Literal:
            return node if node.bare and type(node.value) in (int, float) else None
        if type(node) is Select:
            node = node.operand
        elif type(node) is Call and node.target is not None:
            node = node.target
        elif type(node) is Call and node.function in ("_[_]", "_[?_]", "_?._"):
            node = node.arguments[0]
        else:
            return None


def _signed(operand: Node, sign: Any) -> Node:
    number = _leading_number(operand)
    if number is None:
        raise macros.SyntaxFault("unexpected '-'", sign.start_pos)
    number.value = -number.value
    number.offset = sign.start_pos
    return operand


# Literals -----------------------------------------------------------------------------------------------------------


def _int(text: str, offset: int) -> int:
    value = _digits(text, offset, "int")
    if value > INT_MAX + 1:  # one more than fits, for the sign that may stand before it; the checker looks again
        raise macros.SyntaxFault("invalid int literal", offset)
    return value


def _uint(text: str, offset: int) -> Uint:
    value = _digits(text[:-1], offset, "uint")
    if value > UINT_MAX:
        raise macros.SyntaxFault("invalid uint literal", offset)
    return Uint(value)


def _digits(text: str, offset: int, kind: str) -> int:
    base = 10
    if text.startswith("0x"):
        base, text = 16, text[2:]
    if len(text.lstrip("0")) > 20:
        raise macros.SyntaxFault(f"invalid {kind} literal", offset)
    return int(text.lstrip("0") or "0", base)


def _double(text: str, offset: int) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise macros.SyntaxFault("invalid double literal", offset)
    return value


_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_SIMPLE: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def _unquote(text: str, offset: int) -> tuple[str, bool]:
    """What stands between the quotes, line ends normalized, and whether escapes count in it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[quotes:-quotes], raw


def _string(text: str, offset: int) -> str:
    body, raw = _unquote(text, offset)
    if raw or "\\" not in body:
        return body

    def unescape(match: re.Match[str]) -> str:
        if match[1]:
            return chr(_SIMPLE.get(match[1], ord(match[1])))
        code = int(match[5], 8) if match[5] else int(match[2] or match[3] or match[4], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise macros.SyntaxFault("invalid unicode code point", offset)
        return chr(code)

    return _ESCAPE.sub(unescape, body)


def _bytes(text: str, offset: int) -> bytes:
    body, raw = _unquote(text[1:], offset)
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[end : match.start()].encode())
        end = match.end()
        if match[3] or match[4]:
            raise macros.SyntaxFault("unicode escapes are not allowed in bytes", offset)
        code = _SIMPLE.get(match[1], ord(match[1])) if match[1] else int(match[2] or match[5], 16 if match[2] else 8)
        parts.append(bytes([code]))
    parts.append(body[end:].encode())
    return b"".join(parts)


_LITERALS: Final[dict[str, Any]] = {
    "INT_LIT": _int,
    "UINT_LIT": _uint,
    "FLOAT_LIT": _double,
    "STRING_LIT": _string,
    "MLSTRING_LIT": _string,
    "BYTES_LIT": _bytes,
    "BOOL_LIT": lambda text, offset: text == "true",
    "NULL_LIT": lambda text, offset: None,
}
