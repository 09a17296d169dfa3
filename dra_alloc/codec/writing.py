"""From API objects to the JSON form of an API version: one cattrs converter for each shape of the API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from cattrs import Converter

from dra_alloc import api
from dra_alloc.api import Model, Quantity
from dra_alloc.codec.reading import join, plain
from dra_alloc.codec.schema import fields, is_model, item_of, some_of, value_of
from dra_alloc.codec.versions import LACKING, Shape
from dra_alloc.errors import DecodeError

__all__ = ["write"]

Hook = Callable[[Any], Any]


def write(shape: Shape, obj: Model) -> dict[str, Any]:
    """The JSON form of an object or a part of one. Raises DecodeError for a field that the shape has no place for."""
    written: dict[str, Any] = _converter(shape).get_unstructure_hook(type(obj))(obj)
    return written


def _time(value: datetime) -> str:
    """Times of the API have whole seconds, in UTC."""
    return value.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _list_hook(item: Any, converter: Converter) -> Hook:
    hook = converter.get_unstructure_hook(item)

    def write_list(value: tuple[Any, ...]) -> list[Any]:
        out = []
        try:
            for entry in value:
                out.append(hook(entry))
        except DecodeError as error:
            raise DecodeError(join(f"[{len(out)}]", error.path), error.message, error.hint) from None
        return out

    return write_list


def _dict_hook(item: Any, converter: Converter) -> Hook:
    hook = converter.get_unstructure_hook(item)

    def write_dict(value: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for key, entry in value.items():
            try:
                out[key] = hook(entry)
            except DecodeError as error:
                raise DecodeError(join(f"[{key}]", error.path), error.message, error.hint) from None
        return out

    return write_dict


def _model_hook(shape: Shape, cls: type[Model], converter: Converter) -> Hook:
    """Write an object field by field, but for fields that hold what absence means."""
    lacking = LACKING[shape].get(cls, frozenset())
    slots: list[tuple[str, str, Any, bool, Hook]] | None = None

    def prepare() -> list[tuple[str, str, Any, bool, Hook]]:
        return [
            (field.name, field.json, field.default_value, field.required, converter.get_unstructure_hook(field.type))
            for field in fields(cls)
        ]

    def write_model(value: Any) -> dict[str, Any]:
        nonlocal slots
        if slots is None:  # threads may come here together: each makes a whole table
            slots = prepare()
        out = {}
        for name, json, default, required, hook in slots:
            entry = getattr(value, name)
            if not required and entry == default:
                continue
            if name in lacking:
                raise DecodeError(json, f"{shape.value} has no such field", "write the object in a newer version")
            try:
                out[json] = hook(entry)
            except DecodeError as error:
                raise DecodeError(join(json, error.path), error.message, error.hint) from None
        return out

    return write_model


def _wrapped_device(plain: Hook) -> Hook:
    """A device of v1beta1: its fields go under `basic`."""

    def write_device(value: api.Device) -> dict[str, Any]:
        try:
            basic = plain(value)
        except DecodeError as error:
            raise DecodeError(join("basic", error.path), error.message, error.hint) from None
        return {"name": basic.pop("name"), "basic": basic}

    return write_device


def _flat_request(plain: Hook) -> Hook:
    """A request of v1beta1: the fields of `exactly` are its own."""

    def write_request(value: api.DeviceRequest) -> dict[str, Any]:
        try:
            out: dict[str, Any] = plain(value)
        except DecodeError as error:
            raise DecodeError(error.path.removeprefix("exactly."), error.message, error.hint) from None
        return {"name": out.pop("name"), **out.pop("exactly", {}), **out}

    return write_request


def _plain_capacity(general: Hook) -> Hook:
    """A capacity of v1alpha3: a quantity and nothing else."""

    def write_capacity(value: api.DeviceCapacity) -> Any:
        return general(value)["value"]

    return write_capacity


@cache
def _converter(shape: Shape) -> Converter:
    made = Converter()
    made.register_unstructure_hook(Quantity, str)
    made.register_unstructure_hook(datetime, _time)
    made.register_unstructure_hook_func(lambda kind: kind is Any, plain)
    made.register_unstructure_hook_factory(is_model, lambda cls: _hook_of_model(shape, cls, made))
    made.register_unstructure_hook_factory(item_of, lambda kind: _list_hook(item_of(kind), made))
    made.register_unstructure_hook_factory(value_of, lambda kind: _dict_hook(value_of(kind), made))
    made.register_unstructure_hook_factory(some_of, lambda kind: made.get_unstructure_hook(some_of(kind)))
    return made


def _hook_of_model(shape: Shape, cls: type[Model], converter: Converter) -> Hook:
    """The hook of a class in a shape."""
    hook = _model_hook(shape, cls, converter)
    if shape is not Shape.V1 and cls is api.Device:
        return _wrapped_device(hook)
    if shape is not Shape.V1 and cls is api.DeviceRequest:
        return _flat_request(hook)
    if shape is Shape.V1ALPHA3 and cls is api.DeviceCapacity:
        return _plain_capacity(hook)
    return hook
