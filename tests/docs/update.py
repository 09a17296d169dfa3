"""`python -m tests.docs.update PAGE…`: write into the console blocks of pages what their commands print now.

A command whose shown output has a line `...` keeps it, since somebody chose what to show. Read the diff before it is
committed: what is printed need not be right.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs import console
from tests.docs.pages import read_page

__all__ = ["updated"]


def updated(path: Path) -> str:
    """The text of the page with the output of each command as it is now."""
    lines = path.read_text(encoding="utf-8").splitlines()
    blocks = [block for block in read_page(path).blocks if block.language == "console"]
    for block in reversed(blocks):
        text: list[str] = []
        for step in console.steps(block):
            text += ["$ " + step.command]
            text += step.expected if "..." in step.expected else [line.rstrip() for line in console.run(step.command)]
        first = block.line - 1
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())] if lines[first] else ""
        shown = [(indent + line).rstrip() for line in "\n".join(text).split("\n")]
        lines[first : first + block.text.count("\n")] = shown
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        page.write_text(updated(page), encoding="utf-8")
