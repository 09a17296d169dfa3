"""The plan of a pod: on which node it runs, with which devices, and everything that is to be written for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import AllocationResult, Node, Pod, PodGroup, PodStatus, ResourceClaim
from dra_alloc.api import ResourceClaimConsumerReference as Consumer
from dra_alloc.cluster import same_consumer
from dra_alloc.errors import Conflict
from dra_alloc.features.binding import DEFAULT_TIMEOUT, Readiness, pod_readiness
from dra_alloc.features.nodeallocatable import uses_mapping
from dra_alloc.features.nodeoperations import NodeCalls, node_calls
from dra_alloc.features.noderesources import fit, is_node_allocatable, quantity_of, requested_on
from dra_alloc.features.score import score_allocations
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["FINALIZER", "PodPlan", "commit_parts", "other_user"]

#: Keeps a claim with devices from being deleted.
FINALIZER = "resource.kubernetes.io/delete-protection"

#: What `Cluster.commit` writes: allocations into claims, reservations, other objects.
Parts = tuple[list[tuple[ResourceClaim, AllocationResult]], list[tuple[str, Consumer]], list[Any]]


@attrs.frozen
class PodPlan:
    """What becomes of a pod on a node; nothing is written until `cluster.commit(plan)`.

    pod: as it will be: bound to the node, with the claims made for it, the claim for its extended resources (KEP-5004)
    and the resources that it has through claims (KEP-5517) in its status. node: name of the node.
    claims: as they will be, allocated and reserved, in order of the pod's specification, the one for extended resources
    last. created, allocated: keys of those that the plan makes, and of those that it allocates.
    consumers: by claim in order, the keys and what goes into `reservedFor`. group: the PodGroup, if claims are
    made for it (KEP-5729). resources: what the pod takes of the node, as far as the node was asked for it, in nanos.
    """

    pod: Pod
    node: str
    claims: tuple[ResourceClaim, ...]
    created: tuple[str, ...]
    allocated: tuple[str, ...]
    consumers: tuple[tuple[str, Consumer], ...]
    group: PodGroup | None
    resources: Mapping[str, int]
    features: Features
    known: bool

    @property
    def allocations(self) -> tuple[AllocationResult, ...]:
        """What each of `claims` has."""
        return tuple(_allocation(claim) for claim in self.claims)

    @property
    def score(self) -> int:
        """The raw score of the node (KEP-4816); see `Allocator.score`."""
        return score_allocations(zip(self.claims, self.allocations, strict=True), self.features)

    @property
    def node_calls(self) -> tuple[NodeCalls, ...]:
        """By claim, the drivers that the node calls to prepare and to unprepare it (KEP-5945)."""
        return tuple(node_calls(claim, self.features) for claim in self.claims)

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers that have to prepare something on the node before the pod starts."""
        return tuple(dict.fromkeys(driver for call in self.node_calls for driver in call.prepare))

    def readiness(self, now: datetime, timeout: timedelta = DEFAULT_TIMEOUT) -> Readiness:
        """Whether the pod may be bound at once, or waits for binding conditions of its devices (KEP-5007)."""
        return pod_readiness(self.claims, now=now, timeout=timeout, features=self.features)

    def status_updates(self) -> tuple[PodGroup | ResourceClaim | Pod, ...]:
        """The objects whose status is to be written, in the order of writing, after the claims of `created` exist."""
        return (*((self.group,) if self.group is not None else ()), *self.claims, self.pod)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: pod, node, claims with status, created and allocated keys, drivers, resources, status updates."""
        return {
            "pod": self.pod.metadata.key,
            "node": self.node,
            "claims": [claim.to_dict() for claim in self.claims],
            "created": list(self.created),
            "allocated": list(self.allocated),
            "prepare": list(self.drivers),
            "nodeResources": {name: str(quantity_of(name, nano)) for name, nano in sorted(self.resources.items())},
            "statusUpdates": [item.to_dict() for item in self.status_updates()],
        }

    def commit_parts(self, cluster: Cluster) -> Parts:
        """For `Cluster.commit`: what is written. Raises Conflict if the cluster is not as it was."""
        return commit_parts([self], cluster)


def commit_parts(plans: Sequence[PodPlan], cluster: Cluster) -> Parts:
    """What is written for plans that hold together. Raises Conflict if one of them no longer does."""
    pairs: dict[str, tuple[ResourceClaim, AllocationResult]] = {}
    reservations: list[tuple[str, Consumer]] = []
    groups: dict[str, PodGroup] = {}
    pods: list[Pod] = []
    made = {key for plan in plans for key in plan.created}
    for plan in plans:
        for claim in plan.claims:
            key = claim.metadata.key
            if key not in pairs:
                pairs[key] = _pair(plan, claim, cluster, made)
        for key, consumer in plan.consumers:
            _check_exclusive(plan, key, consumer, cluster)
        reservations += plan.consumers
        if plan.group is not None:
            groups[plan.group.metadata.key] = _merged_group(plan, groups, cluster)
        pods.append(_bound(plan, cluster))
    _check_resources(plans, cluster)
    return list(pairs.values()), reservations, [*groups.values(), *pods]


def other_user(cluster: Cluster, pod: Pod, claim: ResourceClaim, consumer: Consumer) -> str | None:
    """Who, besides the pod, uses a claim that one pod alone may use (KEP-5517), or None."""
    reserved = claim.status.reserved_for if claim.status is not None else ()
    for other in reserved:
        if not same_consumer(other, consumer):
            return f"{other.resource.removesuffix('s')} {other.name}"
    if consumer.resource == "pods" or not reserved:
        return None
    for other_pod in cluster.pods():
        status = other_pod.status
        if (
            other_pod.spec.node_name
            and status is not None
            and other_pod.metadata.key != pod.metadata.key
            and other_pod.metadata.namespace == pod.metadata.namespace
            and uses_mapping(status.node_allocatable_resource_claim_statuses, claim.metadata.name)
        ):
            return f"pod {other_pod.metadata.name}"
    return None


def _allocation(claim: ResourceClaim) -> AllocationResult:
    assert claim.status is not None
    assert claim.status.allocation is not None
    return claim.status.allocation


def _pair(
    plan: PodPlan, claim: ResourceClaim, cluster: Cluster, made: set[str]
) -> tuple[ResourceClaim, AllocationResult]:
    key = claim.metadata.key
    now: ResourceClaim | None = cluster.get("ResourceClaim", key)
    allocation = _allocation(claim)
    if key in made:
        if now is not None and (now.spec, now.metadata.owner_references) != (
            claim.spec,
            claim.metadata.owner_references,
        ):
            raise Conflict(f"claim {key}, which is to be made, exists meanwhile")
        now = now or attrs.evolve(claim, status=None)
    elif now is None:
        raise Conflict(f"claim {key} is gone")
    elif now.metadata.deletion_timestamp is not None:
        raise Conflict(f"claim {key} is being deleted")
    elif key not in plan.allocated and (now.status is None or now.status.allocation != allocation):
        raise Conflict(f"claim {key} has lost or changed its allocation")
    if FINALIZER not in now.metadata.finalizers:
        now = attrs.evolve(now, metadata=attrs.evolve(now.metadata, finalizers=(*now.metadata.finalizers, FINALIZER)))
    return now, allocation


def _check_exclusive(plan: PodPlan, key: str, consumer: Consumer, cluster: Cluster) -> None:
    claim: ResourceClaim | None = cluster.get("ResourceClaim", key)
    status = plan.pod.status
    if claim is None or status is None:
        return
    if uses_mapping(status.node_allocatable_resource_claim_statuses, claim.metadata.name):
        other = other_user(cluster, plan.pod, claim, consumer)
        if other is not None:
            raise Conflict(f"claim {key} stands for resources of the node and is used by {other}")


def _merged_group(plan: PodPlan, groups: Mapping[str, PodGroup], cluster: Cluster) -> PodGroup:
    """The group as it is now, with the claims that the plan makes for it."""
    assert plan.group is not None
    key = plan.group.metadata.key
    now: PodGroup | None = groups.get(key) or cluster.get("PodGroup", key)
    if now is None:
        raise Conflict(f"PodGroup {key} is gone")
    known = {each.name: each.resource_claim_name for each in now.status.resource_claim_statuses} if now.status else {}
    planned = plan.group.status.resource_claim_statuses if plan.group.status is not None else ()
    for entry in planned:
        if known.get(entry.name, entry.resource_claim_name) != entry.resource_claim_name:
            raise Conflict(f"PodGroup {key} has got claim {known[entry.name]} for {entry.name} meanwhile")
    if now.status is None:
        return attrs.evolve(plan.group, spec=now.spec)
    added = tuple(entry for entry in planned if entry.name not in known)
    entries = (*now.status.resource_claim_statuses, *added)
    return attrs.evolve(now, status=attrs.evolve(now.status, resource_claim_statuses=entries))


def _bound(plan: PodPlan, cluster: Cluster) -> Pod:
    """The pod as it is now, bound to the node and with what the plan adds to its status."""
    pod = plan.pod
    key = pod.metadata.key
    if cluster.get("Node", plan.node) is None:
        raise Conflict(f"node {plan.node} is gone")
    now: Pod | None = cluster.get("Pod", key)
    if now is None:
        if plan.known:
            raise Conflict(f"pod {key} is gone")
        return pod
    if now.metadata.uid and now.metadata.uid != pod.metadata.uid:
        raise Conflict(f"pod {key} has been replaced by another one of its name")
    if now.spec.node_name and now.spec.node_name != plan.node:
        raise Conflict(f"pod {key} is bound to node {now.spec.node_name} meanwhile")
    planned = pod.status or PodStatus()
    status = attrs.evolve(
        now.status or PodStatus(),
        resource_claim_statuses=planned.resource_claim_statuses,
        extended_resource_claim_status=planned.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses=planned.node_allocatable_resource_claim_statuses,
    )
    return attrs.evolve(
        now,
        metadata=attrs.evolve(now.metadata, uid=pod.metadata.uid),
        spec=attrs.evolve(now.spec, node_name=plan.node),
        status=status if status != PodStatus() else now.status,
    )


def _check_resources(plans: Iterable[PodPlan], cluster: Cluster) -> None:
    """Raise Conflict if a node has too little left of a resource for all pods that are planned there."""
    by_node: dict[str, list[PodPlan]] = {}
    for plan in plans:
        if plan.resources:
            by_node.setdefault(plan.node, []).append(plan)
    for name, members in by_node.items():
        needed: dict[str, int] = {}
        must_have: set[str] = set()
        for plan in members:
            for resource, nano in plan.resources.items():
                needed[resource] = needed.get(resource, 0) + nano
            status = plan.pod.status
            if status is not None and status.node_allocatable_resource_claim_statuses:
                must_have.update(resource for resource in plan.resources if is_node_allocatable(resource))
        requested = requested_on(
            cluster,
            name,
            with_claims=members[0].features.DRANodeAllocatableResources,
            without={plan.pod.metadata.key for plan in members},
        )
        node: Node | None = cluster.get("Node", name)
        assert node is not None  # `_bound` has seen that it is there
        short = fit(needed, requested, node, must_have)
        if short is not None:
            pods = ", ".join(plan.pod.metadata.key for plan in members)
            raise Conflict(f"node {name} is too full for pod {pods}: {short}")
