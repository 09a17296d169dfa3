"""One question at one node: from the pools that the node sees to an answer, or to the error that ends the attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc import _core
from dra_alloc.errors import AllocationError, BudgetExceeded, Cancelled, DraError
from dra_alloc.nodeselection import selector_admits
from dra_alloc.preference import Preferred, best_answer
from dra_alloc.problem import MAX_RESULTS
from dra_alloc.results import build_results
from dra_alloc.rules import capacity_fault

if TYPE_CHECKING:
    from datetime import datetime

    from dra_alloc._core import Cancel, Search
    from dra_alloc.api import AllocationResult, Device, Node, ResourceClaim
    from dra_alloc.inventory import Inventory, NodeView, PoolState, PoolTable
    from dra_alloc.preference import Prefer
    from dra_alloc.problem import Alternative, Question

    Passes = Callable[[Device, str, Sequence[Alternative]], bool]

    #: By slot and alternative: how many devices it takes, those that could serve it with their drivers, and itself.
    Candidates = list[list[tuple[int, list[tuple[Device, str]], Alternative]]]

__all__ = ["Ask", "Attempt", "Budget", "allocation_of", "signature"]

#: Questions of which a node keeps that they had no answer.
_MAX_REFUSED = 64


@attrs.frozen
class Budget:
    """What one search may cost. Beyond it, BudgetExceeded is raised.

    max_steps: devices taken in a search. timeout: seconds for a call, None for none. memory: bytes of remembered
    states; beyond them the search goes on without remembering more. light_steps: devices taken before the search turns
    to means that cost more and prune more (bounds, remembered states, twins); the answer does not depend on it.
    max_answers: complete answers that `prefer` looks at. Raises ValueError for bounds that nothing can keep.
    """

    max_steps: int = attrs.field(default=20_000_000, validator=attrs.validators.ge(1))
    timeout: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.gt(0.0)))
    memory: int = attrs.field(default=64 << 20, validator=attrs.validators.ge(0))
    light_steps: int = attrs.field(default=256, validator=attrs.validators.ge(0))
    max_answers: int = attrs.field(default=10_000, validator=attrs.validators.ge(1))

    def deadline(self) -> float:
        """When a call that begins now must end, on the monotonic clock; 0 for never."""
        return 0.0 if self.timeout is None else time.monotonic() + self.timeout


@attrs.frozen(eq=False)
class Ask:
    """Claims of one call in order: those that are allocated keep what they have, `pending` make the question."""

    claims: tuple[ResourceClaim, ...]
    pending: tuple[ResourceClaim, ...]
    question: Question | None
    inventory: Inventory

    def reaches(self, node: Node) -> bool:
        """Whether all claims that are allocated already can be used on a node."""
        if len(self.pending) == len(self.claims):
            return True
        held = [allocation for claim in self.claims if (allocation := allocation_of(claim)) is not None]
        return all(selector_admits(allocation.node_selector, node) for allocation in held)

    def is_refused(self, node: Node) -> bool:
        """Whether it is known that there is no answer at a node: there was none, and nothing has changed since."""
        assert self.question is not None
        view = self.inventory.view(node)
        states = view.refused.get(self.question.number)
        return states is not None and all(map(is_, states, map(self.inventory.state, view.pools)))

    def kept(self) -> list[AllocationResult]:
        """The allocations that claims have already."""
        return [allocation for claim in self.claims if (allocation := allocation_of(claim)) is not None]


def allocation_of(claim: ResourceClaim) -> AllocationResult | None:
    """What a claim is allocated already."""
    return claim.status.allocation if claim.status is not None else None


def signature(ask: Ask, view: NodeView) -> tuple[object, ...]:
    """What a node is to the question: equal signatures, equal verdicts.

    It tells, pool by pool in search order, the rows of the devices that matter and what is in use of them; for pools
    with counters their layout, for what is used in shares how much; which faults there are, and, where all devices are
    asked for, how many of the pools are looked at before the first that is faulty: whichever ends the attempt first.
    """
    question, inventory = ask.question, ask.inventory
    assert question is not None
    parts: list[object] = []
    faulty = view.faulty[0] if question.has_every and view.faulty else None
    before = 0
    for place, (table, visible, elsewhere) in enumerate(zip(view.pools, view.visible, view.elsewhere, strict=True)):
        state = inventory.state(table)
        devices = question.rows(table).signature(visible, elsewhere, state.held)
        if devices:
            if faulty is not None and not _comes_before(view, faulty, place):
                before += 1
            parts.append(devices)
            if table.sets:
                parts.append(table.layout)
                parts.append(bool(state.vanished))
            if state.digest is not None:
                parts.append(state.digest)
    if view.faulty:
        parts.append((before, *sorted({table.fault for table in view.faulty})))
    return tuple(parts)


def _comes_before(view: NodeView, faulty: PoolTable, place: int) -> bool:
    """Whether a faulty pool is looked at before the pool at a place; pools with binding conditions come last."""
    return place >= view.late or faulty.key < view.pools[place].key


@attrs.define(eq=False)  # not frozen: one is made for each answer, and that costs time
class Attempt:
    """A search made ready. pools: those of the view that have devices which mean something to the question.

    states: what is in use of all pools of the view.
    """

    ask: Ask
    question: Question
    view: NodeView
    search: Search
    pools: tuple[PoolTable, ...]
    states: tuple[PoolState, ...]
    budget: Budget

    @classmethod
    def at(cls, ask: Ask, node: Node, budget: Budget, passes: Passes | None = None) -> Attempt:
        """Make ready at a node.

        passes: says of a device, its driver and all alternatives of the question whether it is offered at all; not
        looked at where all devices are asked for.
        """
        question, inventory = ask.question, ask.inventory
        assert question is not None
        view = inventory.view(node)
        if passes is not None and not question.has_every:
            view = view.without(_passed_over(view, question, passes))
        search = _core.Search(question.tables)
        pools = []
        states = tuple(map(inventory.state, view.pools))
        for table, state, visible, elsewhere in zip(view.pools, states, view.visible, view.elsewhere, strict=True):
            rows = question.rows(table)
            if not rows:
                continue
            shares = question.rooms_left(table, state) if state.shares else None
            wide = question.wide_amounts(table, state) if question.wide_rows or table.has_wide else None
            search.add_pool(rows, visible, elsewhere, state.held, state.available, bool(state.vanished), shares, wide)
            for number, groups in state.members:
                search.join_groups(number, question.groups(groups))
            pools.append(table)
        search.prepare()
        return cls(ask, question, view, search, tuple(pools), states, budget)

    # Answers

    def answer(self, deadline: float, cancel: Cancel | None = None) -> list[Any] | None:
        """The first answer of the search, None if there is none. Raises the error that the attempt ends with."""
        self.check_before()
        return self.first(deadline, cancel)

    def first(self, deadline: float, cancel: Cancel | None) -> list[Any] | None:
        """As `answer`, where `check_before` was called already."""
        budget = self.budget
        outcome = self.search.run(budget.max_steps, deadline, budget.memory, cancel, budget.light_steps)
        answer = self.conclude(outcome)
        if answer is None:
            refused = self.view.refused
            if len(refused) > _MAX_REFUSED:
                refused.clear()
            refused[self.question.number] = self.states
        return answer

    def best(self, prefer: Prefer, deadline: float, cancel: Cancel | None) -> tuple[list[Any] | None, Preferred | None]:
        """The answer that is preferred, and what is known of it."""
        if isinstance(prefer, str) and prefer not in ("pack", "spread"):
            raise ValueError(f"prefer is 'first', 'pack', 'spread' or a function, not {prefer!r}")
        self.check_before()
        outcome, preferred = best_answer(
            self.question,
            [claim.metadata.key for claim in self.ask.pending],
            self.search,
            [(table, self.ask.inventory.state(table)) for table in self.pools],
            prefer,
            self.budget.max_answers,
            self.budget.max_steps,
            deadline,
            cancel,
        )
        return self.conclude(outcome), preferred

    def results(
        self, answer: list[Any], share_ids: Callable[[], str], clock: Callable[[], datetime]
    ) -> list[AllocationResult]:
        """One result for each claim that was asked for."""
        ask = self.ask
        fresh = build_results(self.question, ask.pending, self.view.node, self.pools, answer, share_ids, clock)
        if len(ask.pending) == len(ask.claims):
            return fresh
        rest = iter(fresh)
        return [next(rest) if (kept := allocation_of(claim)) is None else kept for claim in ask.claims]

    def candidates(self) -> Candidates | None:
        """All devices that could serve, by slot and alternative; None where one of them may end in an error."""
        if self.question.has_every or self.question.has_derived:
            return None
        found: Candidates = []
        for number, slot in enumerate(self.question.slots):
            members = []
            for position, alternative in enumerate(slot.alternatives):
                devices = self.search.every_list(number, position)
                if any(code in (_core.CODE_BROKEN, _core.CODE_MALFORMED) for _, _, code in devices):
                    return None
                named = [(self.pools[pool].devices[index], self.pools[pool].key[0]) for pool, index, _ in devices]
                members.append((alternative.count, named, alternative))
            found.append(members)
        return found

    # Errors

    def check_before(self) -> None:
        """Errors that show before the search on this node: what `All` means, and how many devices that makes."""
        if self.question.is_small:
            return
        fewest = [0] * len(self.ask.pending)
        slots = self.question.slots
        for number, slot in enumerate(slots):
            fewest[slot.claim] += min(
                [
                    self._count_every(number, position) if alternative.every else alternative.count
                    for position, alternative in enumerate(slot.alternatives)
                ]
            )
            last = number + 1 == len(slots) or slots[number + 1].claim != slot.claim
            if last and fewest[slot.claim] > MAX_RESULTS:
                raise AllocationError(
                    "too-many-devices",
                    f"at least {fewest[slot.claim]} devices are asked for; a claim can have at most {MAX_RESULTS}",
                    claim=self.ask.pending[slot.claim].metadata.key,
                )

    def _count_every(self, number: int, position: int) -> int:
        devices = self.search.every_list(number, position)
        broken = next((each for each in devices if each[2] in (_core.CODE_BROKEN, _core.CODE_MALFORMED)), None)
        view, faulty = self.view, self.view.faulty
        if faulty and (broken is None or _comes_before(view, faulty[0], view.pools.index(self.pools[broken[0]]))):
            slot = self.question.slots[number]
            raise AllocationError(
                "pool-all",
                f"all devices are asked for, but {faulty[0].reason}",
                claim=self.ask.pending[slot.claim].metadata.key,
                request=slot.alternatives[position].reference,
                node=self.view.node.metadata.name,
            )
        if broken is not None:
            kind = "broken-selector" if broken[2] == _core.CODE_BROKEN else "malformed-request"
            raise self._error(kind, number, position, broken[0], broken[1], -1)
        return len(devices)

    def conclude(self, outcome: tuple[str, Any]) -> list[Any] | None:
        """The answer in an outcome of the search, None if there is none; anything else is raised."""
        result, payload = outcome
        if result == "found":
            answer: list[Any] = payload
            return answer
        if result == "error":
            raise self._error(*payload)
        if result == "spent":
            raise self._spent(payload)
        invalid = next((table for table in self.view.faulty if table.fault == "invalid"), None)
        if invalid is not None:
            raise AllocationError(
                "invalid-pool", f"nothing fits, and {invalid.reason}", node=self.view.node.metadata.name
            )
        return None

    def _error(self, kind: str, number: int, position: int, pool: int, index: int, constraint: int) -> AllocationError:
        """The error that a search came to, with its words."""
        slot = self.question.slots[number]
        alternative = slot.alternatives[position]
        table = self.pools[pool]
        device = table.devices[index]
        driver = table.key[0]
        claim = self.ask.pending[slot.claim]

        def error(kind: str, message: str) -> AllocationError:
            where = "/".join((*table.key, device.name))
            return AllocationError(kind, message, claim=claim.metadata.key, request=alternative.reference, device=where)

        if kind == "broken-selector":
            which, cause = self.question.selector_error(alternative.type, driver, device)
            raised = error("cel", f"{_selector_name(alternative, which)}: {cause}")
            raised.__cause__ = cause
            return raised
        if kind == "broken-value":
            cause = self.question.derived_error(number, position, constraint, driver, device)
            raised = error("cel", f"derived attribute: {cause}")
            raised.__cause__ = cause
            return raised
        if kind == "malformed-request":
            return error("capacity", capacity_fault(alternative.type.capacity, driver))
        place = constraint - sum(len(other.spec.devices.constraints) for other in self.ask.pending[: slot.claim])
        rule = claim.spec.devices.constraints[place]
        attribute = rule.match_attribute or rule.distinct_attribute
        return error(
            "all-violates-constraint",
            f"all devices are asked for, but spec.devices.constraints[{place}] ({attribute}) does not allow this one "
            "together with the others",
        )

    def _spent(self, reason: str) -> DraError:
        if reason == "cancelled":
            return Cancelled("the search was cancelled")
        hard = []
        for number, _ in self.search.hard_slots()[:3]:
            slot = self.question.slots[number]
            hard.append(f"{self.ask.pending[slot.claim].metadata.key}/{slot.request.name}")
        steps = self.search.steps
        limit = {
            "steps": f"of {self.budget.max_steps} steps",
            "time": f"of {self.budget.timeout} s",
            "depth": "of devices in one question",
        }[reason]
        return BudgetExceeded(
            f"node {self.view.node.metadata.name}: the search ran out of its budget {limit} after {steps} steps, most "
            f"of them for {', '.join(hard) or 'nothing'}; whether the claims fit is not known",
            steps=steps,
            hard=hard,
        )


def _selector_name(alternative: Alternative, which: int) -> str:
    of_class = alternative.type.class_selectors
    if which < of_class:
        return f"selector {which} of DeviceClass {alternative.type.device_class.metadata.name}"
    return f"selector {which - of_class} of the request"


def _passed_over(view: NodeView, question: Question, passes: Passes) -> tuple[bytes | None, ...]:
    """`elsewhere` of a view, with the devices that do not pass."""
    alternatives = [alternative for slot in question.slots for alternative in slot.alternatives]
    found: list[bytes | None] = []
    for table, elsewhere in zip(view.pools, view.elsewhere, strict=True):
        barred = bytes(not passes(device, table.key[0], alternatives) for device in table.devices)
        if elsewhere is not None:
            barred = bytes(one | other for one, other in zip(barred, elsewhere, strict=True))
        found.append(barred if any(barred) else None)
    return tuple(found)
