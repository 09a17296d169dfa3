"""What is undone when a group cannot be scheduled, so that it can be tried again (KEP-5729, PostFilter)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import ResourceClaim
from dra_alloc.features._objects import key_in
from dra_alloc.features.binding import deallocate
from dra_alloc.features.groups.members import known_group, pods_of
from dra_alloc.features.pods.claims import GROUP_API
from dra_alloc.features.pods.plan import FINALIZER

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["group_retry"]


def group_retry(cluster: Cluster, group: Any) -> tuple[ResourceClaim, ...]:
    """The claims (new versions, deallocated) that a group which cannot be scheduled gives up to be tried again.

    Those are the group's claims that are allocated and reserved for nobody but the group. Nothing is given up while a
    pod of the group runs, for it may be using them. group: a PodGroup (model, dict, or name) of the cluster; raises
    DraError if it is not there. `cluster.upsert(*group_retry(…))` writes them.
    """
    known = known_group(cluster, group)
    if any(pod.spec.node_name for pod in pods_of(cluster, known)):
        return ()
    names = [entry.resource_claim_name for entry in known.spec.resource_claims if entry.resource_claim_name]
    if known.status is not None:
        names += [each.resource_claim_name for each in known.status.resource_claim_statuses if each.resource_claim_name]
    found: dict[str, ResourceClaim] = {}
    for name in names:
        claim: ResourceClaim | None = cluster.get("ResourceClaim", key_in(known.metadata.namespace, name))
        if claim is None or claim.status is None or claim.status.allocation is None:
            continue
        own = (GROUP_API, "podgroups", known.metadata.name)
        if all((each.api_group, each.resource, each.name) == own for each in claim.status.reserved_for):
            kept = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
            bare = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=kept))
            found[claim.metadata.key] = deallocate(bare)
    return tuple(found.values())
