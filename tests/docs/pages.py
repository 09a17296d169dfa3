"""Reading Markdown pages: their fenced code blocks, headings and links."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from markdown.extensions.toc import slugify, unique

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>[^`]*)$")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?)(?: +\{#(?P<id>[\w-]+)\})? *#*$")
_LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target><[^>]*>|[^()\s]+)(?: +\"[^\"]*\")?\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]: +(?P<target>\S+)")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced code block. `line` is the 1-based line of its first line of code."""

    language: str
    line: int
    text: str


@dataclass
class Page:
    """One Markdown page."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    links: list[tuple[int, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def read_page(path: Path) -> Page:
    """The blocks, anchors and links of a page. A fence that is never closed is an error."""
    page = Page(path)
    opened: tuple[str, str, int, int] | None = None
    body: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is not None:
            mark, language, first, indent = opened
            if fence and fence["fence"].startswith(mark) and not fence["info"].strip():
                page.blocks.append(Block(language, first, "\n".join(body) + "\n"))
                opened, body = None, []
            else:
                body.append(line[indent:] if not line[:indent].strip() else line)
        elif fence:
            words = fence["info"].split()
            opened = (fence["fence"], words[0] if words else "", number + 1, len(fence["indent"]))
        else:
            _read_text(page, number, line)
    if opened is not None:
        raise ValueError(f"{page.name}:{opened[2] - 1}: the code block is never closed")
    return page


def _read_text(page: Page, number: int, line: str) -> None:
    if heading := _HEADING.match(line):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).replace("`", "")
        page.anchors.add(heading["id"] or unique(slugify(plain, "-"), page.anchors))
    prose = _CODE_SPAN.sub("", line)
    for match in [*_LINK.finditer(prose), *_REFERENCE.finditer(prose)]:
        page.links.append((number, match["target"].strip("<>")))


def all_pages() -> list[Path]:
    """The pages at the root of the project and all under docs/."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
