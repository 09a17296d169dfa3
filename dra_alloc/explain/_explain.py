"""The questions: claims or a pod, on one node, or on many grouped by reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dra_alloc.errors import AllocationError, BudgetExceeded, ValidationError
from dra_alloc.explain._judge import Judge
from dra_alloc.explain._nodes import Profiler, Subject, away_summary, explain_node, failure_of
from dra_alloc.explain.model import Explanation, Failure, NodeExplanation, NodeGroup

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.api import Node, ResourceClaim
    from dra_alloc.features.pods.planner import NodeResources

__all__ = ["explain", "explain_pod", "subject_of"]


def explain(
    allocator: Allocator, claims: Any, node: str | Node | None = None, *, nodes: Iterable[str] | None = None
) -> Explanation:
    """Why claims fit, or do not; see `Allocator.explain`."""
    asked = allocator._claims(claims)
    keys = tuple(claim.metadata.key for claim in asked)
    title = f"claim{'s' if len(keys) != 1 else ''} {', '.join(keys)}"
    only = None if node is None else allocator._node(node)
    names = [only.metadata.name] if only is not None else _names(allocator, nodes)
    try:
        subject = subject_of(allocator, asked)
        if only is not None:
            return _of_one(title, keys, None, explain_node(subject, only))
        fitting = subject.asker.feasible_nodes(asked, nodes=names)
    except (AllocationError, BudgetExceeded) as error:
        return Explanation(subject=title, claims=keys, nodes=len(names), failure=failure_of(error))
    reason = _reasons(subject)
    groups = _groups(allocator, names, fitting, reason, lambda node: explain_node(subject, node))
    return Explanation(subject=title, claims=keys, nodes=len(names), fitting=tuple(fitting), groups=groups)


def explain_pod(
    allocator: Allocator,
    pod: Any,
    node: str | Node | None = None,
    *,
    nodes: Iterable[str] | None = None,
    node_resources: NodeResources = "check",
) -> Explanation:
    """Why a pod fits, or does not; see `Allocator.explain`."""
    from dra_alloc.explain._pods import PodReasons
    from dra_alloc.features.pods.planner import pod_of

    model = pod_of(pod, allocator)
    key = model.metadata.key
    title = f"pod {key}"
    only = None if node is None else allocator._node(node)
    names = [only.metadata.name] if only is not None else _names(allocator, nodes)
    try:
        reasons = PodReasons(allocator, model, node_resources)
        keys = reasons.claims
        if only is not None:
            return _of_one(title, keys, key, reasons.explain(only))
        fitting = reasons.fitting(None if nodes is None else names)
        groups = _groups(allocator, names, fitting, reasons.reason, reasons.explain)
    except ValidationError as error:
        failure = Failure(code="pod-claims", message=str(error))
        return Explanation(subject=title, claims=(), pod=key, nodes=len(names), failure=failure)
    except (AllocationError, BudgetExceeded) as error:
        return Explanation(subject=title, claims=(), pod=key, nodes=len(names), failure=failure_of(error))
    return Explanation(subject=title, claims=keys, pod=key, nodes=len(names), fitting=tuple(fitting), groups=groups)


def subject_of(allocator: Allocator, claims: tuple[ResourceClaim, ...]) -> Subject:
    """What is asked for, compiled once for all nodes. Raises what `allocate` raises before it looks at nodes."""
    from dra_alloc.allocator import Allocator as Asker

    ask = allocator._ask(claims)
    # An allocator of its own: the sources of share IDs and of time that the caller put in are for real answers.
    asker = Asker(ask.inventory.cluster, allocator.features, budget=allocator.budget)
    judge = None if ask.question is None else Judge(ask.question, ask.inventory)
    return Subject(asker, ask.claims, ask.question, judge, ask.inventory)


def _names(allocator: Allocator, nodes: Iterable[str] | None) -> list[str]:
    if nodes is None:
        return list(allocator.cluster.node_names())
    return [allocator._node(name).metadata.name for name in nodes]


def _of_one(title: str, claims: tuple[str, ...], pod: str | None, found: NodeExplanation) -> Explanation:
    return Explanation(
        subject=title,
        claims=claims,
        pod=pod,
        nodes=1,
        fitting=(found.node,) if found.fits else (),
        only=found,
        failure=found.failure,
    )


def _reasons(subject: Subject) -> Callable[[Node], tuple[str, str]]:
    if subject.question is not None:
        return Profiler(subject).reason
    # Every claim is allocated, so that nothing but their nodes can be in the way.
    return lambda node: ("claim-elsewhere", away_summary(subject, node))


def _groups(
    allocator: Allocator,
    names: Iterable[str],
    fitting: Iterable[str],
    reason: Callable[[Node], tuple[str, str]],
    explained: Callable[[Node], NodeExplanation],
) -> tuple[NodeGroup, ...]:
    """The nodes that do not fit by reason, the largest group first, of equal ones the one with the first node."""
    good = set(fitting)
    members: dict[tuple[str, str], list[str]] = {}
    for name in names:
        if name not in good:
            members.setdefault(reason(allocator._node(name)), []).append(name)
    groups = [
        NodeGroup(code=code, summary=summary, nodes=tuple(found), example=explained(allocator._node(found[0])))
        for (code, summary), found in members.items()
    ]
    return tuple(sorted(groups, key=lambda group: -len(group.nodes)))
