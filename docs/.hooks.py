"""Fills the reference page with all that the package exports, so that a new export needs no new line there."""

from __future__ import annotations

from typing import Any

from dra_alloc import _EXPORTS

#: Stands in reference/index.md where the exports go.
PLACE = "<!-- all exports -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return markdown.replace(PLACE, "\n\n".join(f"::: {module}.{name}" for name, module in sorted(_EXPORTS.items())))
