"""What makes a pool: which slices count and what is wrong with them, taints by rules, and its common counters.

`inventory.pyx` compiles pools with these; here is what is not done for every pool, or not device by device.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import gcd
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from dra_alloc.api import Device, DeviceTaint, DeviceTaintRule, ResourceSlice
    from dra_alloc.inventory import PoolTable

__all__ = [
    "AT_ODDS",
    "NARROW",
    "Holding",
    "PoolKey",
    "compile_counters",
    "incomplete_reason",
    "newest",
    "rule_selects",
    "taints_by_rules",
]

#: Driver and pool name.
PoolKey = tuple[str, str]

#: Amounts of common columns stay below this after scaling, so that no sum of them leaves 64 bits.
NARROW = 1 << 58

_layouts: dict[object, int] = {}
_layout_numbers = count()
_MAX_LAYOUTS = 1 << 12


@attrs.frozen
class Holding:
    """Who holds a device.

    whole: keys of the claims that hold all of it. shares: (claim key, share ID, consumed capacity in nanos by name).
    """

    whole: tuple[str, ...] = ()
    shares: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...] = ()

    def claims(self) -> tuple[str, ...]:
        """Keys of all claims that hold the device or a share of it."""
        return tuple(dict.fromkeys((*self.whole, *(share[0] for share in self.shares))))


def newest(slices: Sequence[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    """The slices of the newest generation, by name."""
    latest = max(item.spec.pool.generation for item in slices)
    return tuple(
        sorted((item for item in slices if item.spec.pool.generation == latest), key=lambda item: item.metadata.name)
    )


def incomplete_reason(key: PoolKey, current: Sequence[ResourceSlice]) -> str:
    """How many slices of a pool are missing, or why that cannot be told."""
    wanted = {item.spec.pool.resource_slice_count for item in current}
    generation = current[0].spec.pool.generation
    if len(wanted) > 1:
        counts = ", ".join(str(value) for value in sorted(wanted))
        return (
            f"the slices of pool {key[0]}/{key[1]} disagree on resourceSliceCount ({counts}) at generation {generation}"
        )
    (number,) = wanted
    if number <= 0:
        return f"resourceSliceCount of pool {key[0]}/{key[1]} is {number}; it must be the number of slices of the pool"
    return f"pool {key[0]}/{key[1]} has {len(current)} of {number} slices at generation {generation}"


def taints_by_rules(
    key: PoolKey, devices: Sequence[Device], rules: Sequence[DeviceTaintRule]
) -> tuple[tuple[DeviceTaint, ...], ...]:
    """By device, the taints of its slice and those of the rules that select it."""
    return tuple(
        (*device.taints, *(rule.spec.taint for rule in rules if rule_selects(rule, key, device.name)))
        for device in devices
    )


def rule_selects(rule: DeviceTaintRule, key: PoolKey, device: str) -> bool:
    """Whether a taint rule selects a device: all fields of its selector that are given match; no selector: none."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in (None, key[0])
        and selector.pool in (None, key[1])
        and selector.device in (None, device)
    )


def compile_counters(table: PoolTable) -> None:
    """Fill in counters, or the fault that they have."""
    sets: dict[str, int] = {}
    columns: dict[tuple[str, str], int] = {}
    supply: list[int] = []
    where = f"pool {table.key[0]}/{table.key[1]}"
    for item in table.slices:
        for counter_set in item.spec.shared_counters:
            if counter_set.name in sets:
                _invalidate(table, f"{where} has two counter sets named {counter_set.name!r}")
                return
            sets[counter_set.name] = len(sets)
            for name, counter in counter_set.counters.items():
                if counter.value.nano < 0:
                    _invalidate(table, f"{where}: counter {counter_set.name}/{name} is negative ({counter.value})")
                    return
                columns[counter_set.name, name] = len(supply)
                supply.append(counter.value.nano)
    draws: list[tuple[tuple[int, int], ...]] = []
    memberships: list[tuple[tuple[int, tuple[str, ...]], ...]] = []
    for device in table.devices:
        if not device.consumes_counters:
            draws.append(())
            memberships.append(())
            continue
        amounts: dict[int, int] = {}
        groups: dict[int, list[frozenset[str]]] = {}
        for consumption in device.consumes_counters:
            number = sets.get(consumption.counter_set)
            if number is None:
                missing = f"counter set {consumption.counter_set!r}"
                _invalidate(table, f"{where}: device {device.name} consumes {missing}, which is not there")
                return
            groups.setdefault(number, []).append(frozenset(consumption.compatibility_groups))
            for name, counter in consumption.counters.items():
                column = columns.get((consumption.counter_set, name))
                if column is None:
                    missing = f"counter {consumption.counter_set}/{name}"
                    _invalidate(table, f"{where}: device {device.name} consumes {missing}, which is not there")
                    return
                if counter.value.nano < 0:
                    _invalidate(
                        table,
                        f"{where}: device {device.name} consumes a negative amount of "
                        f"{consumption.counter_set}/{name} ({counter.value})",
                    )
                    return
                amounts[column] = amounts.get(column, 0) + counter.value.nano
        draws.append(tuple(sorted(amounts.items())))
        memberships.append(tuple((number, _common(parts)) for number, parts in sorted(groups.items())))
    table.columns = tuple(columns)
    table.sets = tuple(sets)
    table.supply = tuple(supply)
    table.draws = tuple(draws)
    table.memberships = tuple(memberships)
    _scale(table)
    table.blocks = _blocks(len(sets), memberships)
    key = (table.supply, table.draws, table.memberships)
    if len(_layouts) > _MAX_LAYOUTS:
        _layouts.clear()  # numbers are never used again: equal numbers mean equal layouts for ever
    table.layout = _layouts.setdefault(key, next(_layout_numbers))


#: Stands for groups that nothing can agree with: a device at odds with itself.
AT_ODDS = ("\0",)


def _common(parts: Sequence[frozenset[str]]) -> tuple[str, ...]:
    """Groups of a device on one counter set; several consumptions of one set must agree among themselves."""
    common = frozenset.intersection(*parts)
    if not common and any(parts):
        return AT_ODDS
    return tuple(sorted(common))


def _invalidate(table: PoolTable, reason: str) -> None:
    table.fault, table.reason = "invalid", reason
    table.devices, table.slice_of, table.taints, table.index = (), (), (), {}


def _scale(table: PoolTable) -> None:
    scales = [0] * len(table.supply)
    for draws in table.draws:
        for column, nano in draws:
            scales[column] = gcd(scales[column], nano)
    table.scales = tuple(scale or 1 for scale in scales)
    largest = [0] * len(scales)
    for draws in table.draws:
        for column, nano in draws:
            largest[column] = max(largest[column], min(nano, table.supply[column] + table.scales[column]))
    table.wide = tuple(
        value // scale * (len(table.devices) + 1) >= NARROW for value, scale in zip(largest, table.scales, strict=True)
    )


def _blocks(sets: int, memberships: Sequence[Sequence[tuple[int, tuple[str, ...]]]]) -> tuple[int, ...]:
    """Number of the block of each counter set: sets that one device consumes from are in one block."""
    parent = list(range(sets))

    def root(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for entry in memberships:
        for number, _ in entry[1:]:
            parent[root(number)] = root(entry[0][0])
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(root(number), len(numbers)) for number in range(sets))
