"""YAML: the types of JSON and nothing else, anchors and merges, and everything that must be refused."""

from __future__ import annotations

import json
import math
import textwrap
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_alloc.codec.yamltext import MAX_ALIASED, MAX_DEPTH, documents
from dra_alloc.errors import DecodeError


def parse(text: str) -> Any:
    (found,) = documents(textwrap.dedent(text))
    return found[1]


def refused(text: str) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        list(documents(textwrap.dedent(text)))
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        *("0003:00:02.0", "0000:1e:00.0", "12:30:45", "1:20", "2026-01-31", "2001-12-14t21:59:43.10-05:00"),
        *(
            "yes",
            "no",
            "on",
            "off",
            "Yes",
            "NO",
            "y",
            "n",
            "1.0.0",
            "580.126.20",
            "1_000",
            "1,000",
            "0x",
            "0xyz",
            "0o9",
        ),
        *("089", "06a7", "-", "+", ".", "1Gi", "80GB", "1.5Gi", "pci0000:64", "nUll", "tRue", "<<x", "=", "1e", "e3"),
    ],
)
def test_text_stays_text(text: str) -> None:
    assert parse(f"a: {text}" if text not in "-" else f"a: '{text}'") == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0", 0), ("-7", -7), ("+7", 7), ("18446744073709551616", 2**64), ("0x1F", 31), ("0o17", 15), ("0b101", 5)),
        *(("017", 15), ("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("-1e3", -1000.0), ("1e+3", 1000.0), ("8.0", 8.0)),
        *(("true", True), ("True", True), ("FALSE", False), ("null", None), ("~", None), ("Null", None), ("", None)),
        *(("'1'", "1"), ('"true"', "true"), ("''", ""), ("!!str 1", "1"), ("!!int 1", 1), ("!!float 1", 1.0)),
        *(("!!bool true", True), ("!!null null", None), ("! 1", "1"), ("|-\n  x", "x"), (">\n  x\n  y", "x y\n")),
    ],
)
def test_plain_scalars_are_those_of_json(text: str, value: object) -> None:
    found = parse(f"a: {text}\n")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_keys_are_text() -> None:
    assert parse("{1: a, true: b, 2026-01-31: c, ~: d, 0x10: e}") == {
        "1": "a",
        "true": "b",
        "2026-01-31": "c",
        "~": "d",
        "0x10": "e",
    }


def test_documents_have_lines_and_empty_ones_are_left_out() -> None:
    text = "# comment\n---\n---\na: 1\n...\n---\n# nothing\n---\nb: 2\n"
    assert list(documents(text)) == [(3, {"a": 1}), (8, {"b": 2})]
    assert list(documents("")) == []


def test_prompt_lines_separate_documents() -> None:
    text = "$ kubectl get a -o yaml\na: 1\n$ kubectl get b -o yaml\nb:\n  c: $ not a prompt\n"
    assert [value for _, value in documents(text)] == [{"a": 1}, {"b": {"c": "$ not a prompt"}}]


def test_anchors_and_merge_keys() -> None:
    found = parse(
        """
        base: &base {a: 1, b: 2}
        other: &other {b: 3, c: 4}
        one: {<<: *base, b: 9}
        many: {a: 7, <<: [*base, *other]}
        same: *base
        list: &list [1, 2]
        again: *list
        quoted: {"<<": 1}
        scalar: &x text
        copy: *x
        *x : key
        """
    )
    assert found["one"] == {"a": 1, "b": 9}
    assert found["many"] == {"a": 7, "b": 2, "c": 4}
    assert found["same"] == {"a": 1, "b": 2}
    assert found["again"] == [1, 2]
    assert found["quoted"] == {"<<": 1}
    assert found["copy"] == "text"
    assert found["text"] == "key"


def test_keys_given_twice_are_refused_with_their_line() -> None:
    error = refused("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert error.path == "line 5"
    assert "'c' is given twice" in error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "no valid YAML"),
        ("a: b: c", "no valid YAML"),
        ("a: \t- x", "no valid YAML"),
        ("a: \x00", "no valid YAML"),
        ("a: *nowhere", "no anchor"),
        ("a: &a [*a]", "inside of its own anchor"),
        ("a: &a {b: *a}", "inside of its own anchor"),
        ("? [1, 2]\n: x", "where a key belongs"),
        ("a: {{.Index}}", "where a key belongs"),
        ("? {a: 1}\n: x", "where a key belongs"),
        ("<<: 1", "merges objects only"),
        ("<<: [1]", "merges objects only"),
        ("a: !!python/object:os.system x", "no meaning in JSON"),
        ("a: !!binary aGk=", "no meaning in JSON"),
        ("a: !!set {x}", "no meaning in JSON"),
        ("a: !!timestamp 2026-01-31", "no meaning in JSON"),
        ("a: !!int x", "not of type int"),
        ("a: !!float true", "not of type float"),
        ("a: !!bool 1", "not of type bool"),
        ("a: .inf", "no JSON form"),
        ("a: -.INF", "no JSON form"),
        ("a: .NaN", "no JSON form"),
        ("a: 1e999", "no JSON form"),
        (f"a: {'9' * 5000}", "5000 digits"),
        ("&a a: 1\n*a : 2", "given twice"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    error = refused(text)
    assert message in error.message
    assert error.path.startswith("line ")


def test_half_characters_are_refused() -> None:
    assert "surrogates" in refused("a: \ud800").message


def test_excerpts_get_a_hint() -> None:
    assert "write out what it stands for" in refused("kind: A\n...\nspec: 1\n").hint


def test_nesting_is_bounded() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    assert "maximum nesting depth" in refused("[" * 100_000).message
    assert "nested deeper" in refused("[" * (MAX_DEPTH + 1)).message
    assert "nested deeper" in refused("\n".join(" " * level + "a:" for level in range(500))).message


def test_aliases_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    assert str(MAX_ALIASED) in refused("\n".join(lines)).message


#: JSON writes some characters that YAML does not have in ways of its own; files that start like JSON are read as JSON.
_TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x24F, exclude_categories=["Cc"]), max_size=10)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(_JSON.filter(lambda value: value is not None))
def test_reads_what_others_write(value: object) -> None:
    assert [found for _, found in documents(json.dumps(value))] == [value]
    assert [found for _, found in documents(yaml.safe_dump(value, allow_unicode=False))] == [value]


@given(st.text(st.sampled_from("ab01.:-[]{}&*<!|>'\"#,? \n\t~$"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = list(documents(text))
    except DecodeError:
        return
    assert all(_is_json(value) for _, value in found)


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _is_json(entry) for key, entry in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))
