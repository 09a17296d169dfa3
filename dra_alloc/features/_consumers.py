"""Which claims a pod uses, and whether they are reserved for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_alloc.api import Pod, ResourceClaim, ResourceClaimConsumerReference
from dra_alloc.features._objects import key_of
from dra_alloc.gates import Features

__all__ = ["controlled", "pod_claims", "refers_to", "reserved_for"]

_SCHEDULING_GROUP = "scheduling.k8s.io"


def pod_claims(
    pod: Pod, claims: Mapping[str, ResourceClaim], features: Features, *, extended: bool = False
) -> Iterator[tuple[str, ResourceClaim]]:
    """The claims of a pod that exist, with the names that the pod gives them, in the order of `spec.resourceClaims`.

    claims: by `namespace/name`. A claim made from a template counts only if the pod, or with DRAWorkloadResourceClaims
    its PodGroup, controls it (KEP-5729). extended: also the claim for the pod's extended resources (KEP-5004),
    under the empty name.
    """
    namespace = pod.metadata.namespace or "default"
    generated = (
        {entry.name: entry.resource_claim_name for entry in pod.status.resource_claim_statuses} if pod.status else {}
    )
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or generated.get(entry.name)
        claim = claims.get(f"{namespace}/{name}") if name else None
        if claim is not None and (entry.resource_claim_name or controlled(claim, pod, features)):
            yield entry.name, claim
    special = pod.status.extended_resource_claim_status if extended and pod.status else None
    if special is not None:
        claim = claims.get(f"{namespace}/{special.resource_claim_name}")
        if claim is not None and controlled(claim, pod, features):
            yield "", claim


def reserved_for(claim: ResourceClaim, pod: Pod, features: Features) -> bool:
    """Whether `status.reservedFor` names the pod or, with DRAWorkloadResourceClaims, its PodGroup."""
    consumers = claim.status.reserved_for if claim.status else ()
    return any(refers_to(consumer, pod) or _is_group(consumer, pod, features) for consumer in consumers)


def refers_to(consumer: ResourceClaimConsumerReference, pod: Pod) -> bool:
    """Whether an entry of `reservedFor` is this pod: its UID decides, its name where the pod has none."""
    if consumer.api_group or consumer.resource != "pods":
        return False
    if pod.metadata.uid:
        return consumer.uid == pod.metadata.uid
    return consumer.name == pod.metadata.name


def _is_group(consumer: ResourceClaimConsumerReference, pod: Pod, features: Features) -> bool:
    group = _group_name(pod, features)
    return (
        group is not None
        and consumer.api_group == _SCHEDULING_GROUP
        and consumer.resource == "podgroups"
        and consumer.name == group
    )


def _group_name(pod: Pod, features: Features) -> str | None:
    if not features.DRAWorkloadResourceClaims or pod.spec.scheduling_group is None:
        return None
    return pod.spec.scheduling_group.pod_group_name


def controlled(claim: ResourceClaim, pod: Pod, features: Features) -> bool:
    """Whether the pod or its group is the managing controller of a claim; a group is known by name alone."""
    owner = next((reference for reference in claim.metadata.owner_references if reference.controller), None)
    if owner is None or key_of(claim.metadata).partition("/")[0] != (pod.metadata.namespace or "default"):
        return False
    if owner.kind == "Pod":
        return owner.uid == pod.metadata.uid if pod.metadata.uid else owner.name == pod.metadata.name
    group = _group_name(pod, features)
    return (
        group is not None
        and owner.kind == "PodGroup"
        and owner.api_version.partition("/")[0] == _SCHEDULING_GROUP
        and owner.name == group
    )
