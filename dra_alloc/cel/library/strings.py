"""Strings (version 2 of the extension) and the regular expressions of Kubernetes."""

from __future__ import annotations

from dra_alloc.cel.library import regex
from dra_alloc.cel.library.registry import implements
from dra_alloc.cel.library.text import format_text
from dra_alloc.cel.values import INT_MAX, MAX_CHARACTERS, Fault, Halt, Value, checked_text

_LOWER = {ord(upper): upper.lower() for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER = {ord(lower): lower.upper() for lower in "abcdefghijklmnopqrstuvwxyz"}

#: What Go takes for white space (Python's `str.strip` takes the separators 1C to 1F as well).
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def _out_of_range(index: int) -> Fault:
    return Fault(f"index out of range: {index}")


@implements("string_char_at_int")
def char_at(text: str, index: int) -> str:
    """`text.charAt(index)`: one character, empty just behind the end."""
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


@implements("string_index_of_string", "string_index_of_string_int")
def index_of(text: str, part: str, start: int = 0) -> int:
    """`text.indexOf(part, start)`: where the part begins, -1 if it is not there."""
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


@implements("string_last_index_of_string")
def last_index_of(text: str, part: str) -> int:
    """`text.lastIndexOf(part)`: where the part begins last, -1 if it is not there."""
    return text.rfind(part)


@implements("string_last_index_of_string_int")
def last_index_of_from(text: str, part: str, start: int) -> int:
    """`text.lastIndexOf(part, start)`: where the part begins last, at `start` or before."""
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


@implements("string_lower_ascii")
def lower_ascii(text: str) -> str:
    """`text.lowerAscii()`: letters A to Z only."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


@implements("string_upper_ascii")
def upper_ascii(text: str) -> str:
    """`text.upperAscii()`: letters a to z only."""
    return text.upper() if text.isascii() else text.translate(_UPPER)


@implements("string_replace_string_string", "string_replace_string_string_int")
def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """`text.replace(old, new, count)`: all unless a count of 0 or more is given."""
    most = len(text) + 1 if not old else len(text) // len(old)
    most = most if count < 0 else min(most, count)
    if len(text) + most * len(new) > MAX_CHARACTERS:
        raise Halt(f"a text of more than {MAX_CHARACTERS} characters")
    return text.replace(old, new, most)


@implements("string_split_string", "string_split_string_int")
def split(text: str, separator: str, count: int = -1) -> tuple[str, ...]:
    """`text.split(separator, count)`: at most so many parts unless negative; an empty separator gives characters."""
    if count == 0:
        return ()
    if not separator:
        if count < 0 or count >= len(text):
            return tuple(text)
        return (*text[: count - 1], text[count - 1 :])
    return tuple(text.split(separator, min(count, INT_MAX) - 1 if count > 0 else -1))


@implements("string_substring_int")
def substring(text: str, start: int) -> str:
    """`text.substring(start)`."""
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


@implements("string_substring_int_int")
def substring_to(text: str, start: int, end: int) -> str:
    """`text.substring(start, end)`."""
    if start > end:
        raise Fault(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


@implements("string_trim")
def trim(text: str) -> str:
    """`text.trim()`: without white space at the ends."""
    return text.strip(_SPACE)


@implements("string_format")
def format_string(text: str, values: Value) -> str:
    """`text.format(values)`: clauses `%s %d %f %e %b %x %X %o %%`."""
    return checked_text(format_text(text, values))


_QUOTED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


@implements("strings_quote")
def quote(text: str) -> str:
    """`strings.quote(text)`: in double quotes, as a literal."""
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


@implements("list_join", "list_join_string")
def join(parts: Value, separator: str = "") -> str:
    """`list.join(separator)`."""
    length = 0
    for part in parts:
        if type(part) is not str:
            raise Fault(f"join: invalid input: {part!r}")
        length += len(part) + len(separator)
    if length > MAX_CHARACTERS:
        raise Halt(f"a text of more than {MAX_CHARACTERS} characters")
    return separator.join(parts)


@implements("string_find_string")
def find(text: str, pattern: str) -> str:
    """`text.find(pattern)`: the first match, else empty."""
    return regex.find(pattern, text)


@implements("string_find_all_string", "string_find_all_string_int")
def find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    """`text.findAll(pattern, limit)`: all matches, or as many."""
    return regex.find_all(pattern, text, limit)
