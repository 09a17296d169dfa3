"""Models made fast are the models that their classes make."""

from __future__ import annotations

import attrs
import pytest

from dra_alloc._make import Maker
from dra_alloc.api import Device, DeviceRequestAllocationResult, NodeSelectorRequirement


def test_what_is_made_equals_what_the_class_makes() -> None:
    values = {"key": "zone", "operator": "In", "values": ("a", "b")}
    made = Maker(NodeSelectorRequirement)(*values.values())
    assert made == NodeSelectorRequirement(**values)
    assert hash(made) == hash(NodeSelectorRequirement(**values))
    assert attrs.evolve(made, operator="NotIn").operator == "NotIn"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.key = "other"


def test_fields_are_in_the_order_of_the_class() -> None:
    fields = [field.name for field in attrs.fields(DeviceRequestAllocationResult)]
    made = Maker(DeviceRequestAllocationResult)(*fields)
    assert [getattr(made, name) for name in fields] == fields


def test_another_number_of_values_is_refused() -> None:
    with pytest.raises(TypeError, match="NodeSelectorRequirement has 3 fields, not 2"):
        Maker(NodeSelectorRequirement)("zone", "In")


def test_classes_that_do_more_are_refused() -> None:
    @attrs.frozen
    class Converted:
        number: int = attrs.field(converter=int)

    @attrs.frozen
    class Hooked:
        number: int

        def __attrs_post_init__(self) -> None:
            raise AssertionError

    @attrs.frozen(slots=False)
    class Open:
        number: int

    with pytest.raises(TypeError, match=r"Converted\.number is not taken as it is given"):
        Maker(Converted)
    for cls in (Hooked, Open):
        with pytest.raises(TypeError, match=f"instances of {cls.__name__} are more than their fields"):
            Maker(cls)
    assert Maker(Device) is not None
