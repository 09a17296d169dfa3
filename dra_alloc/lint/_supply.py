"""How much of something a node can have at most, over the devices that only it reaches and those that others may, too.

Bounds from above: what they rule out cannot be had, whatever is in use. A summary is made once for all requests that
have the same devices, of which a cluster's claims have far fewer kinds than there are claims.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

from dra_alloc.lint._values import Value, Values
from dra_alloc.lint._world import Row

__all__ = ["Summary", "can_differ", "can_match", "summarize"]


@attrs.frozen(eq=False)
class Summary:
    """The values of an attribute that some devices have.

    values: all of them. counts: devices by node ("" for those of no single node) and value; by_node: values by node.
    unlimited: a device can be had any number of times. has_empty: a device has an empty list, which differs from all.
    """

    values: Values
    counts: Mapping[str, Mapping[Value, int]]
    unlimited: bool
    has_empty: bool

    def count(self, node: str, value: Value) -> int:
        """The most devices with a value that a node can have."""
        wide = self.counts.get("", {}).get(value, 0)
        return wide + (self.counts.get(node, {}).get(value, 0) if node else 0)

    def on_node(self, node: str) -> set[Value]:
        """The values that a node can see."""
        return {*self.counts.get("", ()), *self.counts.get(node, ())}


def summarize(values: Iterable[tuple[Row, Values]]) -> Summary:
    """The summary of rows with their values."""
    counts: dict[str, Counter[Value]] = defaultdict(Counter)
    unlimited = has_empty = False
    for row, found in values:
        unlimited = unlimited or bool(row.device.allow_multiple_allocations)
        has_empty = has_empty or not found
        for member in row.members:
            of_node = counts[member.node]
            for value in found:
                of_node[value] += 1
    return Summary(frozenset(value for of_node in counts.values() for value in of_node), counts, unlimited, has_empty)


def _nodes(summaries: Iterable[Summary]) -> list[str]:
    """Nodes where something is; "" stands for one with nothing of its own."""
    return list(dict.fromkeys(node for summary in summaries for node in ("", *summary.counts)))


def can_match(groups: Sequence[tuple[Summary, int]]) -> bool:
    """Whether some node may have, for each summary, so many devices, all of them with one value."""
    common = frozenset.intersection(*(summary.values for summary, _ in groups))
    bounded = [(summary, number) for summary, number in groups if not summary.unlimited]
    if not bounded:
        return bool(common)
    return any(
        all(summary.count(node, value) >= number for summary, number in bounded)
        for node in _nodes(summary for summary, _ in bounded)
        for value in common
    )


def can_differ(groups: Sequence[tuple[Summary, int]]) -> bool:
    """Whether some node may have, for each summary, so many devices, no two of them with a common value."""
    if any(summary.has_empty for summary, _ in groups):
        return True
    total = sum(number for _, number in groups)
    for node in _nodes(summary for summary, _ in groups):
        seen = [summary.on_node(node) for summary, _ in groups]
        enough = all(len(values) >= number for values, (_, number) in zip(seen, groups, strict=True))
        if enough and len(set().union(*seen)) >= total:
            return True
    return False
