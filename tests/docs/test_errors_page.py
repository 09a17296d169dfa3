"""The page about errors tells of every exception, and of every kind of allocation error that the package raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from dra_alloc import errors
from dra_alloc.explain import REASONS
from tests.docs.pages import ROOT, read_page

PAGE = ROOT / "docs" / "errors.md"
ANCHORS = read_page(PAGE).anchors

#: Calls whose first argument is a kind.
_MAKERS = {"AllocationError", "error"}


def raised() -> Iterator[str]:
    """The kinds in the source: first arguments, written out, of what makes an AllocationError."""
    for path in sorted((ROOT / "dra_alloc").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name)):
                continue
            kind = node.args[0]
            if node.func.id in _MAKERS and isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                yield kind.value


KINDS = sorted(set(raised()))


def test_kinds_are_found() -> None:
    assert {"cel", "class-not-found", "unsupported", "node-resources"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_section_and_stands_with_the_exception(kind: str) -> None:
    assert kind in ANCHORS
    assert f"`{kind}`" in (errors.AllocationError.__doc__ or "")


@pytest.mark.parametrize("name", errors.__all__)
def test_each_exception_has_a_section(name: str) -> None:
    assert name.lower() in ANCHORS


def test_each_error_that_an_explanation_names_has_a_section() -> None:
    codes = {code for code, reason in REASONS.items() if reason.scope == "error"}
    of_other_exceptions = {"budget-exceeded", "pod-claims"}
    assert codes - of_other_exceptions <= ANCHORS
