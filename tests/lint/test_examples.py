"""For every rule an example file, what the linter says about it, and a section of the documentation."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dra_alloc import load
from dra_alloc.cli import main
from dra_alloc.lint import RULES, check
from tests.docs.pages import ROOT, read_page

EXAMPLES = ROOT / "examples" / "lint"
PAGE = read_page(ROOT / "docs" / "lint.md")

#: Rules about features that are off by default.
WITH_ALL_FEATURES = {"derived-attribute-fails", "derived-attribute-shadows"}


def arguments(code: str) -> list[str]:
    features = ["--features", "all"] if code in WITH_ALL_FEATURES else []
    return ["check", *features, "-f", f"examples/lint/{code}.yaml"]


@pytest.mark.parametrize("code", RULES)
def test_the_example_of_a_rule_says_what_is_wrong(
    code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    status = main(arguments(code))
    shown = capsys.readouterr().out
    assert shown == (EXAMPLES / f"{code}.txt").read_text(encoding="utf-8")
    assert f"{RULES[code].severity.value} {code}" in shown
    assert status == (1 if "\n  error " in shown else 0)


def test_there_is_one_example_for_each_rule() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(RULES)
    assert {path.stem for path in EXAMPLES.glob("*.txt")} == set(RULES)


def test_each_rule_has_a_section_of_the_page() -> None:
    assert set(RULES) <= PAGE.anchors


def test_the_page_has_severity_and_title_of_each_rule() -> None:
    text = " ".join(PAGE.path.read_text(encoding="utf-8").split())
    for rule in RULES.values():
        assert f"### {rule.code} *{rule.severity.value}* · {rule.title}" in text


@pytest.mark.parametrize("folder", ["demo"])
def test_examples_that_work_have_no_findings_but_intended_ones(folder: str) -> None:
    paths = sorted(Path(ROOT, "examples", folder).glob("*.yaml"))
    assert [str(finding) for finding in check(load(*paths)) if finding.severity.value == "error"] == []
