"""Changes, remedies that are made of them, and the answer as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import attrs

from dra_alloc.explain._text import Line, short_names
from dra_alloc.explain.model import Chosen, Failure

if TYPE_CHECKING:
    from dra_alloc.tables import Table
    from dra_alloc.whatif._trial import Trial

__all__ = ["COSTS", "Change", "Remedy", "WhatIf"]

#: What a change of each kind costs. Cheap is what the owner of the claim can do alone, dear what others pay for.
COSTS: Final[dict[str, int]] = {
    "toleration": 10,
    "fewer-devices": 10,  # for each device
    "selector-term": 20,
    "capacity": 20,
    "constraint": 30,
    "class-term": 40,
    "preempt": 50,  # and 5 more for each step of priority
    "add-devices": 100,  # for each device
    "add-node": 150,
}


@attrs.frozen
class Change:
    """One change. kind: a key of COSTS. text: what to do, in words. claim, request: what it is made to, if anything.

    Changes of equal kind, text, claim and request are the same change.
    """

    kind: str
    cost: int = attrs.field(eq=False)
    text: str = ""
    claim: str = ""
    request: str = ""
    apply: Callable[[Trial], None] = attrs.field(eq=False, repr=False, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "kind": self.kind,
            "cost": self.cost,
            "text": self.text,
            "claim": self.claim or None,
            "request": self.request or None,
        }


@attrs.frozen(kw_only=True)
class Remedy:
    """Changes with which it fits: none of them can be left out. node: where; chosen: what it would get there."""

    cost: int
    changes: tuple[Change, ...]
    node: str
    chosen: tuple[Chosen, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "cost": self.cost,
            "changes": [change.to_dict() for change in self.changes],
            "node": self.node,
            "chosen": [each.to_dict() for each in self.chosen],
        }


@attrs.frozen(kw_only=True)
class WhatIf:
    """What would help. remedies: the cheapest first. nodes: those that were tried, of `of` nodes; trials: attempts.

    complete: whether every combination up to the number of changes was tried on these nodes; otherwise the budget ended
    the search, and there may be more, never cheaper ones of those changes. failure: the error that the question ends
    with as it is; without remedies it is one that no change of these kinds mends.
    """

    subject: str
    fits: bool
    remedies: tuple[Remedy, ...] = ()
    nodes: tuple[str, ...] = ()
    of: int = 0
    trials: int = 0
    complete: bool = True
    failure: Failure | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "subject": self.subject,
            "fits": self.fits,
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "nodes": list(self.nodes),
            "of": self.of,
            "trials": self.trials,
            "complete": self.complete,
            "failure": None if self.failure is None else self.failure.to_dict(),
        }

    def text(self, width: int = 100) -> str:
        """The answer for people, folded to `width` columns."""
        return "\n".join(piece for line in self._lines() for piece in line.folded(max(20, width)))

    def _lines(self) -> Iterator[Line]:
        if self.fits:
            yield Line(f"{self.subject}: fits as it is")
            return
        state = "does not fit" if self.failure is None else "error"
        if self.remedies:
            yield Line(f"{self.subject}: {state}; what would help, the least first:")
        else:
            yield Line(f"{self.subject}: {state}, and nothing that was tried would help")
        if self.failure is not None:
            yield Line(str(self.failure), 1)
        for number, remedy in enumerate(self.remedies, 1):
            yield Line(f"{number}. {'; and '.join(change.text for change in remedy.changes)}", 1)
            got = _got(remedy.chosen) or "its place"
            yield Line(f"cost {remedy.cost}; on node {remedy.node} it would get {got}", 3)
        end = "" if self.complete else "; not all combinations were tried"
        tried = f"{self.trials} trial{'' if self.trials == 1 else 's'}"
        yield Line(f"({tried} on {len(self.nodes)} of {self.of} nodes{end})", 1)

    def table(self) -> Table:
        """One row for each change of each remedy."""
        from dra_alloc.tables import Table

        rows = [
            (self.subject, number, remedy.cost, remedy.node, change.kind, change.claim, change.request, change.text)
            for number, remedy in enumerate(self.remedies, 1)
            for change in remedy.changes
        ]
        columns = ("subject", "remedy", "cost", "node", "kind", "claim", "request", "change")
        return Table.of(columns, rows, integers=("remedy", "cost"))

    def __str__(self) -> str:
        return self.text()


def _got(chosen: tuple[Chosen, ...]) -> str:
    """The devices of each request; driver and pool are said once."""
    parts = []
    for request, group in groupby(chosen, key=lambda each: each.request):
        names = short_names([each.device for each in group])
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        parts.append(f"{request}: {', '.join(names[:4])}{more}")
    return "; ".join(parts)
