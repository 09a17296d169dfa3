"""What the documentation shows is true: its Python and console blocks run, its links lead somewhere.

Each page is one namespace, read from top to bottom, in the project's root folder.
"""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tests.docs import console
from tests.docs.pages import ROOT, Block, Page, all_pages, read_page

PAGES = [read_page(path) for path in all_pages()]


def _named(pages: list[Page]) -> list[object]:
    return [pytest.param(page, id=page.name) for page in pages]


@pytest.mark.parametrize(
    "page", _named([page for page in PAGES if any(block.language in {"python", "console"} for block in page.blocks)])
)
def test_blocks_run_and_show_what_happens(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {"__name__": f"page {page.name}"}
    for block in page.blocks:
        if block.language == "python":
            _execute(page, block, namespace)
        elif block.language == "console":
            _replay(page, block)


def _execute(page: Page, block: Block, namespace: dict[str, object]) -> None:
    # Blank lines before the code make the line numbers of a traceback those of the page.
    source = "\n" * (block.line - 1) + block.text
    exec(compile(source, str(page.path), "exec", dont_inherit=True), namespace)


def _replay(page: Page, block: Block) -> None:
    for step in console.steps(block):
        actual = console.run(step.command)
        if not console.matches(step.expected, actual):
            shown = "\n".join(actual)
            wanted = "\n".join(step.expected)
            pytest.fail(
                f"{page.name}:{step.line}: $ {step.command}\nprints\n{shown}\n\nbut the page says\n{wanted}",
                pytrace=False,
            )


@pytest.mark.parametrize("page", _named(PAGES))
def test_relative_links_lead_somewhere(page: Page) -> None:
    broken = [
        f"{page.name}:{line}: {target}: {fault}" for line, target in page.links if (fault := _fault(page, target))
    ]
    assert not broken, "\n".join(broken)


def _fault(page: Page, target: str) -> str | None:
    if "://" in target or target.startswith("mailto:"):
        return None
    name, _, anchor = target.partition("#")
    path = (page.path.parent / unquote(name)).resolve() if name else page.path
    if not path.is_relative_to(ROOT):
        return "leads out of the project"
    if not path.exists():
        return "no such file"
    if anchor and path.suffix == ".md" and anchor not in read_page(path).anchors:
        return "no such heading"
    return None
