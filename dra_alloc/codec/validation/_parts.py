"""Checks of the parts that several DRA kinds share: selectors, configuration, taints, tolerations, bindings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import attrs

from dra_alloc.api import DeviceSelector, DeviceTaint, DeviceToleration, OpaqueDeviceConfiguration
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    byte_length,
    each,
    forbidden,
    invalid,
    listed,
    one_of,
    required,
    too_long,
    unique,
)
from dra_alloc.errors import CelError
from dra_alloc.gates import Features

__all__ = [
    "CEL_MAX_COST",
    "bindings",
    "cel",
    "json_object",
    "opaque",
    "selectors",
    "skip_node_operations",
    "taint",
    "tolerations",
]

CEL_MAX_LENGTH = 10 * 1024
CEL_MAX_COST = 1_000_000
JSON_MAX_LENGTH = 10 * 1024
SELECTORS_MAX = 32
BINDING_CONDITIONS_MAX = 4
TOLERATIONS_MAX = 16

_EFFECTS = ("None", "NoSchedule", "NoExecute")
_OPERATIONS = ("NodePrepareResources", "NodeUnprepareResources", "*")


def selectors(items: Sequence[DeviceSelector], features: Features, *, stored: bool = False) -> Iterator[Problem]:
    """Selectors of a class or request. Expressions that are stored already are not compiled again."""

    def selector(item: DeviceSelector) -> Iterator[Problem]:
        if item.cel is None:
            yield from at("cel", [required("an expression over device")])
        elif not stored:
            yield from at("cel.expression", cel(item.cel.expression, features).problems)

    yield from listed(items, SELECTORS_MAX, selector, "selectors")


@attrs.frozen
class CelVerdict:
    """What is wrong with an expression, and its estimated cost (0 where it does not compile)."""

    problems: tuple[Problem, ...]
    cost: int = 0


def cel(expression: str, features: Features, *, derived: bool = False) -> CelVerdict:
    """Compile an expression: a selector, or one that derives an attribute."""
    if (length := byte_length(expression)) > CEL_MAX_LENGTH:
        return CelVerdict((too_long(length, CEL_MAX_LENGTH),))
    if not expression.strip():
        return CelVerdict((required("a CEL expression over device"),))
    return _compiled(expression, derived, features.DRAListTypeAttributes)


@lru_cache(maxsize=4096)
def _compiled(expression: str, derived: bool, lists: bool) -> CelVerdict:
    from dra_alloc.cel import compile_derived, compile_selector

    try:
        program = compile_derived(expression) if derived else compile_selector(expression, list_attributes=lists)
    except CelError as error:
        where = f" at line {error.line}, column {error.column}" if error.offset is not None else ""
        kind = "string, int, bool, semver or a list of one of them" if derived else "bool"
        return CelVerdict(
            (Problem("", f"does not compile{where}: {error.message}", f"a CEL expression of type {kind}"),)
        )
    if program.max_cost > CEL_MAX_COST:
        hint = f"an estimated cost of at most {CEL_MAX_COST}"
        return CelVerdict((forbidden(f"is too complex, its estimated cost is {program.max_cost}", hint),))
    return CelVerdict((), program.max_cost)


def opaque(config: OpaqueDeviceConfiguration | None, *, stored: bool = False) -> Iterator[Problem]:
    """Configuration, seen from its holder; `opaque` is its only kind."""
    if config is None:
        yield from at("opaque", [required("driver and parameters")])
        return
    yield from at("opaque.driver", formats.driver_name(config.driver))
    yield from at("opaque.parameters", json_object(config.parameters, stored=stored))


def json_object(value: object, *, stored: bool = False) -> Iterator[Problem]:
    """A JSON object, whose size is limited when it is new."""
    if value is None:
        yield required("a JSON object")
        return
    try:
        raw = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        yield Problem("", "cannot be written as JSON", "text, numbers, booleans, null, lists and maps")
        return
    if not stored and (length := byte_length(raw)) > JSON_MAX_LENGTH:
        yield too_long(length, JSON_MAX_LENGTH)
    elif not isinstance(value, Mapping):
        yield Problem("", f"is {type(value).__name__}, not a JSON object", "a map")


def taint(value: DeviceTaint, old: DeviceTaint | None = None) -> Iterator[Problem]:
    """A taint. An effect that is stored already passes, known or not."""
    yield from at("key", formats.label_name(value.key))
    yield from at("value", formats.label_value(value.value or ""))
    if old is None or old.effect != value.effect:
        yield from at("effect", one_of(value.effect, _EFFECTS))


def tolerations(items: Sequence[DeviceToleration]) -> Iterator[Problem]:
    """Tolerations, seen from the request or result that holds them."""
    yield from listed(items, TOLERATIONS_MAX, _toleration, "tolerations")


def _toleration(item: DeviceToleration) -> Iterator[Problem]:
    if item.key:
        yield from at("key", formats.label_name(item.key))
    operator = item.operator or "Equal"
    yield from at("operator", one_of(operator, ("Equal", "Exists")))
    if operator == "Exists" and item.value:
        yield from at("value", [invalid(item.value, "is set with operator Exists", "no value, or operator Equal")])
    elif operator == "Equal":
        yield from at("value", formats.label_value(item.value or ""))
    if item.effect:
        yield from at("effect", one_of(item.effect, _EFFECTS))


def bindings(conditions: Sequence[str], failures: Sequence[str]) -> Iterator[Problem]:
    """Binding conditions and binding failure conditions (KEP-5007): both or none, and nothing in both."""
    fields = {"bindingConditions": conditions, "bindingFailureConditions": failures}
    for field, items in fields.items():
        yield from listed(items, BINDING_CONDITIONS_MAX, formats.label_name, field)
        yield from unique(items, str, field)
    chosen = set(conditions)
    for index, item in enumerate(failures):
        if item in chosen:
            yield from at(f"bindingFailureConditions[{index}]", [invalid(item, "is a binding condition as well")])
    if bool(conditions) != bool(failures):
        missing = "bindingFailureConditions" if conditions else "bindingConditions"
        other = "bindingConditions" if conditions else "bindingFailureConditions"
        yield from at(missing, [required(f"both, or no {other} either")])


def skip_node_operations(items: Sequence[str]) -> Iterator[Problem]:
    """Operations that the kubelet skips (KEP-5945), seen from their holder."""
    field = "skipNodeOperations"
    yield from each(items, lambda item: one_of(item, _OPERATIONS), field)
    yield from unique(items, str, field)
    if "NodePrepareResources" in items and not {"NodeUnprepareResources", "*"} & set(items):
        yield from at(
            field,
            [forbidden("skips NodePrepareResources alone", 'with NodeUnprepareResources, or "*" for both')],
        )
