"""From JSON values (dicts, lists, strings, numbers) to API objects: one cattrs converter for each shape of the API.

The hooks take no value for another: a number is no string, `1` is no bool. A DecodeError tells where the fault is; the
path is put together only when the error passes, so that the good case pays nothing for it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeGuard, TypeVar

import attrs
from cattrs import Converter

from dra_alloc import api
from dra_alloc.api import Model, Quantity
from dra_alloc.codec.schema import NOT_KEPT, Field, by_key, is_model, item_of, snake, some_of, value_of
from dra_alloc.codec.versions import LACKING, MISPLACED, Shape
from dra_alloc.errors import DecodeError

__all__ = ["forget", "join", "noting", "plain", "read"]

_M = TypeVar("_M", bound=Model)
Hook = Callable[[Any, Any], Any]

#: Set while somebody wants to know whether a field was left out; the paths are looked for afterwards.
_unknown: ContextVar[list[str] | None] = ContextVar("unknown fields", default=None)

#: Equal attributes, capacities, taints and names are one object: a fleet has a few dozen distinct ones.
_shared: dict[Any, Any] = {}
_SHARED_MOST = 1 << 17


def forget() -> None:
    """Let go of the objects kept for sharing."""
    _shared.clear()


def _share(key: Any, value: Any) -> Any:
    if len(_shared) >= _SHARED_MOST:
        _shared.clear()
    return _shared.setdefault(key, value)


def read(shape: Shape, cls: type[_M], data: object) -> _M:
    """Read an object, or a part of one, of a class from JSON values."""
    try:
        return _converter(shape).get_structure_hook(cls)(data, cls)  # type: ignore[no-any-return]
    except RecursionError:
        raise DecodeError("", "nested too deep") from None


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collect the names of fields that are left out because the API does not know them."""
    names: list[str] = []
    token = _unknown.set(names)
    try:
        yield names
    finally:
        _unknown.reset(token)


def join(head: str, rest: str) -> str:
    """Two parts of a field path in the style of the API server: `spec` and `devices[0]`, `attributes` and `[a/b]`."""
    if not rest or not head:
        return head or rest
    return head + rest if rest[0] == "[" else f"{head}.{rest}"


def _at(segment: str, error: DecodeError) -> DecodeError:
    return DecodeError(join(segment, error.path), error.message, error.hint)


def _is_huge(value: object) -> TypeGuard[int]:
    """Whether a number is too long for a message; Python refuses to write some out at all."""
    return isinstance(value, int) and value.bit_length() > 256


def _found(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if _is_huge(value):
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _wrong(wanted: str, value: object, hint: str = "") -> DecodeError:
    return DecodeError("", f"expected {wanted}, found {_found(value)}", hint)


def _bare(field: str, value: object) -> DecodeError:
    """The error for a value that stands where an object with a field for it belongs."""
    text = "…" if _is_huge(value) else json.dumps(value, ensure_ascii=False)
    return _wrong("an object", value, f"as in {{{field}: {text if len(text) <= 60 else '…'}}}")


def _string(value: Any, _: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    writable = isinstance(value, (bool, int, float)) and not _is_huge(value)
    hint = f'in quotes it is one: "{value}"' if writable else ""
    raise _wrong("a string", value, hint)


def _bool(value: Any, _: Any) -> bool:
    if value is True or value is False:
        return value
    raise _wrong("true or false", value)


def _int(value: Any, _: Any) -> int:
    if type(value) is not int:
        raise _wrong("a whole number", value, "without quotes it is one" if _is_int(value) else "")
    if not -(1 << 63) <= value < 1 << 63:
        raise _wrong("a number of 64 bits", value)
    return value


def _is_int(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value) is not None


def _quantity(value: Any, _: Any) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity.parse(value)


def _time(value: Any, _: Any) -> datetime:
    found = value
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise _wrong("a time", value, "as in 2026-01-31T12:00:00Z") from None
    if not isinstance(found, datetime):
        raise _wrong("a time", value, "as in 2026-01-31T12:00:00Z")
    if found.tzinfo is None:
        raise _wrong("a time with its zone", value, "as in 2026-01-31T12:00:00Z")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise _wrong("a time", value, "from year 1 to year 9999 in UTC") from None


#: Deepest nesting of a JSON value that is handed through, such as the parameters of a driver.
MAX_DEPTH = 100


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of a JSON value that is handed through; views of client libraries become dicts and lists."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if depth >= MAX_DEPTH:
        raise DecodeError("", f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {str(key): plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry, depth + 1) for entry in value]
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise _wrong("a JSON value", value)


def _mapping(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    raise _wrong("an object", value)


def _list_hook(item: Any, converter: Converter) -> Hook:
    hook = converter.get_structure_hook(item)

    def read_list(value: Any, _: Any) -> tuple[Any, ...]:
        if type(value) is not list and not isinstance(value, (list, tuple)):
            raise _wrong("a list", value)
        out = []
        try:
            for entry in value:
                out.append(hook(entry, item))
        except DecodeError as error:
            raise _at(f"[{len(out)}]", error) from None
        return tuple(out)

    return read_list


def _dict_hook(item: Any, converter: Converter) -> Hook:
    hook = converter.get_structure_hook(item)

    def read_dict(value: Any, _: Any) -> dict[str, Any]:
        if type(value) is not dict:
            value = _mapping(value)
        out = {}
        for key, entry in value.items():
            if type(key) is not str:
                raise DecodeError("", f"key {key!r} is not a string", "keys are strings")
            try:
                out[key] = hook(entry, item)
            except DecodeError as error:
                raise _at(f"[{key}]", error) from None
        return out

    return read_dict


def _model_hook(
    cls: type[Model], keys: Mapping[str, Field], misplaced: Mapping[str, str], converter: Converter
) -> Hook:
    """Read an object of the given keys, field by field.

    The hooks of the fields are looked up at first use, for a type may hold itself.
    """
    slots: dict[str, tuple[str, Hook, Any] | None] | None = None
    needed = [field for field in {*keys.values()} if field.required and field.type is Quantity]

    def prepare() -> dict[str, tuple[str, Hook, Any] | None]:
        made: dict[str, tuple[str, Hook, Any] | None] = {}
        for key in NOT_KEPT.get(cls, ()):
            made[key] = made[snake(key)] = None
        for key, field in keys.items():
            made[key] = (field.name, converter.get_structure_hook(field.type), field.type)
        return made

    def read_model(value: Any, _: Any) -> Any:
        if type(value) is cls:
            return value
        if type(value) is not dict:
            value = _mapping(value)
        nonlocal slots
        if slots is None:  # threads may come here together: each makes a whole table
            slots = prepare()
        given: dict[str, Any] = {}
        for key, entry in value.items():
            if entry is None:
                continue
            try:
                slot = slots[key]
            except KeyError:
                _leave_out(key, misplaced)
                continue
            if slot is None:
                continue
            name, hook, kind = slot
            if name in given:
                raise DecodeError(key, "given twice, in camelCase and in snake_case")
            try:
                given[name] = hook(entry, kind)
            except DecodeError as error:
                raise _at(key, error) from None
        for field in needed:
            if field.name not in given:
                raise DecodeError(field.json, "is missing", "a quantity such as 80Gi")
        return cls(**given)

    return read_model


def _leave_out(key: Any, misplaced: Mapping[str, str]) -> None:
    """Drop a field that the class does not have, unless another version of the API has it."""
    if key in misplaced:
        raise DecodeError(str(key), "has no place here in this API version", misplaced[key])
    names = _unknown.get()
    if names is not None:
        names.append(str(key))


#: The attribute values that are shared.
_SCALARS = frozenset({"string", "int", "bool", "version"})

#: The field of an attribute for a value that was given without it.
_PLAIN: Mapping[type, str] = {str: "string", int: "int", bool: "bool"}


def _attribute_hook(general: Hook) -> Hook:
    """Attributes of one plain value are shared; the type is a part of the key, for True and 1 are equal."""

    def read_attribute(value: Any, kind: Any) -> Any:
        if type(value) is dict and len(value) == 1:
            ((name, entry),) = value.items()
            if name in _SCALARS:
                key = (name, type(entry), entry)
                try:
                    return _shared[key]
                except KeyError:
                    return _share(key, general(value, kind))
                except TypeError:
                    pass  # a list or an object, which the general way refuses
        elif type(value) in _PLAIN:
            raise _bare(_PLAIN[type(value)], value)
        return general(value, kind)

    return read_attribute


def _amount_hook(cls: type[Model], general: Hook) -> Hook:
    """Capacities and counters are shared when they are spelled alike: equal amounts may be spelled in several ways."""

    def read_amount(value: Any, kind: Any) -> Any:
        if type(value) is not dict:
            if isinstance(value, (str, int, float)):
                raise _bare("value", value)
            return general(value, kind)
        amount = value.get("value")
        try:
            key = (cls, amount) if len(value) == 1 and type(amount) is str else (cls, repr(value))
        except ValueError:  # a number too long to be written out, which the general way refuses
            return general(value, kind)
        found = _shared.get(key)
        if found is not None:
            return found
        names = _unknown.get()
        before = len(names) if names is not None else 0
        found = general(value, kind)
        return _share(key, found) if names is None or len(names) == before else found

    return read_amount


def _hashed_hook(cls: type[Model], general: Hook) -> Hook:
    """Equal objects of a class without dicts and quantities in it are shared."""

    def read_hashed(value: Any, kind: Any) -> Any:
        found = general(value, kind)
        return _share((cls, found), found)

    return read_hashed


def _row_hook(general: Hook) -> Hook:
    """Maps with the same (shared) values are shared themselves. The map keeps its values alive, and so their ids."""

    def read_row(value: Any, kind: Any) -> Any:
        found = general(value, kind)
        return _share((*found, *map(id, found.values())), found)

    return read_row


def _wrapped_device_hook(outer: Hook, inner: Hook) -> Hook:
    """A device of v1beta1: its fields are under `basic`."""

    def read_device(value: Any, kind: Any) -> Any:
        value = dict(_mapping(value))
        basic = value.pop("basic", None)
        device = outer(value, kind)
        if basic is None:
            return device
        try:
            return attrs.evolve(inner(basic, kind), name=device.name)
        except DecodeError as error:
            raise _at("basic", error) from None

    return read_device


def _flat_request_hook(outer: Hook, exact: Hook) -> Hook:
    """A request of v1beta1: the fields of `exactly` are its own."""
    own = by_key(api.ExactDeviceRequest)

    def read_request(value: Any, kind: Any) -> Any:
        value = _mapping(value)
        flat = {key: entry for key, entry in value.items() if key in own and entry is not None}
        request = outer({key: entry for key, entry in value.items() if key not in own}, kind)
        return attrs.evolve(request, exactly=exact(flat, api.ExactDeviceRequest)) if flat else request

    return read_request


def _plain_capacity(value: Any, _: Any) -> Any:
    """A capacity of v1alpha3: a quantity and nothing else."""
    if isinstance(value, Mapping):
        raise _wrong("a quantity", value, "v1alpha3 has plain quantities here; {value: …} is of resource.k8s.io/v1")
    return api.DeviceCapacity(value=_quantity(value, None))


@cache
def _converter(shape: Shape) -> Converter:
    made = Converter()
    made.register_structure_hook(str, _string)
    made.register_structure_hook(bool, _bool)
    made.register_structure_hook(int, _int)
    made.register_structure_hook(Quantity, _quantity)
    made.register_structure_hook(datetime, _time)
    made.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: plain(value))
    made.register_structure_hook_factory(is_model, lambda cls: _hook_of_model(shape, cls, made))
    made.register_structure_hook_factory(item_of, lambda kind: _list_hook(item_of(kind), made))
    made.register_structure_hook_factory(value_of, lambda kind: _hook_of_dict(value_of(kind), made))
    made.register_structure_hook_factory(some_of, lambda kind: made.get_structure_hook(some_of(kind)))
    return made


def _hook_of_dict(item: Any, converter: Converter) -> Hook:
    hook = _dict_hook(item, converter)
    return _row_hook(hook) if item in (api.DeviceCapacity, api.Counter) else hook


def _hook_of_model(shape: Shape, cls: type[Model], converter: Converter) -> Hook:
    """The hook of a class in a shape."""
    misplaced = {key: hint for (place, key), hint in MISPLACED[shape].items() if place is cls}
    keys = {key: field for key, field in by_key(cls).items() if key not in misplaced}
    hook = _model_hook(cls, keys, misplaced, converter)
    if cls is api.DeviceAttribute:
        return _attribute_hook(hook)
    if cls is api.DeviceCapacity and shape is Shape.V1ALPHA3:
        return _plain_capacity
    if cls in (api.DeviceCapacity, api.Counter):
        return _amount_hook(cls, hook)
    if cls in (api.DeviceTaint, api.DeviceToleration, api.ResourcePool, api.NodeSelector, api.OwnerReference):
        return _hashed_hook(cls, hook)
    if shape is Shape.V1:
        return hook
    if cls is api.Device:
        lacking = LACKING[shape].get(cls, frozenset())
        basic = {key: field for key, field in by_key(cls).items() if field.name != "name" and field.name not in lacking}
        gone = {key: MISPLACED[shape][cls, key] for key, field in by_key(cls).items() if field.name in lacking}
        gone["name"] = "the name stands beside `basic`"
        return _wrapped_device_hook(hook, _model_hook(cls, basic, gone, converter))
    if cls is api.DeviceRequest:
        return _flat_request_hook(hook, converter.get_structure_hook(api.ExactDeviceRequest))
    return hook
