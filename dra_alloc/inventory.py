"""Pools as the allocator sees them: which slices count, what is wrong with a pool, its devices in search order.

A `PoolTable` is compiled from the slices of one pool and does not change; a `PoolState` says what of it is in use; a
`NodeView` lists the pools of one node in search order. The `Inventory` of a cluster keeps all three and compiles them
anew, pool by pool, when something that they are made of changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from math import gcd
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import attrs

from dra_alloc._cow import CowMap
from dra_alloc._rows import has_groups, scan
from dra_alloc.nodeselection import device_concerns, slice_concerns

if TYPE_CHECKING:
    from dra_alloc._core import PoolRows
    from dra_alloc.api import (
        Device,
        DeviceRequestAllocationResult,
        DeviceTaint,
        DeviceTaintRule,
        Node,
        ResourceSlice,
    )
    from dra_alloc.cluster import Cluster
    from dra_alloc.gates import Features

__all__ = ["Holding", "Inventory", "NodeView", "PoolKey", "PoolState", "PoolTable"]

#: Driver and pool name.
PoolKey = tuple[str, str]

#: Amounts of common columns stay below this after scaling, so that no sum of them leaves 64 bits.
NARROW = 1 << 58

#: The feature of a node that must be declared for slices with `skipNodeOperations` (KEP-5945).
NODE_OPERATIONS = "DRAOptionalNodeOperations"

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


@attrs.define(eq=False)
class PoolTable:
    """The newest generation of a pool.

    slices: by name. fault: "" or "incomplete" or "invalid", `reason` says why. devices: of all slices that offer any,
    in search order; slice_of, taints: by device (taints of slice and rules). index: place of a device by name. waits:
    by device, whether it has binding conditions, None if none has. selective: whether devices must be looked at one by
    one for whether a node can use them. columns: (counter set, counter); supply: nanos by column; draws: by device
    (column, nanos). scales: divisor of each column; wide: whether amounts of it need more than 64 bits.
    """

    key: PoolKey
    slices: tuple[ResourceSlice, ...]
    fault: str = ""
    reason: str = ""
    devices: tuple[Device, ...] = ()
    slice_of: tuple[int, ...] = ()
    taints: tuple[tuple[DeviceTaint, ...], ...] = ()
    index: Mapping[str, int] = attrs.field(factory=dict)
    waits: bytes | None = None
    selective: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    sets: tuple[str, ...] = ()
    supply: tuple[int, ...] = ()
    draws: tuple[tuple[tuple[int, int], ...], ...] = ()
    memberships: tuple[tuple[tuple[int, tuple[str, ...]], ...], ...] = ()
    scales: tuple[int, ...] = ()
    wide: tuple[bool, ...] = ()
    blocks: tuple[int, ...] = ()  # by counter set
    layout: int = 0
    rows: dict[int, PoolRows] = attrs.field(factory=dict)  # by question, see problem.py
    results: dict[tuple[int, int], DeviceRequestAllocationResult] = attrs.field(factory=dict)  # see results.py

    @property
    def has_wide(self) -> bool:
        """Whether some column is wide."""
        return any(self.wide)

    def narrow(self, column: int, nano: int) -> int:
        """An amount available of a column in its unit, rounded down: every draw is a whole number of units."""
        return max(-NARROW, min(NARROW, nano // self.scales[column]))

    def unit_draws(self, device: int) -> tuple[tuple[int, int], ...]:
        """Draws of a device on columns that are not wide, in units; one that exceeds all supply counts as just that."""
        return tuple(
            (column, min(nano // self.scales[column], self.supply[column] // self.scales[column] + 1))
            for column, nano in self.draws[device]
            if not self.wide[column]
        )

    def empty_state(self) -> PoolState:
        """The state of the pool with nothing in use."""
        if not self.supply:
            return _NOTHING_IN_USE
        return PoolState(
            available=tuple(
                0 if self.wide[column] else self.narrow(column, nano) for column, nano in enumerate(self.supply)
            ),
            remaining=self.supply,
        )


@attrs.define(eq=False)  # finished once made, but frozen classes take twice as long to make
class PoolState:
    """What of a pool is in use.

    held: by device 0 free, 1 held whole, 2 held in shares; None where nothing is in use. remaining: nanos left of each
    column; available: the same in units (0 for wide columns). shares: by device, nanos consumed by capacity name.
    vanished: names of devices that are held and not in the slices. members: (counter set, groups) of devices in use.
    digest: what `held` does not tell, for comparing pools. rooms: what is left of shared devices, by question.
    """

    available: tuple[int, ...]
    remaining: tuple[int, ...]
    held: bytes | None = None
    shares: Mapping[int, Mapping[str, int]] = attrs.field(factory=dict)
    vanished: tuple[str, ...] = ()
    members: tuple[tuple[int, tuple[str, ...]], ...] = ()
    digest: object = None
    rooms: dict[int, Mapping[int, Sequence[int]]] = attrs.field(factory=dict)  # see problem.py


#: The state of every pool without counters of which nothing is in use.
_NOTHING_IN_USE = PoolState((), ())


@attrs.define(eq=False)  # as PoolState
class NodeView:
    """The pools of a node in search order, faulty ones apart.

    visible: by pool, None or a byte for each slice, whether it concerns the node. elsewhere: by pool, None or a byte
    for each device, whether it is out of the node's reach for a reason that shows after the selectors. late: number of
    the first pool with binding conditions, which come after all others. refused: by question, the states of the pools
    with which it had no answer here.
    """

    node: Node
    pools: tuple[PoolTable, ...]
    visible: tuple[bytes | None, ...]
    elsewhere: tuple[bytes | None, ...]
    faulty: tuple[PoolTable, ...]
    late: int
    refused: dict[int, tuple[PoolState, ...]] = attrs.field(factory=dict)  # see attempt.py


def _reaches_all(table: PoolTable, name: str) -> bool:
    return all(item.spec.node_name == name for item in table.slices)


def compile_pool(
    key: PoolKey, slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule], features: Features
) -> PoolTable | None:
    """The table of a pool, or None if none of its slices counts with these features."""
    known = tuple([item for item in slices if _is_known(item, features)])
    if not known:
        return None
    current = known if len(known) == 1 else _newest(known)
    wanted = {item.spec.pool.resource_slice_count for item in current}
    if wanted != {len(current)}:
        return PoolTable(key, current, "incomplete", _incomplete_reason(key, current, wanted))
    table = PoolTable(key, current)
    devices: tuple[Device, ...] = ()
    slice_of: tuple[int, ...] = ()
    counting = False
    for number, item in enumerate(current):
        spec = item.spec
        if spec.shared_counters:
            counting = True
        else:
            devices += spec.devices
            slice_of += (number,) * len(spec.devices)
        if spec.per_device_node_selection or spec.skip_node_operations:
            table.selective = True
    index, waits, drawing = scan(devices)
    if len(index) < len(devices):
        duplicate = _first_duplicate([device.name for device in devices])
        return PoolTable(key, current, "invalid", f"pool {key[0]}/{key[1]} has two devices named {duplicate!r}")
    table.devices = devices
    table.slice_of = slice_of
    table.index = index
    table.taints = _effective_taints(key, devices, rules, features)
    table.waits = waits
    if features.DRAPartitionableDevices and (counting or drawing):
        _compile_counters(table)
    return table


def _newest(slices: Sequence[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    """The slices of the newest generation, by name."""
    newest = max(item.spec.pool.generation for item in slices)
    return tuple(
        sorted((item for item in slices if item.spec.pool.generation == newest), key=lambda item: item.metadata.name)
    )


def _is_known(item: ResourceSlice, features: Features) -> bool:
    """Slices that use a feature that is off are not seen at all, which leaves their pool incomplete."""
    spec = item.spec
    if not features.DRAPartitionableDevices and (spec.per_device_node_selection or spec.shared_counters):
        return False
    return features.DRADeviceCompatibilityGroups or not has_groups(spec.devices)


def _incomplete_reason(key: PoolKey, current: Sequence[ResourceSlice], wanted: set[int]) -> str:
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


def _first_duplicate(names: Sequence[str]) -> str:
    return next(name for place, name in enumerate(names) if name in names[:place])


def _effective_taints(
    key: PoolKey, devices: Sequence[Device], rules: Sequence[DeviceTaintRule], features: Features
) -> tuple[tuple[DeviceTaint, ...], ...]:
    """By device, the taints of its slice and those of the rules that select it."""
    if not features.DRADeviceTaints:
        return ((),) * len(devices)
    if not rules or not features.DRADeviceTaintRules:
        return tuple([device.taints for device in devices])
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


def _compile_counters(table: PoolTable) -> None:
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


def compile_state(table: PoolTable, holdings: Mapping[str, Holding]) -> PoolState:
    """What of a pool the holdings use up. A shared device is charged for its counters once."""
    if not table.sets and not any(holding.shares for holding in holdings.values()):
        return _whole_devices(table, holdings)
    held = bytearray(len(table.devices))
    shares: dict[int, dict[str, int]] = {}
    remaining = list(table.supply)
    members: list[tuple[int, tuple[str, ...]]] = []
    vanished = []
    for name, holding in holdings.items():
        number = table.index.get(name)
        if number is None:
            vanished.append(name)
            continue
        held[number] = 1 if holding.whole else 2
        if holding.shares:
            used: dict[str, int] = {}
            for _, _, consumed in holding.shares:
                for capacity, nano in consumed:
                    # Negative amounts in a stored allocation never make room.
                    used[capacity] = used.get(capacity, 0) + max(0, nano)
            shares[number] = used
        if table.columns or table.sets:
            for column, nano in table.draws[number]:
                remaining[column] -= nano
            members.extend(table.memberships[number])
    members.sort()
    digest = (
        (
            tuple(remaining),
            bool(vanished),
            tuple(sorted((number, *sorted(used.items())) for number, used in shares.items())),
            tuple(members),
        )
        if table.columns or table.sets or shares
        else None
    )
    return PoolState(
        available=tuple(
            0 if table.wide[column] else table.narrow(column, nano) for column, nano in enumerate(remaining)
        ),
        remaining=tuple(remaining),
        held=bytes(held),
        shares=shares,
        vanished=tuple(sorted(vanished)),
        members=tuple(members),
        digest=digest,
    )


def _whole_devices(table: PoolTable, holdings: Mapping[str, Holding]) -> PoolState:
    """The common case: no counters, and devices are held whole."""
    held = bytearray(len(table.devices))
    vanished = []
    for name in holdings:
        number = table.index.get(name)
        if number is None:
            vanished.append(name)
        else:
            held[number] = 1
    return PoolState(available=(), remaining=(), held=bytes(held), vanished=tuple(sorted(vanished)))


#: Stands for a pool that was not looked at yet; None is one that has no slice that counts.
_UNKNOWN = PoolTable(("", ""), ())


class Inventory:
    """Tables, states and views of one cluster for one set of features."""

    __slots__ = ("_states", "_tables", "_views", "cluster", "features")

    def __init__(self, cluster: Cluster, features: Features) -> None:
        self.cluster = cluster
        self.features = features
        self._tables: CowMap[PoolKey, PoolTable | None] = CowMap()
        self._states: CowMap[PoolKey, PoolState] = CowMap()
        self._views: CowMap[str, NodeView] = CowMap()

    def fork(self, cluster: Cluster) -> Inventory:
        """The same for a fork of the cluster."""
        other = Inventory.__new__(Inventory)
        other.cluster = cluster
        other.features = self.features
        other._tables = self._tables.fork()
        other._states = self._states.fork()
        other._views = self._views.fork()
        return other

    # What changed

    def forget_pool(self, key: PoolKey) -> None:
        """Slices of a pool, or taint rules that concern it, have changed."""
        self._tables.pop(key, None)
        self._states.pop(key, None)

    def forget_usage(self, key: PoolKey) -> None:
        """Devices of a pool were taken or given back."""
        self._states.pop(key, None)

    def forget_node(self, name: str) -> None:
        """A node, or which pools it sees, has changed."""
        self._views.pop(name, None)

    def forget_nodes(self) -> None:
        """Which pools nodes see has changed, for who knows which nodes."""
        self._views = CowMap()

    # What is there

    def table(self, key: PoolKey) -> PoolTable | None:
        """The table of a pool."""
        known = self._tables.get(key, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        table = compile_pool(key, self.cluster.slices_of_pool(key), self.cluster.rules_of_pool(key), self.features)
        self._tables[key] = table
        return table

    def state(self, table: PoolTable) -> PoolState:
        """What of a pool is in use."""
        known = self._states.get(table.key)
        if known is not None:
            return known
        holdings = self.cluster.holdings(table.key)
        state = compile_state(table, holdings) if holdings else table.empty_state()
        self._states[table.key] = state
        return state

    def view(self, node: Node) -> NodeView:
        """The pools of a node of the cluster."""
        name = node.metadata.name
        known = self._views.get(name)
        if known is not None and known.node is node:
            return known
        view = self._compile_view(node)
        self._views[name] = view
        return view

    def _compile_view(self, node: Node) -> NodeView:
        name = node.metadata.name
        pools: list[tuple[tuple[bool, PoolKey], PoolTable, bytes | None, bytes | None]] = []
        faulty = []
        for key in self.cluster.pools_near(name):
            table = self.table(key)
            if table is None:
                continue
            if _reaches_all(table, name):
                visible = None
            else:
                visible = bytes(slice_concerns(item, node) for item in table.slices)
                if not any(visible):
                    continue
            if table.fault:
                faulty.append(table)
                continue
            if visible is not None and all(visible):
                visible = None
            late = table.waits is not None and any(
                waits and (visible is None or visible[number])
                for waits, number in zip(table.waits, table.slice_of, strict=True)
            )
            pools.append(((late, key), table, visible, self._elsewhere(table, node)))
        faulty.sort(key=attrgetter("key"))
        if not pools:
            return NodeView(node, (), (), (), tuple(faulty), 0)
        pools.sort(key=itemgetter(0))
        ranks, tables, visibles, elsewheres = zip(*pools, strict=True)
        first_late = sum([not waits for waits, _ in ranks])
        return NodeView(node, tables, visibles, elsewheres, tuple(faulty), first_late)

    def _elsewhere(self, table: PoolTable, node: Node) -> bytes | None:
        """Devices that other nodes alone can use, and those that the node cannot do without node operations."""
        if not table.selective:
            return None
        declared = node.status.declared_features if node.status else ()
        skipping = self.features.DRAOptionalNodeOperations and NODE_OPERATIONS in declared
        barred = [bool(item.spec.skip_node_operations) and not skipping for item in table.slices]
        by_device = [bool(item.spec.per_device_node_selection) for item in table.slices]
        return bytes(
            barred[number] or (by_device[number] and not device_concerns(device, node))
            for device, number in zip(table.devices, table.slice_of, strict=True)
        )
