"""Choosing among complete answers: `allocate(…, prefer=…)`.

Kubernetes takes the first answer of its search. `pack` and `spread` look at more of them, in the order of the search,
and keep the best by an objective; of equally good ones the first. They know nothing that the search does not know: each
answer is one that the search would give for some order of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:
    from dra_alloc._core import Cancel, Search
    from dra_alloc.inventory import PoolState, PoolTable
    from dra_alloc.problem import Question

__all__ = ["Chosen", "Objective", "Prefer", "Preferred", "best_answer"]


@attrs.frozen
class Chosen:
    """A device of a complete answer, as an objective sees it.

    claim: `namespace/name`. request: `req` or `req/sub`. neighbours_in_use: how many other devices of its card (those
    that share counters with it) or else of its pool are in use or chosen with it; neighbours: how many there are.
    """

    claim: str
    request: str
    driver: str
    pool: str
    device: str
    neighbours_in_use: int
    neighbours: int


#: Higher is better.
Objective = Callable[[Sequence[Chosen]], float]

Prefer = Literal["first", "pack", "spread"] | Objective


@attrs.frozen
class Preferred:
    """What a preference came to. proven: no answer is better; else more answers than `looked_at` were left unseen."""

    value: float
    looked_at: int
    proven: bool


def pack(chosen: Sequence[Chosen]) -> float:
    """Devices whose neighbours are in use: the sum of their shares of neighbours in use."""
    return sum(each.neighbours_in_use / each.neighbours for each in chosen if each.neighbours)


def spread(chosen: Sequence[Chosen]) -> float:
    """Devices whose neighbours are free."""
    return -pack(chosen)


def best_answer(
    question: Question,
    claims: Sequence[str],
    search: Search,
    pools: Sequence[tuple[PoolTable, PoolState]],
    prefer: Prefer,
    max_answers: int,
    max_steps: int,
    deadline: float,
    cancel: Cancel | None,
) -> tuple[Any, Preferred | None]:
    """The outcome of the search with the best answer that was seen, and what is known of it.

    At most `max_answers` answers are looked at. Running out of steps or time ends the looking, too, if there is an
    answer by then.
    """
    objective = {"pack": pack, "spread": spread}[prefer] if isinstance(prefer, str) else prefer
    cards = [_cards(table) for table, _ in pools]
    best: Any = None
    value = 0.0
    seen = 0

    def look(answer: Any) -> bool:
        nonlocal best, value, seen
        seen += 1
        found = objective(_describe(question, claims, pools, cards, answer))
        if best is None or found > value:
            best, value = answer, found
        return seen < max_answers

    outcome = search.visit(look, max_steps, deadline, cancel)
    if best is None or (outcome[0] == "spent" and outcome[1] == "cancelled"):
        return outcome, None
    return ("found", best), Preferred(value, seen, proven=outcome[0] == "none")


def _cards(table: PoolTable) -> tuple[int, ...]:
    """By device: the block of counter sets that it draws on, or -1."""
    if not table.draws:
        return (-1,) * len(table.devices)
    return tuple(table.blocks[entry[0][0]] if entry else -1 for entry in table.memberships)


def _describe(
    question: Question,
    claims: Sequence[str],
    pools: Sequence[tuple[PoolTable, PoolState]],
    cards: Sequence[tuple[int, ...]],
    answer: Any,
) -> list[Chosen]:
    taken = {place for _, places in answer for place in places}
    result = []
    for slot, (which, places) in zip(question.slots, answer, strict=True):
        alternative = slot.alternatives[which]
        for pool, index in places:
            table, state = pools[pool]
            card = cards[pool][index]
            around = [other for other, of in enumerate(cards[pool]) if of == card and other != index]
            used = sum((state.held is not None and state.held[other] > 0) or (pool, other) in taken for other in around)
            driver, name = table.key
            result.append(
                Chosen(
                    claims[slot.claim],
                    alternative.reference,
                    driver,
                    name,
                    table.devices[index].name,
                    used,
                    len(around),
                )
            )
    return result
