"""The questions: one node, or many grouped by reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.explain._judge import Judge
from dra_alloc.explain._nodes import Profiler, Subject, explain_node, failure_of
from dra_alloc.explain.model import Explanation, NodeGroup

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.api import Node, ResourceClaim

__all__ = ["explain"]


def explain(
    allocator: Allocator,
    claims: Any,
    node: str | Node | None = None,
    *,
    nodes: Iterable[str] | None = None,
    pod: str | None = None,
) -> Explanation:
    """Why the claims fit, or do not; see `Allocator.explain`. pod: `namespace/name` of the pod that they are for."""
    asked = allocator._claims(claims)
    keys = tuple(claim.metadata.key for claim in asked)
    title = _title(keys, pod)
    only = None if node is None else allocator._node(node)
    names = [only.metadata.name] if only is not None else _names(allocator, nodes)
    try:
        subject = _subject(allocator, asked)
        if only is not None:
            found = explain_node(subject, only)
            return Explanation(
                subject=title,
                claims=keys,
                pod=pod,
                nodes=1,
                fitting=(found.node,) if found.fits else (),
                only=found,
                failure=found.failure,
            )
        fitting = subject.asker.feasible_nodes(asked, nodes=names)
    except (AllocationError, BudgetExceeded) as error:
        return Explanation(subject=title, claims=keys, pod=pod, nodes=len(names), failure=failure_of(error))
    groups = _groups(subject, names, set(fitting))
    return Explanation(subject=title, claims=keys, pod=pod, nodes=len(names), fitting=tuple(fitting), groups=groups)


def _names(allocator: Allocator, nodes: Iterable[str] | None) -> list[str]:
    known = allocator.cluster.node_names()
    if nodes is None:
        return list(known)
    return [allocator._node(name).metadata.name for name in nodes]


def _subject(allocator: Allocator, claims: tuple[ResourceClaim, ...]) -> Subject:
    from dra_alloc.allocator import Allocator as Asker

    ask = allocator._ask(claims)
    # An allocator of its own: the sources of share IDs and of time that the caller put in are for real answers.
    asker = Asker(ask.inventory.cluster, allocator.features, budget=allocator.budget)
    judge = None if ask.question is None else Judge(ask.question, ask.inventory)
    return Subject(asker, ask.claims, ask.question, judge, ask.inventory)


def _groups(subject: Subject, names: Iterable[str], fitting: set[str]) -> tuple[NodeGroup, ...]:
    """The nodes that do not fit by reason, the largest group first, of equal ones the one with the first node."""
    profiler = Profiler(subject) if subject.question is not None else None
    members: dict[tuple[str, str], list[str]] = {}
    for name in names:
        if name in fitting:
            continue
        node = subject.asker._node(name)
        if profiler is not None:
            reason = profiler.reason(node)
        else:
            away = subject.away(node)
            assert away is not None  # every claim is allocated, so nothing else can be in the way
            reason = "claim-elsewhere", f"claim {away.metadata.key} is allocated on other nodes"
        members.setdefault(reason, []).append(name)
    groups = [
        NodeGroup(
            code=code,
            summary=summary,
            nodes=tuple(found),
            example=explain_node(subject, subject.asker._node(found[0])),
        )
        for (code, summary), found in members.items()
    ]
    return tuple(sorted(groups, key=lambda group: -len(group.nodes)))


def _title(keys: tuple[str, ...], pod: str | None) -> str:
    if pod is not None:
        return f"pod {pod}"
    return f"claim{'s' if len(keys) != 1 else ''} {', '.join(keys)}"
