"""Rule 7: how much of each capacity a request consumes, and whether the device has it. All amounts are in nanos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dra_alloc.api import CapacityRequestPolicy, DeviceCapacity, DeviceRequestAllocationResult
from dra_alloc.gates import Features
from dra_alloc.testing._plain.picks import Picks
from dra_alloc.testing._plain.pools import Offer
from dra_alloc.testing._plain.requests import Want

_WHOLE = 10**9


def check_capacity_request(want: Want, offer: Offer) -> None:
    """Raise for amounts that make no sense for a device of this driver."""
    if want.capacity is None:
        return
    names = [_qualified(name, offer) for name in want.capacity.requests]
    if len(names) != len(set(names)):
        raise want.error("capacity", "a capacity is requested both with and without its domain", offer)
    for name, amount in want.capacity.requests.items():
        if amount.nano < 0:
            raise want.error("capacity", f"capacity {name}: the amount {amount} is negative", offer)


def capacity_fits(want: Want, offer: Offer, used: dict[str, int], features: Features) -> bool:
    """Whether the device has every capacity that the request names, and enough of all besides what is used."""
    if not features.DRAConsumableCapacity:
        return True
    published = _published(offer)
    requested = want.capacity.requests if want.capacity else {}
    return all(_qualified(name, offer) in published for name in requested) and all(
        valid and amount + used.get(_qualified(name, offer), 0) <= capacity.value.nano
        for name, capacity, amount, valid in _amounts(want, offer, features)
    )


def consumed(want: Want, offer: Offer, features: Features) -> dict[str, int]:
    """What the request consumes of each capacity, by the name that the device publishes."""
    return {name: amount for name, _, amount, _ in _amounts(want, offer, features)}


def shares_in_use(offer: Offer, held: Iterable[DeviceRequestAllocationResult], picks: Picks) -> dict[str, int]:
    """What is in use of each capacity of the device, by qualified name; amounts below zero make no room."""
    uses = [{name: amount.nano for name, amount in result.consumed_capacity.items()} for result in held]
    uses += [pick.consumed for pick in picks if pick.offer is offer and not pick.want.admin]
    total: dict[str, int] = {}
    for use in uses:
        for name, amount in use.items():
            key = _qualified(name, offer)
            total[key] = total.get(key, 0) + max(0, amount)
    return total


def _amounts(want: Want, offer: Offer, features: Features) -> Iterator[tuple[str, DeviceCapacity, int, bool]]:
    """Name, capacity, amount consumed of it, and whether its policy allows the amount."""
    requested = want.capacity.requests if want.capacity else {}
    asked = {_qualified(name, offer): amount.nano for name, amount in requested.items()}
    for qualified, (name, capacity) in _published(offer).items():
        yield name, capacity, *_amount(asked.get(qualified), capacity, features)


def _amount(asked: int | None, capacity: DeviceCapacity, features: Features) -> tuple[int, bool]:
    policy = capacity.request_policy
    if asked is None:
        whole = capacity.value.nano
        if policy is None:
            return whole, True
        if policy.default is not None:
            return policy.default.nano, True
        return whole, _may_be_whole(whole, policy, features)
    if policy is None:
        return asked, True
    amount, valid = _by_policy(asked, policy, features)
    return amount, valid or (policy.default is not None and amount == policy.default.nano)


def _may_be_whole(whole: int, policy: CapacityRequestPolicy, features: Features) -> bool:
    """Whether a request that says nothing may consume all there is, where the policy has no default."""
    if policy.valid_range is not None:
        least, step, most = policy.valid_range.min, policy.valid_range.step, policy.valid_range.max
        too_much = most is not None and whole > most.nano
        rest = (_step(whole, features) - _step(least.nano, features)) % (_step(step.nano, features) or 1) if step else 0
        return not too_much and rest == 0
    return not policy.valid_values or whole in [value.nano for value in policy.valid_values]


def _by_policy(asked: int, policy: CapacityRequestPolicy, features: Features) -> tuple[int, bool]:
    if policy.valid_range is not None:
        least = _step(policy.valid_range.min.nano, features)
        step = _step(policy.valid_range.step.nano, features) if policy.valid_range.step else 0
        amount = max(asked, least)
        if step > 0:
            amount = least + -(-(amount - least) // step) * step
        most = policy.valid_range.max
        return amount, most is None or amount <= most.nano
    if policy.valid_values:
        enough = [value.nano for value in policy.valid_values if value.nano >= asked]
        return (min(enough), True) if enough else (asked, False)
    return asked, True


def _step(nano: int, features: Features) -> int:
    """Without the feature, ranges know whole numbers only."""
    return nano if features.DRAFractionalCapacityRange else -(-nano // _WHOLE) * _WHOLE


def _published(offer: Offer) -> dict[str, tuple[str, DeviceCapacity]]:
    """Published name and capacity by qualified name; an entry that is qualified goes before one that is not."""
    found: dict[str, tuple[str, DeviceCapacity]] = {}
    for name, capacity in offer.device.capacity.items():
        qualified = _qualified(name, offer)
        if name == qualified or qualified not in offer.device.capacity:
            found[qualified] = name, capacity
    return found


def _qualified(name: str, offer: Offer) -> str:
    return name if "/" in name else f"{offer.pool.driver}/{name}"
