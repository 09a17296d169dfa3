"""YAML that is written is read back as the same values, by every reader."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_alloc.api import Node, ObjectMeta
from dra_alloc.codec import dump_yaml
from dra_alloc.codec.yamltext import documents


def read(text: str) -> list[Any]:
    return [value for _, value in documents(text)]


@pytest.mark.parametrize(
    "text",
    [
        *("1e3", "12e5", "1e+3", "+.5e3", "1.e5", "0o17", "0O7", "0b1", "0x1F", "089", "017", "1_000", "1_0.5e1", ".5"),
        *(
            "0003:00:02.0",
            "1:20",
            "2026-01-31",
            "yes",
            "No",
            "on",
            "y",
            "N",
            "true",
            "null",
            "~",
            "",
            "=",
            "<<",
            ".inf",
        ),
        *(".NaN", "{{x}}", "a: b", "- a", "# a", "*a", "&a", "!a", "%a", "@a", "`a", " a", "a ", "...", "---", "5."),
    ],
)
def test_text_that_looks_like_something_else_is_in_quotes(text: str) -> None:
    written = dump_yaml({"a": text})
    assert written == f"a: '{text}'\n"
    assert read(written) == [{"a": text}]
    assert yaml.safe_load(written) == {"a": text}


@pytest.mark.parametrize(
    "text", ["80Gi", "1.0.0", "gpu-0", "pci0000:64", "a b", "device.driver == 'x'", "$ x", "1Ki", "06a7"]
)
def test_other_text_is_plain(text: str) -> None:
    assert dump_yaml({"a": text}) == f"a: {text}\n"


def test_several_lines_are_a_block() -> None:
    text = "a &&\n  b == quantity('1Gi')"
    assert dump_yaml({"expression": text}) == "expression: |-\n  a &&\n    b == quantity('1Gi')\n"
    assert read(dump_yaml({"expression": text})) == [{"expression": text}]


def test_keeps_order_and_writes_equal_objects_in_full() -> None:
    shared = {"x": 1}
    assert dump_yaml({"b": shared, "a": [shared]}) == "b:\n  x: 1\na:\n- x: 1\n"
    assert dump_yaml({"b": shared}, {"c": [1, 2]}, compact=True) == "b: {x: 1}\n---\nc: [1, 2]\n"


_TEXT = st.text(max_size=12) | st.text(st.sampled_from("01289eE+-._:xobynYN~ \n\t|>"), max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_TEXT, _JSON, max_size=3), st.booleans(), st.integers(10, 200))
def test_everything_comes_back(value: dict[str, Any], compact: bool, width: int) -> None:
    written = dump_yaml(value, width=width, compact=compact)
    assert read(written) == [value]
    assert yaml.safe_load(written) == value


def test_writes_objects_of_the_api() -> None:
    node = Node(metadata=ObjectMeta(name="0x1"))
    assert read(dump_yaml(node, node.to_dict())) == [node.to_dict()] * 2


def test_refuses_what_json_does_not_have() -> None:
    with pytest.raises(TypeError, match="object cannot be written as YAML; give API objects, or JSON values"):
        dump_yaml({"a": object()})
