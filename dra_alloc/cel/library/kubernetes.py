"""Quantities and versions."""

from __future__ import annotations

from dra_alloc.cel.library.registry import implements
from dra_alloc.cel.values import INT_MAX, INT_MIN, Fault, Quantity, Semver, Sum
from dra_alloc.errors import DecodeError

_NANO = 10**9


@implements("string_to_quantity")
def quantity(text: str) -> Quantity:
    """`quantity("1.5Gi")`."""
    try:
        return Quantity.parse(text)
    except DecodeError as error:
        raise Fault(str(error)) from None


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
    """`quantity.isInteger()`: a whole number in 64 bits."""
    return not value.nano % _NANO and INT_MIN <= value.nano // _NANO <= INT_MAX


@implements("quantity_get_int")
def as_integer(value: Quantity) -> int:
    """`quantity.asInteger()`: an error unless it is a whole number in 64 bits."""
    if not is_integer(value):
        raise Fault("cannot convert value to integer")
    return value.nano // _NANO


@implements("quantity_add")
def add(one: Quantity, other: Quantity) -> Quantity:
    """`one.add(other)`."""
    return Sum(one.nano + other.nano, one.format)


@implements("quantity_add_int")
def add_int(one: Quantity, other: int) -> Quantity:
    """`one.add(1)`."""
    return Sum(one.nano + other * _NANO, one.format)


@implements("quantity_sub")
def subtract(one: Quantity, other: Quantity) -> Quantity:
    """`one.sub(other)`."""
    return Sum(one.nano - other.nano, one.format)


@implements("quantity_sub_int")
def subtract_int(one: Quantity, other: int) -> Quantity:
    """`one.sub(1)`."""
    return Sum(one.nano - other * _NANO, one.format)


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
