"""Findings about pools: whether they offer devices at all, their counters, and whether nodes reach the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from dra_alloc.api import DeviceTaintRule, NodeSelector, ResourceSlice
from dra_alloc.inventory import PoolTable
from dra_alloc.lint._findings import Finding, Fix
from dra_alloc.lint._world import Item, World, finding
from dra_alloc.nodeselection import term_admits
from dra_alloc.pools import rule_selects

__all__ = ["check_pools", "check_rules"]


def check_pools(world: World) -> Iterator[Finding]:
    """Everything about slices and the pools that they make up."""
    for item in world.slices.values():
        yield from _mixed(world, item)
        yield from _stale(world, item)
    for table in world.pools.values():
        yield from _fault(world, table)
        yield from _counters(world, table)
    if world.nodes:
        reachable = _Reachable(world)
        for item in world.slices.values():
            yield from reachable.check(item)


def _slice(item: Item) -> ResourceSlice:
    assert isinstance(item.obj, ResourceSlice)
    return item.obj


def _mixed(world: World, item: Item) -> Iterator[Finding]:
    spec = _slice(item).spec
    if spec.devices and spec.shared_counters:
        pool = world.pools.get((spec.driver, spec.pool.name))
        alone = pool is not None and len(pool.slices) == 1 and spec.pool.resource_slice_count == 1
        fix = Fix("put the counter sets into a slice of their own", _split) if alone else None
        hint = "since 1.35 counter sets go into a slice of their own in the same pool, counted in resourceSliceCount"
        message = "has both devices and sharedCounters, so that its devices are not offered"
        yield finding(item, "counters-with-devices", "spec", message, hint, fix)


def _split(item: ResourceSlice) -> tuple[ResourceSlice, ...]:
    """Two slices out of one that makes up its pool alone; a new generation, since the pool changes."""
    pool = attrs.evolve(item.spec.pool, resource_slice_count=2, generation=item.spec.pool.generation + 1)
    name = attrs.evolve(item.metadata, name=f"{item.metadata.name}-counters")
    counters = attrs.evolve(item.spec, pool=pool, devices=(), partition_type_attribute=None)
    devices = attrs.evolve(item.spec, pool=pool, shared_counters=())
    return attrs.evolve(item, metadata=name, spec=counters), attrs.evolve(item, spec=devices)


def _stale(world: World, item: Item) -> Iterator[Finding]:
    spec = _slice(item).spec
    table = world.pools.get((spec.driver, spec.pool.name))
    newest = table.slices[0].spec.pool.generation if table else spec.pool.generation
    if spec.pool.generation < newest:
        message = f"generation {spec.pool.generation} of a pool whose newest is {newest}: the slice is ignored"
        yield finding(item, "stale-slice", "spec.pool.generation", message, "delete it, or publish it anew")


def _fault(world: World, table: PoolTable) -> Iterator[Finding]:
    item = world.slices[table.slices[0].metadata.name]
    if table.fault == "incomplete":
        hint = "every slice of the newest generation with the same resourceSliceCount, which is their number"
        yield finding(item, "pool-incomplete", "spec.pool", f"{table.reason}; it offers no devices", hint)
    elif table.fault:
        yield finding(item, "pool-invalid", "spec", f"{table.reason}; the pool offers no devices")


def _counters(world: World, table: PoolTable) -> Iterator[Finding]:
    # Of counters in one slice with devices nothing can be said before they are taken apart.
    mixed = any(part.spec.devices and part.spec.shared_counters for part in table.slices)
    if table.fault or mixed:
        return
    used = {column for draws in table.draws for column, nano in draws if nano}
    for column, (counter_set, counter) in enumerate(table.columns):
        if column not in used:
            item, path = _counter(world, table, counter_set, counter)
            yield finding(item, "counter-unused", path, "no device of the pool consumes it")
    for number, draws in enumerate(table.draws):
        for column, nano in draws:
            if nano > table.supply[column]:
                item, path = _device(world, table, number)
                counter_set, counter = table.columns[column]
                needed, there = (_amount(table, column, value) for value in (nano, table.supply[column]))
                message = (
                    f"consumes {needed} of {counter_set}/{counter}, of which there is {there}: it is never allocated"
                )
                yield finding(item, "counter-too-small", f"{path}.consumesCounters", message)


def _amount(table: PoolTable, column: int, nano: int) -> str:
    counter_set, name = table.columns[column]
    sets = (item for part in table.slices for item in part.spec.shared_counters if item.name == counter_set)
    return str(next(sets).counters[name].value.with_nano(nano))


def _counter(world: World, table: PoolTable, counter_set: str, counter: str) -> tuple[Item, str]:
    for part in table.slices:
        for index, item in enumerate(part.spec.shared_counters):
            if item.name == counter_set:
                return world.slices[part.metadata.name], f"spec.sharedCounters[{index}].counters[{counter}]"
    raise AssertionError("columns are made of the counter sets")


def _device(world: World, table: PoolTable, number: int) -> tuple[Item, str]:
    part = table.slices[table.slice_of[number]]
    return world.slices[part.metadata.name], f"spec.devices[{number - table.slice_of.index(table.slice_of[number])}]"


class _Reachable:
    """Whether some node of the input reaches what a slice offers."""

    def __init__(self, world: World) -> None:
        self._nodes = world.nodes
        self._admitted: dict[str, bool] = {}

    def check(self, item: Item) -> Iterator[Finding]:
        spec = _slice(item).spec
        yield from self._place(item, "spec", spec.node_name, spec.node_selector, len(spec.devices))
        if spec.per_device_node_selection:
            for index, device in enumerate(spec.devices):
                yield from self._place(item, f"spec.devices[{index}]", device.node_name, device.node_selector, 1)

    def _place(
        self, item: Item, path: str, name: str | None, selector: NodeSelector | None, devices: int
    ) -> Iterator[Finding]:
        if not devices:
            return
        lost = "the device is" if devices == 1 else f"its {devices} devices are"
        if name and name not in self._nodes:
            message = f"there is no node {name!r}: {lost} out of reach"
            yield finding(item, "device-unreachable", f"{path}.nodeName", message)
        elif not name and selector is not None and not self._admits(selector):
            terms = len(selector.node_selector_terms)
            why = "matches no node" if terms == 1 else f"has {terms} terms, and needs exactly one"
            message = f"the selector {why}: {lost} out of reach"
            yield finding(item, "device-unreachable", f"{path}.nodeSelector", message)

    def _admits(self, selector: NodeSelector) -> bool:
        key = repr(selector)
        if key not in self._admitted:
            terms = selector.node_selector_terms
            self._admitted[key] = len(terms) == 1 and any(term_admits(terms[0], node) for node in self._nodes.values())
        return self._admitted[key]


def check_rules(world: World) -> Iterator[Finding]:
    """Taint rules that hit everything, or nothing."""
    for item, rule in world.of(DeviceTaintRule):
        selector = rule.spec.device_selector
        path = "spec.deviceSelector"
        if selector is None:
            message = "a rule without selector taints nothing"
            yield finding(item, "rule-hits-nothing", path, message, "driver, pool or device")
        elif selector.driver is None and selector.pool is None and selector.device is None:
            count = sum(len(row.members) for row in world.rows)
            message = f"an empty selector taints every device of the cluster ({count} in the input)"
            yield finding(item, "rule-hits-everything", path, message, "driver, pool or device")
        elif world.rows and not any(
            rule_selects(rule, published.key, published.device.name) for row in world.rows for published in row.members
        ):
            given = {"driver": selector.driver, "pool": selector.pool, "device": selector.device}
            wanted = ", ".join(f"{field} {value}" for field, value in given.items() if value is not None)
            yield finding(item, "rule-hits-nothing", path, f"no published device has {wanted}", _nearest(world, rule))


def _nearest(world: World, rule: DeviceTaintRule) -> str:
    """Which single field of the selector keeps the rule from hitting something."""
    fields = ("driver", "pool", "device")
    hits: Counter[str] = Counter()
    selector = rule.spec.device_selector
    assert selector is not None
    for field in fields:
        if getattr(selector, field) is None:
            continue
        without = attrs.evolve(
            rule, spec=attrs.evolve(rule.spec, device_selector=attrs.evolve(selector, **{field: None}))
        )
        for row in world.rows:
            hits[field] += sum(rule_selects(without, item.key, item.device.name) for item in row.members)
    near = [f"{field} ({hits[field]})" for field in fields if hits[field]]
    return f"devices that it would hit but for {' or '.join(near)}" if near else ""
