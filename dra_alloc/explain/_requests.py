"""Each request of a question by itself, on one node: what is there, and which rule takes how much away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc.explain._judge import Judge, Offer
from dra_alloc.explain.model import NearMiss, RequestExplanation, RuledOut
from dra_alloc.explain.reasons import stage

if TYPE_CHECKING:
    from dra_alloc.inventory import NodeView
    from dra_alloc.problem import RequestSlot

__all__ = ["Label", "explain_requests", "label_of", "slot_label"]

#: Devices that are named for a rule, and near misses for a request; the rest is counted.
SHOWN_DEVICES = 32
SHOWN_MISSES = 3

#: Rules that say that a device is of another sort: what passes them is what the request looks for.
_SORT = frozenset({"not-on-node", "class-selector", "request-selector"})


@attrs.frozen
class Label:
    """Why a request cannot be had by itself, in a code and in words that many nodes share."""

    code: str
    what: str = ""


def explain_requests(judge: Judge, view: NodeView, found: Sequence[Offer]) -> tuple[RequestExplanation, ...]:
    """One explanation for each alternative of each request, in order, with details."""
    explained = []
    for number, slot in enumerate(judge.question.slots):
        claim = judge.question.claims[slot.claim].metadata.key
        for position in range(len(slot.alternatives)):
            explained.append(_explain(judge, view, found, number, position, claim))
    return tuple(explained)


def _explain(
    judge: Judge, view: NodeView, found: Sequence[Offer], number: int, position: int, claim: str
) -> RequestExplanation:
    alternative = judge.question.slots[number].alternatives[position]
    candidates = []
    matching = 0
    counts: dict[tuple[str, str], list[tuple[str, str]]] = {}
    misses = []
    for offer in found:
        blockers = judge.blockers(offer, number, position, view)
        matches = judge.matches(offer, number, position)
        matching += matches
        if not blockers:
            candidates.append(offer.name)
            continue
        first = blockers[0]
        counts.setdefault((first.code, first.what), []).append((offer.name, first.detail))
        if len(blockers) == 1:
            misses.append(NearMiss(offer.name, first))
    ruled_out = tuple(
        RuledOut(code, what, len(devices), tuple(devices[:SHOWN_DEVICES]))
        for (code, what), devices in sorted(counts.items(), key=lambda entry: stage(entry[0][0]))
    )
    misses.sort(key=lambda miss: (-stage(miss.blocker.code), not _akin(miss.blocker.what)))
    if any(_akin(miss.blocker.what) for miss in misses):
        misses = [miss for miss in misses if _akin(miss.blocker.what)]
    return RequestExplanation(
        claim=claim,
        request=alternative.reference,
        device_class=alternative.type.device_class.metadata.name,
        wanted=None if alternative.every else alternative.count,
        matching=matching,
        candidates=tuple(candidates),
        ruled_out=ruled_out,
        near_misses=tuple(misses[:SHOWN_MISSES]),
    )


def slot_label(slot: RequestSlot, explained: Sequence[RequestExplanation]) -> Label | None:
    """Why a request cannot be had by itself in any of its alternatives; None if one of them has enough devices.

    Of several alternatives, the one that lacks the fewest devices speaks.
    """
    if any(each.enough for each in explained):
        return None
    nearest = min(explained, key=lambda each: (each.wanted or max(1, each.matching)) - len(each.candidates))
    counts = [(entry.code, entry.what, entry.count) for entry in nearest.ruled_out]
    return label_of(nearest.wanted, nearest.matching, len(nearest.candidates), counts)


def label_of(wanted: int | None, matching: int, candidates: int, ruled_out: Iterable[tuple[str, str, int]]) -> Label:
    """The rule that keeps a request from having enough devices.

    Devices count as lost at the first rule that they fail. Those that were lost last came closest: going back from
    there, the rules are lifted until there would be enough devices, and the one of these that took most is the reason.
    """
    entries = sorted(ruled_out, key=lambda entry: -stage(entry[0]))
    if not entries:
        return Label("no-devices" if not candidates else "too-few")
    missing = (max(1, matching) if wanted is None else wanted) - candidates
    close = [entry for entry in entries if entry[0] not in _SORT]
    if sum(count for _, _, count in close) >= missing:
        needed = []
        for entry in close:
            needed.append(entry)
            missing -= entry[2]
            if missing <= 0:
                break
        code, what, _ = max(needed, key=lambda entry: entry[2])
        return Label(code, what)
    if close or candidates:
        return Label("too-few")
    code, what, _ = max(entries, key=lambda entry: (_akin(entry[1]), stage(entry[0]), entry[2]))
    return Label(code, what)


def _akin(what: str) -> bool:
    """Whether a rule tells devices of one kind apart, rather than whole drivers, which says little about a request."""
    return "device.driver" not in what
