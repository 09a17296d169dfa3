"""The rules for a single device, apart from what is in use: taints, amounts of capacities, values of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dra_alloc.api import (
        CapacityRequestPolicy,
        Device,
        DeviceAttribute,
        DeviceCapacity,
        DeviceTaint,
        DeviceToleration,
        Quantity,
        Taint,
        Toleration,
    )
    from dra_alloc.gates import Features

__all__ = [
    "BLOCKING_EFFECTS",
    "AttributeValues",
    "attribute_values",
    "capacity_fault",
    "consumed_amount",
    "derived_values",
    "namesake",
    "published_capacities",
    "qualified",
    "tolerated",
    "tolerates",
]

#: Effects that keep a device from requests which do not tolerate the taint; `None` and unknown effects do not.
BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})

_WHOLE = 10**9

#: The values of an attribute, each with the name of its type.
AttributeValues = frozenset[tuple[str, object]]


def qualified(name: str, driver: str) -> str:
    """The qualified form of an attribute or capacity name of a driver."""
    return name if "/" in name else f"{driver}/{name}"


def namesake(names: Iterable[str], domain: str, name: str, driver: str) -> str | None:
    """The qualified form of a published name that is spelt like a wanted one, but of another domain."""
    for published in names:
        other = qualified(published, driver)
        if other.rpartition("/")[2] == name and other != f"{domain}/{name}":
            return other
    return None


def tolerated(taint: DeviceTaint | Taint, tolerations: Sequence[DeviceToleration | Toleration]) -> bool:
    """Whether a taint keeps nobody with these tolerations away: it is information only, or tolerated.

    Taints of devices (KEP-5055) are judged as those of nodes are.
    """
    return taint.effect not in BLOCKING_EFFECTS or any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: DeviceToleration | Toleration, taint: DeviceTaint | Taint) -> bool:
    """Whether a toleration matches a taint: effect, then key (empty: any), then operator.

    `Equal`, the default, compares values (absent is empty); `Exists` takes every value; another operator matches
    nothing. `tolerationSeconds` is not looked at.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (taint.value or "")


def published_capacities(device: Device, driver: str) -> dict[str, tuple[str, DeviceCapacity]]:
    """Capacities by qualified name, with the name as published. A qualified entry hides the other spelling."""
    found: dict[str, tuple[str, DeviceCapacity]] = {}
    for name, capacity in device.capacity.items():
        full = qualified(name, driver)
        if full == name or full not in device.capacity:
            found[full] = name, capacity
    return found


def capacity_fault(capacity: Sequence[tuple[str, int]], driver: str) -> str:
    """What is wrong with the capacities that a request names, on devices of a driver; empty if nothing is."""
    names = [qualified(name, driver) for name, _ in capacity]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        return f"capacity {twice} is requested both with and without its domain; name it once"
    for name, nano in capacity:
        if nano < 0:
            return f"the amount of capacity {name} is negative; it must be at least 0"
    return ""


def consumed_amount(asked: int | None, capacity: DeviceCapacity, features: Features) -> int | None:
    """How much of a capacity a request consumes, in nanos (KEP-5075); None if the policy allows no such amount."""
    policy = capacity.request_policy
    if asked is None:
        if policy is None:
            return capacity.value.nano
        if policy.default is not None:
            return policy.default.nano
        # The API wants a default of every range and list of values. Without one it is the whole value, as it is.
        return capacity.value.nano if _allows(capacity.value, policy, features) else None
    if policy is None:
        return asked
    amount, valid = _by_policy(asked, policy, features)
    if valid or (policy.default is not None and amount == policy.default.nano):
        return amount
    return None


def _by_policy(asked: int, policy: CapacityRequestPolicy, features: Features) -> tuple[int, bool]:
    if policy.valid_range is not None:
        least = _granular(policy.valid_range.min, features)
        step = _granular(policy.valid_range.step, features) if policy.valid_range.step is not None else 0
        amount = max(asked, least)
        if step > 0:
            amount = least + -((least - amount) // step) * step
        return amount, policy.valid_range.max is None or amount <= policy.valid_range.max.nano
    if policy.valid_values:
        enough = [value.nano for value in policy.valid_values if value.nano >= asked]
        return (min(enough), True) if enough else (asked, False)
    return asked, True


def _allows(amount: Quantity, policy: CapacityRequestPolicy, features: Features) -> bool:
    """Whether a policy allows just this amount."""
    allowed = policy.valid_range
    if allowed is not None:
        if allowed.max is not None and amount.nano > allowed.max.nano:
            return False
        step = _granular(allowed.step, features) if allowed.step is not None else 0
        return step <= 0 or (_granular(amount, features) - _granular(allowed.min, features)) % step == 0
    return not policy.valid_values or any(amount.nano == value.nano for value in policy.valid_values)


def _granular(amount: Quantity, features: Features) -> int:
    """Without DRAFractionalCapacityRange, minimum and step of a range count in whole numbers."""
    return amount.nano if features.DRAFractionalCapacityRange else -(-amount.nano // _WHOLE) * _WHOLE


def attribute_values(attribute: DeviceAttribute, lists: bool) -> AttributeValues:
    for kind, items in (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    ):
        if items:
            return frozenset((kind, item) for item in items) if lists else frozenset()
    for kind, value in (
        ("int", attribute.int),
        ("bool", attribute.bool),
        ("string", attribute.string),
        ("version", attribute.version),
    ):
        if value is not None:
            return frozenset(((kind, value),))
    return frozenset()


def derived_values(value: object, lists: bool) -> AttributeValues:
    if isinstance(value, tuple):
        return frozenset(map(_typed, value)) if lists else frozenset()
    return frozenset((_typed(value),))


def _typed(value: object) -> tuple[str, object]:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return "int", value
    if isinstance(value, str):
        return "string", value
    return "version", str(value)
