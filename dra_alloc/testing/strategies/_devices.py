"""Devices, with every feature that a device can have."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from dra_alloc.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from dra_alloc.testing.strategies._knobs import Knobs
from dra_alloc.testing.strategies._values import attributes, quantities, taints
from dra_alloc.testing.strategies._words import (
    CAPACITIES,
    COUNTER_SETS,
    COUNTERS,
    DRIVERS,
    FIRMWARE,
    GROUPS,
    NUMA,
    ROOT,
    chance,
    some,
    some_but_none,
)

__all__ = ["devices"]


@st.composite
def devices(draw: st.DrawFn, name: str = "dev-0", driver: str = DRIVERS[0], knobs: Knobs | None = None) -> Device:
    """A device of the driver that uses some of the features of the knobs; its counters are those of `counter_sets`."""
    use = knobs or Knobs()
    shared = use.capacity and chance(draw, 4)
    binding = use.binding and chance(draw, 2)
    return Device(
        name=name,
        attributes=_attributes(draw, driver, use),
        capacity=_capacities(draw, driver, use, shared),
        consumes_counters=_consumption(draw, use) if use.counters and chance(draw, 6) else (),
        taints=tuple(draw(st.lists(taints(), max_size=2))) if use.taints and chance(draw, 2) else (),
        allow_multiple_allocations=True if shared else None,
        binding_conditions=("ready",) if binding else (),
        binding_failure_conditions=("broken",) if binding else (),
        binds_to_node=True if binding and chance(draw, 5) else None,
    )


def _attributes(draw: st.DrawFn, driver: str, use: Knobs) -> dict[str, DeviceAttribute]:
    found: dict[str, DeviceAttribute] = {}
    if chance(draw, 9):
        found[ROOT] = draw(attributes(lists=use.lists, broken=use.broken))
    if chance(draw, 9):
        found[NUMA] = draw(attributes("int", lists=use.lists))
    # Another type than its neighbours' now and then: values of different types are different.
    if chance(draw, 6):
        found[FIRMWARE] = draw(attributes(draw(st.sampled_from(("version", "string"))), lists=use.lists))
    if chance(draw, 8):
        found["index"] = draw(attributes("int"))
    if chance(draw, 2):
        found[f"{driver}/index"] = draw(attributes("int"))
    if chance(draw, 3):
        found["ecc"] = draw(attributes("bool"))
    return found


def _capacities(draw: st.DrawFn, driver: str, use: Knobs, shared: bool) -> dict[str, DeviceCapacity]:
    if not use.capacity:
        return {}
    found = {}
    for name in some(draw, CAPACITIES):
        spelled = f"{driver}/{name}" if chance(draw, 2) else name
        value = draw(quantities(1, fractional=use.fractional))
        policy = draw(_policies(use.fractional)) if shared and chance(draw, 5) else None
        if policy is not None and use.broken and chance(draw, 1):
            policy = attrs.evolve(policy, default=None)
        found[spelled] = DeviceCapacity(value=value, request_policy=policy)
    if use.broken and chance(draw, 1):
        found[f"{driver}/{CAPACITIES[0]}"] = DeviceCapacity(value=draw(quantities(1)))
    return found


@st.composite
def _policies(draw: st.DrawFn, fractional: bool) -> CapacityRequestPolicy:
    amounts = quantities(1, 3, fractional=fractional)
    default = draw(amounts)
    match draw(st.integers(0, 2)):
        case 0:
            return CapacityRequestPolicy(default=default)
        case 1:
            values = draw(st.lists(amounts, min_size=1, max_size=3))
            return CapacityRequestPolicy(default=default, valid_values=tuple(sorted({*values, default})))
    most = draw(quantities(3, 6, fractional=fractional))
    steps = quantities(0, 2, fractional=True) if fractional else quantities(1, 2)
    step = draw(steps)
    return CapacityRequestPolicy(
        default=default,
        valid_range=CapacityRequestPolicyRange(
            min=draw(quantities(0, 1, fractional=fractional)),
            max=most if chance(draw, 5) else None,
            step=step if step.nano and chance(draw, 6) else None,
        ),
    )


def _consumption(draw: st.DrawFn, use: Knobs) -> tuple[DeviceCounterConsumption, ...]:
    parts = []
    for counter_set in some_but_none(draw, COUNTER_SETS):
        groups = some(draw, GROUPS)[:2] if use.groups else ()
        counters = {name: Counter(value=draw(quantities(0, 4))) for name in some_but_none(draw, COUNTERS)}
        parts.append(DeviceCounterConsumption(counter_set=counter_set, counters=counters, compatibility_groups=groups))
    return tuple(parts)


def renamed(device: Device, name: str) -> Device:
    """A twin of the device."""
    return attrs.evolve(device, name=name)
