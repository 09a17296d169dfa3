"""The terms of a conjunction: which part of `a && b && c` is false on a device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dra_alloc.cel import Program, compile_selector
from dra_alloc.errors import CelError

__all__ = ["conjuncts", "term_programs"]

#: What must not be looked into (strings, comments), and what matters between.
_TOKEN: Final = re.compile(
    r"""(?P<skip>
          [bB]?[rR][bB]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
        | \"{3}(?:\\.|.)*?\"{3} | '{3}(?:\\.|.)*?'{3}
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
        | `[^`\n]*`
        | //[^\n]*
        )
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<open>[(\[{]) | (?P<close>[)\]}])
      | (?P<operator>&&|\|\||\?)
      | .""",
    re.VERBOSE | re.DOTALL,
)


def conjuncts(expression: str) -> tuple[str, ...]:
    """The terms of the outermost `&&` of a well-formed expression, parentheses around terms taken apart as well.

    An expression that is no conjunction is its own only term.
    """
    return tuple(_split(expression.strip()))


def _split(expression: str) -> Iterator[str]:
    depth = 0
    cuts: list[int] = []
    last_open = enclosed_until = -1
    for token in _TOKEN.finditer(expression):
        if token["open"]:
            if depth == 0:
                last_open = token.start()
            depth += 1
        elif token["close"]:
            depth -= 1
            if depth == 0 and last_open == 0 and expression[0] == "(":
                enclosed_until = token.end()
        elif token["operator"] and depth == 0:
            if token["operator"] == "&&":
                cuts.append(token.start())
            elif not (token["operator"] == "?" and expression[token.start() - 1 : token.start()] == "."):
                # `||` and `? :` bind less than `&&`, so what stands at their sides is no term of the whole.
                yield expression
                return
    if not cuts:
        if enclosed_until == len(expression):
            yield from _split(expression[1:-1].strip())
        else:
            yield expression
        return
    start = 0
    for cut in (*cuts, len(expression)):
        yield from _split(expression[start:cut].strip())
        start = cut + 2


@lru_cache(maxsize=4096)
def term_programs(expression: str, list_attributes: bool) -> tuple[tuple[str, Program], ...]:
    """Each term with its program; empty where the expression is no conjunction, or a term alone does not compile."""
    terms = conjuncts(expression)
    if len(terms) < 2:
        return ()
    try:
        return tuple((term, compile_selector(term, list_attributes=list_attributes)) for term in terms)
    except CelError:
        return ()
