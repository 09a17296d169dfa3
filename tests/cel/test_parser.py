"""Syntax: precedence, literals, macros, places of faults, limits, and the grammar that is derived from cel-python's."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from dra_alloc.cel import CelError, compile_selector, grammar
from tests.cel.devices import verdict


@pytest.mark.parametrize(
    "expression",
    [
        "1 + 2 * 3 - 4 / 2 == 5",
        "!true || true",
        "true || false && false",
        "(true || false) && !false",
        "false ? 1 == 2 : 1 == 1",
        "true ? true : false ? false : false",
        "1 < 2 == true",
        "-1 + 2 == 1",
        "--1 == 1",
        "!!true",
        "- 1 == -1",
        "1 - -1 == 2",
        "1-1 == 0",
        "2 * -3 == -6",
        "[1, 2,] == [1, 2]",
        '{"a": 1,} == {"a": 1}',
        "\n true // the end\n",
        "true// the end",
        "\ttrue\r\n",
        "device .driver == device. driver",
        '.device.driver == "gpu.example.com"',
        "[1, 2][0] == 1",
        "{1: {2: 3}}[1][2] == 3",
        '{"a": {"b": 3}}.a.b == 3',
        "size([1]) == 1 && [1].size() == 1",
        "1 in [1] == true",
        "r'a\\b' == 'a\\\\b'",
        "R'a' == 'a' && b'a' == B'a' && br'\\n' == b'\\\\n'",
        "'''a\nb''' == 'a\\nb'",
        "'\\a\\b\\f\\n\\r\\t\\v\\\\\\'\\\"\\`\\?' != ''",
        "'\\xe9' == 'é' && b'\\xe9' != b'é'",
        "{'in': 1}['in'] == 1",
        "1e2 == 100.0 && 1.5E-1 == 0.15 && 1E+2 == 100.0",
        "0x10u == 16u",
        "{?'a': optional.of(1)} == {'a': 1}",
    ],
)
def test_syntax(expression: str) -> None:
    assert verdict(expression) is True


@pytest.mark.parametrize(
    ("expression", "line", "column"),
    [
        ("true &&", 1, 8),
        ("1 == 2 )", 1, 8),
        ("nope == 1", 1, 1),
        ("true && nope", 1, 9),
        ("true &&\n  device.nope", 2, 9),
        ("true &&\n  1 == 'a'", 2, 5),
        ("1 == 1 && 'é' == 1", 1, 15),
        ("true && 'abc", 1, 9),
        ("[1, 2].all(x.y, true)", 1, 13),
        ("9223372036854775808 == 1", 1, 1),
        ("true && '\\q' == ''", 1, 9),
    ],
)
def test_faults_have_a_place(expression: str, line: int, column: int) -> None:
    with pytest.raises(CelError) as caught:
        compile_selector(expression)
    error = caught.value
    assert error.offset is not None
    before = expression[: error.offset]
    assert (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1) == (line, column)
    assert str(error).startswith(f"{line}:{column}: ")


def test_a_fault_is_shown_with_a_caret() -> None:
    with pytest.raises(CelError) as caught:
        compile_selector("true && nope")
    lines = str(caught.value).splitlines()
    assert lines[1].endswith("true && nope")
    assert lines[2].index("^") == lines[1].index("nope")


@pytest.mark.parametrize(
    "word", ["as", "break", "const", "for", "if", "import", "let", "loop", "package", "void", "while"]
)
def test_reserved_words_are_no_names(word: str) -> None:
    assert verdict(f"{word} == 1") == "compile-error"
    assert verdict(f"[1].all({word}, true)") == "compile-error"


def test_ten_kibibytes_are_the_most() -> None:
    assert compile_selector("true" + " " * (10 * 1024 - 4)) is not None
    with pytest.raises(CelError, match="10241 bytes"):
        compile_selector("true" + " " * (10 * 1024 - 3))
    # Bytes are counted, not characters.
    with pytest.raises(CelError, match="bytes"):
        compile_selector(f"'{'é' * 5200}' == ''")


# The grammar --------------------------------------------------------------------------------------------------------


def test_another_grammar_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = grammar.grammar_text()
    assert "optional_expr" in text
    (tmp_path / "cel.lark").write_text("expr : IDENT\n")
    spec = ModuleSpec("celpy", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(grammar, "find_spec", lambda package: spec)
    with pytest.raises(RuntimeError, match="not the expected one"):
        grammar.grammar_text()
    monkeypatch.setattr(grammar, "find_spec", lambda package: None)
    with pytest.raises(RuntimeError, match="not installed"):
        grammar.grammar_text()


def test_nothing_heavy_is_imported_before_the_first_expression() -> None:
    code = (
        "import sys, dra_alloc.cel; "
        "heavy = {'lark', 'celpy', 're2', 'zoneinfo'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "dra_alloc.cel.compile_selector('true'); assert 'lark' in sys.modules and 'celpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_of_the_package_are_errors() -> None:
    import dra_alloc.cel

    with pytest.raises(AttributeError, match="nope"):
        _ = dra_alloc.cel.nope
