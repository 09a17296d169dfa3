"""What a random cluster may contain."""

from __future__ import annotations

from typing import Self

import attrs
from hypothesis import strategies as st

from dra_alloc.testing.strategies._words import NODES

__all__ = ["Knobs", "knobs"]


@attrs.frozen(kw_only=True)
class Knobs:
    """Which features a random cluster uses, and how large it is at most.

    Each switch allows a feature; devices and claims then use it now and then. `broken` allows what validation would
    refuse or what time has made inconsistent: incomplete and invalid pools, selectors that fail, allocated devices
    that are gone. `many`, off unless asked for, makes counts near the limit of 32 devices a claim, and large pools.
    `max_nodes` is 1 to 8, else ValueError is raised.
    """

    admin_access: bool = True
    all_mode: bool = True
    allocated: bool = True
    binding: bool = True
    broken: bool = True
    capacity: bool = True
    config: bool = True
    constraints: bool = True
    counters: bool = True
    derived: bool = True
    first_available: bool = True
    fractional: bool = True
    groups: bool = True
    lists: bool = True
    node_selectors: bool = True
    per_device_nodes: bool = True
    selectors: bool = True
    skip_node_operations: bool = True
    taint_rules: bool = True
    taints: bool = True
    many: bool = False
    max_nodes: int = attrs.field(default=2, validator=[attrs.validators.ge(1), attrs.validators.le(len(NODES))])
    max_pools: int = 3
    max_devices: int = 4
    max_claims: int = 2
    max_requests: int = 3

    @classmethod
    def plain(cls, **switches: bool | int) -> Self:
        """Structured parameters alone, but for what is given."""
        off: dict[str, bool | int] = dict.fromkeys(switch_names(), False)
        return cls(**(off | switches))  # type: ignore[arg-type]

    def restricted(self, chosen: frozenset[str]) -> Self:
        """Only the features among `chosen`."""
        return attrs.evolve(self, **{name: getattr(self, name) and name in chosen for name in switch_names()})


def switch_names() -> list[str]:
    """The names of all features."""
    return [field.name for field in attrs.fields(Knobs) if isinstance(field.default, bool)]


@st.composite
def knobs(draw: st.DrawFn, within: Knobs) -> Knobs:
    """A random choice of the features that are allowed: clusters with few features reach deeper into each."""
    names = switch_names()
    bits = draw(st.integers(0, 2 ** len(names) - 1))
    return within.restricted(frozenset(name for place, name in enumerate(names) if bits >> place & 1))
