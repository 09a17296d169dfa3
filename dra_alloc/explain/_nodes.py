"""One node explained in full, and what a node is to a question in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.explain._conflicts import find_conflict
from dra_alloc.explain._judge import Judge, offers
from dra_alloc.explain._requests import Label, explain_requests, label_of, slot_label
from dra_alloc.explain.model import Chosen, Failure, NodeExplanation, RequestExplanation, title
from dra_alloc.explain.reasons import REASONS
from dra_alloc.inventory import NodeView
from dra_alloc.nodeselection import selector_admits

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.api import AllocationResult, Node, ResourceClaim
    from dra_alloc.inventory import Inventory
    from dra_alloc.problem import Question, RequestSlot

_UNREACHED = frozenset({"selector-error", "capacity-request"})

__all__ = ["Profiler", "Subject", "away_summary", "explain_node", "failure_of"]


@attrs.frozen(eq=False)
class Subject:
    """What is asked for. asker: an allocator of the cluster as it is. question: the claims that are not allocated."""

    asker: Allocator
    claims: tuple[ResourceClaim, ...]
    question: Question | None
    judge: Judge | None
    inventory: Inventory

    def away(self, node: Node) -> ResourceClaim | None:
        """The first claim that is allocated on other nodes than this."""
        for claim in self.claims:
            allocation = claim.status.allocation if claim.status is not None else None
            if allocation is not None and not selector_admits(allocation.node_selector, node):
                return claim
        return None


def explain_node(subject: Subject, node: Node) -> NodeExplanation:
    """Everything there is to say about one node."""
    name = node.metadata.name
    if subject.away(node) is not None:
        return NodeExplanation(node=name, fits=False, code="claim-elsewhere", summary=away_summary(subject, node))
    failure = None
    results: Sequence[AllocationResult] | None = None
    try:
        results = subject.asker.allocate(subject.claims, node)
    except (AllocationError, BudgetExceeded) as error:
        failure = failure_of(error)
    if subject.question is None or subject.judge is None:
        return NodeExplanation(node=name, fits=True, chosen=Chosen.of(subject.claims, results or ()))
    view = subject.inventory.view(node)
    requests = explain_requests(subject.judge, view, list(offers(view, subject.inventory)))
    found = NodeExplanation(node=name, fits=results is not None, requests=requests, failure=failure, notes=_notes(view))
    if failure is not None:
        return attrs.evolve(found, code=failure.code, summary=title(failure.code))
    if results is not None:
        return attrs.evolve(found, chosen=Chosen.of(subject.claims, results))
    label = _first_label(subject.question, view, requests)
    if label is not None:
        return attrs.evolve(found, code=label[1].code, summary=_summary(*label))
    conflict = find_conflict(subject.asker, subject.question, node, requests)
    return attrs.evolve(
        found,
        code=conflict.code,
        summary=_conflict_summary(conflict.code, conflict.requests, conflict.constraints),
        conflict=conflict,
    )


def away_summary(subject: Subject, node: Node) -> str:
    """The words for a node that the claims' allocations exclude."""
    claim = subject.away(node)
    assert claim is not None
    return f"claim {claim.metadata.key} is allocated on other nodes"


def failure_of(error: AllocationError | BudgetExceeded) -> Failure:
    """An error as a part of an explanation."""
    if isinstance(error, AllocationError):
        return Failure(
            code=error.kind,
            message=error.message,
            claim=error.claim,
            request=error.request,
            device=error.device,
            node=error.node,
        )
    return Failure(code=error.kind, message=str(error))


def _notes(view: NodeView) -> tuple[str, ...]:
    return tuple(f"{table.reason}; it offers no devices" for table in view.faulty)


def _slots(
    question: Question, requests: Sequence[RequestExplanation]
) -> list[tuple[RequestSlot, str, list[RequestExplanation]]]:
    """The explanations by request: slot, `namespace/name/request`, those of its alternatives."""
    found = []
    place = 0
    for slot in question.slots:
        end = place + len(slot.alternatives)
        name = f"{question.claims[slot.claim].metadata.key}/{slot.request.name}"
        found.append((slot, name, list(requests[place:end])))
        place = end
    return found


def _first_label(
    question: Question, view: NodeView, requests: Sequence[RequestExplanation]
) -> tuple[str, Label] | None:
    """The request that cannot be had by itself, with the reason; of several the one with the gravest reason."""
    labels = [
        (name, label)
        for slot, name, explained in _slots(question, requests)
        if (label := slot_label(slot, explained)) is not None
    ]
    return _gravest(labels, view)


def _gravest(labels: Sequence[tuple[str, Label]], view: NodeView) -> tuple[str, Label] | None:
    if not labels:
        return None
    if not view.pools:
        return labels[0][0], Label("pool-incomplete" if view.faulty else "no-devices")
    order = list(REASONS)
    # An error that would have ended the attempt, had the search come to it, is not why the claims do not fit.
    return min(labels, key=lambda entry: (entry[1].code in _UNREACHED, order.index(entry[1].code)))


def _summary(request: str, label: Label) -> str:
    if label.code in ("no-devices", "pool-incomplete"):
        return title(label.code)
    what = f" ({label.what})" if label.what and label.code != "in-use" else ""
    return f"request {request}: {title(label.code)}{what}"


def _conflict_summary(code: str, requests: Sequence[str], constraints: Sequence[str]) -> str:
    rules = f" ({'; '.join(constraints)})" if constraints else ""
    if len(requests) == 1:
        return f"request {requests[0]}: {title(code)}{rules}"
    return f"requests {', '.join(requests)} cannot be had together: {title(code)}{rules}"


class Profiler:
    """What a node is to a question, in short: the reason and its words, without names of devices.

    Nodes that look the same to the question share the work.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        assert subject.question is not None
        assert subject.judge is not None
        self._question = subject.question
        self._judge = subject.judge
        self._places = sum(len(slot.alternatives) for slot in subject.question.slots)
        self._parts: dict[object, _Part] = {}
        self._conflicts: dict[object, tuple[str, str]] = {}

    def reason(self, node: Node) -> tuple[str, str]:
        """Code and summary for a node on which the claims do not fit."""
        subject = self._subject
        if subject.away(node) is not None:
            return "claim-elsewhere", away_summary(subject, node)
        view = subject.inventory.view(node)
        parts = self._profile(view)
        if view.faulty and (self._question.has_every or any(table.fault == "invalid" for table in view.faulty)):
            failure = self._failure(node)
            if failure is not None:
                return failure
        label = self._label(view, parts)
        if label is not None:
            return label[1].code, _summary(*label)
        return self._conflict(node, view, parts)

    def lacking(self, node: Node) -> int:
        """How many devices the requests lack on a node, each by itself; 0 where only their conflict is in the way."""
        parts = self._profile(self._subject.inventory.view(node))
        total = place = 0
        for slot in self._question.slots:
            least = None
            for alternative in slot.alternatives:
                matching = sum(part.alternatives[place].matching for part in parts)
                candidates = sum(part.alternatives[place].candidates for part in parts)
                place += 1
                wanted = max(1, matching) if alternative.every else alternative.count
                missing = max(0, wanted - candidates)
                least = missing if least is None else min(least, missing)
            total += least or 0
        return total

    def _failure(self, node: Node) -> tuple[str, str] | None:
        try:
            self._subject.asker.allocate(self._subject.claims, node)
        except AllocationError as error:
            return error.kind, title(error.kind)
        return None

    def _profile(self, view: NodeView) -> list[_Part]:
        """What each pool of the node has for each alternative."""
        parts = []
        for number, table in enumerate(view.pools):
            state = self._subject.inventory.state(table)
            kinds = self._judge.kinds(table)
            layout = (table.layout, state.digest, bool(state.vanished)) if table.draws or state.shares else None
            declared = bool(view.node.status and view.node.status.declared_features) if table.selective else None
            key = (kinds, view.visible[number], view.elsewhere[number], state.held, layout, declared)
            part = self._parts.get(key)
            if part is None:
                single = NodeView(
                    view.node, (table,), (view.visible[number],), (view.elsewhere[number],), view.faulty, 0
                )
                part = self._parts[key] = self._measure(single, kinds)
            parts.append(part)
        return parts

    def _measure(self, view: NodeView, kinds: tuple[int, ...]) -> _Part:
        found = list(offers(view, self._subject.inventory))
        alternatives = []
        useful: set[int] = set()
        failing = False
        for number, slot in enumerate(self._question.slots):
            for position in range(len(slot.alternatives)):
                counts: Counter[tuple[str, str]] = Counter()
                candidates = matching = 0
                for offer in found:
                    blockers = self._judge.blockers(offer, number, position, view, details=False)
                    matching += self._judge.matches(offer, number, position)
                    codes = {blocker.code for blocker in blockers}
                    failing = failing or not codes.isdisjoint(_UNREACHED)
                    if codes <= {"constraint-attribute"}:
                        useful.add(offer.index)  # what the constraints keep away is there when they are left out
                    if blockers:
                        counts[blockers[0].code, blockers[0].what] += 1
                    else:
                        candidates += 1
                alternatives.append(_Counts(matching, candidates, counts))
        plain = not failing and (not found or not (found[0].table.draws or found[0].state.shares))
        return _Part(tuple(alternatives), tuple(sorted(kinds[index] for index in useful)) if plain else None)

    def _label(self, view: NodeView, parts: Sequence[_Part]) -> tuple[str, Label] | None:
        labels = []
        place = 0
        for slot in self._question.slots:
            shown: list[tuple[int, Label | None]] = []
            for alternative in slot.alternatives:
                counts = _total(part.alternatives[place].counts for part in parts)
                matching = candidates = 0
                for part in parts:
                    matching += part.alternatives[place].matching
                    candidates += part.alternatives[place].candidates
                place += 1
                wanted = None if alternative.every else alternative.count
                missing = (wanted or max(1, matching)) - candidates
                entries = [(code, what, count) for (code, what), count in counts.items()]
                label = None if missing <= 0 else label_of(wanted, matching, candidates, entries)
                shown.append((missing, label))
            if all(label is not None for _, label in shown):
                label = min(shown, key=lambda entry: entry[0])[1]
                assert label is not None
                name = f"{self._question.claims[slot.claim].metadata.key}/{slot.request.name}"
                labels.append((name, label))
        return _gravest(labels, view)

    def _conflict(self, node: Node, view: NodeView, parts: Sequence[_Part]) -> tuple[str, str]:
        faults = tuple(table.fault for table in view.faulty)
        key: object
        if all(part.useful is not None for part in parts) and not self._question.has_every:
            # Whether and why devices that nothing binds together cannot be had together does not depend on their order,
            # as long as no part of the question can end in an error (then `useful` is None). What is said of the last
            # device that lacks depends, besides, on which rules take how many of the others.
            useful = tuple(sorted(kind for part in parts for kind in part.useful or ()))
            lost = (_total(part.alternatives[place].counts for part in parts) for place in range(self._places))
            key = faults, useful, tuple(frozenset(counts.items()) for counts in lost)
        else:
            key = (
                faults,
                tuple(
                    (self._judge.kinds(table), visible, elsewhere, state.held, table.layout, state.digest)
                    for table, visible, elsewhere in zip(view.pools, view.visible, view.elsewhere, strict=True)
                    for state in (self._subject.inventory.state(table),)
                ),
            )
        found = self._conflicts.get(key)
        if found is None:
            requests = explain_requests(self._judge, view, list(offers(view, self._subject.inventory)))
            conflict = find_conflict(self._subject.asker, self._question, node, requests)
            summary = _conflict_summary(conflict.code, conflict.requests, conflict.constraints)
            found = self._conflicts[key] = conflict.code, summary
        return found


def _total(several: Iterable[Counter[tuple[str, str]]]) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for counts in several:
        total += counts
    return total


@attrs.frozen(eq=False)
class _Counts:
    """Of one pool for one alternative: devices that match, that can be had, and the others by the rule they fail."""

    matching: int
    candidates: int
    counts: Counter[tuple[str, str]]


@attrs.frozen(eq=False)
class _Part:
    """One pool on one node. useful: kinds of the candidates, and of those that only constraints keep from being some;
    None where devices depend on each other, or fail.
    """

    alternatives: tuple[_Counts, ...]
    useful: tuple[int, ...] | None
