"""`DeviceEnv`: what expressions see of a device, as native values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from dra_alloc.cel.values import INT_MAX, INT_MIN, DomainMap, Quantity, Semver, Value
from dra_alloc.errors import CelError, DecodeError

if TYPE_CHECKING:
    from dra_alloc.api import Device, DeviceAttribute

__all__ = ["DeviceEnv", "EnvTable", "device_env", "device_env_from_dict"]

#: Bounds of the API. The estimated cost of an expression holds for devices within them; on others, costs are counted.
MAX_ENTRIES: Final = 32
MAX_DOMAIN: Final = 63
MAX_NAME: Final = 32
MAX_DRIVER: Final = 63
MAX_VALUE: Final = 64


class DeviceEnv:
    """A device as the variable `device`: made once, shared by all expressions, never changed.

    driver: its name. allow_multiple: `device.allowMultipleAllocations`. attributes, capacity: by domain and name.
    within_limits: whether the device is within the limits of the API.
    """

    __slots__ = ("allow_multiple", "attributes", "capacity", "driver", "within_limits")

    def __init__(self, driver: str, allow_multiple: bool, attributes: DomainMap, capacity: DomainMap) -> None:
        self.driver = driver
        self.allow_multiple = allow_multiple
        self.attributes = attributes
        self.capacity = capacity
        self.within_limits = len(driver) <= MAX_DRIVER and _bounded(attributes) and _bounded(capacity)

    def row(self) -> tuple[object, ...]:
        """All that the expressions can see, as a hashable value."""
        return (
            self.driver,
            self.allow_multiple,
            _row(self.attributes),
            _row(self.capacity),
        )


def _row(domains: DomainMap) -> tuple[object, ...]:
    return tuple(
        (domain, name, distinct(value)) for domain, values in domains.items() for name, value in values.items()
    )


def distinct(value: Value) -> Hashable:
    """A value so that what CEL can tell apart is unequal in Python too: 1, true, "1", a list, spellings of amounts."""
    kind = type(value)
    if kind is str:
        key: Hashable = value
        return key
    if kind is tuple:
        return (kind, type(value[0]) if value else None, value)
    if kind is Quantity:
        return (kind, value.nano, value.format)
    return (kind, value)


class EnvTable:
    """One environment for all devices of equal rows, so that their verdicts are found by identity."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], DeviceEnv] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def intern(self, env: DeviceEnv) -> DeviceEnv:
        """The environment that stands for all with the same row."""
        return self._rows.setdefault(env.row(), env)


def _bounded(domains: DomainMap) -> bool:
    count = 0
    for domain, values in domains.items():
        count += len(values)
        if len(domain) > MAX_DOMAIN:
            return False
        for name, value in values.items():
            if len(name) > MAX_NAME:
                return False
            kind = type(value)
            if kind is str:
                if len(value) > MAX_VALUE:
                    return False
            elif kind is tuple and (
                len(value) > MAX_VALUE or any(type(element) is str and len(element) > MAX_VALUE for element in value)
            ):
                return False
    return count <= MAX_ENTRIES


def device_env(driver: str, device: Device, *, list_attributes: bool = True) -> DeviceEnv:
    """The environment of a device of a driver.

    Names without a domain are in the domain of the driver; one that is spelled with it wins. Raises CelError for an
    attribute without a value of a known type (without `list_attributes`, lists are unknown), or whose version is no
    semantic version: such a device fails every selector.
    """
    attributes = DomainMap()
    for domain, name, attribute in _qualified(driver, device.attributes):
        attributes.setdefault(domain, {})[name] = _value(name, attribute, list_attributes)
    capacity = DomainMap()
    for domain, name, held in _qualified(driver, device.capacity):
        capacity.setdefault(domain, {})[name] = held.value
    return DeviceEnv(driver, bool(device.allow_multiple_allocations), attributes, capacity)


def _qualified(driver: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    prefix = f"{driver}/"
    for key, value in entries.items():
        domain, slash, name = key.partition("/")
        if slash:
            yield domain, name, value
        elif prefix + key not in entries:
            yield driver, key, value


def _value(name: str, attribute: DeviceAttribute, list_attributes: bool) -> Value:
    if list_attributes:
        if attribute.ints is not None:
            return attribute.ints
        if attribute.bools is not None:
            return attribute.bools
        if attribute.strings is not None:
            return attribute.strings
        if attribute.versions is not None:
            return tuple(_version(name, text) for text in attribute.versions)
    if attribute.int is not None:
        return attribute.int
    if attribute.bool is not None:
        return attribute.bool
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _version(name, attribute.version)
    raise CelError(f"attribute {name}: no value of a known type (int, bool, string, version, or a list of one)")


def _version(name: str, text: str) -> Semver:
    try:
        return Semver.parse(text)
    except ValueError as error:
        raise CelError(f"attribute {name}: {error}") from None


class _Plain:
    """A part of a device in Kubernetes JSON form, read like the model of it."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        value = self.fields.get(name)
        return tuple(value) if isinstance(value, list) else value


def device_env_from_dict(driver: str, device: Mapping[str, Any], *, list_attributes: bool = True) -> DeviceEnv:
    """`device_env` of a device in Kubernetes JSON form (`attributes`, `capacity`, `allowMultipleAllocations`).

    Raises CelError for an attribute without a value of a known type, a version that is none, or a capacity that is no
    quantity.
    """
    attributes = DomainMap()
    for domain, name, fields in _qualified(driver, device.get("attributes") or {}):
        value: Any = _Plain(fields)
        attributes.setdefault(domain, {})[name] = _checked(name, _value(name, value, list_attributes))
    capacity = DomainMap()
    for domain, name, fields in _qualified(driver, device.get("capacity") or {}):
        try:
            capacity.setdefault(domain, {})[name] = Quantity.parse(fields["value"])
        except (DecodeError, KeyError, TypeError) as error:
            raise CelError(f"capacity {name}: {error}") from None
    return DeviceEnv(driver, device.get("allowMultipleAllocations") is True, attributes, capacity)


def _checked(name: str, value: Value) -> Value:
    elements = value if type(value) is tuple else (value,)
    for element in elements:
        wrong = type(element) not in (int, bool, str, Semver)
        if wrong or (type(element) is int and not INT_MIN <= element <= INT_MAX):
            raise CelError(f"attribute {name}: {element!r} is not a value of an attribute")
    return value
