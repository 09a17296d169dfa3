"""What generated code may call, and all that it can reach by name."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from dra_alloc.cel.device import DeviceEnv
from dra_alloc.cel.instructions import Missing, elements_of, qualify
from dra_alloc.cel.library import regex, standard
from dra_alloc.cel.library.optionals import insert, insert_all
from dra_alloc.cel.values import (
    EMPTY,
    NONE,
    Fault,
    Optional,
    Quantity,
    Semver,
    Uint,
    Value,
    map_key,
    no_overload,
    type_of,
)

__all__ = ["BUILTINS", "FAULTS", "HELPERS", "fault_of"]

#: What generated code may raise for a run-time error of CEL: a missing key is a KeyError.
FAULTS: Final = (Fault, KeyError)


def fault_of(error: BaseException) -> Fault:
    """The fault that an exception of generated code stands for."""
    if isinstance(error, Fault):
        return Fault(error.message)
    return Fault(f"no such key: {error.args[0]}")


def _wrong(value: Value) -> NoReturn:
    raise no_overload("call", value)


def _has(value: Value, field: str) -> bool:
    if type(value) is Optional:
        return bool(_over_optional(value, field, test=True))
    try:
        qualify(value, field)
    except Missing:
        return False
    return True


def _step(value: Value, field: str) -> Value:
    if type(value) is Optional:
        return _over_optional(value, field)
    return qualify(value, field)


def _at(value: Value, key: Value) -> Value:
    if type(value) is Optional:
        return NONE if value is NONE else _over_optional(value, _checked_key(key))
    return qualify(value, _checked_key(key))


def _checked_key(key: Value) -> Value:
    if type(key) not in (str, int, Uint, bool, float):
        raise Fault(f"invalid qualifier type: {type_of(key).name}")
    return key


def _over_optional(value: Value, key: Value, *, test: bool = False) -> Value:
    """A step over an optional value: none stays none, and what is missing is none."""
    if value is NONE:
        return False if test else NONE
    try:
        found = qualify(value.value, key)
    except Missing:
        return False if test else NONE
    return True if test else Optional(found)


def _maybe(value: Value, key: Value) -> Value:
    """`value.?key` or `value[?key]`."""
    if type(value) is Optional:
        return _over_optional(value, key)
    try:
        return Optional(qualify(value, key))
    except Missing:
        return NONE


def _maybe_at(value: Value, key: Value) -> Value:
    return NONE if value is NONE else _maybe(value, _checked_key(key))


def _get(domain: dict[str, Value], name: str) -> Optional:
    return Optional(domain[name]) if name in domain else NONE


def _entry(value: Value) -> tuple[Value, ...]:
    """What an optional entry adds to a list."""
    if type(value) is not Optional:
        raise Fault("cannot initialize optional entry from a value that is not optional")
    return () if value is NONE else (value.value,)


def _put(mapping: dict[Any, Any], key: Any, value: Value) -> None:
    """Add an optional entry to a map, or remove what it stands for."""
    found = _entry(value)
    if found:
        mapping[key] = found[0]
    else:
        mapping.pop(key, None)


def _whole(env: DeviceEnv) -> dict[str, Any]:
    return {
        "driver": env.driver,
        "allowMultipleAllocations": env.allow_multiple,
        "attributes": env.attributes,
        "capacity": env.capacity,
    }


#: Nothing else of Python can be reached by name from generated code.
BUILTINS: Final = {"type": type, "len": len, "str": str, "int": int, "tuple": tuple}

HELPERS: Final[dict[str, Any]] = {
    "EMPTY": EMPTY,
    "FAULTS": FAULTS,
    "Fault": Fault,
    "NONE": NONE,
    "Optional": Optional,
    "Quantity": Quantity,
    "Semver": Semver,
    "at": _at,
    "elements": elements_of,
    "entry": _entry,
    "equals": standard.equals,
    "fault_of": fault_of,
    "found": regex.found,
    "get": _get,
    "greater": standard.greater,
    "greater_equals": standard.greater_equals,
    "has": _has,
    "insert": insert,
    "insert_all": insert_all,
    "less": standard.less,
    "less_equals": standard.less_equals,
    "logical_not": standard.logical_not,
    "map_key": map_key,
    "maybe": _maybe,
    "maybe_at": _maybe_at,
    "no_overload": no_overload,
    "not_equals": standard.not_equals,
    "put": _put,
    "step": _step,
    "whole": _whole,
    "wrong": _wrong,
}
