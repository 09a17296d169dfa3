"""The search for the cheapest changes: combinations in the order of their cost, each tried in a fork."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.errors import AllocationError, BudgetExceeded, ValidationError
from dra_alloc.explain._explain import explain, explain_pod, subject_of
from dra_alloc.explain._nodes import Profiler
from dra_alloc.explain.model import Explanation, NodeExplanation
from dra_alloc.features.pods.planner import PodPlanner, pod_of
from dra_alloc.whatif._proposals import proposals
from dra_alloc.whatif._trial import Case, Trial
from dra_alloc.whatif.model import Change, Remedy, WhatIf

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.api import Node
    from dra_alloc.explain._nodes import Subject

__all__ = ["WhatIfBudget", "whatif"]

#: Combinations that are looked at for each trial of the budget: most are ruled out before they are tried.
_LOOKS = 50


@attrs.frozen
class WhatIfBudget:
    """What a question may cost. trials: attempts with changes. nodes: that are looked at, those that lack least first.

    changes: at most so many in a remedy. remedies: at most so many are given. timeout: seconds, None for none.
    """

    trials: int = 1000
    nodes: int = 8
    changes: int = 3
    remedies: int = 5
    timeout: float | None = 10.0


def whatif(
    allocator: Allocator,
    claims: Any = None,
    node: str | Node | None = None,
    *,
    pod: Any = None,
    nodes: Iterable[str] | None = None,
    budget: WhatIfBudget | None = None,
) -> WhatIf:
    """What would help; see `Allocator.whatif`."""
    budget = budget or WhatIfBudget()
    deadline = None if budget.timeout is None else time.monotonic() + budget.timeout
    quiet = allocator._over(allocator.cluster)
    quiet._suffixes = lambda: "*"
    model = None if pod is None else pod_of(pod, allocator)
    found = (
        explain(allocator, claims, node, nodes=nodes)
        if model is None
        else explain_pod(allocator, model, node, nodes=nodes)
    )
    if found.fits:
        return WhatIf(subject=found.subject, fits=True, of=found.nodes)
    try:
        if model is None:
            case = Case(quiet, allocator._claims(claims))
        else:
            planner = PodPlanner(quiet, model)
            case = Case(quiet, planner.models(), model, planner.pod)
        subject = subject_of(quiet, case.claims)
    except (AllocationError, ValidationError):
        # What is wrong with the claims themselves no change of these kinds can mend.
        return WhatIf(subject=found.subject, fits=False, of=found.nodes, failure=found.failure)
    chosen = _nearest(subject, found, budget.nodes)
    search = _Search(case, subject, found, chosen, budget, deadline)
    return search.run()


def _nearest(subject: Subject, found: Explanation, most: int) -> list[str]:
    """The nodes that lack the fewest devices; of equal ones, those of different reasons first."""
    if found.only is not None:
        return [found.only.node]
    candidates = [name for group in found.groups for name in group.nodes]
    if found.failure is not None:
        # An error on any node ends the question, so that every node has to be tried.
        return list(subject.inventory.cluster.node_names())
    if subject.question is None:
        return candidates[:most]
    profiler = Profiler(subject)
    seen: dict[int, int] = {}
    ranked = []
    for place, group in enumerate(found.groups):
        for name in group.nodes:
            lacking = profiler.lacking(subject.asker._node(name))
            turn = seen[place] = seen.get(place, -1) + 1
            ranked.append((lacking, turn, place, name))
    return [name for *_, name in heapq.nsmallest(most, ranked)]


class _Search:
    def __init__(
        self,
        case: Case,
        subject: Subject,
        found: Explanation,
        nodes: Sequence[str],
        budget: WhatIfBudget,
        deadline: float | None,
    ) -> None:
        self.case = case
        self.subject = subject
        self.found = found
        self.nodes = list(nodes)
        self.budget = budget
        self.deadline = deadline
        self.trials = 0

    def run(self) -> WhatIf:
        changes, where = self._changes()
        remedies: list[Remedy] = []
        complete = True
        looked_at = 0
        for cost, combination in _combinations(changes, self.budget.changes):
            looked_at += 1
            late = self.deadline is not None and time.monotonic() > self.deadline
            if late or self.trials >= self.budget.trials or looked_at > _LOOKS * self.budget.trials:
                complete = False
                break
            if any(set(remedy.changes) <= set(combination) for remedy in remedies):
                continue
            if len(remedies) >= self.budget.remedies:
                complete = False
                break
            if not set.intersection(*(where[change] for change in combination)):
                continue  # these help on different nodes
            self.trials += 1
            remedy = self._try(cost, combination)
            if remedy is not None:
                remedies.append(remedy)
        return WhatIf(
            subject=self.found.subject,
            fits=False,
            remedies=tuple(remedies),
            nodes=tuple(self.nodes),
            of=self.found.nodes,
            trials=self.trials,
            complete=complete,
            failure=self.found.failure,
        )

    def _changes(self) -> tuple[list[Change], dict[Change, set[str]]]:
        """The changes that could help on some node, the cheapest first, and on which."""
        where: dict[Change, set[str]] = {}
        for name in self.nodes[: self.budget.nodes]:
            node = self.subject.asker._node(name)
            explained = self._explained(node)
            if explained.code in ("placement", "claim-unusable"):
                continue
            for change in proposals(self.subject, node, explained, self.case.pod):
                where.setdefault(change, set()).add(name)
        # Changes to claims and classes hold on every node, whichever brought them up.
        for change, names in where.items():
            if change.kind not in ("preempt", "add-devices", "add-node"):
                names.update(self.nodes[: self.budget.nodes])
        return sorted(where, key=lambda change: (change.cost, change.text)), where

    def _explained(self, node: Node) -> NodeExplanation:
        if self.found.only is not None:
            return self.found.only
        if self.case.pod is not None:
            only = explain_pod(self.case.allocator, self.case.pod, node).only
        else:
            only = explain(self.case.allocator, self.case.claims, node).only
        assert only is not None  # the claims compile, so each node can be looked at
        return only

    def _try(self, cost: int, combination: Sequence[Change]) -> Remedy | None:
        trial = Trial(self.case)
        for change in combination:
            change.apply(trial)
        try:
            outcome = trial.outcome(self.nodes)
        except (AllocationError, BudgetExceeded, ValidationError):
            return None
        if outcome is None:
            return None
        return Remedy(cost=cost, changes=tuple(combination), node=outcome[0], chosen=outcome[1])


def _combinations(changes: Sequence[Change], most: int) -> Iterator[tuple[int, tuple[Change, ...]]]:
    """Combinations of up to `most` changes in the order of their cost, of equal cost the shorter first.

    changes: in the order of their cost. Each combination of ascending places comes from one parent only: the one
    without its last place, or the one whose last place is one less.
    """
    if not changes:
        return
    heap: list[tuple[int, int, tuple[int, ...]]] = [(changes[0].cost, 1, (0,))]
    while heap:
        cost, size, places = heapq.heappop(heap)
        yield cost, tuple(changes[place] for place in places)
        last = places[-1]
        if last + 1 < len(changes):
            step = changes[last + 1].cost
            heapq.heappush(heap, (cost - changes[last].cost + step, size, (*places[:-1], last + 1)))
            if size < most:
                heapq.heappush(heap, (cost + step, size + 1, (*places, last + 1)))
