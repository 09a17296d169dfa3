"""Why a pod fits on a node or not: where it may run, its claims and their devices, the resources of the node."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.explain._explain import subject_of
from dra_alloc.explain._nodes import Profiler, Subject, away_summary, explain_node, failure_of
from dra_alloc.explain.model import Chosen, NodeExplanation, title
from dra_alloc.features._placement import placement_fault
from dra_alloc.features.nodeoperations import node_supports
from dra_alloc.features.noderesources import Refusal
from dra_alloc.features.pods.plan import PodPlan
from dra_alloc.features.pods.planner import PodPlanner

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.api import Node, Pod, ResourceClaim
    from dra_alloc.features.pods.planner import NodeResources

__all__ = ["PodReasons"]


class PodReasons:
    """Reasons for one pod, node by node.

    Raises ValidationError for claims, templates and groups that are not there, and what the allocator raises.
    """

    def __init__(self, allocator: Allocator, pod: Pod, node_resources: NodeResources) -> None:
        quiet = allocator._over(allocator.cluster)
        # Claims that do not exist yet have no name; nothing is drawn from the caller's sources for an explanation.
        quiet._suffixes = lambda: "*"
        quiet._share_ids = lambda: str(uuid.uuid4())
        self._allocator = quiet
        self._pod = pod
        self._node_resources = node_resources
        self._planner = PodPlanner(quiet, pod, node_resources=node_resources)
        self._refused = self._planner.refusal()
        self._subjects: dict[tuple[str, ...], tuple[Subject, Profiler | None]] = {}
        self.claims = tuple(claim.metadata.key for claim in self._planner.models())

    def fitting(self, nodes: Iterable[str] | None) -> list[str]:
        """Names of the nodes on which the pod fits."""
        return self._planner.feasible(nodes, None)

    def reason(self, node: Node) -> tuple[str, str]:
        """Code and summary for a node on which the pod does not fit."""
        asked = self._asked(node)
        if isinstance(asked, _Refused):
            # Amounts differ from node to node; which resource is short is what they have in common.
            return asked.code, asked.summary
        subject, profiler = self._subject(asked)
        if self._planner.looks_at_resources and subject.away(node) is None:
            found = self.explain(node)
            return found.code, found.summary
        return ("claim-elsewhere", away_summary(subject, node)) if profiler is None else profiler.reason(node)

    def explain(self, node: Node) -> NodeExplanation:
        """Everything there is to say about one node."""
        name = node.metadata.name
        asked = self._asked(node)
        if isinstance(asked, _Refused):
            notes: tuple[str, ...] = () if asked.summary == asked.reason else (asked.reason,)
            return NodeExplanation(node=name, fits=False, code=asked.code, summary=asked.summary, notes=notes)
        found = explain_node(self._subject(asked)[0], node)
        outcome = self._outcome(node)
        if isinstance(outcome, PodPlan):
            chosen = Chosen.of(outcome.claims, outcome.allocations)
            return attrs.evolve(found, fits=True, code="", summary="", conflict=None, chosen=chosen)
        if isinstance(outcome, AllocationError):
            failure = failure_of(outcome)
            return attrs.evolve(found, fits=False, code=failure.code, summary=title(failure.code), failure=failure)
        if found.fits:
            refused = _Refused("node-resources", outcome.reason)
            notes = (*found.notes, outcome.reason, self._which_answers(name))
            return attrs.evolve(found, fits=False, code=refused.code, summary=refused.summary, notes=notes)
        return found

    def _which_answers(self, node: str) -> str:
        """Which answers of the search were judged by the resources that their devices take (KEP-5517)."""
        if self._node_resources == "search":
            return "no answer of the search takes little enough of the node's resources"
        other = PodPlanner(self._allocator, self._pod, node_resources="search")
        try:
            fits = isinstance(other.on_node(node), PodPlan)
        except (AllocationError, BudgetExceeded):
            fits = False
        would = "other devices would fit" if fits else "no other devices are known to fit either"
        return f'only the first answer of the search was judged, as Kubernetes does; {would} (node_resources="search")'

    def _asked(self, node: Node) -> tuple[ResourceClaim, ...] | _Refused:
        """The claims of the pod on a node, or why it does not fit there whatever its devices."""
        if self._refused is not None:
            return _Refused("claim-unusable", self._refused.reason)
        claims = self._planner.claims_on(node)
        if isinstance(claims, Refusal):
            code = "node-resources" if placement_fault(self._pod, node) is None else "placement"
            return _Refused(code, claims.reason)
        if not node_supports(node, claims):
            return _Refused("node-operations", "a device that is allocated needs DRAOptionalNodeOperations on the node")
        return claims

    def _outcome(self, node: Node) -> PodPlan | Refusal | AllocationError:
        try:
            return self._planner.on_node(node.metadata.name)
        except AllocationError as error:
            return error

    def _subject(self, claims: Sequence[ResourceClaim]) -> tuple[Subject, Profiler | None]:
        key = tuple(claim.metadata.key for claim in claims)
        found = self._subjects.get(key)
        if found is None:
            subject = subject_of(self._allocator, tuple(claims))
            profiler = None if subject.question is None else Profiler(subject)
            found = self._subjects[key] = subject, profiler
        return found


@attrs.frozen
class _Refused:
    """Why a pod does not fit on a node whatever its devices."""

    code: str
    reason: str

    @property
    def summary(self) -> str:
        """The reason without amounts, so that nodes can share it."""
        resource, colon, _ = self.reason.partition(":")
        if self.code != "node-resources" or not colon:
            return self.reason
        return f"too little {resource} is left on the node"
