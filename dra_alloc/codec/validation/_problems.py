"""What is wrong and where: problems, their paths, and the checks that lists and maps share.

A check is a function from a value to the problems in it, with paths relative to that value; whoever holds the value
puts the path before them with `at`. A valid object thus costs no paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import attrs

__all__ = [
    "Found",
    "Problem",
    "at",
    "byte_length",
    "duplicate",
    "each",
    "forbidden",
    "immutable",
    "invalid",
    "keyed",
    "listed",
    "one_of",
    "required",
    "shown",
    "too_long",
    "too_many",
    "unique",
]

_SHOWN = 80

Item = TypeVar("Item")


@attrs.frozen
class Problem:
    """One rule of the API that an object breaks.

    path: the field, as the API server writes it (`spec.devices.requests[0].exactly.count`).
    message: what is wrong. hint: what would be right (may be empty).
    """

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text} ({self.hint})" if self.hint else text


Found = Iterable[Problem]


def at(step: str, problems: Found) -> Iterator[Problem]:
    """The problems of a field, seen from the object that holds it. `step` is a name, or a name with an index."""
    for problem in problems:
        joint = "" if not problem.path or problem.path.startswith("[") else "."
        yield Problem(f"{step}{joint}{problem.path}", problem.message, problem.hint)


def shown(value: object) -> str:
    """A value as messages show it: text in quotes, cut where it is long."""
    text = repr(str(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 4 :]}"


def byte_length(text: str) -> int:
    """Length in UTF-8, which is what the API limits."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def invalid(value: object, message: str, hint: str = "") -> Problem:
    """A value that the field may not have."""
    return Problem("", f"{shown(value)} {message}", hint)


def required(hint: str = "") -> Problem:
    """A field that must be set and is not."""
    return Problem("", "is required", hint)


def forbidden(message: str, hint: str = "") -> Problem:
    """A field that must not be set here."""
    return Problem("", message, hint)


def too_long(length: int, limit: int) -> Problem:
    return Problem("", f"is {length} bytes long", f"at most {limit} bytes")


def too_many(count: int, limit: int, why: str = "") -> Problem:
    return Problem("", f"has {count} entries, too many", f"at most {limit}{why}")


def duplicate(value: object) -> Problem:
    return Problem("", f"{shown(value)} is there already", "each entry once")


def immutable(field: str, value: object, old: object) -> Iterator[Problem]:
    """A field that may not change on update."""
    if value != old:
        yield Problem(field, "is immutable", "delete the object and create a new one")


def one_of(value: str, allowed: Sequence[str]) -> Iterator[Problem]:
    """A value out of an enumeration; empty is not among them."""
    if not value:
        yield required(f"one of {', '.join(allowed)}")
    elif value not in allowed:
        yield invalid(value, "is not supported", f"one of {', '.join(allowed)}")


def each(items: Iterable[Item], check: Callable[[Item], Found], field: str) -> Iterator[Problem]:
    """The problems of every entry of a list."""
    for index, item in enumerate(items):
        yield from at(f"{field}[{index}]", check(item))


def listed(
    items: Sequence[Item], limit: int, check: Callable[[Item], Found], field: str, why: str = ""
) -> Iterator[Problem]:
    """A list of at most `limit` entries. One that is longer has this problem alone, as in the API server."""
    if len(items) > limit:
        yield from at(field, [too_many(len(items), limit, why)])
    else:
        yield from each(items, check, field)


def keyed(
    items: Sequence[Item],
    limit: int,
    check: Callable[[Item], Found],
    key: Callable[[Item], Hashable],
    field: str,
    why: str = "",
) -> Iterator[Problem]:
    """A list of at most `limit` entries, no two of which have the same key."""
    yield from listed(items, limit, check, field, why)
    if len(items) <= limit:
        yield from unique(items, key, field)


def unique(items: Iterable[Item], key: Callable[[Item], Hashable], field: str) -> Iterator[Problem]:
    """Entries of a list with the key of an earlier one."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        name = key(item)
        if name in seen:
            yield from at(f"{field}[{index}]", [duplicate(name)])
        seen.add(name)
