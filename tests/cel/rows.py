"""Expressions with what they come to, from `tests/data/cel`: one a line."""

from __future__ import annotations

from pathlib import Path


def _lines(name: str) -> tuple[str, ...]:
    text = (Path(__file__).parents[1] / "data" / "cel" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.split("\n") if line and not line.startswith("#"))


TRUE, ERRORS = _lines("true"), _lines("errors")
REFUSED = (*_lines("refused"), "", "'a\nb' == ''")
