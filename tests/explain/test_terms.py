"""Taking conjunctions apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_alloc import api
from dra_alloc.cel import compile_selector, device_env
from dra_alloc.explain._terms import conjuncts, term_programs
from dra_alloc.explain._values import attribute_text

TERMS = (
    'device.driver == "d.example.com"',
    'device.attributes["d.example.com"].a == "x && y"',
    "has(device.attributes['d.example.com'].b)",
    'device.attributes["d.example.com"].n > 3',
    '(device.driver == "other" || device.attributes["d.example.com"].n == 4)',
    '[1, 2].exists(i, i == 2 && device.driver.startsWith("d"))',
    'device.attributes["d.example.com"].?b.orValue("none") == "none"',
    'r"\\" == "\\\\"',
)


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        ("a && b", ("a", "b")),
        ("a&&b&&c", ("a", "b", "c")),
        ("(a && b) && c", ("a", "b", "c")),
        ("(a && (b))", ("a", "b")),
        ("a || b && c", ("a || b && c",)),
        ("(a || b) && c", ("a || b", "c")),
        ("a && b ? c : d", ("a && b ? c : d",)),
        ("x.?a.orValue(1) == 1 && b", ("x.?a.orValue(1) == 1", "b")),
        ("x[?'a'] == 1 && b", ("x[?'a'] == 1", "b")),
        ("'a && b' == c && d", ("'a && b' == c", "d")),
        ('"\\"&&" == c && d', ('"\\"&&" == c', "d")),
        ("r'\\' == c && d", ("r'\\' == c", "d")),
        ('"""a " && b""" == c && d', ('"""a " && b""" == c', "d")),
        ("a // x && y\n && b", ("a // x && y", "b")),
        ("(a) && (b)", ("a", "b")),
        ("f(a && b)", ("f(a && b)",)),
    ],
)
def test_terms_of_an_expression(expression: str, terms: tuple[str, ...]) -> None:
    assert conjuncts(expression) == terms


@given(st.lists(st.sampled_from(TERMS), min_size=2, max_size=5), st.integers(0, 6), st.booleans())
def test_all_terms_hold_exactly_when_the_whole_does(terms: list[str], number: int, present: bool) -> None:
    attributes = {"n": api.DeviceAttribute(int=number), "a": api.DeviceAttribute(string="x && y")}
    if present:
        attributes["b"] = api.DeviceAttribute(string="none")
    env = device_env("d.example.com", api.Device(name="d", attributes=attributes))
    expression = " && ".join(terms)
    programs = term_programs(expression, True)
    assert len(programs) == len(terms)
    assert all(program.evaluate(env) for _, program in programs) == compile_selector(expression).evaluate(env)


def test_what_is_no_conjunction_has_no_terms() -> None:
    assert term_programs('device.driver == "d"', True) == ()
    assert term_programs("a.b && 1", True) == ()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("attributes['d.example.com'].a == 'x'", 'a is "x"'),
        ("attributes['d.example.com'].b == 'x'", "b is not there"),
        ("attributes['d.example.org'].a == 'x'", "d.example.org/a is not there, d.example.com/a is"),
        (
            "attributes['d.example.com'].numaNode == 0",
            "d.example.com/numaNode is not there, resource.kubernetes.io/numaNode is",
        ),
        (
            "capacity['d.example.org'].memory == quantity('1')",
            "d.example.org/memory is not there, d.example.com/memory is",
        ),
    ],
)
def test_what_a_device_lacks_may_be_there_in_another_domain(expression: str, text: str) -> None:
    device = api.Device(
        name="d",
        attributes={
            "a": api.DeviceAttribute(string="x"),
            "resource.kubernetes.io/numaNode": api.DeviceAttribute(int=0),
        },
        capacity={"memory": api.DeviceCapacity(value=api.Quantity.parse("1"))},
    )
    assert attribute_text(device, "d.example.com", f"device.{expression}") == text
