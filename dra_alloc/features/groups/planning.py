"""Planning a group as a unit (gang scheduling, KEP-4671 with the claims of KEP-5729).

First the pods are placed one after the other as Kubernetes does, each on the first node where it fits beside those
before it. Where that leaves pods out, nodes are tried depth first, with as few pods left out as possible.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import Pod
from dra_alloc.errors import BudgetExceeded
from dra_alloc.features.groups.bounds import Scarcity
from dra_alloc.features.groups.members import domains_of, fewest_of, group_of, members_of
from dra_alloc.features.groups.plan import GroupPlan
from dra_alloc.features.noderesources import requested_on
from dra_alloc.features.pods.claims import group_claim_of, identified
from dra_alloc.features.pods.plan import PodPlan
from dra_alloc.features.pods.planner import NodeResources, PodPlanner

if TYPE_CHECKING:
    from dra_alloc._core import Cancel
    from dra_alloc.allocator import Allocator
    from dra_alloc.cluster import Cluster

__all__ = ["plan_group"]

#: The label that differs between nodes that are otherwise alike.
_HOSTNAME = "kubernetes.io/hostname"


def plan_group(
    allocator: Allocator,
    group: Any,
    *,
    nodes: Iterable[str] | None = None,
    min_count: int | None = None,
    max_tries: int = 10_000,
    node_resources: NodeResources = "check",
    cancel: Cancel | None = None,
) -> GroupPlan | None:
    """See `Allocator.allocate_group`."""
    members = members_of(allocator, group)
    fewest = fewest_of(members, min_count) - len(members.running)
    search = _GroupSearch(allocator, members.waiting, max_tries, node_resources, cancel)
    best: GroupPlan | None = None
    unknown: BudgetExceeded | None = None
    if fewest > len(members.waiting):
        return None
    for domain in domains_of(allocator.cluster, members, nodes):
        try:
            found = search.run(domain, max(0, fewest))
        except BudgetExceeded as error:
            unknown = unknown or error
            continue
        if found is not None and (best is None or len(found.plans) > len(best.plans)):
            best = found
        if best is not None and not best.left_out:
            break
    if best is None:
        if unknown is not None:
            raise unknown
        return None
    key = members.group.metadata.key if members.group is not None else ""
    certain = not best.left_out or (best.complete and unknown is None)
    return attrs.evolve(best, group=key, complete=certain, tries=search.tries)


@attrs.define(eq=False)
class _Step:
    """One pod of the path: the state before it, the plans for it that are still to be tried, the one that is tried."""

    allocator: Allocator
    plans: Iterator[PodPlan]
    state: Hashable
    skips: int
    plan: PodPlan | None = None
    skipped: bool = False


class _Spent(Exception):
    """No tries, or no time, are left."""


class _GroupSearch:
    """Places pods together, within one budget for all calls."""

    def __init__(
        self,
        allocator: Allocator,
        pods: Sequence[Pod],
        max_tries: int,
        node_resources: NodeResources,
        cancel: Cancel | None,
    ) -> None:
        self._allocator = allocator
        self._pods = pods
        self._max_tries = max_tries
        self._node_resources: NodeResources = node_resources
        self._cancel = cancel
        timeout = allocator.budget.timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.tries = 0

    def run(self, nodes: Sequence[str] | None, fewest: int) -> GroupPlan | None:
        """A plan with as many pods as can be, at least `fewest`; None if there is none. Raises BudgetExceeded."""
        count = len(self._pods)
        if not count:
            return GroupPlan("", ())
        greedy = self._greedy(nodes, fewest)
        if greedy is not None and len(greedy) == count:
            return GroupPlan("", tuple(greedy))
        if self._alike():
            return self._partial(greedy, complete=True)
        # With fewer left out there is perhaps another plan; with as many the first one is as good.
        most = count - fewest if greedy is None else count - len(greedy) - 1
        kinds, planners = self._kinds()
        where = self._allocator.cluster.node_names() if nodes is None else nodes
        scarcity = Scarcity(self._allocator, planners, kinds, where)
        likeness = self._likeness(planners)
        try:
            for skips in range(most + 1):
                found = None if scarcity.rules_out(skips) else self._exhaust(nodes, skips, likeness)
                if found is not None:
                    return self._partial(found, complete=True)
        except _Spent:
            if greedy is None:
                raise BudgetExceeded(
                    f"{self.tries} pods have been placed in trying out nodes for {count} pods together, which is all "
                    "that the budget allows; whether there is a plan is not known",
                    steps=self.tries,
                ) from None
            return self._partial(greedy, complete=False)
        return self._partial(greedy, complete=True)

    def _partial(self, plans: Sequence[PodPlan] | None, *, complete: bool) -> GroupPlan | None:
        if plans is None:
            return None
        placed = {plan.pod.metadata.key for plan in plans}
        left_out = tuple(pod.metadata.key for pod in self._pods if pod.metadata.key not in placed)
        return GroupPlan("", tuple(plans), left_out, complete)

    def _planner(self, allocator: Allocator, pod: Pod) -> PodPlanner:
        return PodPlanner(allocator, pod, node_resources=self._node_resources, cancel=self._cancel)

    def _count(self) -> None:
        self.tries += 1
        if self.tries > self._max_tries or (self._deadline is not None and time.monotonic() > self._deadline):
            raise _Spent

    # One after the other

    def _greedy(self, nodes: Sequence[str] | None, fewest: int) -> list[PodPlan] | None:
        """Each pod on the first node where it fits beside those before it; None if fewer than `fewest` do."""
        trial = self._allocator.cluster.fork()
        allocator = self._allocator._over(trial)
        plans: list[PodPlan] = []
        for position, pod in enumerate(self._pods):
            plan = next(self._planner(allocator, pod).plans(nodes), None)
            if plan is not None:
                trial.commit(plan)
                plans.append(plan)
            elif len(plans) + len(self._pods) - position - 1 < fewest:
                return None
        return plans

    def _alike(self) -> bool:
        """Whether placing pods one after the other is sure to place as many as can be.

        So it is for pods that ask for the same, share no claim and have none yet, where every device is of one node:
        how many of them a node holds depends on nothing else, and each node is filled before the next.
        """
        cluster = self._allocator.cluster
        first = self._pods[0]
        group = group_of(first, cluster)
        return (
            all(pod.spec == first.spec for pod in self._pods[1:])
            and not any(
                entry.resource_claim_name or (group is not None and group_claim_of(entry, group) is not None)
                for entry in first.spec.resource_claims
            )
            and not any(map(self._has_claims, self._pods))
            and all(item.spec.node_name for item in cluster.slices())
        )

    # Trying nodes

    def _exhaust(
        self, nodes: Sequence[str] | None, skips: int, likeness: Callable[[str], Hashable]
    ) -> list[PodPlan] | None:
        """Plans for all pods but at most so many; None if there are none. Raises _Spent.

        A state that has failed is not entered again: what is left for the pods to come is all that matters, not who
        has taken what. Of nodes that nobody of the group is on and that are alike to all pods, one is tried.
        """
        failed: set[Hashable] = set()
        stack = [self._step(self._allocator.cluster.fork(), nodes, [], skips, likeness)]
        while stack:
            step = stack[-1]
            step.plan = None if step.skipped else next(step.plans, None)
            left = step.skips
            if step.plan is None:
                if step.skipped or not step.skips:
                    failed.add(step.state)
                    stack.pop()
                    continue
                step.skipped = True
                left -= 1
            self._count()
            placed = [each.plan for each in stack if each.plan is not None]
            if len(stack) == len(self._pods):
                return placed
            if _state(len(stack), left, placed) in failed:
                continue
            trial = step.allocator.cluster.fork()
            if step.plan is not None:
                trial.commit(step.plan)
            stack.append(self._step(trial, nodes, placed, left, likeness, len(stack)))
        return None

    def _step(
        self,
        trial: Cluster,
        nodes: Sequence[str] | None,
        placed: Sequence[PodPlan],
        skips: int,
        likeness: Callable[[str], Hashable],
        position: int = 0,
    ) -> _Step:
        allocator = self._allocator._over(trial)
        used = {plan.node for plan in placed}
        seen: set[Hashable] = set()

        def skip(name: str) -> bool:
            if name in used:
                return False
            mark = likeness(name)
            if mark in seen:
                return True
            seen.add(mark)
            return False

        plans = self._planner(allocator, self._pods[position]).plans(nodes, skip)
        return _Step(allocator, plans, _state(position, skips, placed), skips)

    def _kinds(self) -> tuple[list[int], list[PodPlanner]]:
        """Pods that ask for the same are of one kind: by pod the number of its kind, and a planner for each kind."""
        known: list[Pod] = []
        plain: dict[int, Pod] = {}
        numbers = []
        for pod in self._pods:
            has_claims = self._has_claims(pod)
            number = len(known)
            if not has_claims:
                number = next((each for each, other in plain.items() if pod.spec == other.spec), number)
            if number == len(known):
                known.append(pod)
                if not has_claims:
                    plain[number] = pod
            numbers.append(number)
        return numbers, [self._planner(self._allocator, pod) for pod in known]

    def _has_claims(self, pod: Pod) -> bool:
        """Whether claims have been made for the pod already, so that it is unlike others of its specification."""
        recorded = pod.status is not None and bool(pod.status.resource_claim_statuses)
        return recorded or bool(self._allocator.cluster.claims_owned_by(identified(pod).metadata.uid or ""))

    def _likeness(self, planners: Sequence[PodPlanner]) -> Callable[[str], Hashable]:
        """What a node is to all pods of the group, before any of them is placed."""
        cluster = self._allocator.cluster
        by_name = any(each.pod.spec.node_selector or each.pod.spec.affinity is not None for each in planners)
        known: dict[str, Hashable] = {}

        def likeness(name: str) -> Hashable:
            if name not in known:
                node = self._allocator._node(name)
                labels = node.metadata.labels.items()
                allocatable = node.status.allocatable if node.status is not None else {}
                known[name] = (
                    frozenset((key, value) for key, value in labels if by_name or key != _HOSTNAME),
                    frozenset((resource, amount.nano) for resource, amount in allocatable.items()),
                    frozenset(requested_on(cluster, name, with_claims=True).items()),
                    tuple(planner.likeness(name) for planner in planners),
                )
            return known[name]

        return likeness


def _state(position: int, skips: int, placed: Sequence[PodPlan]) -> Hashable:
    """What the pods from a position on find: devices in use, claims that they may share, what is taken of nodes."""
    devices: Counter[Hashable] = Counter()
    shared: set[Hashable] = set()
    taken: Counter[tuple[str, str]] = Counter()
    for plan in placed:
        for claim, allocation in zip(plan.claims, plan.allocations, strict=True):
            held = tuple(
                (
                    result.driver,
                    result.pool,
                    result.device,
                    tuple((name, amount.nano) for name, amount in sorted(result.consumed_capacity.items())),
                )
                for result in allocation.devices.results
                if not result.admin_access
            )
            key = claim.metadata.key
            if key in plan.allocated:
                devices.update(held)
            consumers = tuple(consumer.name for other, consumer in plan.consumers if other == key)
            if key not in plan.created or consumers != (plan.pod.metadata.name,):
                shared.add((consumers, allocation.node_selector, held))
        for name, nano in plan.resources.items():
            taken[plan.node, name] += nano
    return position, skips, frozenset(devices.items()), frozenset(shared), frozenset(taken.items())
