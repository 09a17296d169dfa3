"""The few names that random objects share, so that they meet; and the way chances are drawn."""

from __future__ import annotations

from hypothesis import strategies as st

DRIVERS = ("gpu.example.com", "nic.example.net")
POOLS = ("pool-a", "pool-b")
NODES = tuple(f"node-{number}" for number in range(8))
ZONES = ("a", "b")
CLASSES = ("any", "gpu", "sharable")
ROOT = "topo.example.org/root"
NUMA = "topo.example.org/numa"
FIRMWARE = "topo.example.org/fw"
INDEX = f"{DRIVERS[0]}/index"
DERIVED = "derived.example.org/key"
CAPACITIES = ("memory", "slots")
COUNTER_SETS = ("set-0", "set-1")
COUNTERS = ("cores", "units")
GROUPS = ("mig", "vgpu", "any")
TAINT_KEYS = ("health", "maintenance")
TAINT_VALUES = ("bad", "soon")


def chance(draw: st.DrawFn, tenths: int) -> bool:
    """True in about `tenths` of ten cases; shrinks to False."""
    return draw(st.integers(0, 9)) > 9 - tenths


def some(draw: st.DrawFn, items: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the items, in their order; shrinks to none."""
    bits = draw(st.integers(0, 2 ** len(items) - 1))
    return tuple(item for place, item in enumerate(items) if bits >> place & 1)


def some_but_none(draw: st.DrawFn, items: tuple[str, ...]) -> tuple[str, ...]:
    """At least one of the items, in their order; shrinks to the first."""
    bits = draw(st.integers(1, 2 ** len(items) - 1))
    return tuple(item for place, item in enumerate(items) if bits >> place & 1)
