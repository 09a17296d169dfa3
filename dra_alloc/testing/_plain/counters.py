"""Rules 4 and 5: shared counters and compatibility groups."""

from __future__ import annotations

from collections.abc import Collection

from dra_alloc.api import Device
from dra_alloc.testing._plain.picks import Picks
from dra_alloc.testing._plain.pools import DeviceID, Offer


def counters_suffice(offer: Offer, held: Collection[DeviceID], picks: Picks) -> bool:
    """Whether the counters that the device consumes suffice besides what is held and chosen, and its groups agree.

    A device that is held or chosen has been charged: a further share of it needs nothing.
    """
    pool = offer.pool
    placed = {name for driver, owner, name in held if (driver, owner) == (pool.driver, pool.name)}
    placed |= {pick.offer.device.name for pick in picks if pick.offer.pool is pool and not pick.want.admin}
    if offer.device.name in placed:
        return True
    known = {device.name: device for device in pool.devices()}
    if not placed <= set(known):
        return False
    devices = [*(known[name] for name in sorted(placed)), offer.device]
    return _amounts_suffice(offer, devices) and _groups_agree(offer, devices)


def _amounts_suffice(offer: Offer, devices: list[Device]) -> bool:
    limits = offer.pool.counters()
    needed = {(part.counter_set, name) for part in offer.device.consumes_counters for name in part.counters}
    return all(
        sum(
            part.counters[name].value.nano
            for device in devices
            for part in device.consumes_counters
            if part.counter_set == owner and name in part.counters
        )
        <= limits[owner, name]
        for owner, name in needed
    )


def _groups_agree(offer: Offer, devices: list[Device]) -> bool:
    for counter_set in {part.counter_set for part in offer.device.consumes_counters}:
        groups = [
            frozenset(part.compatibility_groups)
            for device in devices
            for part in device.consumes_counters
            if part.counter_set == counter_set
        ]
        if any(groups) and not frozenset.intersection(*groups):
            return False
    return True
