"""An explanation in a notebook."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from dra_alloc.explain._text import lines

if TYPE_CHECKING:
    from dra_alloc.explain.model import Explanation

__all__ = ["render"]

_COLOURS = {"good": "#1a7f37", "bad": "#b42318"}


def render(found: Explanation) -> str:
    """The text, with the details of each node folded away where there are many."""
    said = list(lines(found))
    parts = []
    for blank, block in groupby(said, key=lambda line: not line.text):
        if not blank:
            parts.append("".join(_line(line.text, line.indent, line.style) for line in block))
    head, *examples = parts
    folded = "".join(f"<details><summary>example</summary>{part}</details>" for part in examples)
    return f'<div class="dra-explanation">{head}{folded}</div>'


def _line(text: str, indent: int, style: str) -> str:
    colour = f"color:{_COLOURS[style]};font-weight:600;" if style in _COLOURS else ""
    weight = "font-weight:600;" if style == "head" else "opacity:.75;" if style == "dim" else ""
    return f'<div style="margin-left:{2 * indent}ch;white-space:pre-wrap;{colour}{weight}">{escape(text)}</div>'
