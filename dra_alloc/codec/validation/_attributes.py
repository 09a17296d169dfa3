"""Attributes of devices: names, numbers, values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dra_alloc.api import Device, DeviceAttribute
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._problems import Problem, at, each
from dra_alloc.gates import Features

__all__ = ["attribute", "is_list", "names_and_values"]

ATTRIBUTES_MAX = 32
ATTRIBUTE_VALUES_MAX = 48


def is_list(attribute: DeviceAttribute) -> bool:
    """Whether it has a value in list form, be it empty."""
    return (
        attribute.ints is not None
        or attribute.bools is not None
        or attribute.strings is not None
        or attribute.versions is not None
    )


def names_and_values(device: Device) -> Iterator[Problem]:
    """Names of attributes, and how many attributes, capacities and values a device has."""
    names = len(device.attributes) + len(device.capacity)
    if names > ATTRIBUTES_MAX:
        yield Problem("", f"has {names} attributes and capacities together", f"at most {ATTRIBUTES_MAX}")
    values = len(device.attributes) + sum(
        _number_of_values(attribute) - 1 for attribute in device.attributes.values() if is_list(attribute)
    )
    if values > ATTRIBUTE_VALUES_MAX:
        yield Problem("", f"has {values} attribute values", f"at most {ATTRIBUTE_VALUES_MAX}, list items one by one")
    for name in device.attributes:
        if problems := formats.qualified_name(name):
            yield from at("attributes", problems)


def _number_of_values(attribute: DeviceAttribute) -> int:
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    return sum(len(values) for values in lists if values is not None) or 1


_NO_LISTS = "; lists need the feature gate DRAListTypeAttributes"


def attribute(value: DeviceAttribute, features: Features) -> list[Problem]:
    """Problems of an attribute, as a list, since there are hundreds of thousands and next to none has any."""
    problems: list[Problem] = []
    fields = 0
    if value.int is not None:
        fields += 1
    if value.bool is not None:
        fields += 1
    if value.string is not None:
        fields += 1
        problems.extend(at("string", formats.text(value.string)))
    if value.version is not None:
        fields += 1
        problems.extend(at("version", formats.version(value.version)))
    if fields != 1 or is_list(value):
        problems.extend(_list_attribute(value))
        fields += sum(item is not None for item in (value.ints, value.bools, value.strings, value.versions))
    if fields != 1:
        hint = "exactly one of int, bool, string, version"
        hint += ", ints, bools, strings, versions" if features.DRAListTypeAttributes else _NO_LISTS
        problems.append(Problem("", f"has {fields} values" if fields else "has no value", hint))
    return problems


def _list_attribute(value: DeviceAttribute) -> Iterator[Problem]:
    lists: Mapping[str, Sequence[object] | None] = {
        "ints": value.ints,
        "bools": value.bools,
        "strings": value.strings,
        "versions": value.versions,
    }
    for field, items in lists.items():
        if items is not None and not items:
            yield from at(field, [Problem("", "is empty", "at least one value")])
    yield from each(value.strings or (), formats.text, "strings")
    yield from each(value.versions or (), formats.version, "versions")
