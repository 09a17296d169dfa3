"""What an event changes about devices: which got better for some wants, and which stood in the way of others.

A device *helps* a pod if one of its wants may have it now and could not before, or could, and the device itself got
better: it came free, more nodes reach it, it is larger, draws less, or has other attributes for the constraints. A
device stops *standing in the way* of a pod if it changes or goes while looking at it was an error for one of its wants,
or while one of its requests was for all devices. Nothing else of a device matters to whether there is an answer: more
devices, and better ones, only add answers. The exception are node allocatable resources, for which a pod is judged by
the first answer alone: where devices have them, a device that got worse helps as one that got better does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import attrs

from dra_alloc.inventory import Holding, compile_state
from dra_alloc.requeue.judge import Judge, Row

if TYPE_CHECKING:
    from dra_alloc.api import Device, DeviceCounterConsumption, ResourceSliceSpec
    from dra_alloc.inventory import NodeView, PoolKey, PoolTable

__all__ = ["EVERY", "Helped", "compare_pools", "compare_views", "freed", "offered", "taken"]

#: Key of the pods that have a request for all devices: faulty pools concern them, whatever is in these.
EVERY = "every"

_NONE_HELD: Mapping[str, Holding] = {}


class Helped:
    """Collects keys of the wants that an event helps.

    losing: whether a device that is no longer to be had helps, too. Of node allocatable resources (KEP-5517) only the
    first answer of the search is judged; without one of its devices there is another first answer.
    """

    __slots__ = ("judge", "keys", "losing")

    def __init__(self, judge: Judge, *, losing: bool = False) -> None:
        self.judge = judge
        self.losing = losing
        self.keys: set[str] = set()

    def better(self, row: Row, *, normal: bool = True, admin: bool = True) -> None:
        """A device of the row got better: in use or not, for requests with admin access or the others."""
        for want in self.judge.serves(row):
            if admin if want.admin else normal:
                self.keys.add(want.key)

    def other(self, before: Row, after: Row, *, normal: bool) -> None:
        """A device is of another row now, and no better for those that could have it before."""
        known = self.judge.serves(before)
        for want in self.judge.serves(after):
            if (want.admin or normal) and want not in known:
                self.keys.add(want.key)

    def changed(self, before: Row | None, after: Row | None) -> None:
        """A device changed in any way: it may have stood in the way as it was."""
        if before is not None:
            self.keys.update([want.key for want in self.judge.counts(before)])
            self.broken(before)
        if after is not None and after is not before:
            if before is not None:
                after.share_env(before)
            self.keys.update([want.key for want in self.judge.counts(after)])

    def broken(self, row: Row) -> None:
        """A device of the row is out of the way of wants that it is an error for."""
        self.keys.update([want.key for want in self.judge.breaks(row)])


# Slices and taints


def compare_pools(
    helped: Helped, before: PoolTable | None, after: PoolTable | None, holdings: Mapping[str, Holding]
) -> None:
    """A pool became another, by its slices or by its taints."""
    if before is not None and before.fault and (after is None or _reach(before) != _reach(after) or not after.fault):
        helped.keys.add(EVERY)
    old = _sound(before)
    new = _sound(after)
    if old is None and new is None:
        return
    eased = _eased(old, new, holdings)
    if old is None or new is None:
        found = old if new is None else new
        names = [] if found is None else list(found.index)
    else:
        names = _different(old, new)
    rows = _rows(helped.judge, names, old, new)
    for name, (row_before, row_after) in zip(names, rows, strict=True):
        _compare_devices(helped, old, row_before, new, row_after, name, holdings)
    if new is not None and eased:
        for number, device in enumerate(new.devices):
            if not eased.isdisjoint(_sets(device)) and not _held_whole(holdings, device.name):
                helped.better(helped.judge.row(new, number), admin=False)
    if helped.losing and old is not None:
        # What is left of the pool may come in another order, or before or after other pools.
        for row in helped.judge.rows(old.key[0], old.devices, old.taints):
            helped.better(row)


def _sound(table: PoolTable | None) -> PoolTable | None:
    return None if table is None or table.fault else table


def _rows(
    judge: Judge, names: Sequence[str], old: PoolTable | None, new: PoolTable | None
) -> list[tuple[Row | None, Row | None]]:
    """The rows of some devices before and after, None where a state of the pool does not have the device."""
    places = [(table, None if table is None else table.index.get(name)) for name in names for table in (old, new)]
    there = [(table, number) for table, number in places if table is not None and number is not None]
    if not there:
        return []
    found = iter(
        judge.rows(
            there[0][0].key[0],
            [table.devices[number] for table, number in there],
            [table.taints[number] for table, number in there],
        )
    )
    rows = [None if number is None else next(found) for _, number in places]
    return list(zip(rows[::2], rows[1::2], strict=True))


def _different(old: PoolTable, new: PoolTable) -> list[str]:
    """Names of the devices that only one state of a pool has, or that are not the same in both, or elsewhere."""
    before, after = _reach(old), _reach(new)
    stay = len(before) == 1 and before == after  # most pools are one slice, which stays where it is
    devices, taints, place_of = old.devices, old.taints, old.index.get
    found = []
    for number, device in enumerate(new.devices):
        place = place_of(device.name)
        if (
            place is None
            or (devices[place] is not device and devices[place] != device)
            or (taints[place] is not new.taints[number] and taints[place] != new.taints[number])
            or not (stay or before[old.slice_of[place]] == after[new.slice_of[number]])
        ):
            found.append(device.name)
    found += [name for name in old.index if name not in new.index]
    return found


def _place(table: PoolTable, number: int) -> tuple[object, ...]:
    """What of its slice decides which nodes may use a device."""
    return _place_of(table.slices[table.slice_of[number]].spec)


def _place_of(spec: ResourceSliceSpec) -> tuple[object, ...]:
    return (
        spec.node_name,
        spec.all_nodes,
        spec.node_selector,
        spec.per_device_node_selection,
        spec.skip_node_operations,
    )


def _reach(table: PoolTable) -> list[tuple[object, ...]]:
    return [_place_of(item.spec) for item in table.slices]


def _compare_devices(
    helped: Helped,
    old: PoolTable | None,
    before: Row | None,
    new: PoolTable | None,
    after: Row | None,
    name: str,
    holdings: Mapping[str, Holding],
) -> None:
    helped.changed(before, after)
    if after is None or new is None:
        return
    normal = not _held_whole(holdings, name)
    if before is None or old is None:
        helped.better(after, normal=normal)
        return
    one, other = old.devices[old.index[name]], new.devices[new.index[name]]
    moved = _place(old, old.index[name]) != _place(new, new.index[name])
    if moved or _is_better(one, other):
        helped.better(after, normal=normal)
    elif before is not after:
        helped.other(before, after, normal=normal)


def _is_better(before: Device, after: Device) -> bool:
    """Whether a device may have got better by anything but its taints."""
    return (
        before.attributes != after.attributes
        or not _shrank(before, after)
        or not _draws_more(before.consumes_counters, after.consumes_counters)
        or _rest(before) != _rest(after)
    )


def _rest(device: Device) -> tuple[object, ...]:
    return (
        device.node_name,
        device.node_selector,
        device.all_nodes,
        device.binds_to_node,
        device.binding_conditions,
        device.binding_failure_conditions,
        device.allow_multiple_allocations,
        device.node_allocatable_resources,
    )


def _shrank(before: Device, after: Device) -> bool:
    """Whether the capacities of a device are the same or smaller."""
    if before.capacity is after.capacity:
        return True
    return before.capacity.keys() == after.capacity.keys() and all(
        after.capacity[name].request_policy == capacity.request_policy
        and after.capacity[name].value.nano <= capacity.value.nano
        for name, capacity in before.capacity.items()
    )


def _draws_more(before: Sequence[DeviceCounterConsumption], after: Sequence[DeviceCounterConsumption]) -> bool:
    """Whether a device draws the same or more of the same counters."""
    return len(before) == len(after) and all(
        one.counter_set == other.counter_set
        and one.compatibility_groups == other.compatibility_groups
        and one.counters.keys() == other.counters.keys()
        and all(other.counters[name].value.nano >= counter.value.nano for name, counter in one.counters.items())
        for one, other in zip(before, after, strict=True)
    )


def _eased(old: PoolTable | None, new: PoolTable | None, holdings: Mapping[str, Holding]) -> frozenset[str]:
    """Counter sets of a pool of which more is left than before, or whose users agree on other groups."""
    if old is None or new is None or not new.sets:
        return frozenset()
    before, after = compile_state(old, holdings), compile_state(new, holdings)
    if after.vanished:
        return frozenset()  # nothing that draws on counters is offered as long as this is so
    if before.vanished:
        return frozenset(new.sets)
    left = dict(zip(old.columns, before.remaining, strict=True))
    eased = {
        column[0]
        for column, nano in zip(new.columns, after.remaining, strict=True)
        if column not in left or nano > left[column]
    }
    one, other = _members(old, before.members), _members(new, after.members)
    eased.update(name for name in new.sets if one.get(name) != other.get(name))
    return frozenset(eased)


def _members(table: PoolTable, members: Iterable[tuple[int, tuple[str, ...]]]) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for number, groups in members:
        found.setdefault(table.sets[number], []).append(groups)
    return found


def _sets(device: Device) -> Iterator[str]:
    return (consumption.counter_set for consumption in device.consumes_counters)


def _held_whole(holdings: Mapping[str, Holding], name: str) -> bool:
    """Whether somebody has all of a device: only admin access gets it as long as this is so."""
    holding = holdings.get(name)
    return holding is not None and bool(holding.whole)


# Claims


def freed(helped: Helped, table: PoolTable | None, names: Iterable[str]) -> None:
    """Devices of a pool came free, or shares of them: with them, what they drew from the counters of the pool."""
    if table is None or table.fault:
        return
    eased: set[str] = set()
    for name in names:
        number = table.index.get(name)
        if number is None:
            # As long as it was in use and not in the slices, nothing of what it may have drawn could be had.
            eased.update(table.sets)
            continue
        helped.better(helped.judge.row(table, number), admin=False)
        eased.update(_sets(table.devices[number]))
    _drawing(helped, table, eased)


def taken(
    helped: Helped, table: PoolTable | None, names: Iterable[str], claim: str, holdings: Mapping[str, Holding]
) -> None:
    """Devices of a pool came into use by a claim: one in use is not looked at, so that it is no error any more."""
    if table is None or table.fault:
        return
    names = list(names)
    now = {**holdings, **{name: Holding(shares=((claim, "", ()),)) for name in names if name not in holdings}}
    lost: set[str] = set()
    for name in names:
        number = table.index.get(name)
        if number is None:
            continue
        row = helped.judge.row(table, number)
        helped.broken(row)
        if helped.losing:
            helped.better(row, admin=False)
            lost.update(_sets(row.device))
        if table.sets and row.device.allow_multiple_allocations and _is_overdrawn(table, number, claim, now):
            helped.better(row, admin=False)
    _drawing(helped, table, lost)


def _drawing(helped: Helped, table: PoolTable, sets: Set[str]) -> None:
    """What is left of some counter sets of a pool has changed."""
    if not sets:
        return
    for number, device in enumerate(table.devices):
        if device.consumes_counters and not sets.isdisjoint(_sets(device)):
            helped.better(helped.judge.row(table, number), admin=False)


def _is_overdrawn(table: PoolTable, number: int, claim: str, holdings: Mapping[str, Holding]) -> bool:
    """Whether a claim is the first to hold a device that nobody could be given.

    A shared device is charged for its counters once. If its holder was given it regardless of what is left of them, it
    lends to all others what they could not have had.
    """
    if not table.draws[number] or holdings[table.devices[number].name].claims() != (claim,):
        return False
    state = compile_state(table, holdings)
    return (
        bool(state.vanished)
        or any(state.remaining[column] < 0 for column, _ in table.draws[number])
        or any(_at_odds(state.members, place) for place, _ in table.memberships[number])
    )


def _at_odds(members: Iterable[tuple[int, tuple[str, ...]]], place: int) -> bool:
    """Whether the devices in use of a counter set have no compatibility group in common."""
    groups = [frozenset(names) for number, names in members if number == place]
    return any(groups) and not frozenset.intersection(*groups)


# Nodes


@attrs.frozen(eq=False)
class _Seen:
    """The devices of one pool as a node sees them: by device, whether it can use it."""

    table: PoolTable
    usable: list[bool]


def offered(helped: Helped, view: NodeView) -> None:
    """All that a node has to offer is new, or may be had after other things changed."""
    for seen in _look(view).values():
        for row, usable in zip(helped.judge.rows_of(seen.table), seen.usable, strict=True):
            if usable:
                helped.better(row)


def compare_views(helped: Helped, before: NodeView, after: NodeView | None) -> None:
    """A node sees other pools and devices than before; after: None for a node that is gone."""
    old = _look(before)
    new = _look(after) if after is not None else {}
    same = True
    for key in {**old, **new}:
        table = (new.get(key) or old[key]).table
        nothing = [False] * len(table.devices)
        usable_before = old[key].usable if key in old else nothing
        usable_after = new[key].usable if key in new else nothing
        if usable_before == usable_after:
            continue
        same = False
        rows = helped.judge.rows_of(table)
        for row, was, now in zip(rows, usable_before, usable_after, strict=True):
            if now and not was:
                helped.changed(None, row)
                helped.better(row)
            elif was and not now:
                helped.changed(row, None)
    if helped.losing and after is not None and not same:
        offered(helped, after)
    still = set() if after is None else {table.key for table in after.faulty}
    if any(table.key not in still for table in before.faulty):
        helped.keys.add(EVERY)


def _look(view: NodeView) -> dict[PoolKey, _Seen]:
    found = {}
    for table, visible, elsewhere in zip(view.pools, view.visible, view.elsewhere, strict=True):
        usable = [
            (visible is None or bool(visible[part])) and (elsewhere is None or not elsewhere[number])
            for number, part in enumerate(table.slice_of)
        ]
        found[table.key] = _Seen(table, usable)
    return found
