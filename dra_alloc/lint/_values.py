"""Values of attributes as constraints compare them: sets, in which values of different types are different."""

from __future__ import annotations

from dra_alloc.api import Device, DeviceAttribute
from dra_alloc.errors import CelError
from dra_alloc.gates import Features
from dra_alloc.lint._requests import Body
from dra_alloc.lint._world import Row

__all__ = ["Value", "Values", "derived_values", "published", "published_values", "shown_values"]

#: Type and value.
Value = tuple[str, object]
Values = frozenset[Value]

_SCALARS = ("int", "bool", "string", "version")
_LISTS = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}


def published(driver: str, device: Device, name: str) -> DeviceAttribute | None:
    """The attribute of a device by its qualified name, which the driver may leave unqualified in its own domain."""
    found = device.attributes.get(name)
    if found is None and name.startswith(f"{driver}/"):
        found = device.attributes.get(name.removeprefix(f"{driver}/"))
    return found


def published_values(row: Row, name: str, features: Features) -> Values | None:
    """The values of an attribute as published; None if the devices lack it, or it is a list and lists are off."""
    attribute = published(row.driver, row.device, name)
    if attribute is None:
        return None
    for kind in _SCALARS:
        if (value := getattr(attribute, kind)) is not None:
            return frozenset({(kind, value)})
    for kind, single in _LISTS.items():
        if (values := getattr(attribute, kind)) is not None:
            return frozenset((single, value) for value in values) if features.DRAListTypeAttributes else None
    return None


def derived_values(row: Row, body: Body, name: str) -> Values | CelError | None:
    """The values that a request derives (KEP-6080), or why it fails; None if it derives no attribute of this name."""
    from dra_alloc.cel import compile_derived

    for item in body.spec.derived_attributes:
        if item.name == name:
            env = row.env()
            if isinstance(env, CelError):
                return env
            try:
                value = compile_derived(item.expression).evaluate(env)
            except CelError as error:
                return error
            values = value if isinstance(value, tuple) else (value,)
            return frozenset(_tagged(value) for value in values)
    return None


def _tagged(value: object) -> Value:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return "int", int(value)
    if isinstance(value, str):
        return "string", value
    return "version", str(value)


def shown_values(values: Values) -> str:
    """Some of the values, for a message."""
    texts = sorted(repr(value) if kind == "string" else f"{kind} {value}" for kind, value in values)
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
