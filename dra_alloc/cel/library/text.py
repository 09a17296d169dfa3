"""`format` of strings, as version 2 of the extension does it (with the number format of the locale en-US)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dra_alloc.cel.library.registry import OVERLOADS
from dra_alloc.cel.values import (
    MAX_CHARACTERS,
    Duration,
    Fault,
    Halt,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    map_find,
    map_keys,
    type_of,
)
from dra_alloc.cel.work import spend

__all__ = ["clauses", "format_text"]

#: Decimals that a clause may ask for.
MAX_PRECISION: Final = 1000
DEFAULT_PRECISION: Final = 6
MAX_DEPTH: Final = 100

_SUPERSCRIPT: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class ClauseError(Exception):
    """A format string with a clause that cannot be read."""


def clauses(text: str) -> list[str | tuple[str, int | None]]:
    """A format string in parts: text as it is, and clauses as (letter, precision). Raises ClauseError."""
    parts: list[str | tuple[str, int | None]] = []
    index, start = 0, 0
    while index < len(text):
        if text[index] != "%":
            index += 1
            continue
        parts.append(text[start:index])
        index += 1
        if text[index : index + 1] == "%":
            parts.append("%")
            index += 1
        else:
            index, clause = _clause(text, index)
            parts.append(clause)
        start = index
    parts.append(text[start:])
    return parts


def _clause(text: str, index: int) -> tuple[int, tuple[str, int | None]]:
    precision: int | None = None
    if text[index : index + 1] == ".":
        end = index + 1
        while text[end : end + 1] in tuple("0123456789"):
            end += 1
        digits = text[index + 1 : end]
        if not digits:
            raise ClauseError("error while converting precision to integer")
        if len(digits) > 6 or int(digits) > MAX_PRECISION:
            raise ClauseError(f"precision {digits[:20]} exceeds maximum allowed precision {MAX_PRECISION}")
        precision, index = int(digits), end
    letter = text[index : index + 1]
    if not letter:
        raise ClauseError("unexpected end of string")
    if letter not in _FORMATTERS:
        raise ClauseError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    return index + 1, (letter, precision)


def format_text(text: str, values: Value) -> str:
    """The text with the values put in. Raises Fault."""
    try:
        parts = clauses(text)
    except ClauseError as error:
        raise Fault(str(error)) from None
    out: list[str] = []
    used = length = 0
    for part in parts:
        if isinstance(part, str):
            out.append(part)
            continue
        if used >= len(values):
            raise Fault(f"index {used} out of range")
        out.append(_FORMATTERS[part[0]](values[used], part[1]))
        used += 1
        length += len(out[-1])
        spend(4 + len(out[-1]) // 64)
        if length > MAX_CHARACTERS:
            raise Halt(f"a text of more than {MAX_CHARACTERS} characters")
    return "".join(out)


def _wrong(what: str, value: Value) -> Fault:
    return Fault(f"error during formatting: {what}, was given {type_of(value).name}")


def _string(value: Value, precision: int | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, (tuple, list, dict)):
        return _nested(value)
    return _as_string(value)


def _as_string(value: Value) -> str:
    """A value as `string()` makes it."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is TypeValue:
        return str(value.name)
    name = _CONVERSIONS.get(kind)
    if name is None:
        raise _wrong(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
            "and timestamps",
            value,
        )
    text: str = OVERLOADS[name](value)
    return text


_CONVERSIONS: Final[dict[type, str]] = {
    bool: "bool_to_string",
    int: "int64_to_string",
    Uint: "uint64_to_string",
    float: "double_to_string",
    bytes: "bytes_to_string",
    Timestamp: "timestamp_to_string",
    Duration: "duration_to_string",
}


class _Budget:
    """Characters that a nested value may still take."""

    def __init__(self) -> None:
        self.left = MAX_CHARACTERS


def _nested(value: Value, depth: int = 0, budget: _Budget | None = None) -> str:
    """A list or map, or a value inside of one: strings quoted, doubles with six decimals, keys sorted."""
    budget = budget or _Budget()
    spend(16)
    if depth > MAX_DEPTH:
        raise Halt(f"a value nested deeper than {MAX_DEPTH} cannot be formatted")
    if isinstance(value, (tuple, list)):
        text = "[" + ", ".join(_nested(element, depth + 1, budget) for element in value) + "]"
    elif isinstance(value, dict):
        pairs = []
        for key in map_keys(value):
            if type(key) not in (str, bool, int, Uint):
                raise Fault(f"no formatting function for map key of type {type_of(key).name}")
            pairs.append((_nested(key, depth + 1, budget), _nested(map_find(value, key), depth + 1, budget)))
        pairs.sort(key=lambda pair: pair[0].encode(errors="surrogatepass"))
        text = "{" + ", ".join(f"{key}:{held}" for key, held in pairs) + "}"
    else:
        text = _inside(value)
    budget.left -= len(text)
    if budget.left < 0:
        raise Halt(f"a text of more than {MAX_CHARACTERS} characters")
    return text


def _inside(value: Value) -> str:
    kind = type(value)
    if kind is str:
        return _go_quote(value)
    if kind is bytes:
        return "b" + _go_quote(_as_string(value))
    if kind is float:
        if math.isnan(value) or math.isinf(value):
            return f'"{_as_string(value)}"'
        return f"{value:.6f}"
    if kind is Timestamp:
        return f"timestamp({_go_quote(_as_string(value))})"
    if kind is Duration:
        return f"duration({_go_quote(_as_string(value))})"
    if value is None or kind in (bool, int, Uint, TypeValue):
        return _string(value, None)
    raise Fault(f"no formatting function for {type_of(value).name}")


_GO_ESCAPES: Final = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", '"': '"'}


def _go_quote(text: str) -> str:
    """A string in quotes as Go prints it: what is not printable is escaped."""
    out = []
    for char in text:
        code = ord(char)
        if char in _GO_ESCAPES:
            out.append("\\" + _GO_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif code < 0x80:
            out.append(f"\\x{code:02x}")
        elif code < 0x10000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\U{code:08x}")
    return '"' + "".join(out) + '"'


def _decimal(value: Value, precision: int | None) -> str:
    if type(value) not in (int, Uint):
        raise _wrong("decimal clause can only be used on integers", value)
    return str(int(value))


_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _double(value: Value, what: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise _wrong(f"{what} clause can only be used on doubles", value)


def _not_finite(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return None


def _fixed(value: Value, precision: int | None) -> str:
    number = _double(value, "fixed-point")
    digits = DEFAULT_PRECISION if precision is None else precision
    return _not_finite(number) or f"{number:,.{digits}f}"


def _scientific(value: Value, precision: int | None) -> str:
    number = _double(value, "scientific")
    digits = DEFAULT_PRECISION if precision is None else precision
    special = _not_finite(number)
    if special:
        return special
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    power = f"{int(exponent):03d}" if exponent.startswith("-") else f"{int(exponent):02d}"
    return f"{mantissa}\u202f×\u202f10{power.translate(_SUPERSCRIPT)}"


def _binary(value: Value, precision: int | None) -> str:
    if type(value) not in (int, Uint, bool):
        raise _wrong("only integers and bools can be formatted as binary", value)
    return f"{int(value):b}"


def _hex(value: Value, precision: int | None) -> str:
    if type(value) is str:
        return str(value.encode(errors="surrogatepass").hex())
    if type(value) is bytes:
        return value.hex()
    if type(value) in (int, Uint):
        return f"{int(value):x}"
    raise _wrong("only integers, byte buffers, and strings can be formatted as hex", value)


def _octal(value: Value, precision: int | None) -> str:
    if type(value) not in (int, Uint):
        raise _wrong("octal clause can only be used on integers", value)
    return f"{int(value):o}"


_FORMATTERS: Final[dict[str, Callable[[Any, int | None], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
    "o": _octal,
}
