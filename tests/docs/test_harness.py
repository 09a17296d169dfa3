"""The harness that runs the pages finds what it must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import console, pages
from tests.docs.pages import Block
from tests.docs.update import updated


def page_of(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> pages.Page:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return pages.read_page(path)


def test_blocks_have_language_first_line_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(
        tmp_path, "Text\n\n```python title='x'\na = 1\n```\n\n- item\n\n  ```console\n  $ true\n  ```\n", monkeypatch
    )
    assert page.blocks == [Block("python", 4, "a = 1\n"), Block("console", 10, "$ true\n")]


def test_a_longer_fence_holds_a_shorter_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(tmp_path, "````md\n```python\n1/0\n```\n````\n", monkeypatch)
    assert page.blocks == [Block("md", 2, "```python\n1/0\n```\n")]


def test_an_open_block_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"page\.md:1: the code block is never closed"):
        page_of(tmp_path, "```python\na = 1\n", monkeypatch)


def test_links_and_anchors_outside_of_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(
        tmp_path,
        "# The `big` one\n## Again\n## Again\n## Named {#here}\n[a](b.md#c) `[no](no.md)` ![p](q.png)\n\n[r]: s.md\n"
        "```text\n[no](no.md)\n```\n",
        monkeypatch,
    )
    assert page.anchors == {"the-big-one", "again", "again_1", "here"}
    assert page.links == [(5, "b.md#c"), (5, "q.png"), (7, "s.md")]


def test_steps_join_continued_lines() -> None:
    block = Block("console", 5, "$ echo a \\\n>   b\na b\n$ true\n")
    assert console.steps(block) == [
        console.Step(5, "echo a \\\n  b", ["a b"]),
        console.Step(8, "true", []),
    ]


def test_a_command_prints_both_streams() -> None:
    assert sorted(console.run("echo out; echo err >&2")) == ["err", "out"]


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (["a", "b"], ["a ", "b", ""], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "c"], ["a", "x", "c", "c"], True),
        (["...", "c"], ["x", "d"], False),
        (["..."], [], True),
        ([], [], True),
    ],
)
def test_output_matches(expected: list[str], actual: list[str], same: bool) -> None:
    assert console.matches(expected, actual) is same


def test_update_writes_what_commands_print_and_keeps_what_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(
        tmp_path,
        "# A\n```console\n$ echo new\nold\n$ echo a; echo b\n...\nb\n```\n"
        "- x\n\n  ```console\n  $ printf 'x\\ny\\n'\n  ```\nend\n",
        monkeypatch,
    )
    assert updated(page.path) == (
        "# A\n```console\n$ echo new\nnew\n$ echo a; echo b\n...\nb\n```\n"
        "- x\n\n  ```console\n  $ printf 'x\\ny\\n'\n  x\n  y\n  ```\nend\n"
    )
