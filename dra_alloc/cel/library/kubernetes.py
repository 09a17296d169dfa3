"""Quantities and versions."""

from __future__ import annotations

import re
from functools import lru_cache

from dra_alloc.api.quantity import QuantityFormat
from dra_alloc.cel.library.registry import implements
from dra_alloc.cel.values import INT_MAX, INT_MIN, Amount, Fault, Quantity, Semver, Sum
from dra_alloc.errors import DecodeError

_NANO = 10**9

_SHAPE = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, None: 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=4096)
def _scale_of(text: str) -> int | None:
    """The scale with which the reference holds a quantity of this spelling, None for an arbitrary decimal.

    Short numbers are held as a 64 bit int times a power of ten. Amounts with a binary suffix are so only if they are
    small and whole: `100Ti` is not, and so never an integer.
    """
    shape = _SHAPE.fullmatch(text)
    assert shape is not None
    whole, fraction, suffix = shape[1] or "0", shape[2] or "", shape[3]
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        fits = not fraction and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0
        return 0 if fits and int(whole) << exponent <= INT_MAX else None
    scale = (int(shape[4]) if shape[4] else _DECIMAL[suffix]) - len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


def _scale(value: Quantity) -> int | None:
    return value.scale if isinstance(value, Amount) else _scale_of(str(value))


def _fits(number: int) -> bool:
    return INT_MIN <= number <= INT_MAX


@implements("string_to_quantity")
def quantity(text: str) -> Quantity:
    """`quantity("1.5Gi")`."""
    try:
        parsed = Quantity.parse(text)
    except DecodeError as error:
        raise Fault(str(error)) from None
    return Amount.of(parsed.nano, parsed.format, _scale_of(text))


@implements("is_quantity_string")
def is_quantity(text: str) -> bool:
    """`isQuantity(text)`."""
    try:
        Quantity.parse(text)
    except DecodeError:
        return False
    return True


@implements("quantity_sign")
def sign(value: Quantity) -> int:
    """`sign(quantity)`: -1, 0 or 1."""
    return (value.nano > 0) - (value.nano < 0)


@implements("quantity_is_greater_than")
def is_greater(one: Quantity, other: Quantity) -> bool:
    """`one.isGreaterThan(other)`."""
    return one.nano > other.nano


@implements("quantity_is_less_than")
def is_less(one: Quantity, other: Quantity) -> bool:
    """`one.isLessThan(other)`."""
    return one.nano < other.nano


@implements("quantity_compare_to")
def compare_to(one: Quantity, other: Quantity) -> int:
    """`one.compareTo(other)`: -1, 0 or 1."""
    return (one.nano > other.nano) - (one.nano < other.nano)


@implements("quantity_get_float")
def as_float(value: Quantity) -> float:
    """`quantity.asApproximateFloat()`."""
    try:
        return value.nano / _NANO
    except OverflowError:
        return float("inf") if value.nano > 0 else float("-inf")


@implements("quantity_is_integer")
def is_integer(value: Quantity) -> bool:
    """`quantity.isInteger()`: whole, in 64 bits, and held as an integer: `1000m` and `100Ti` are not."""
    scale = _scale(value)
    return scale is not None and scale >= 0 and _fits(value.nano // _NANO)


@implements("quantity_get_int")
def as_integer(value: Quantity) -> int:
    """`quantity.asInteger()`: an error unless it is a whole number in 64 bits."""
    if not is_integer(value):
        raise Fault("cannot convert value to integer")
    return value.nano // _NANO


def _sum(one: Quantity, other: Quantity, sign: int) -> Quantity:
    total = one.nano + sign * other.nano
    form = one.format if one.nano else other.format
    first, second = _scale(one), _scale(other)
    scale = None if first is None or second is None else min(first, second)
    if scale is not None and not other.nano:
        scale = first
    elif scale is not None and not one.nano:
        scale = second
    elif scale is not None and not all(_fits(nano // int(10 ** (9 + scale))) for nano in (one.nano, other.nano, total)):
        scale = None
    return Sum.of(total, form, scale)


def _whole(number: int) -> Quantity:
    return Amount.of(number * _NANO, QuantityFormat.DECIMAL_EXPONENT, 0)


@implements("quantity_add")
def add(one: Quantity, other: Quantity) -> Quantity:
    """`one.add(other)`."""
    return _sum(one, other, 1)


@implements("quantity_add_int")
def add_int(one: Quantity, other: int) -> Quantity:
    """`one.add(1)`."""
    return _sum(one, _whole(other), 1)


@implements("quantity_sub")
def subtract(one: Quantity, other: Quantity) -> Quantity:
    """`one.sub(other)`."""
    return _sum(one, other, -1)


@implements("quantity_sub_int")
def subtract_int(one: Quantity, other: int) -> Quantity:
    """`one.sub(1)`."""
    return _sum(one, _whole(other), -1)


# Versions -----------------------------------------------------------------------------------------------------------


def _normalized(text: str) -> str:
    """A version with what people leave out or put too much: `v1.2` is `1.2.0`, `01` is `1`."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isascii() and stripped[:1].isdigit() else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


@implements("string_to_semver", "string_bool_to_semver")
def semver(text: str, normalize: bool = False) -> Semver:
    """`semver(text, normalize)`."""
    try:
        return Semver.parse(_normalized(text) if normalize else text)
    except ValueError as error:
        raise Fault(str(error)) from None


@implements("is_semver_string", "is_semver_string_bool")
def is_semver(text: str, normalize: bool = False) -> bool:
    """`isSemver(text, normalize)`."""
    try:
        Semver.parse(_normalized(text) if normalize else text)
    except ValueError:
        return False
    return True


@implements("semver_is_greater_than")
def semver_greater(one: Semver, other: Semver) -> bool:
    """`one.isGreaterThan(other)`."""
    return one.precedence > other.precedence


@implements("semver_is_less_than")
def semver_less(one: Semver, other: Semver) -> bool:
    """`one.isLessThan(other)`."""
    return one.precedence < other.precedence


@implements("semver_compare_to")
def semver_compare(one: Semver, other: Semver) -> int:
    """`one.compareTo(other)`: -1, 0 or 1."""
    return (one.precedence > other.precedence) - (one.precedence < other.precedence)


def _signed(number: int) -> int:
    """The number as the 64 bit int that the reference makes of it."""
    return number if number <= INT_MAX else number - 2**64


@implements("semver_major")
def major(value: Semver) -> int:
    """`version.major()`."""
    return _signed(value.major)


@implements("semver_minor")
def minor(value: Semver) -> int:
    """`version.minor()`."""
    return _signed(value.minor)


@implements("semver_patch")
def patch(value: Semver) -> int:
    """`version.patch()`."""
    return _signed(value.patch)
