"""The standard definitions: operators, conversions, strings, times."""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from dra_alloc.cel.library import regex
from dra_alloc.cel.library.registry import OVERLOADS, implements, implements_all
from dra_alloc.cel.values import (
    INT_MAX,
    INT_MIN,
    MAX_ELEMENTS,
    MAX_SECONDS,
    MIN_SECONDS,
    NANOS,
    UINT_MAX,
    DomainMap,
    Duration,
    Fault,
    Halt,
    Semver,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    checked_text,
    compare,
    equal,
    map_find,
    no_overload,
    to_text,
    type_of,
)
from dra_alloc.cel.work import spend

# Arithmetic ---------------------------------------------------------------------------------------------------------


def checked_int(value: int) -> int:
    """An int in 64 bits; raises Fault beyond."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise Fault("integer overflow")


def checked_uint(value: int) -> Uint:
    """A uint in 64 bits; raises Fault beyond."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise Fault("unsigned integer overflow")


def _checked_timestamp(nanos: int) -> Timestamp:
    if MIN_SECONDS <= nanos // NANOS <= MAX_SECONDS:
        return Timestamp(nanos)
    raise Fault("timestamp overflow")


def _checked_duration(nanos: int) -> Duration:
    return Duration(checked_int(nanos))


@implements_all("_+_")
def add(left: Value, right: Value) -> Value:
    """`left + right`."""
    kind, other = type(left), type(right)
    if kind is list and isinstance(right, (tuple, list)):  # the accumulator of a macro, which nothing else sees
        left.extend(right)
        return left
    if kind is other:
        if kind is int:
            return checked_int(left + right)
        if kind is float or kind is bytes or kind is str:
            return checked_text(left + right) if kind is str else left + right
        if kind is Uint:
            return checked_uint(int(left) + int(right))
        if kind is tuple:
            if len(left) + len(right) > MAX_ELEMENTS:
                raise Halt(f"a list of more than {MAX_ELEMENTS} elements")
            spend(len(left) + len(right))
            return left + right
        if kind is Duration:
            return _checked_duration(left.nanos + right.nanos)
    elif (kind is Timestamp and other is Duration) or (kind is Duration and other is Timestamp):
        return _checked_timestamp(left.nanos + right.nanos)
    raise no_overload("_+_", left, right)


@implements_all("_-_")
def subtract(left: Value, right: Value) -> Value:
    """`left - right`."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return checked_uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return _checked_duration(left.nanos - right.nanos)
    elif kind is Timestamp and other is Duration:
        checked_int(-right.nanos)
        return _checked_timestamp(left.nanos - right.nanos)
    raise no_overload("_-_", left, right)


@implements_all("_*_")
def multiply(left: Value, right: Value) -> Value:
    """`left * right`."""
    if type(left) is type(right):
        if type(left) is int:
            return checked_int(left * right)
        if type(left) is float:
            return left * right
        if type(left) is Uint:
            return checked_uint(int(left) * int(right))
    raise no_overload("_*_", left, right)


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


@implements_all("_/_")
def divide(left: Value, right: Value) -> Value:
    """`left / right`; integers are cut towards zero."""
    if type(left) is type(right):
        if type(left) is float:
            return _divide_doubles(left, right)
        if type(left) is int or type(left) is Uint:
            if not right:
                raise Fault("division by zero")
            if type(left) is Uint:
                return Uint(int(left) // int(right))
            return checked_int(_truncated(left, right))
    raise no_overload("_/_", left, right)


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


@implements_all("_%_")
def modulo(left: Value, right: Value) -> Value:
    """`left % right`; the sign is that of the left."""
    if type(left) is type(right) and type(left) in (int, Uint):
        if not right:
            raise Fault("modulus by zero")
        if type(left) is Uint:
            return Uint(int(left) % int(right))
        if left == INT_MIN and right == -1:
            raise Fault("integer overflow")
        return left - right * _truncated(left, right)
    raise no_overload("_%_", left, right)


@implements_all("-_")
def negate(value: Value) -> Value:
    """`-value`."""
    if type(value) is int:
        return checked_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return _checked_duration(-value.nanos)
    raise no_overload("-_", value)


@implements_all("!_")
def logical_not(value: Value) -> bool:
    """`!value`."""
    if type(value) is bool:
        return not value
    raise no_overload("!_", value)


@implements_all("_==_")
def equals(left: Value, right: Value) -> bool:
    """`left == right`."""
    return equal(left, right)


@implements_all("_!=_")
def not_equals(left: Value, right: Value) -> bool:
    """`left != right`: true where `==` is an error too, as in the reference."""
    try:
        return not equal(left, right)
    except Fault:
        return True


@implements_all("_<_")
def less(left: Value, right: Value) -> bool:
    """`left < right`."""
    return compare(left, right) < 0


@implements_all("_<=_")
def less_equals(left: Value, right: Value) -> bool:
    """`left <= right`."""
    return compare(left, right) <= 0


@implements_all("_>_")
def greater(left: Value, right: Value) -> bool:
    """`left > right`."""
    return compare(left, right) > 0


@implements_all("_>=_")
def greater_equals(left: Value, right: Value) -> bool:
    """`left >= right`."""
    return compare(left, right) >= 0


# Aggregates ---------------------------------------------------------------------------------------------------------


def list_contains(elements: Value, wanted: Value) -> bool:
    """Whether an element is equal; a comparison that is an error is not."""
    for element in elements:
        try:
            if equal(wanted, element):
                return True
        except Fault:
            continue
    return False


@implements_all("_in_")
def contained(value: Value, container: Value) -> bool:
    """`value in container`: an element of a list or a key of a map."""
    if isinstance(container, (tuple, list)):
        return list_contains(container, value)
    if isinstance(container, dict):
        if type(value) is str:
            return value in container
        if type(container) is DomainMap:
            return to_text(value) in container
        try:
            map_find(container, value)
        except KeyError:
            return False
        return True
    raise no_overload("_in_", value, container)


class ConstantSet:
    """`x in [constants]`, prepared as the reference does it: by hash, numbers found across their types."""

    __slots__ = ("_numbers", "_others")

    def __init__(self, elements: tuple[Value, ...]) -> None:
        self._numbers = frozenset(e for e in elements if type(e) in (int, float, Uint))
        self._others = frozenset((type(e), e) for e in elements if type(e) not in (int, float, Uint))

    def __contains__(self, value: Value) -> bool:
        kind = type(value)
        if kind is bytes or kind is Semver:
            # Such values have no hash in the reference, which ends the evaluation with an internal error.
            raise Halt(f"internal error: a {type_of(value).name} cannot be looked up in a list of constants")
        if kind in (int, float, Uint):
            return value == value and value in self._numbers
        return kind in (str, bool) and (kind, value) in self._others


@implements_all("size")
def size(value: Value) -> int:
    """`size(value)`: characters, bytes or elements."""
    if isinstance(value, (str, bytes, tuple, list, dict)):
        return len(value)
    raise no_overload("size", value)


@implements_all("type")
def type_function(value: Value) -> TypeValue:
    """`type(value)`."""
    return type_of(value)


@implements_all("dyn")
def dyn(value: Value) -> Value:
    """`dyn(value)`: the value, of a type that the checker does not look at."""
    return value


# Conversions --------------------------------------------------------------------------------------------------------


@implements(
    "bool_to_bool",
    "bytes_to_bytes",
    "double_to_double",
    "duration_to_duration",
    "int64_to_int64",
    "string_to_string",
    "timestamp_to_timestamp",
    "uint64_to_uint64",
)
def identity(value: Value) -> Value:
    """A conversion to the type that the value has."""
    return value


def _conversion(value: Value, wanted: str) -> Fault:
    return Fault(f"type conversion error from '{type_of(value).name}' to '{wanted}'")


_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


@implements("string_to_bool")
def string_to_bool(text: str) -> bool:
    """`bool("true")`."""
    if text in _BOOLS:
        return _BOOLS[text]
    raise _conversion(text, "bool")


@implements("string_to_bytes")
def string_to_bytes(text: str) -> bytes:
    """`bytes("text")`: the UTF-8 of it."""
    return text.encode(errors="surrogatepass")


@implements("int64_to_double", "uint64_to_double")
def number_to_double(value: int) -> float:
    """`double(1)`."""
    return float(value)


#: What Go's strconv takes for a float, hexadecimal included; digits may be grouped by nothing here.
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
    r"|inf|infinity|nan)",
    re.IGNORECASE | re.ASCII,
)


@implements("string_to_double")
def string_to_double(text: str) -> float:
    """`double("1.5")`."""
    if _FLOAT.fullmatch(text) and not (text[:1] in "+-" and text[1:].lower() == "nan"):
        try:
            value = float.fromhex(text) if "x" in text.lower() else float(text)
        except OverflowError:
            value = math.inf
        if not math.isinf(value) or "inf" in text.lower():
            return value
    raise _conversion(text, "double")


@implements("double_to_int64")
def double_to_int(value: float) -> int:
    """`int(1.9)`: cut towards zero."""
    if math.isnan(value) or value <= float(INT_MIN) or value >= float(INT_MAX):
        raise Fault("integer overflow")
    return int(value)


@implements("duration_to_int64")
def duration_to_int(value: Duration) -> int:
    """`int(duration)`: nanoseconds."""
    return value.nanos


@implements("timestamp_to_int64")
def timestamp_to_int(value: Timestamp) -> int:
    """`int(timestamp)`: seconds since the epoch."""
    return value.nanos // NANOS


@implements("uint64_to_int64")
def uint_to_int(value: Uint) -> int:
    """`int(1u)`."""
    return checked_int(int(value))


_INT: Final = re.compile(r"[+-]?[0-9]{1,1000}")


@implements("string_to_int64")
def string_to_int(text: str) -> int:
    """`int("1")`."""
    if _INT.fullmatch(text) and INT_MIN <= (value := int(text)) <= INT_MAX:
        return value
    raise _conversion(text, "int")


@implements("string_to_uint64")
def string_to_uint(text: str) -> Uint:
    """`uint("1")`."""
    if _INT.fullmatch(text) and text[0] not in "+-" and (value := int(text)) <= UINT_MAX:
        return Uint(value)
    raise _conversion(text, "uint")


@implements("int64_to_uint64")
def int_to_uint(value: int) -> Uint:
    """`uint(1)`."""
    return checked_uint(value)


@implements("double_to_uint64")
def double_to_uint(value: float) -> Uint:
    """`uint(1.9)`: cut towards zero."""
    if math.isnan(value) or value < 0 or value >= 2.0**64:
        raise Fault("unsigned integer overflow")
    return Uint(int(value))


@implements("bool_to_string")
def bool_to_string(value: bool) -> str:
    """`string(true)`."""
    return "true" if value else "false"


@implements("bytes_to_string")
def bytes_to_string(value: bytes) -> str:
    """`string(b"…")`: of valid UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Fault("invalid UTF-8 in bytes, cannot convert to string") from None


@implements("double_to_string")
def double_to_string(value: float) -> str:
    """`string(1.5)`: the shortest that reads back, with an exponent below 1e-4 and from 1e+06 (Go's %g)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits, exponent = _shortest(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + fixed(digits, exponent)


def _shortest(value: float) -> tuple[str, int]:
    """The digits and the decimal exponent of the shortest text that reads back as the value."""
    mantissa, _, exponent = f"{abs(value):.17e}".partition("e")
    for precision in range(17):
        text = f"{abs(value):.{precision}e}"
        if float(text) == abs(value):
            mantissa, _, exponent = text.partition("e")
            break
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def fixed(digits: str, exponent: int) -> str:
    """Digits with the point in its place, no exponent."""
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    rest = digits[exponent + 1 :]
    return f"{whole}.{rest}" if rest else whole


@implements("duration_to_string")
def duration_to_string(value: Duration) -> str:
    """`string(duration)`: seconds, as in `90.5s`."""
    # The reference goes through a double, so that long durations lose their nanoseconds.
    seconds, rest = divmod(abs(value.nanos), NANOS)
    number = float(seconds) + float(rest) / 1e9
    digits, exponent = _shortest(number)
    return ("-" if value.nanos < 0 else "") + fixed(digits, exponent) + "s"


@implements("int64_to_string", "uint64_to_string")
def number_to_string(value: int) -> str:
    """`string(1)`."""
    return str(int(value))


@implements("timestamp_to_string")
def timestamp_to_string(value: Timestamp) -> str:
    """`string(timestamp)`: RFC 3339 in UTC, with as many decimals as needed."""
    seconds, nanos = divmod(value.nanos, NANOS)
    moment = _EPOCH + datetime.timedelta(seconds=seconds)
    text = f"{moment.year:04d}" + moment.strftime("-%m-%dT%H:%M:%S")
    return text + (f".{nanos:09d}".rstrip("0") if nanos else "") + "Z"


@implements("int64_to_timestamp")
def int_to_timestamp(value: int) -> Timestamp:
    """`timestamp(seconds)`."""
    return _checked_timestamp(value * NANOS)


_EPOCH: Final = datetime.datetime(1970, 1, 1)
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


@implements("string_to_timestamp")
def string_to_timestamp(text: str) -> Timestamp:
    """`timestamp("2026-01-31T12:00:00Z")`: RFC 3339."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise _conversion(text, "google.protobuf.Timestamp")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    try:
        # Year 0 is valid in the text; as it lies outside of the range of timestamps, any year before it stands for it.
        moment = datetime.datetime(year or 4, month, day, hour, minute, second)
    except ValueError:
        raise _conversion(text, "google.protobuf.Timestamp") from None
    offset = 0
    if found[8]:
        hours, minutes = int(found[9]), int(found[10])
        if hours > 24 or minutes > 60:
            raise _conversion(text, "google.protobuf.Timestamp")
        offset = (hours * 60 + minutes) * (-60 if found[8] == "-" else 60)
    if not year:
        raise Fault("timestamp overflow")
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1) - offset
    return _checked_timestamp(seconds * NANOS + int((found[7] or "")[:9].ljust(9, "0")))


_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")


@implements("string_to_duration")
def string_to_duration(text: str) -> Duration:
    """`duration("1h30m")`."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(unsigned):
        part = _DURATION_PART.match(unsigned, position)
        if part is None or not (part[1] or part[2]) or len(part[1]) > 20:
            raise _conversion(text, "google.protobuf.Duration")
        unit = _UNITS[part[3]]
        fraction = (part[2] or "")[:30]
        total += int(part[1] or "0") * unit + (int(fraction) * unit // int(10 ** len(fraction)) if fraction else 0)
        position = part.end()
    nanos = -total if text[:1] == "-" else total
    if not unsigned or not INT_MIN <= nanos <= INT_MAX:
        raise _conversion(text, "google.protobuf.Duration")
    return Duration(nanos)


# Strings ------------------------------------------------------------------------------------------------------------


@implements("contains_string")
def contains(text: str, part: str) -> bool:
    """`text.contains(part)`."""
    return part in text


@implements("ends_with_string")
def ends_with(text: str, end: str) -> bool:
    """`text.endsWith(end)`."""
    return text.endswith(end)


@implements("starts_with_string")
def starts_with(text: str, start: str) -> bool:
    """`text.startsWith(start)`."""
    return text.startswith(start)


@implements_all("matches")
def matches(text: Value, pattern: Value) -> bool:
    """`text.matches(pattern)`: whether the RE2 pattern is found anywhere."""
    if type(text) is not str or type(pattern) is not str:
        raise no_overload("matches", text, pattern)
    return regex.found(pattern, text)


# Times --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _zone(name: str) -> datetime.tzinfo:
    if ":" not in name:
        if name in ("", "UTC"):
            return datetime.UTC
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise Fault(f"unknown time zone {name}") from None
    hours_text, _, minutes_text = name.partition(":")
    if not _INT.fullmatch(hours_text) or not _INT.fullmatch(minutes_text):
        raise Fault(f"invalid time zone offset {name!r}")
    hours, minutes = int(hours_text), int(minutes_text)
    if not 0 <= minutes <= 59:
        raise Fault(f"timezone offset minutes out of range [0, 59]: {name}")
    offset = hours * 60 - minutes if name.startswith("-") else hours * 60 + minutes
    if abs(offset) >= 24 * 60:
        raise Fault(f"time zone offset {name!r} out of range")
    return datetime.timezone(datetime.timedelta(minutes=offset))


def _local(value: Timestamp, zone: str) -> datetime.datetime:
    moment = _EPOCH.replace(tzinfo=datetime.UTC) + datetime.timedelta(seconds=value.nanos // NANOS)
    try:
        return moment.astimezone(_zone(zone))
    except OverflowError:
        raise Fault("timestamp overflow") from None


def _register_times(name: str, read: Callable[[datetime.datetime, int], int]) -> None:
    def in_utc(value: Timestamp) -> int:
        return read(_local(value, "UTC"), value.nanos % NANOS)

    def in_zone(value: Timestamp, zone: str) -> int:
        return read(_local(value, zone), value.nanos % NANOS)

    OVERLOADS[f"timestamp_to_{name}"] = in_utc
    OVERLOADS[f"timestamp_to_{name}_with_tz"] = in_zone


_register_times("year", lambda t, nanos: t.year)
_register_times("month", lambda t, nanos: t.month - 1)
_register_times("day_of_year", lambda t, nanos: t.timetuple().tm_yday - 1)
_register_times("day_of_month", lambda t, nanos: t.day - 1)
_register_times("day_of_month_1_based", lambda t, nanos: t.day)
_register_times("day_of_week", lambda t, nanos: (t.weekday() + 1) % 7)
_register_times("hours", lambda t, nanos: t.hour)
_register_times("minutes", lambda t, nanos: t.minute)
_register_times("seconds", lambda t, nanos: t.second)
_register_times("milliseconds", lambda t, nanos: nanos // 10**6)


def _register_duration(name: str, nanos: int) -> None:
    def whole(value: Duration) -> int:
        return _truncated(value.nanos, nanos)

    OVERLOADS[f"duration_to_{name}"] = whole


_register_duration("hours", 3600 * NANOS)
_register_duration("minutes", 60 * NANOS)
_register_duration("seconds", NANOS)
_register_duration("milliseconds", 10**6)
