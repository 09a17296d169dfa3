"""The values of CEL as native Python values, and what all of them can do: equality, order, size, type.

| CEL | Python |
|---|---|
| bool, int, double, string, bytes, null | `bool`, `int` (64 bits), `float`, `str`, `bytes`, `None` |
| uint | `Uint` |
| list, map | `tuple`, `dict` (keys as of `map_key`) |
| timestamp, duration | `Timestamp`, `Duration`, both in whole nanoseconds |
| optional, type | `Optional`, `TypeValue` |
| Kubernetes' own | `api.Quantity`, `Semver`, `IP`, `CIDR`, `URL`, `NamedFormat` |

Python's `bool` is an `int` and `1 == 1.0 == True`; so everything here dispatches on the exact type.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from dra_alloc.api.quantity import Quantity, QuantityFormat
from dra_alloc.cel.work import Halt, spend

__all__ = [
    "CIDR",
    "IP",
    "NONE",
    "URL",
    "Amount",
    "Duration",
    "Fault",
    "Halt",
    "NamedFormat",
    "Optional",
    "Quantity",
    "Semver",
    "Timestamp",
    "TypeValue",
    "Uint",
    "compare",
    "equal",
    "map_find",
    "map_key",
    "map_keys",
    "size_of",
    "type_of",
]

Value = Any

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

#: Seconds since the epoch of the first and of the last second that a timestamp may have (years 1 to 9999).
MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799
NANOS: Final = 10**9

#: What one evaluation may build at most, in elements of a list and in characters. The reference has no such bound:
#: it runs out of memory instead.
MAX_ELEMENTS: Final = 1 << 20
MAX_CHARACTERS: Final = 1 << 24


class Fault(Exception):
    """A run-time error of CEL, which `&&`, `||`, `?:` and the quantifiers may absorb."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def no_overload(function: str, *values: Value) -> Fault:
    """The error of a call with values that the function does not take."""
    names = ", ".join(type_of(value).name for value in values)
    return Fault(f"no such overload: {function}({names})")


class Uint(int):
    """An unsigned 64 bit integer. Never equal to an `int` where exact types count."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: nanoseconds since 1970-01-01T00:00:00Z."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A signed span of time in nanoseconds (64 bits)."""

    nanos: int


class Optional:
    """A value that may be absent. `NONE` is the one without value; `value` of it must not be read."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "optional.none()" if self is NONE else f"optional.of({self.value!r})"


NONE: Final = Optional(None)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, what `type(x)` gives. Parameters do not count: all lists are `list`."""

    name: str


# The pattern of semver.org; components are bounded to 64 bits below.
_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
)


class Semver:
    """A version of semantic versioning 2.0.0.

    Equal and hashed by all parts, build metadata included; `precedence` orders as the specification says, which
    ignores build metadata, and two versions of the same precedence are `==` in CEL.
    """

    __slots__ = ("build", "major", "minor", "patch", "precedence", "prerelease")

    major: int
    minor: int
    patch: int
    prerelease: str
    build: str
    precedence: tuple[Hashable, ...]

    def __init__(self, major: int, minor: int, patch: int, prerelease: str = "", build: str = "") -> None:
        put = object.__setattr__
        put(self, "major", major)
        put(self, "minor", minor)
        put(self, "patch", patch)
        put(self, "prerelease", prerelease)
        put(self, "build", build)
        # A release sorts after its prereleases; numbers sort before words; a prefix sorts first.
        parts = tuple(
            (0, int(part), "") if part.isdigit() else (1, 0, part) for part in prerelease.split(".") if prerelease
        )
        put(self, "precedence", (major, minor, patch, not prerelease, parts))

    @classmethod
    def parse(cls, text: str) -> Semver:
        """Read a version strictly. Raises ValueError for anything else, a leading `v` and leading zeros included."""
        found = _SEMVER.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a semantic version (wanted MAJOR.MINOR.PATCH, as in 1.2.3-rc.1+build)")
        major, minor, patch, prerelease, build = found.groups()
        numbers = [major, minor, patch, *(p for p in (prerelease or "").split(".") if p.isdigit())]
        if any(len(number) > 20 or int(number) > UINT_MAX for number in numbers):
            raise ValueError(f"{text!r} is not a semantic version: a number is larger than {UINT_MAX}")
        return cls(int(major), int(minor), int(patch), prerelease or "", build or "")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Semver is immutable: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Semver is immutable: cannot delete {name}")

    def __reduce__(self) -> tuple[object, ...]:
        return Semver, (self.major, self.minor, self.patch, self.prerelease, self.build)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Semver:
            return NotImplemented
        return self.precedence == other.precedence and self.build == other.build

    def __hash__(self) -> int:
        return hash((self.precedence, self.build))

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        text += f"-{self.prerelease}" if self.prerelease else ""
        return text + (f"+{self.build}" if self.build else "")

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"


@dataclass(frozen=True, slots=True)
class IP:
    """An IP address without zone (`ip(…)`)."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class CIDR:
    """An IP address with the length of a prefix (`cidr(…)`); bits behind the prefix may be set."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int


@dataclass(frozen=True, slots=True)
class URL:
    """A parsed URL (`url(…)`): absolute, or an absolute path. `host` includes the port, `text` is all of it again."""

    text: str
    scheme: str
    host: str
    escaped_path: str
    query: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormat:
    """A named format of Kubernetes (`format.named(…)`); `check` gives the problems of a text, none if it is valid."""

    name: str
    pattern_size: int
    check: Callable[[str], list[str]]


class DomainMap(dict[str, Any]):
    """`device.attributes` or `device.capacity`: a domain that is not there is an empty map."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        """The map of a domain, empty if there is none; keys are converted to strings."""
        if type(key) is not str:
            key = to_text(key)
        return self.get(key, EMPTY)


EMPTY: Final[dict[str, Any]] = {}


class Amount(Quantity):
    """A quantity that an expression makes, with the way in which the reference holds it.

    scale: it is a 64 bit int times 10^scale; None: an arbitrary decimal, which the reference never takes for an
    integer, whatever its value.
    """

    __slots__ = ("scale",)

    scale: int | None

    @classmethod
    def of(cls, nano: int, format: QuantityFormat, scale: int | None) -> Self:
        """An amount of nanos."""
        amount = cls(nano, format)
        object.__setattr__(amount, "scale", scale)
        return amount


class Sum(Amount):
    """What `add` and `sub` give. On the right side of `==` the reference does not take it for a quantity."""

    __slots__ = ()


_TYPES: Final[dict[type, TypeValue]] = {
    bool: TypeValue("bool"),
    int: TypeValue("int"),
    Uint: TypeValue("uint"),
    float: TypeValue("double"),
    str: TypeValue("string"),
    bytes: TypeValue("bytes"),
    type(None): TypeValue("null_type"),
    tuple: TypeValue("list"),
    list: TypeValue("list"),
    dict: TypeValue("map"),
    DomainMap: TypeValue("map"),
    Timestamp: TypeValue("google.protobuf.Timestamp"),
    Duration: TypeValue("google.protobuf.Duration"),
    Optional: TypeValue("optional_type"),
    TypeValue: TypeValue("type"),
    Quantity: TypeValue("kubernetes.Quantity"),
    Amount: TypeValue("kubernetes.Quantity"),
    Sum: TypeValue("kubernetes.Quantity"),
    Semver: TypeValue("kubernetes.Semver"),
    IP: TypeValue("net.IP"),
    CIDR: TypeValue("net.CIDR"),
    URL: TypeValue("kubernetes.URL"),
    NamedFormat: TypeValue("kubernetes.NamedFormat"),
}

#: Names of types that expressions may use as values.
TYPE_NAMES: Final[dict[str, TypeValue]] = {
    value.name: value for value in _TYPES.values() if not value.name.startswith("kubernetes.")
}


def type_of(value: Value) -> TypeValue:
    """The type of a value."""
    return _TYPES[type(value)]


# Keys of maps -------------------------------------------------------------------------------------------------------


class _Key:
    """A key of a map that Python's dict would mix up with another: a bool, a uint, a double, or an aggregate."""

    __slots__ = ("identity", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.identity = (type(value), value if type(value) in (bool, Uint, float) else id(value))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Key and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return repr(self.value)


def map_key(value: Value) -> Hashable:
    """The key under which a dict holds a CEL key. Strings and ints are their own keys."""
    kind = type(value)
    if kind is str or kind is int:
        key: Hashable = value
        return key
    if kind is bytes or kind is Semver:
        raise Halt(f"a {type_of(value).name} cannot be the key of a map")
    return _Key(value)


def map_keys(mapping: dict[Hashable, Value]) -> Iterator[Value]:
    """The CEL keys of a map, in the order of insertion."""
    for key in mapping:
        yield key.value if type(key) is _Key else key


_MISSING: Final = object()


def map_find(mapping: dict[Hashable, Value], key: Value) -> Value:
    """The value under a CEL key, numbers found across their types; raises KeyError."""
    if isinstance(mapping, DomainMap):
        return mapping.find(key)
    kind = type(key)
    if kind is str:
        return mapping[key]
    if kind in (list, tuple, dict, bytes, Semver) and not mapping:
        raise KeyError(key)
    found = mapping.get(map_key(key), _MISSING)
    if found is not _MISSING:
        return found
    if kind is float and math.isfinite(key) and key == int(key):
        number = int(key)
        if INT_MIN < number < INT_MAX and number in mapping:
            return mapping[number]
        if 0 <= number <= UINT_MAX:
            return mapping[_Key(Uint(number))]
    elif kind is int and key >= 0:
        return mapping[_Key(Uint(key))]
    elif kind is Uint and key <= INT_MAX:
        return mapping[int(key)]
    raise KeyError(key)


def to_text(value: Value) -> str:
    """A value as text where a string is wanted in place of it (keys of the device's maps)."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is TypeValue:
        return str(value.name)
    if value is None:
        return "null"
    raise Fault(f"type conversion error from '{type_of(value).name}' to 'string'")


# Equality -----------------------------------------------------------------------------------------------------------

#: Types whose comparison with another type is an error, not false (from the left side).
_STRICT_EQUALITY: Final = (Semver, Quantity, Amount, Sum, IP, CIDR, URL, NamedFormat)
_QUANTITIES: Final = (Quantity, Amount, Sum)
_NUMBERS: Final = (int, Uint, float)


def equal(left: Value, right: Value) -> bool:
    """`left == right`. Raises Fault where CEL has an error: a Kubernetes value against one of another type."""
    kind = type(left)
    if kind is type(right) and (kind is str or kind is int or kind is bool):
        same: bool = left == right
        return same
    verdict = _scalars_equal(left, right)
    return _aggregates_equal(left, right) if verdict is None else verdict


def _aggregates_equal(left: Value, right: Value) -> bool:
    """A worklist instead of recursion. An error inside of aggregates counts as equal, as in the reference."""
    work = _pairs(left, right)
    if work is None:
        return False
    if len(work) > 64:  # no list of a device
        spend(len(work))
    while work:
        a, b = work.pop()
        try:
            verdict = _scalars_equal(a, b)
        except Fault:
            continue
        if verdict is None:
            pairs = _pairs(a, b)
            if pairs is None:
                return False
            # The cost of a comparison is by the elements of the outermost list; what is inside of them is not in it.
            spend(4 * len(pairs) + 4 if type(a) is not Optional else 0)
            work.extend(pairs)
        elif not verdict:
            return False
    return True


def _pairs(a: Value, b: Value) -> list[tuple[Value, Value]] | None:
    """The elements to compare of two aggregates, in reverse order; None if they cannot be equal."""
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return None
        pairs = []
        for key in map_keys(a):
            try:
                pairs.append((map_find(a, key), map_find(b, key)))
            except KeyError:
                return None
        return pairs[::-1]
    if type(a) is Optional:
        return [(a.value, b.value)]
    if not isinstance(b, (tuple, list)) or len(a) != len(b):
        return None
    return list(zip(a, b, strict=True))[::-1]


def _scalars_equal(left: Value, right: Value) -> bool | None:
    """Equality where no elements need comparing, else None."""
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and numbers_equal(left, right)
    if kind is Optional:
        if other is not Optional:
            return False
        return left is right if left is NONE or right is NONE else None
    if kind in _STRICT_EQUALITY:
        comparable = other in (Quantity, Amount) if kind in _QUANTITIES else other is kind
        if not comparable:
            raise Fault(f"no such overload: {type_of(left).name} == {type_of(right).name}")
        if kind is Semver:
            return bool(left.precedence == right.precedence)
        if kind in _QUANTITIES:
            return bool(left.nano == right.nano)
        if kind is NamedFormat:
            return bool(left.name == right.name)
        if kind is URL:
            return bool(left.text == right.text)
        return bool(left == right)
    if kind in (tuple, list) or isinstance(left, dict):
        return None
    return kind is other and bool(left == right)


def numbers_equal(left: float, right: float) -> bool:
    """Whether two numbers of any types are equal. NaN is not equal to anything."""
    if left != left or right != right:
        return False
    return _compare_numbers(left, right) == 0


# Order --------------------------------------------------------------------------------------------------------------


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1. Raises Fault for types without an order between them, and for NaN."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:
            raise Fault("NaN values cannot be ordered")
        return _compare_numbers(left, right)
    # Go compares the bytes of strings; the order of UTF-8 is that of the code points.
    if kind is other and kind in (str, bool, bytes, Timestamp, Duration):
        return int(left > right) - int(left < right)
    raise no_overload("compare", left, right)


def _compare_numbers(left: float, right: float) -> int:
    if (type(left) is float) is (type(right) is float):
        return (left > right) - (left < right)
    # An integer against a double: beyond the range of the integer the double decides, within it the integer is
    # rounded to a double. That is what the reference does, and not the same as an exact comparison.
    if type(left) is float:
        return _compare_double(left, right)
    return -_compare_double(right, left)


def _compare_double(double: float, integer: float) -> int:
    low, high = (0.0, float(UINT_MAX)) if type(integer) is Uint else (float(INT_MIN), float(INT_MAX))
    if double < low:
        return -1
    if double > high:
        return 1
    rounded = float(integer)
    return (double > rounded) - (double < rounded)


# Size ---------------------------------------------------------------------------------------------------------------


def size_of(value: Value) -> int:
    """What a value counts for in costs: characters, bytes, elements, bytes of an address; else 1."""
    while type(value) is Optional and value is not NONE:
        value = value.value
    if isinstance(value, (str, bytes, tuple, list, dict)):
        return len(value)
    kind = type(value)
    if kind is IP:
        bits: int = value.address.max_prefixlen
        return bits // 8
    if kind is CIDR:
        return (int(value.bits) + 7) // 8
    return 1


def checked_text(text: str) -> str:
    """A string value; raises Halt when it is larger than one evaluation may build."""
    if len(text) > MAX_CHARACTERS:
        raise Halt(f"a text of more than {MAX_CHARACTERS} characters")
    return text
