"""Quantities: what parses, to which exact amount, and how it is written back."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_alloc.api import Quantity, QuantityFormat
from dra_alloc.errors import DecodeError

N = 10**9


@pytest.mark.parametrize(
    ("text", "nano", "canonical"),
    [
        ("0", 0, "0"),
        ("-0", 0, "0"),
        ("1", N, "1"),
        ("+5", 5 * N, "5"),
        ("-3", -3 * N, "-3"),
        ("1.", N, "1"),
        (".5", N // 2, "500m"),
        ("-.5", -N // 2, "-500m"),
        ("007", 7 * N, "7"),
        ("1n", 1, "1n"),
        ("5u", 5000, "5u"),
        ("1500m", 3 * N // 2, "1500m"),
        ("1k", 1000 * N, "1k"),
        ("1500", 1500 * N, "1500"),
        ("1.5k", 1500 * N, "1500"),
        ("12M", 12 * 10**6 * N, "12M"),
        ("1000M", 10**9 * N, "1G"),
        ("3T", 3 * 10**12 * N, "3T"),
        ("3P", 3 * 10**15 * N, "3P"),
        ("9E", 9 * 10**18 * N, "9E"),
        ("10000E", 10**22 * N, "10000E"),
        ("1Ki", 1024 * N, "1Ki"),
        ("1.5Gi", 3 * 2**29 * N, "1536Mi"),
        ("80Gi", 80 * 2**30 * N, "80Gi"),
        ("1048576Ki", 2**30 * N, "1Gi"),
        ("7Ei", 7 * 2**60 * N, "7Ei"),
        ("1e3", 1000 * N, "1e3"),
        ("1E3", 1000 * N, "1e3"),
        ("100e-1", 10 * N, "10"),
        ("1e+2", 100 * N, "100"),
        ("1e25", 10**25 * N, "10e24"),
        ("5e-3", 5 * 10**6, "5e-3"),
    ],
)
def test_parses_exactly_and_writes_canonically(text: str, nano: int, canonical: str) -> None:
    quantity = Quantity.parse(text)
    assert quantity.nano == nano
    assert str(quantity) == canonical
    assert Quantity.parse(canonical) == quantity


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1.5n", 2),
        ("-1.5n", -2),
        ("0.1n", 1),
        ("1e-30", 1),
        ("-1e-30", -1),
        ("1e-99999999", 1),
        ("1.0000000001Ki", 1024 * N + 103),
    ],
)
def test_rounds_away_from_zero_below_a_nano(text: str, nano: int) -> None:
    assert Quantity.parse(text).nano == nano


def test_caps_binary_amounts_but_not_decimal_ones() -> None:
    most = 2**63 - 1
    assert Quantity.parse("9Ei").nano == most * N
    assert Quantity.parse("-9Ei").nano == -most * N
    assert Quantity.parse("8Ei").nano == most * N
    assert str(Quantity.parse("9Ei")) == str(most)
    assert Quantity.parse("8191Pi").nano == 8191 * 2**50 * N
    assert Quantity.parse("10E").nano == 10**19 * N


def test_shows_small_and_broken_binary_amounts_as_decimal() -> None:
    assert str(Quantity.parse("0.5Ki")) == "512"
    assert str(Quantity.parse("0.1Ki")) == "102400m"
    assert str(Quantity.parse("1.3Ki")) == "1331200m"
    assert Quantity.parse("0.0001Ki").format is QuantityFormat.DECIMAL_SI


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", " 1", "1 ", "1 Gi", "1K", "1ki", "1mi", "1i", "k", "Gi", ".", "-", "+", "e3", "1e", "1ee3", "1e3k"),
        *("1e3.5", "1Gi5", "0x10", "1_000", "1,5", "--1", "+-1", "1.2.3", "NaN", "inf", "١", "1\n", "80GB"),
    ],
)
def test_refuses_what_is_no_quantity_with_its_text(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Quantity.parse(text)
    assert repr(text) in caught.value.message
    assert "suffix" in caught.value.hint


@pytest.mark.parametrize("text", ["1e999999999", "1e" + "9" * 500, "9" * 1001, "1e1001"])
def test_refuses_amounts_that_would_fill_the_memory(text: str) -> None:
    with pytest.raises(DecodeError):
        Quantity.parse(text)


def test_holds_a_thousand_digits() -> None:
    assert Quantity.parse("9" * 1000).nano == int("9" * 1000) * N
    assert Quantity.parse(str(Quantity.parse("9e990"))) == Quantity.parse("9e990")


def test_reads_json_numbers_as_their_text() -> None:
    assert Quantity.parse(8) == Quantity.parse("8")
    assert Quantity.parse(0.1) == Quantity.parse("0.1")
    assert Quantity.parse(1e16) == Quantity.parse("1e16")


@pytest.mark.parametrize("value", [True, None, float("nan"), float("inf"), 1e30, ["1"], {"value": "1"}, b"1"])
def test_refuses_other_types(value: object) -> None:
    with pytest.raises(DecodeError):
        Quantity.parse(value)  # type: ignore[arg-type]


def test_is_equal_and_ordered_by_amount() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1.024e3")
    assert hash(Quantity.parse("1Ki")) == hash(Quantity.parse("1024"))
    assert Quantity.parse("1Ki") != Quantity.parse("1k")
    ordered = ["-1", "0", "1n", "999m", "1", "1k", "1Ki", "1Gi", "10E"]
    assert sorted(map(Quantity.parse, reversed(ordered))) == [Quantity.parse(text) for text in ordered]


def test_keeps_its_format() -> None:
    assert str(Quantity.parse("1Gi").with_nano(2**31 * N)) == "2Gi"
    assert repr(Quantity.parse("1.5Gi")) == "Quantity('1536Mi')"
    assert pickle.loads(pickle.dumps(Quantity.parse("1Gi"))).format is QuantityFormat.BINARY_SI


@given(st.integers(-(10**40), 10**40), st.sampled_from(QuantityFormat))
def test_text_gives_back_every_amount(nano: int, form: QuantityFormat) -> None:
    if form is QuantityFormat.BINARY_SI and abs(nano) > (2**63 - 1) * N:
        form = QuantityFormat.DECIMAL_SI
    quantity = Quantity(nano, form)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@given(st.integers(0, 10**25), st.integers(0, 12), st.sampled_from(sorted(_POWERS)), st.sampled_from(["", "-", "+"]))
def test_agrees_with_fractions(digits: int, places: int, suffix: str, sign: str) -> None:
    text = str(digits).rjust(places + 1, "0")
    text = f"{text[: len(text) - places]}.{text[len(text) - places :]}{suffix}"
    exact = Fraction(digits, 10**places) * Fraction(10) ** _POWERS[suffix] * N
    up = -(-exact.numerator // exact.denominator)
    assert Quantity.parse(sign + text).nano == (-up if sign == "-" else up)
