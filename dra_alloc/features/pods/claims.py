"""Which claims a pod uses: named, made from templates, those of its PodGroup (KEP-5729).

Claims that do not exist yet are made as the ResourceClaim controller makes them.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import attrs

from dra_alloc.api import (
    ObjectMeta,
    Pod,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
    PodGroupStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from dra_alloc.features._consumers import controlled
from dra_alloc.features._objects import controlled_by, gate_off, key_in, key_of, refused

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.gates import Features

__all__ = [
    "CLAIM_NAME_ANNOTATION",
    "PodClaim",
    "ResolvedPod",
    "consumer_of",
    "generated_name",
    "group_claim_of",
    "identified",
    "random_suffix",
    "resolve",
    "resolve_group",
]

#: Names, in a claim made from a template, the entry of `spec.resourceClaims` that it stands for.
CLAIM_NAME_ANNOTATION = "resource.kubernetes.io/pod-claim-name"

GROUP_API = "scheduling.k8s.io"

_GATE = "DRAWorkloadResourceClaims"

#: The letters of generated names: no vowels and nothing that looks like one.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
#: Longest base of the name of a claim made from a template.
_LONGEST_BASE = 57
#: Longest base that the API server puts five letters behind.
_LONGEST_PREFIX = 58
_UIDS = uuid.UUID("6f1d6a6e-5b0a-5d0a-9d6b-6b6d0c1f4a57")

_Item = TypeVar("_Item", bound="Pod | PodGroup")


@attrs.frozen
class PodClaim:
    """A claim as a pod uses it.

    name: what the pod calls it, empty for the claim for extended resources. consumer: for whom it is reserved, the pod
    or its group. made: whether it does not exist yet.
    """

    name: str
    claim: ResourceClaim
    consumer: ResourceClaimConsumerReference
    made: bool = False


@attrs.frozen
class ResolvedPod:
    """A pod with its claims in order of `spec.resourceClaims`.

    pod: with a UID, and with the claims made for it in `status.resourceClaimStatuses`. group: its PodGroup likewise,
    None if it has none or it stays as it is.
    """

    pod: Pod
    claims: tuple[PodClaim, ...]
    group: PodGroup | None = None


def random_suffix() -> str:
    """Five random letters, as Kubernetes ends generated names with."""
    return "".join(random.choices(_ALPHABET, k=5))


def generated_name(owner: str, claim: str, suffix: str) -> str:
    """Name of the claim made for an owner (pod or PodGroup) and the name of its claim; at most 63 characters long.

    If both names are long, both are cut in proportion.
    """
    base = f"{owner}-{claim}-"
    if len(base) > _LONGEST_BASE:
        cut = len(base)
        base = f"{owner[: len(owner) * _LONGEST_BASE // cut]}-{claim[: len(claim) * _LONGEST_BASE // cut]}"
    return base + suffix


def prefixed_name(prefix: str, suffix: str) -> str:
    """The name that the API server makes of `metadata.generateName`."""
    return prefix[:_LONGEST_PREFIX] + suffix


def identified(item: _Item) -> _Item:
    """The pod or group with a UID: one that no API server has seen gets one that its name determines."""
    if item.metadata.uid:
        return item
    made = str(uuid.uuid5(_UIDS, f"{item.kind} {key_of(item.metadata)}"))
    return attrs.evolve(item, metadata=attrs.evolve(item.metadata, uid=made))


def consumer_of(item: Pod | PodGroup) -> ResourceClaimConsumerReference:
    """The entry of `reservedFor` for a pod or a group that has a UID."""
    assert item.metadata.uid is not None
    if isinstance(item, Pod):
        return ResourceClaimConsumerReference(resource="pods", name=item.metadata.name, uid=item.metadata.uid)
    return ResourceClaimConsumerReference(
        api_group=GROUP_API, resource="podgroups", name=item.metadata.name, uid=item.metadata.uid
    )


def resolve(pod: Pod, cluster: Cluster, features: Features, suffix: Callable[[], str]) -> ResolvedPod:
    """The claims of a pod.

    suffix: source of the last letters of generated names, called once a claim that is made, in order. With
    DRAWorkloadResourceClaims a claim that equals one of the pod's PodGroup in name and source is the group's.

    Raises ValidationError, with the field path, for a claim, template or PodGroup that is not in the cluster, a claim
    that was made for somebody else, or an entry without source; AllocationError (`unsupported`) for a template that a
    group has too while the gate is off: the controller makes no claim then.
    """
    original, pod = pod, identified(pod)
    group = _group(pod, cluster, features)
    recorded = _recorded(pod)
    made: dict[str, str] = {}
    claims: list[PodClaim] = []
    changed_group: PodGroup | None = None
    for position, entry in enumerate(pod.spec.resource_claims):
        if entry.name in recorded and recorded[entry.name] is None:
            continue  # the controller has noted that no claim is needed
        path = f"Pod {key_of(pod.metadata)}: spec.resourceClaims[{position}]"
        owner: Pod | PodGroup = pod
        if group is not None and group_claim_of(entry, group) is not None:
            if features.DRAWorkloadResourceClaims:
                owner = changed_group or group
            elif entry.resource_claim_template_name:
                raise gate_off(f"{path}: the claim {entry.name!r} of PodGroup {group.metadata.name}", _GATE)
        if entry.resource_claim_name:
            claim = _existing(cluster, pod, entry.resource_claim_name, path)
            claims.append(PodClaim(entry.name, claim, consumer_of(owner)))
            continue
        if not entry.resource_claim_template_name:
            raise refused(path, "it names no claim", "resourceClaimName or resourceClaimTemplateName")
        name = recorded.get(entry.name) or _recorded_by_group(owner, entry.name)
        if name:
            claim = _existing(cluster, pod, name, path)
            if not controlled(claim, original, features):
                raise refused(
                    path,
                    f"ResourceClaim {key_of(claim.metadata)} was not made for the pod",
                    "the managing controller among its ownerReferences must be the pod, or the pod's PodGroup",
                )
            found = PodClaim(entry.name, claim, consumer_of(owner))
        else:
            found = _instance(cluster, owner, entry.name, entry.resource_claim_template_name, path, suffix)
        made[entry.name] = found.claim.metadata.name
        if isinstance(owner, PodGroup) and _recorded_by_group(owner, entry.name) is None:
            changed_group = with_claim(owner, entry.name, found.claim.metadata.name)
        claims.append(found)
    return ResolvedPod(_with_claims(pod, made), tuple(claims), changed_group)


def resolve_group(
    group: PodGroup, cluster: Cluster, suffix: Callable[[], str]
) -> tuple[PodGroup, tuple[PodClaim, ...]]:
    """The claims of a PodGroup, made from its templates where they do not exist: as soon as the group does.

    Returns the group, with the claims in its status, and the claims in order of `spec.resourceClaims`.
    Raises ValidationError as `resolve` does.
    """
    group = identified(group)
    claims: list[PodClaim] = []
    for position, entry in enumerate(group.spec.resource_claims):
        path = f"PodGroup {key_of(group.metadata)}: spec.resourceClaims[{position}]"
        name = entry.resource_claim_name or _recorded_by_group(group, entry.name)
        if name:
            claims.append(PodClaim(entry.name, _existing(cluster, group, name, path), consumer_of(group)))
        elif entry.resource_claim_template_name:
            found = _instance(cluster, group, entry.name, entry.resource_claim_template_name, path, suffix)
            group = with_claim(group, entry.name, found.claim.metadata.name)
            claims.append(found)
        else:
            raise refused(path, "it names no claim", "resourceClaimName or resourceClaimTemplateName")
    return group, tuple(claims)


def group_claim_of(entry: PodResourceClaim, group: PodGroup) -> PodGroupResourceClaim | None:
    """The claim of the group that a claim of a pod is: equal in name and source, where unset equals unset."""
    for other in group.spec.resource_claims:
        if (
            entry.name == other.name
            and (entry.resource_claim_name or None) == (other.resource_claim_name or None)
            and (entry.resource_claim_template_name or None) == (other.resource_claim_template_name or None)
        ):
            return other
    return None


def with_claim(group: PodGroup, name: str, claim: str) -> PodGroup:
    """The group with a claim in `status.resourceClaimStatuses`."""
    status = group.status or PodGroupStatus()
    entries = tuple(each for each in status.resource_claim_statuses if each.name != name)
    entry = PodGroupResourceClaimStatus(name=name, resource_claim_name=claim)
    return attrs.evolve(group, status=attrs.evolve(status, resource_claim_statuses=(*entries, entry)))


def _group(pod: Pod, cluster: Cluster, features: Features) -> PodGroup | None:
    reference = pod.spec.scheduling_group
    if reference is None or not reference.pod_group_name or not pod.spec.resource_claims:
        return None
    group: PodGroup | None = cluster.get("PodGroup", key_in(pod.metadata.namespace, reference.pod_group_name))
    if group is None and features.DRAWorkloadResourceClaims:
        raise refused(
            f"Pod {key_of(pod.metadata)}: spec.schedulingGroup.podGroupName",
            f"there is no PodGroup {reference.pod_group_name!r} in the namespace",
            "which claims are the group's is not known without it",
        )
    return None if group is None else identified(group)


def _recorded(pod: Pod) -> dict[str, str | None]:
    if pod.status is None:
        return {}
    return {entry.name: entry.resource_claim_name for entry in pod.status.resource_claim_statuses}


def _recorded_by_group(owner: Pod | PodGroup, name: str) -> str | None:
    if isinstance(owner, Pod) or owner.status is None:
        return None
    return next((each.resource_claim_name for each in owner.status.resource_claim_statuses if each.name == name), None)


def _existing(cluster: Cluster, user: Pod | PodGroup, name: str, path: str) -> ResourceClaim:
    claim: ResourceClaim | None = cluster.get("ResourceClaim", key_in(user.metadata.namespace, name))
    if claim is None:
        namespace = user.metadata.namespace or "default"
        raise refused(path, f"there is no ResourceClaim {namespace}/{name}", "add the object to the cluster")
    return claim


def _instance(
    cluster: Cluster, owner: Pod | PodGroup, name: str, template: str, path: str, suffix: Callable[[], str]
) -> PodClaim:
    """The claim made for the owner: one that was made and not recorded yet, or a new one."""
    assert owner.metadata.uid is not None
    for claim in cluster.claims_owned_by(owner.metadata.uid):
        if claim.metadata.annotations.get(CLAIM_NAME_ANNOTATION) == name:
            return PodClaim(name, claim, consumer_of(owner))
    namespace = owner.metadata.namespace
    key = key_in(namespace, template)
    found: ResourceClaimTemplate | None = cluster.get("ResourceClaimTemplate", key)
    if found is None:
        raise refused(
            path,
            f"there is no ResourceClaimTemplate {key}",
            "add the object to the cluster",
        )
    wanted = found.spec.metadata
    metadata = ObjectMeta(
        name=generated_name(owner.metadata.name, name, suffix()),
        generate_name=generated_name(owner.metadata.name, name, ""),
        namespace=namespace,
        labels=wanted.labels,
        annotations={**wanted.annotations, CLAIM_NAME_ANNOTATION: name},
        owner_references=(controlled_by(owner),),
    )
    return PodClaim(name, ResourceClaim(metadata=metadata, spec=found.spec.spec), consumer_of(owner), made=True)


def _with_claims(pod: Pod, made: dict[str, str]) -> Pod:
    """The pod with the names of the claims that were made for it or its group in its status."""
    recorded = _recorded(pod)
    new = {name: claim for name, claim in made.items() if recorded.get(name) != claim}
    if not new:
        return pod
    status = pod.status or PodStatus()
    kept = tuple(each for each in status.resource_claim_statuses if each.name not in new)
    entries = tuple(PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in new.items())
    return attrs.evolve(pod, status=attrs.evolve(status, resource_claim_statuses=(*kept, *entries)))
