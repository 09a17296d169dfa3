"""One question at many nodes: nodes that look alike share a search, and verdicts are kept until they may change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING

import attrs

from dra_alloc._collector import paused_collector
from dra_alloc.attempt import Ask, Attempt, Budget, signature
from dra_alloc.errors import AllocationError, BudgetExceeded, Cancelled

if TYPE_CHECKING:
    from dra_alloc._core import Cancel
    from dra_alloc.api import Node
    from dra_alloc.problem import Question

__all__ = ["NODE_ERRORS", "Feasibility"]

#: Kinds of errors that concern one node; over many nodes the others go on.
NODE_ERRORS = ("pool-all", "invalid-pool")

_NO, _YES, _FAULTY, _UNKNOWN = 0, 1, 2, 255

#: Questions of which a cluster keeps the verdicts, and verdicts that a question keeps by signature.
_MAX_QUESTIONS = 256
_MAX_VERDICTS = 1 << 13

#: So many nodes make enough objects for the garbage collector to be in the way.
_MANY = 100


@attrs.frozen(eq=False)
class _Answers:
    """Which nodes can serve a question: one byte for each node in order. `upto` is a position in the cluster's log."""

    order: tuple[str, ...]
    verdicts: bytes
    upto: int


class Feasibility:
    """The verdicts of the nodes of a cluster on one question. Make one for each call, under the cluster's lock.

    The first error in the order of the nodes that does not concern one node alone is raised.
    """

    def __init__(self, ask: Ask, budget: Budget, parallel: int, cancel: Cancel | None) -> None:
        assert ask.question is not None
        self._ask = ask
        self._question: Question = ask.question
        self._budget = budget
        self._parallel = parallel
        self._cancel = cancel
        self._cluster = ask.inventory.cluster
        self._order = self._cluster.node_names()
        self._deadline = budget.deadline()
        self._verdicts = self._known()

    def everywhere(self) -> list[str]:
        """Names of all nodes that can serve, in order."""
        unknown = [number for number, verdict in enumerate(self._verdicts) if verdict == _UNKNOWN]
        if unknown:
            self._judge(unknown)
        self._remember()
        return [name for name, verdict in zip(self._order, self._verdicts, strict=True) if verdict == _YES]

    def first(self, limit: int) -> list[str]:
        """Names of the first so many nodes that can serve; no node after them is looked at."""
        found: list[str] = []
        verdicts = self._verdicts
        place = 0
        while len(found) < limit:
            yes = verdicts.find(_YES, place)
            unknown = verdicts.find(_UNKNOWN, place, yes if yes >= 0 else len(verdicts))
            if unknown >= 0:
                self._judge([unknown])
                place = unknown
                continue
            if yes < 0:
                break
            found.append(self._order[yes])
            place = yes + 1
        self._remember()
        return found

    def among(self, names: Iterable[str], limit: int | None) -> list[str]:
        """Of these nodes, in their order, those that can serve; the first so many if there is a limit."""
        places = self._cluster.node_places()
        wanted = [places[name] for name in names]
        found: list[str] = []
        step = 1 if limit is not None else max(1, len(wanted))
        for start in range(0, len(wanted), step):
            batch = wanted[start : start + step]
            self._judge(batch)
            found += [self._order[number] for number in batch if self._verdicts[number] == _YES]
            if limit is not None and len(found) >= limit:
                break
        self._remember()
        return found

    # What is kept

    @property
    def _key(self) -> tuple[int, object]:
        return self._question.number, self._ask.inventory.features

    def _known(self) -> bytearray:
        """The verdicts that still hold, by node."""
        cluster, order = self._cluster, self._order
        answers: _Answers | None = cluster._answers.get(self._key)
        if answers is not None and answers.order is order:
            touched = cluster.touched_since(answers.upto)
            if touched is not None and None not in touched:
                verdicts = bytearray(answers.verdicts)
                if touched:
                    places = cluster.node_places()
                    for name in {name for each in touched for name in each or ()}:
                        number = places.get(name)
                        if number is not None:
                            verdicts[number] = _UNKNOWN
                return verdicts
        return bytearray(b"\xff") * len(order)

    def _remember(self) -> None:
        answers = self._cluster._answers
        answers.pop(self._key, None)
        answers[self._key] = _Answers(self._order, bytes(self._verdicts), self._cluster.log_end())
        if len(answers) > _MAX_QUESTIONS:
            del answers[next(iter(answers))]

    # What is found out

    def _judge(self, numbers: Sequence[int]) -> None:
        """Find out the verdicts of nodes that are not known yet."""
        known = self._question.verdicts
        if len(known) > _MAX_VERDICTS:
            known.clear()
        view = self._ask.inventory.view
        waiting: dict[tuple[object, ...], list[int]] = {}
        with paused_collector() if len(numbers) > _MANY else nullcontext():
            for number in numbers:
                if self._verdicts[number] != _UNKNOWN:
                    continue
                self._check_budget(number)
                node = self._node(number)
                likeness = signature(self._ask, view(node))
                verdict = known.get(likeness)
                if verdict is not None:
                    self._verdicts[number] = verdict
                elif self._parallel > 1:
                    waiting.setdefault(likeness, []).append(number)
                else:
                    attempt = Attempt.at(self._ask, node, self._budget)
                    self._verdicts[number] = known[likeness] = self._verdict(attempt)
        if waiting:
            self._judge_in_threads(waiting)

    def _judge_in_threads(self, waiting: dict[tuple[object, ...], list[int]]) -> None:
        attempts = [Attempt.at(self._ask, self._node(members[0]), self._budget) for members in waiting.values()]
        with ThreadPoolExecutor(self._parallel) as pool:
            outcomes = [pool.submit(self._verdict, attempt) for attempt in attempts]
            # In the order of the nodes, so that the first error is the one that a single thread would have met.
            for (likeness, members), outcome in zip(waiting.items(), outcomes, strict=True):
                verdict = self._question.verdicts[likeness] = outcome.result()
                for number in members:
                    self._verdicts[number] = verdict

    def _check_budget(self, number: int) -> None:
        """A call ends between two nodes, too, when its time is up or it is cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("the search was cancelled")
        if self._deadline and time.monotonic() > self._deadline:
            raise BudgetExceeded(
                f"the time of {self._budget.timeout} s was over before node {self._order[number]} was looked at; "
                "whether the claims fit there is not known"
            )

    def _node(self, number: int) -> Node:
        node: Node | None = self._cluster.get("Node", self._order[number])
        assert node is not None
        return node

    def _verdict(self, attempt: Attempt) -> int:
        try:
            answer = attempt.answer(self._deadline, self._cancel)
        except AllocationError as error:
            if error.kind in NODE_ERRORS:
                return _FAULTY
            raise
        return _NO if answer is None else _YES
