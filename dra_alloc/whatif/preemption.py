"""Which pods would have to go for another, chosen as Kubernetes' scheduler chooses victims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import Pod
from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.features.noderesources import is_finished
from dra_alloc.features.pods.plan import PodPlan
from dra_alloc.features.pods.planner import NODE_ERRORS, pod_of
from dra_alloc.whatif._proposals import priority_of

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.cluster import Cluster

__all__ = ["Preemption", "preempt"]

#: Priorities are added up from here, so that fewer victims of negative priority do not rank above more of them.
_LOWEST = 2**31

_NEVER = datetime.max.replace(tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Preemption:
    """The pods (`namespace/name`) that would have to leave a node for the pod, the most important first.

    plan: what the pod gets once they have left. candidates: nodes on which preemption would help; trials: attempts.
    """

    pod: str
    node: str
    victims: tuple[str, ...]
    plan: PodPlan
    candidates: int
    trials: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "pod": self.pod,
            "node": self.node,
            "victims": list(self.victims),
            "plan": self.plan.to_dict(),
            "candidates": self.candidates,
            "trials": self.trials,
        }

    def text(self) -> str:
        """The answer in a line."""
        if not self.victims:
            return f"pod {self.pod}: fits on node {self.node} as it is"
        plural = "s" if len(self.victims) > 1 else ""
        return f"pod {self.pod}: fits on node {self.node} without pod{plural} {', '.join(self.victims)}"


def preempt(
    allocator: Allocator, pod: Any, *, nodes: Iterable[str] | None = None, max_trials: int = 10_000
) -> Preemption | None:
    """The least set of victims for a pod; see `Allocator.preempt`."""
    return _Preemptor(allocator, pod_of(pod, allocator), max_trials).run(nodes)


class _Preemptor:
    def __init__(self, allocator: Allocator, pod: Pod, max_trials: int) -> None:
        self._allocator = allocator._over(allocator.cluster)
        self._pod = pod
        self._priority = priority_of(pod)
        self._left = max_trials
        self._max_trials = max_trials

    def run(self, nodes: Iterable[str] | None) -> Preemption | None:
        cluster = self._allocator.cluster
        plan = self._allocator.allocate_pod(self._pod, nodes=nodes)
        key = self._pod.metadata.key
        if plan is not None:
            return Preemption(pod=key, node=plan.node, victims=(), plan=plan, candidates=0, trials=0)
        if self._pod.spec.preemption_policy == "Never":
            return None
        best: tuple[tuple[int, int, int, float], str, list[Pod], PodPlan] | None = None
        candidates = 0
        for name in cluster.node_names() if nodes is None else nodes:
            found = self._on_node(name)
            if found is None:
                continue
            candidates += 1
            victims, plan = found
            rank = _rank(victims)
            if best is None or rank < best[0]:
                best = rank, name, victims, plan
        if best is None:
            return None
        _, name, victims, plan = best
        return Preemption(
            pod=key,
            node=name,
            victims=tuple(victim.metadata.key for victim in victims),
            plan=plan,
            candidates=candidates,
            trials=self._max_trials - self._left,
        )

    def _on_node(self, node: str) -> tuple[list[Pod], PodPlan] | None:
        """The victims on a node: all pods of lower priority but those that can stay, the most important asked first."""
        cluster = self._allocator.cluster
        lower = sorted(
            (pod for pod in cluster.pods_on(node) if priority_of(pod) < self._priority and not is_finished(pod)),
            key=_importance,
        )
        if not lower:
            return None
        plan = self._without(node, lower)
        if plan is None:
            return None
        victims = list(lower)
        for pod in lower:
            rest = [other for other in victims if other is not pod]
            spared = self._without(node, rest)
            if spared is not None:
                victims, plan = rest, spared
        return victims, plan

    def _without(self, node: str, victims: Sequence[Pod]) -> PodPlan | None:
        """The plan for the pod on a node that victims have left."""
        if self._left <= 0:
            raise BudgetExceeded(
                f"pod {self._pod.metadata.key}: {self._max_trials} trials did not suffice to find out which pods would "
                "have to go; give fewer nodes or more trials"
            )
        self._left -= 1
        trial: Cluster = self._allocator.cluster.fork()
        for victim in victims:
            trial.release(victim)
        try:
            return self._allocator._over(trial).allocate_pod(self._pod, node)
        except AllocationError as error:
            if error.kind in NODE_ERRORS:
                return None
            raise


def _importance(pod: Pod) -> tuple[int, datetime]:
    """Sorts the more important pod first: the higher priority, then the earlier start."""
    return -priority_of(pod), _started(pod)


def _started(pod: Pod) -> datetime:
    started = pod.status.start_time if pod.status is not None else None
    return started or pod.metadata.creation_timestamp or _NEVER


def _rank(victims: Sequence[Pod]) -> tuple[int, int, int, float]:
    """What the scheduler compares nodes by; the least is taken, of equals the first node."""
    priorities = [priority_of(victim) for victim in victims]
    if not priorities:
        return (-_LOWEST, 0, 0, 0.0)
    highest = max(priorities)
    earliest = min(_started(victim) for victim in victims if priority_of(victim) == highest)
    return highest, sum(priority + _LOWEST for priority in priorities), len(priorities), -earliest.timestamp()
