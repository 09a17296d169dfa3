"""`Quantity`: exact amounts as Kubernetes writes them (`1500m`, `1.5Gi`, `3e6`)."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

import attrs

from dra_alloc.errors import DecodeError

__all__ = ["Quantity", "QuantityFormat"]

NANO = 10**9

#: What binary amounts are capped at, as the API does; decimal amounts are not capped.
BINARY_MAX = (2**63 - 1) * NANO

#: Longest text, and most decimal digits before the point, that a quantity may have. The API has no such bound, but
#: a few characters (`1e999999999`) must not be able to fill the memory.
MAX_DIGITS = 1000
_MAX_BITS = (10**MAX_DIGITS).bit_length()

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}

_SYNTAX = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)

_HINT = "a number with an optional suffix n u m k M G T P E or Ki Mi Gi Ti Pi Ei, or an exponent as in 1e3"


class QuantityFormat(Enum):
    """How a quantity was spelled, and is spelled again when written."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@attrs.frozen(order=True, repr=False)
class Quantity:
    """An exact amount: a whole number of nanos, that is 10⁻⁹ of the base unit (`nano=1_500_000_000` is 1.5).

    Equality, order and hash are those of the amount; the format only matters to `str`, which gives the
    canonical spelling.
    """

    nano: int = 0
    format: QuantityFormat = attrs.field(default=QuantityFormat.DECIMAL_SI, eq=False, order=False)

    @classmethod
    def parse(cls, text: str | int | float) -> Quantity:
        """Read a quantity as the API does; numbers count as their JSON text.

        What is finer than a nano is rounded away from zero. An amount with a binary suffix is capped at 2⁶³-1.
        Raises DecodeError with the text for anything else, blanks around the number included.
        """
        if isinstance(text, str):
            if len(text) > MAX_DIGITS:
                raise DecodeError("", f"quantity of {len(text)} characters ({text[:20]!r}…)", _HINT)
            return _parse(text)
        if type(text) is int:
            if text.bit_length() > _MAX_BITS:
                raise DecodeError("", f"number of {text.bit_length()} bits", _HINT)
            return cls(text * NANO)
        if type(text) is float:
            if abs(text) >= 2**63:
                raise DecodeError("", f"number {text!r} is not exact", "write a quantity of this size in quotes")
            return _parse(repr(text))
        raise DecodeError("", f"{text!r} is not a quantity", _HINT)

    def with_nano(self, nano: int) -> Quantity:
        """Another amount in the same format."""
        return Quantity(nano, self.format)

    def __str__(self) -> str:
        """The canonical spelling: the largest suffix that leaves a whole number."""
        if not self.nano:
            return "0"
        # Below one Ki, and for amounts that are not whole, the API shows binary amounts as decimal ones.
        if self.format is QuantityFormat.BINARY_SI and abs(self.nano) >= 1024 * NANO and not self.nano % NANO:
            number, power = _reduce(self.nano // NANO, 1024, 6)
            return f"{number}{_BINARY_SUFFIX.get(power, '')}"
        if self.format is QuantityFormat.DECIMAL_EXPONENT:
            number, power = _reduce(self.nano, 1000, MAX_DIGITS)
            exponent = 3 * power - 9
            return f"{number}e{exponent}" if exponent else str(number)
        number, power = _reduce(self.nano, 1000, 9)
        return f"{number}{_DECIMAL_SUFFIX[3 * power - 9]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _reduce(number: int, base: int, most: int) -> tuple[int, int]:
    """Take the factor `base` out of a number that is not 0, at most `most` times."""
    power = 0
    while power < most and not number % base:
        number //= base
        power += 1
    return number, power


@lru_cache(maxsize=1 << 16)
def _parse(text: str) -> Quantity:
    found = _SYNTAX.fullmatch(text)
    if found is None:
        raise DecodeError("", f"{text!r} is not a quantity", _HINT)
    fraction = found["fraction"] or found["bare"] or ""
    digits = int((found["whole"] or "") + fraction)
    power = 9 - len(fraction)
    form = QuantityFormat.DECIMAL_SI
    if found["exponent"] is not None:
        form = QuantityFormat.DECIMAL_EXPONENT
        power += int(found["exponent"])
    elif found["suffix"] in _BINARY:
        form = QuantityFormat.BINARY_SI
        digits *= 1024 ** _BINARY[found["suffix"]]
    else:
        power += _DECIMAL[found["suffix"] or ""]
    nano = _scale(digits, power, text)
    if form is QuantityFormat.BINARY_SI:
        nano = min(nano, BINARY_MAX)
        if nano < NANO:
            form = QuantityFormat.DECIMAL_SI
    return Quantity(-nano if found["sign"] == "-" else nano, form)


def _scale(digits: int, power: int, text: str) -> int:
    """`digits` × 10^`power`, rounded up; refused beyond MAX_DIGITS."""
    if not digits:
        return 0
    if power >= 0:
        if power > MAX_DIGITS:
            raise DecodeError("", f"{text!r} is too large for a quantity", f"at most {MAX_DIGITS} digits")
        return digits * int(10**power)
    if -power > 2 * MAX_DIGITS:
        return 1  # digits has at most MAX_DIGITS digits: less than a nano, rounded up to one
    return int(-(-digits // 10**-power))
