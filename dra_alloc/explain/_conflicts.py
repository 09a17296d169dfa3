"""Why requests cannot be had together, each of which could be had alone.

Everything is found out by asking the allocator for parts of the question, so that nothing here can contradict it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.errors import Conflict as Stale
from dra_alloc.explain._judge import Judge, offers
from dra_alloc.explain._requests import explain_requests, slot_label
from dra_alloc.explain.model import Chosen, Conflict, RequestExplanation, ValueSplit
from dra_alloc.problem import MAX_RESULTS, compile_question

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.api import AllocationResult, DeviceConstraint, Node, ResourceClaim
    from dra_alloc.problem import Question

__all__ = ["find_conflict", "rule_text"]

#: A request or a constraint: number of the claim, position in it.
Place = tuple[int, int]
#: Requests and constraints that are asked for.
Parts = tuple[Sequence[Place], Sequence[Place]]


@attrs.frozen(eq=False)
class _Best:
    """The best partial set: the request that does not get all, how many it gets, and the answer."""

    place: Place
    got: int
    claims: tuple[ResourceClaim, ...]
    results: tuple[AllocationResult, ...]


def find_conflict(
    allocator: Allocator,
    question: Question,
    node: Node,
    explained: Sequence[RequestExplanation],
) -> Conflict:
    """What keeps the claims of a question from fitting on a node, where each request has enough candidates.

    allocator: of the cluster as it is. explained: the requests by themselves (see `explain_requests`).
    """
    finder = _Finder(allocator, question, node, explained)
    return finder.find()


class _Finder:
    def __init__(
        self, allocator: Allocator, question: Question, node: Node, explained: Sequence[RequestExplanation]
    ) -> None:
        self.allocator = allocator
        self.question = question
        self.claims = question.claims
        self.node = node
        self.every = tuple(
            (number, position)
            for number, claim in enumerate(self.claims)
            for position in range(len(claim.spec.devices.requests))
        )
        self.constraints = tuple(
            (number, position)
            for number, claim in enumerate(self.claims)
            for position in range(len(claim.spec.devices.constraints))
        )
        self.explained = {(entry.claim, entry.request): entry for entry in explained}

    def find(self) -> Conflict:
        requests = self._least(self.every, lambda kept: (kept, self.constraints))
        constraints = self._least(self.constraints, lambda kept: (requests, kept), may_be_empty=True)
        names = tuple(self._name(place) for place in requests)
        rules = tuple(self._rule(place) for place in constraints)
        best = self._best(requests, constraints)
        if best is None:
            code = "constraint" if constraints else "limit" if self._over_limit(requests) else "conflict"
            return Conflict(code=code, requests=names, constraints=rules)
        wanted = self._wanted(best.place)
        partial = Chosen.of(best.claims, best.results)
        found = Conflict(
            code="constraint",
            requests=names,
            constraints=rules,
            request=self._name(best.place),
            wanted=wanted,
            got=best.got,
            partial=partial,
        )
        if constraints:
            return attrs.evolve(found, splits=tuple(self._split(place, best, partial) for place in constraints))
        return self._without_constraints(found, best)

    # Asking for parts

    def _least(
        self, places: Sequence[Place], parts: Callable[[tuple[Place, ...]], Parts], *, may_be_empty: bool = False
    ) -> tuple[Place, ...]:
        """A least part of the places that still does not fit: each is left out in turn, and stays out if it can."""
        kept = list(places)
        for place in places:
            rest = [other for other in kept if other != place]
            if not rest and not may_be_empty:
                break
            if self._fits(*parts(tuple(rest))) is False:
                kept = rest
        return tuple(kept)

    def _fits(self, requests: Sequence[Place], constraints: Sequence[Place]) -> bool | None:
        """Whether a part fits; None where the attempt ends with an error or out of budget."""
        try:
            return self._ask(self._part(requests, constraints)) is not None
        except (AllocationError, BudgetExceeded):
            return None

    def _ask(self, claims: Sequence[ResourceClaim]) -> list[AllocationResult] | None:
        return self.allocator.allocate(claims, self.node) if claims else []

    def _part(
        self, requests: Sequence[Place], constraints: Sequence[Place], counts: Mapping[Place, int] | None = None
    ) -> tuple[ResourceClaim, ...]:
        """The claims with some of their requests and constraints, and other numbers of devices."""
        claims = []
        for number, claim in enumerate(self.claims):
            devices = claim.spec.devices
            kept = [position for position in range(len(devices.requests)) if (number, position) in requests]
            if not kept:
                continue
            names = {devices.requests[position].name for position in kept}
            bodies = []
            for position in kept:
                request = devices.requests[position]
                count = (counts or {}).get((number, position))
                if count is not None and request.exactly is not None:
                    exactly = attrs.evolve(request.exactly, allocation_mode="ExactCount", count=count)
                    request = attrs.evolve(request, exactly=exactly)
                bodies.append(request)
            rules = [
                rule
                for position, constraint in enumerate(devices.constraints)
                if (number, position) in constraints and (rule := _narrowed(constraint, names)) is not None
            ]
            part = attrs.evolve(devices, requests=tuple(bodies), constraints=tuple(rules))
            claims.append(attrs.evolve(claim, spec=attrs.evolve(claim.spec, devices=part)))
        return tuple(claims)

    # The best partial set

    def _best(self, requests: Sequence[Place], constraints: Sequence[Place]) -> _Best | None:
        """The partial set that lacks the fewest devices, of one request; of equal ones that of the last request."""
        best: _Best | None = None
        for place in requests:
            found = self._most(place, requests, constraints)
            if found is None:
                continue
            lacking = self._wanted(place) - found.got
            if best is None or lacking <= self._wanted(best.place) - best.got:
                best = found
        return best

    def _most(self, place: Place, requests: Sequence[Place], constraints: Sequence[Place]) -> _Best | None:
        """As many devices for one request as can be had with all of the others."""
        others = tuple(other for other in requests if other != place)
        best: _Best | None = None
        claims = self._part(others, constraints)
        results = self._attempt(claims)
        if results is not None:
            best = _Best(place, 0, claims, results)
        if self.claims[place[0]].spec.devices.requests[place[1]].exactly is None:
            return best
        # A part of a set that fits, fits as well: the greatest number can be found by halving.
        low, high = 1, min(self._wanted(place) - 1, MAX_RESULTS)
        while low <= high:
            middle = (low + high) // 2
            claims = self._part(requests, constraints, {place: middle})
            results = self._attempt(claims)
            if results is None:
                high = middle - 1
            else:
                best = _Best(place, middle, claims, results)
                low = middle + 1
        return best

    def _attempt(self, claims: tuple[ResourceClaim, ...]) -> tuple[AllocationResult, ...] | None:
        try:
            results = self._ask(claims)
        except (AllocationError, BudgetExceeded):
            return None
        return None if results is None else tuple(results)

    def _over_limit(self, requests: Sequence[Place]) -> bool:
        """Whether the fewest devices that the requests of one claim can do with are too many for a claim."""
        fewest: Counter[int] = Counter()
        for number, position in requests:
            fewest[number] += min(self._counts((number, position)), default=0)
        return any(count > MAX_RESULTS for count in fewest.values())

    def _counts(self, place: Place) -> list[int]:
        """How many devices the alternatives of a request want, of those alternatives that have enough candidates."""
        claim = self.claims[place[0]]
        request = claim.spec.devices.requests[place[1]]
        names = [f"{request.name}/{sub.name}" for sub in request.first_available] or [request.name]
        entries = [self.explained[claim.metadata.key, name] for name in names]
        return [entry.matching if entry.wanted is None else entry.wanted for entry in entries if entry.enough]

    def _wanted(self, place: Place) -> int:
        return min(self._counts(place), default=1)

    # Words

    def _name(self, place: Place) -> str:
        claim = self.claims[place[0]]
        return f"{claim.metadata.key}/{claim.spec.devices.requests[place[1]].name}"

    def _rule(self, place: Place) -> str:
        claim = self.claims[place[0]]
        return rule_text(claim, claim.spec.devices.constraints[place[1]])

    def _split(self, place: Place, best: _Best, partial: Iterable[Chosen]) -> ValueSplit:
        """The values of a constraint's attribute: in the partial set, and among what is left."""
        number, position = place
        claim = self.claims[number]
        kind, attribute = _kind(claim.spec.devices.constraints[position])
        taken = {each.device for each in partial}
        chosen: Counter[str] = Counter()
        for each in partial:
            if each.claim == claim.metadata.key:
                chosen.update(self._values(place, each.request, each.device))
        lacking = self._name(best.place)
        others: Counter[str] = Counter()
        if lacking.rpartition("/")[0] == claim.metadata.key:
            name = lacking.rpartition("/")[2]
            for (owner, reference), entry in self.explained.items():
                if owner == claim.metadata.key and reference.partition("/")[0] == name:
                    for device in entry.candidates:
                        if device not in taken:
                            others.update(self._values(place, reference, device))
        return ValueSplit(kind, attribute, tuple(chosen.most_common()), tuple(others.most_common()))

    def _values(self, place: Place, reference: str, device: str) -> list[str]:
        number, position = place
        first = sum(len(claim.spec.devices.constraints) for claim in self.claims[:number])
        driver, pool, name = _parts(device)
        table = self.allocator.cluster.inventory(self.question.features).table((driver, pool))
        assert table is not None
        model = table.devices[table.index[name]]
        for slot_number, slot in enumerate(self.question.slots):
            for alternative_number, alternative in enumerate(slot.alternatives):
                if slot.claim == number and alternative.reference == reference:
                    values = self.question.constraint_values(
                        slot_number, alternative_number, first + position, driver, model
                    )
                    return [] if values is None else [_shown(value) for value in sorted(values, key=repr)]
        return []

    # Conflicts that are not for constraints

    def _without_constraints(self, found: Conflict, best: _Best) -> Conflict:
        """Take the partial set, and look at what is left for the request that lacks devices."""
        trial = self.allocator.cluster.fork()
        try:
            trial.commit(list(zip(best.claims, best.results, strict=True)))
        except Stale:
            return attrs.evolve(found, code="conflict")
        claims = self._part((best.place,), ())
        question = compile_question(claims, trial, self.question.features)
        inventory = trial.inventory(self.question.features)
        view = inventory.view(self.node)
        judge = Judge(question, inventory, (claim.metadata.key for claim in self.claims))
        explained = explain_requests(judge, view, list(offers(view, inventory)))
        if self._over_limit(tuple(self.every)):
            return attrs.evolve(found, code="limit")
        label = slot_label(question.slots[0], explained)
        rest = explained[0].ruled_out
        if label is None or label.code in ("in-use", "too-few", "no-devices", "class-selector", "request-selector"):
            return attrs.evolve(found, code="conflict", rest=rest)
        return attrs.evolve(found, code=label.code, rest=rest)


def rule_text(claim: ResourceClaim, constraint: DeviceConstraint) -> str:
    """How a constraint is named in a conflict."""
    kind, attribute = _kind(constraint)
    over = f" over {', '.join(constraint.requests)}" if constraint.requests else ""
    return f"{claim.metadata.key}: {kind} {attribute}{over}"


def _kind(constraint: DeviceConstraint) -> tuple[str, str]:
    if constraint.match_attribute is not None:
        return "matchAttribute", constraint.match_attribute
    return "distinctAttribute", constraint.distinct_attribute or ""


def _narrowed(constraint: DeviceConstraint, names: set[str]) -> DeviceConstraint | None:
    """The constraint over the requests that are left; None if it named others only."""
    if not constraint.requests:
        return constraint
    left = tuple(reference for reference in constraint.requests if reference.partition("/")[0] in names)
    return attrs.evolve(constraint, requests=left) if left else None


def _shown(value: tuple[str, object]) -> str:
    kind, content = value
    if kind == "string":
        return f'"{content}"'
    return str(content).lower() if kind == "bool" else str(content)


def _parts(device: str) -> tuple[str, str, str]:
    """Driver, pool and device of a name; pool names may have slashes of their own."""
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    return driver, pool, name
