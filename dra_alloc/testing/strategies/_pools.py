"""Nodes, and pools of slices with the nodes that they concern."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from dra_alloc.api import (
    Counter,
    CounterSet,
    Device,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    ObjectMeta,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra_alloc.testing.strategies._devices import devices, renamed
from dra_alloc.testing.strategies._knobs import Knobs
from dra_alloc.testing.strategies._values import quantities
from dra_alloc.testing.strategies._words import COUNTER_SETS, COUNTERS, DRIVERS, NODES, POOLS, ZONES, chance

__all__ = ["counter_sets", "node_selectors", "nodes", "pools"]

_FEATURE = "DRAOptionalNodeOperations"


@st.composite
def nodes(draw: st.DrawFn, name: str = "node-0") -> Node:
    """A node in one of two zones, at times with a rank, at times able to skip node operations."""
    labels = {"zone": draw(st.sampled_from(ZONES))}
    if chance(draw, 4):
        labels["rank"] = str(draw(st.integers(0, 3)))
    declared = (_FEATURE,) if chance(draw, 5) else ()
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(declared_features=declared))


@st.composite
def node_selectors(draw: st.DrawFn, *, broken: bool = False) -> NodeSelector:
    """A selector over the labels and names that `nodes` gives; broken: may have any number of terms but one."""
    if broken and chance(draw, 1):
        term = NodeSelectorTerm(match_expressions=(_zone_in("a", "b"),))
        return NodeSelector(node_selector_terms=draw(st.sampled_from(((), (term, term)))))
    needs = draw(st.lists(st.sampled_from(_REQUIREMENTS), min_size=1, max_size=2, unique=True))
    fields: tuple[NodeSelectorRequirement, ...] = ()
    if chance(draw, 1):
        fields = (NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=(NODES[1],)),)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(needs), match_fields=fields),))


def _zone_in(*zones: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key="zone", operator="In", values=zones)


_REQUIREMENTS = (
    _zone_in("a", "b"),
    _zone_in("a"),
    NodeSelectorRequirement(key="zone", operator="NotIn", values=("b",)),
    NodeSelectorRequirement(key="zone", operator="Exists"),
    NodeSelectorRequirement(key="rank", operator="DoesNotExist"),
    NodeSelectorRequirement(key="rank", operator="Gt", values=("1",)),
    NodeSelectorRequirement(key="rank", operator="Lt", values=("2",)),
)


@st.composite
def counter_sets(draw: st.DrawFn) -> tuple[CounterSet, ...]:
    """The counter sets that devices consume from, with values that a few devices use up."""
    return tuple(
        CounterSet(name=name, counters={counter: Counter(value=draw(quantities(0, 8))) for counter in COUNTERS})
        for name in COUNTER_SETS
    )


@st.composite
def pools(draw: st.DrawFn, number: int = 0, node_count: int = 2, knobs: Knobs | None = None) -> list[ResourceSlice]:
    """The slices of a pool, in any state that the knobs allow. Pools of four consecutive numbers are different ones."""
    use = knobs or Knobs()
    driver, pool = DRIVERS[number % 2], POOLS[number // 2 % 2]
    generation = draw(st.integers(1, 2)) if use.broken else 1
    specs = [
        ResourceSliceSpec(
            driver=driver, pool=ResourcePool(name=pool, generation=generation), devices=part, skip_node_operations=skips
        )
        for part, skips in _parts(draw, driver, use)
    ]
    specs = [_placed(draw, spec, node_count, use) for spec in specs]
    if any(device.consumes_counters for spec in specs for device in spec.devices):
        sets = draw(counter_sets())
        empty = attrs.evolve(specs[0], devices=(), skip_node_operations=(), per_device_node_selection=None)
        if specs[0].per_device_node_selection:
            empty = attrs.evolve(empty, all_nodes=True)
        specs.append(attrs.evolve(empty, shared_counters=sets))
    if use.broken and chance(draw, 2):
        specs = _spoiled(draw, specs)
    count = len(specs)
    if use.broken and chance(draw, 1):
        count += draw(st.integers(-1, 1))
    return [
        ResourceSlice(
            metadata=ObjectMeta(name=f"slice-{number}{letter}"),
            spec=attrs.evolve(spec, pool=attrs.evolve(spec.pool, resource_slice_count=count)),
        )
        for letter, spec in zip("abcdef", specs, strict=False)
    ]


def _parts(draw: st.DrawFn, driver: str, use: Knobs) -> list[tuple[tuple[Device, ...], tuple[str, ...]]]:
    """Devices by slice. Many are twins of each other but for their name, as in real pools."""
    models = [draw(devices(driver=driver, knobs=use)) for _ in range(draw(st.integers(1, 2)))]
    number = draw(st.integers(1, use.max_devices))
    kinds = [draw(st.integers(0, len(models) - 1)) for _ in range(number)]
    if use.many:
        kinds *= draw(st.integers(1, 12))
    named = [renamed(models[kind], f"dev-{place}") for place, kind in enumerate(kinds)]
    split = draw(st.integers(0, len(named) - 1)) if chance(draw, 3) else 0
    parts = [tuple(named[:split]), tuple(named[split:])] if split else [tuple(named)]
    return [(part, ("*",) if use.skip_node_operations and chance(draw, 3) else ()) for part in parts]


def _placed(draw: st.DrawFn, spec: ResourceSliceSpec, node_count: int, use: Knobs) -> ResourceSliceSpec:
    """The slice on some nodes."""
    match draw(st.integers(0, 9)):
        case 4 | 5 | 6:
            return attrs.evolve(spec, all_nodes=True)
        case 7 | 8 if use.node_selectors:
            return attrs.evolve(spec, node_selector=draw(node_selectors(broken=use.broken)))
        case 9 if use.per_device_nodes:
            placed = tuple(_placed_device(draw, device, node_count, use) for device in spec.devices)
            return attrs.evolve(spec, per_device_node_selection=True, devices=placed)
    return attrs.evolve(spec, node_name=NODES[draw(st.integers(0, node_count - 1))])


def _placed_device(draw: st.DrawFn, device: Device, node_count: int, use: Knobs) -> Device:
    match draw(st.integers(0, 3)):
        case 1:
            return attrs.evolve(device, all_nodes=True)
        case 2 if use.node_selectors:
            return attrs.evolve(device, node_selector=draw(node_selectors(broken=use.broken)))
    return attrs.evolve(device, node_name=NODES[draw(st.integers(0, node_count - 1))])


def _spoiled(draw: st.DrawFn, specs: list[ResourceSliceSpec]) -> list[ResourceSliceSpec]:
    """One fault that makes a pool invalid or incomplete, or leaves an old slice behind."""
    first, *rest = specs
    match draw(st.integers(0, 5)):
        case 0:
            return [attrs.evolve(first, devices=first.devices * 2), *rest]
        case 1:
            old = attrs.evolve(first.pool, generation=first.pool.generation - 1)
            return [*specs, attrs.evolve(first, pool=old)]
        case 2:
            return [attrs.evolve(spec, shared_counters=spec.shared_counters[1:]) for spec in specs]
        case 3:
            return [attrs.evolve(spec, shared_counters=tuple(map(_lowered, spec.shared_counters))) for spec in specs]
        case 4:
            return [*specs, attrs.evolve(first, devices=(), pool=attrs.evolve(first.pool, generation=3))]
    return specs[:-1] or specs


def _lowered(counter_set: CounterSet) -> CounterSet:
    """The set with a counter below zero."""
    name = COUNTERS[0]
    value = counter_set.counters[name].value
    return attrs.evolve(counter_set, counters=counter_set.counters | {name: Counter(value=value.with_nano(-1))})
