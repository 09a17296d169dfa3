"""What a question sees of a device is told by content, whatever objects hold it."""

from __future__ import annotations

import attrs
import pytest

from dra_alloc._rows import Reader
from dra_alloc.api import Device, DeviceAttribute, DeviceCapacity, DeviceTaint, Quantity

READ = [("gpu.example.com", "model"), ("", "model")]


@attrs.frozen(kw_only=True)
class Special(Device):
    """A device of somebody's own class."""


@attrs.frozen(kw_only=True)
class SpecialAttribute(DeviceAttribute):
    """An attribute of somebody's own class."""


def reader(*, reads_all: bool = False) -> Reader:
    return Reader(READ, reads_all, lambda value: value.version != "one")


def key(reader: Reader, device: Device, taints: tuple[DeviceTaint, ...] = ()) -> bytes:
    (found,) = reader.keys("gpu.example.com", (device,), (taints,))
    return found


def device(name: str = "gpu-0", cls: type[Device] = Device, **fields: object) -> Device:
    return cls(name=name, **{"attributes": {"model": DeviceAttribute(string="a")}, **fields})


def test_equal_content_has_an_equal_key_of_whatever_class() -> None:
    one = reader()
    capacity = {"memory": DeviceCapacity(value=Quantity.parse("1Gi"))}
    plain = key(one, device(capacity=capacity))
    assert plain == key(one, device("gpu-1", capacity={"memory": DeviceCapacity(value=Quantity.parse("1024Mi"))}))
    assert plain == key(one, device(cls=Special, capacity=capacity))
    assert plain == key(one, device(attributes={"model": SpecialAttribute(string="a")}, capacity=capacity))
    qualified = {"gpu.example.com/model": DeviceAttribute(string="a")}
    assert plain != key(one, device(attributes=qualified, capacity=capacity)), "the spellings are two attributes"


def test_what_a_question_can_tell_apart_has_another_key() -> None:
    one = reader()
    kinds = [DeviceAttribute(string="1"), DeviceAttribute(int=1), DeviceAttribute(bool=True)]
    kinds += [DeviceAttribute(version="1.0.0"), DeviceAttribute(strings=("1",)), DeviceAttribute(ints=(1,))]
    devices = [device(attributes={"model": kind}) for kind in kinds]
    devices += [device(attributes={}), device(allow_multiple_allocations=True), device(binding_conditions=("ready",))]
    devices += [device(capacity={"memory": DeviceCapacity(value=Quantity.parse(size))}) for size in ("1Gi", "2Gi")]
    devices += [device(capacity={"cores": DeviceCapacity(value=Quantity.parse("1Gi"))})]
    keys = [key(one, each) for each in devices]
    taints = (DeviceTaint(key="broken", effect="NoSchedule"),)
    keys.append(key(one, device(), taints))
    assert len(set(keys)) == len(keys)
    assert keys == [*(key(one, each) for each in devices), key(one, device(), taints)], "they stay what they are"


def test_what_is_not_read_makes_no_difference_unless_it_is_malformed() -> None:
    one = reader()
    shown = {"model": DeviceAttribute(string="a")}
    assert key(one, device(attributes={**shown, "uuid": DeviceAttribute(string="x")})) == key(one, device())
    assert key(one, device(attributes={**shown, "driver": DeviceAttribute(version="1.0.0")})) == key(one, device())
    assert key(one, device(attributes={**shown, "driver": DeviceAttribute(version="one")})) != key(one, device())


def test_where_everything_may_be_read_every_device_is_its_own() -> None:
    one = reader(reads_all=True)
    first, second = device(), device()
    assert key(one, first) != key(one, second)
    assert key(one, first) == key(one, first)


def test_rows_are_made_once_a_key() -> None:
    made: list[str] = []

    def compile_row(driver: str, device: Device, taints: tuple[DeviceTaint, ...]) -> int:
        made.append(device.name)
        return len(made)

    one, known = reader(), {}
    devices = (device("a"), device("b"), device("c", attributes={}))
    assert one.rows("gpu.example.com", devices, ((),) * 3, known, compile_row) == [1, 1, 2]
    assert one.rows("gpu.example.com", devices, ((),) * 3, known, compile_row) == [1, 1, 2]
    assert made == ["a", "c"]


def test_devices_that_are_none_are_an_error_and_no_crash() -> None:
    for devices in ((object(),), (None,), ("gpu-0",)):
        with pytest.raises(AttributeError):
            reader().keys("gpu.example.com", devices, ((),))
    with pytest.raises(TypeError):
        reader().keys("gpu.example.com", (device(attributes=[1]),), ((),))
