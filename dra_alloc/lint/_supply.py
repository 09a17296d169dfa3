"""How much of something a node can have at most, over the devices that only it reaches and those that others may, too.

Bounds from above: what they rule out cannot be had, whatever is in use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from dra_alloc.lint._world import Row

__all__ = ["most_of_one_value", "most_on_a_node", "most_values"]


def most_on_a_node(rows: Sequence[Row]) -> int | None:
    """The most devices that a node can have; None if a device can be had any number of times."""
    if any(row.device.allow_multiple_allocations for row in rows):
        return None
    by_node = Counter(item.node for row in rows for item in row.members)
    wide = by_node.pop("", 0)
    return wide + max(by_node.values(), default=0)


def most_values(rows: Sequence[Row], values: Callable[[Row], Iterable[Hashable]]) -> int:
    """The most different values that a node can see."""
    by_node: dict[str, set[Hashable]] = defaultdict(set)
    for row in rows:
        found = tuple(values(row))
        for node in {item.node for item in row.members}:
            by_node[node].update(found)
    wide = by_node.pop("", set())
    return max((len(own | wide) for own in by_node.values()), default=len(wide))


def most_of_one_value(rows: Sequence[Row], values: Callable[[Row], Iterable[Hashable]]) -> int | None:
    """The most devices that a node can have with a value in common; None if there is no bound."""
    if any(row.device.allow_multiple_allocations for row in rows):
        return None
    counts: Counter[tuple[str, Hashable]] = Counter()
    for row in rows:
        members = Counter(item.node for item in row.members)
        for value in set(values(row)):
            for node, count in members.items():
                counts[node, value] += count
    wide = {value: count for (node, value), count in counts.items() if not node}
    local = (count + wide.get(value, 0) for (node, value), count in counts.items() if node)
    return max((*local, *wide.values()), default=0)
