"""What is left when a pod or a PodGroup has ended (KEP-4381, KEP-5729): claims are given up, deallocated, removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import Pod, PodGroup, ResourceClaim, ResourceClaimConsumerReference
from dra_alloc.errors import Conflict
from dra_alloc.features._consumers import refers_to
from dra_alloc.features._objects import key_in, key_of
from dra_alloc.features.binding import deallocate
from dra_alloc.features.noderesources import is_finished
from dra_alloc.features.pods.claims import GROUP_API, identified
from dra_alloc.features.pods.plan import FINALIZER

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["ended"]

#: Changed claims, and the kinds and keys of objects that are removed.
Consequences = tuple[list[ResourceClaim], list[tuple[str, str]]]


def ended(cluster: Cluster, item: Pod | PodGroup) -> Consequences:
    """What changes when a pod or a group has ended; see `Cluster.release`. Raises Conflict for a group in use."""
    known = cluster.get(item.kind, key_of(item.metadata))
    if isinstance(item, Pod):
        return _pod_ended(cluster, known or item, known)
    return _group_ended(cluster, known or item, known)


def _pod_ended(cluster: Cluster, pod: Pod, known: Pod | None) -> Consequences:
    names = {entry.resource_claim_name for entry in pod.spec.resource_claims if entry.resource_claim_name}
    if pod.status is not None:
        names |= {each.resource_claim_name for each in pod.status.resource_claim_statuses if each.resource_claim_name}
        if pod.status.extended_resource_claim_status is not None:
            names.add(pod.status.extended_resource_claim_status.resource_claim_name)
    changed, removed = _given_up(cluster, pod, names, lambda entry: refers_to(entry, pod))
    if known is not None and not is_finished(known):
        removed.append(("Pod", known.metadata.key))
    return changed, removed


def _group_ended(cluster: Cluster, group: PodGroup, known: PodGroup | None) -> Consequences:
    running = [
        pod.metadata.name
        for pod in cluster.pods()
        if pod.spec.scheduling_group is not None
        and pod.spec.scheduling_group.pod_group_name == group.metadata.name
        and (pod.metadata.namespace or "default") == (group.metadata.namespace or "default")
        and pod.spec.node_name
        and not is_finished(pod)
    ]
    if running:
        more = f" and {len(running) - 3} more" if len(running) > 3 else ""
        raise Conflict(
            f"PodGroup {group.metadata.key} still has pods that run ({', '.join(running[:3])}{more}); these come first"
        )
    names = {entry.resource_claim_name for entry in group.spec.resource_claims if entry.resource_claim_name}
    if group.status is not None:
        names |= {each.resource_claim_name for each in group.status.resource_claim_statuses if each.resource_claim_name}
    changed, removed = _given_up(cluster, group, names, lambda entry: _is_group(entry, group))
    if known is not None:
        removed.append(("PodGroup", known.metadata.key))
    return changed, removed


def _is_group(entry: ResourceClaimConsumerReference, group: PodGroup) -> bool:
    return (entry.api_group, entry.resource, entry.name) == (GROUP_API, "podgroups", group.metadata.name)


def _given_up(
    cluster: Cluster,
    user: Pod | PodGroup,
    names: Iterable[str],
    is_user: Callable[[ResourceClaimConsumerReference], bool],
) -> Consequences:
    """The claims of a user without it; those that were made for it are removed."""
    uid = identified(user).metadata.uid
    found = {claim.metadata.key: claim for claim in cluster.claims_owned_by(uid or "")}
    owned = set(found)
    for name in sorted(names):
        claim = cluster.get("ResourceClaim", key_in(user.metadata.namespace, name))
        if claim is not None:
            found[claim.metadata.key] = claim
    changed: list[ResourceClaim] = []
    for key in sorted(set(found) - owned):
        claim = _without(found[key], is_user)
        if claim is not found[key]:
            changed.append(claim)
    return changed, [("ResourceClaim", key) for key in sorted(owned)]


def _without(claim: ResourceClaim, is_user: Callable[[ResourceClaimConsumerReference], bool]) -> ResourceClaim:
    """The claim without a user; deallocated if it was the last. One that nobody had reserved is left alone."""
    if claim.status is None:
        return claim
    left = tuple(entry for entry in claim.status.reserved_for if not is_user(entry))
    if len(left) == len(claim.status.reserved_for):
        return claim
    if left:
        return attrs.evolve(claim, status=attrs.evolve(claim.status, reserved_for=left))
    finalizers = tuple(name for name in claim.metadata.finalizers if name != FINALIZER)
    return deallocate(attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=finalizers)))
