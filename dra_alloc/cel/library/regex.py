"""Regular expressions of RE2: linear time, results remembered."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from dra_alloc.cel.values import Fault, Halt
from dra_alloc.cel.work import spend

__all__ = ["compiled", "find", "find_all", "found"]

#: Memory that the automaton of one pattern may take.
MAX_MEMORY: Final = 8 << 20


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """The compiled pattern. Raises Fault if RE2 does not take it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise Fault(f"invalid regular expression {pattern!r}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


@lru_cache(maxsize=1 << 14)
def found(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return compiled(pattern).search(_searchable(text)) is not None


def find(pattern: str, text: str) -> str:
    """The first match, empty if there is none."""
    match = compiled(pattern).search(_searchable(text))
    return match.group() if match else ""


def find_all(pattern: str, text: str, limit: int = -1) -> tuple[str, ...]:
    """All matches that do not overlap, at most `limit` unless it is negative. No empty match follows a match."""
    result: list[str] = []
    if limit == 0:
        return ()
    end = -1
    for match in compiled(pattern).finditer(_searchable(text)):
        if match.start() == match.end() == end:
            continue  # Go does not accept an empty match that abuts the one before it.
        end = match.end()
        spend(16)
        result.append(match.group())
        if len(result) == limit:
            break
    return tuple(result)


def _searchable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Halt("a text with a lone surrogate cannot be searched") from None
    return text
