"""Attributes and amounts in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from dra_alloc.cel import compile_selector
from dra_alloc.errors import CelError
from dra_alloc.rules import namesake

if TYPE_CHECKING:
    from dra_alloc.api import Device, DeviceAttribute, Quantity

Entry = TypeVar("Entry")

__all__ = ["attribute_text", "quantity_like", "value_text"]


def quantity_like(model: Quantity, nano: int) -> str:
    """An amount in the spelling of another."""
    return str(model.with_nano(nano))


def value_text(attribute: DeviceAttribute) -> str:
    """The value of an attribute, as CEL would write it; versions as their text."""
    for several in (attribute.strings, attribute.versions, attribute.ints, attribute.bools):
        if several:
            return "[" + ", ".join(_literal(value) for value in several) + "]"
    for single in (attribute.int, attribute.bool, attribute.string, attribute.version):
        if single is not None:
            return _literal(single)
    return "without a value"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def attribute_text(device: Device, driver: str, expression: str) -> str:
    """What a device has of the attributes that an expression reads: `model is "a100", numa is not there`.

    Of one that the device has in another domain than the expression says, both are told.
    """
    attributes, capacities = _read(expression)
    said = [_said(device.attributes, driver, read, value_text) for read in attributes]
    said += [_said(device.capacity, driver, read, lambda capacity: str(capacity.value)) for read in capacities]
    return ", ".join(said)


def _said(entries: Mapping[str, Entry], driver: str, read: tuple[str, str], text: Callable[[Entry], str]) -> str:
    domain, name = read
    found = _entry(entries, driver, domain, name)
    if found is not None:
        return f"{name} is {text(found)}"
    other = namesake(entries, domain, name, driver)
    return f"{name} is not there" if other is None else f"{domain}/{name} is not there, {other} is"


def _entry(entries: Mapping[str, Entry], driver: str, domain: str, name: str) -> Entry | None:
    found = entries.get(f"{domain}/{name}" if domain else name)
    return entries.get(name) if found is None and domain == driver else found


@lru_cache(maxsize=4096)
def _read(expression: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    try:
        reads = compile_selector(expression).reads
    except CelError:
        return [], []
    return sorted(reads.attributes), sorted(reads.capacity)
