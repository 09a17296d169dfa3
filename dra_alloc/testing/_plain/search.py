"""The depth-first search: claims, requests, alternatives and devices in order; the first complete answer counts."""

from __future__ import annotations

from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.testing._plain.picks import Picks
from dra_alloc.testing._plain.pools import Offer
from dra_alloc.testing._plain.requests import MAX_RESULTS, Plan, Want
from dra_alloc.testing._plain.rules import Rules


class _LimitReached(Exception):
    """The claim would get more devices than it can have, whatever devices are chosen for the request before."""


class Search:
    """One attempt. Each method extends the picks that it is given and returns all, or None if there is no way."""

    def __init__(self, plans: list[Plan], rules: Rules, max_steps: int | None) -> None:
        self._plans = plans
        self._rules = rules
        self._max_steps = max_steps
        self._steps = 0

    def run(self) -> Picks | None:
        """The devices of all claims in order, or None if they do not fit."""
        picks = self._claim(0, ())
        if picks is None and any(pool.fault == "invalid" for pool in self._rules.pools):
            raise AllocationError(
                "invalid-pool",
                "nothing fits, and the node has an invalid pool",
                node=self._rules.node.metadata.name,
            )
        return picks

    def _claim(self, claim: int, picks: Picks) -> Picks | None:
        return self._request(claim, 0, picks) if claim < len(self._plans) else picks

    def _request(self, claim: int, number: int, picks: Picks) -> Picks | None:
        asks = self._plans[claim].asks
        if number == len(asks):
            try:
                return self._claim(claim + 1, picks)
            except _LimitReached:
                return None
        ask = asks[number]
        if not ask.has_alternatives:
            return self._device(claim, number, ask.wants[0], 0, 0, picks)
        limited = True
        for want in ask.wants:
            try:
                found = self._device(claim, number, want, 0, 0, picks)
            except _LimitReached:
                continue
            limited = False
            if found is not None:
                return found
        if limited:
            raise _LimitReached
        return None

    def _device(self, claim: int, number: int, want: Want, taken: int, start: int, picks: Picks) -> Picks | None:
        """Choose the device number `taken` of the request, at the place `start` of the search order or after it."""
        self._count_step()
        if want.takes_all and not want.offers:
            return None
        if taken >= want.count:
            return self._request(claim, number + 1, picks)
        if sum(pick.claim == claim for pick in picks) + want.count - taken > MAX_RESULTS:
            raise _LimitReached
        if want.takes_all:
            chosen = self._take(claim, want, want.offers[taken], picks)
            return None if chosen is None else self._device(claim, number, want, taken + 1, 0, chosen)
        for offer in self._rules.offers[start:]:
            chosen = self._take(claim, want, offer, picks)
            if chosen is None:
                continue
            found = self._device(claim, number, want, taken + 1, offer.position + 1, chosen)
            if found is not None:
                return found
        return None

    def _take(self, claim: int, want: Want, offer: Offer, picks: Picks) -> Picks | None:
        """The picks with this device added, or None if a rule is against it; the order of the rules shows in errors."""
        rules = self._rules
        if rules.in_use(claim, want, offer, picks) or not rules.selectable(want, offer):
            return None
        rules.check_capacity_request(want, offer)
        if not rules.counters_suffice(want, offer, picks):
            return None
        if not rules.tolerated(want, offer):
            return None
        if not rules.constraints_hold(self._plans[claim], claim, want, offer, picks):
            if not want.takes_all:
                return None
            raise want.error("all-violates-constraint", "a constraint keeps the request from having all devices", offer)
        if not rules.capacity_suffices(want, offer, picks):
            return None
        return (*picks, rules.pick(claim, want, offer))

    def _count_step(self) -> None:
        self._steps += 1
        if self._max_steps is not None and self._steps > self._max_steps:
            raise BudgetExceeded(f"the plain search took more than {self._max_steps} steps", steps=self._steps)
