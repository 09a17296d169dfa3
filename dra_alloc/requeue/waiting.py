"""`Waiting`: a pending pod, reduced to what decides about waking it."""

from __future__ import annotations

from sys import intern

from dra_alloc.api import Pod, ResourceClaim
from dra_alloc.requeue.reasons import Blocking, is_error, requests_blocking

__all__ = ["CLAIM_NAME", "Waiting", "claim_owner"]

#: The annotation of a claim made from a template that says which claim of the pod it is.
CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

_GROUP_API = "scheduling.k8s.io"


class Waiting:
    """A pod that waits.

    key: as in the cluster. namespace: "default" for none. claims: (name in the pod, key of the claim or "", template
    or "") of each; the claim of a template is empty as long as the pod does not know it. uid: its UID, if a claim was
    or will be made for it. group: its PodGroup or "". resources: names of its extended resources. choosy: whether
    labels of nodes matter to it. failed: whether its attempt ended with an error. blocking: see reasons.py; None if
    nothing is known.
    """

    __slots__ = ("blocking", "choosy", "claims", "failed", "group", "key", "namespace", "resources", "uid")

    def __init__(self, pod: Pod, reason: object, nodes: int) -> None:
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        self.key = metadata.key
        # One object for all pods of a namespace, of a template and so on: 100,000 of them add up.
        self.namespace = intern(metadata.namespace or "default")
        special = status.extended_resource_claim_status if status is not None else None
        made: dict[str, str | None] = {}
        if status is not None and status.resource_claim_statuses:
            made = {entry.name: entry.resource_claim_name for entry in status.resource_claim_statuses}
        claims = []
        for_pod = special is not None
        for entry in spec.resource_claims:
            if entry.resource_claim_name:
                claims.append((intern(entry.name), f"{self.namespace}/{entry.resource_claim_name}", ""))
                continue
            name = made.get(entry.name, "")
            if name is not None:  # else the controller has noted that no claim is needed
                key = f"{self.namespace}/{name}" if name else ""
                template = intern(entry.resource_claim_template_name or "")
                claims.append((intern(entry.name), key, template))
                for_pod = for_pod or bool(template)
        if special is not None:
            claims.append(("", f"{self.namespace}/{special.resource_claim_name}", ""))
        self.claims = tuple(claims)
        # Who owns a claim matters to claims that were made for the pod.
        self.uid = (metadata.uid or "") if for_pod else ""
        self.group = (spec.scheduling_group.pod_group_name or "") if spec.scheduling_group is not None else ""
        self.resources = _extended_resources(pod) if special is None else ()
        self.choosy = bool(spec.node_selector) or spec.affinity is not None
        self.failed = reason is not None and is_error(reason)
        self.blocking: Blocking | None = None if reason is None else requests_blocking(reason, nodes)

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.key.rpartition("/")[2]

    def is_same(self, other: Waiting) -> bool:
        """Whether a pod has the same claims and resources."""
        return (self.uid, self.claims, self.group, self.resources) == (
            other.uid,
            other.claims,
            other.group,
            other.resources,
        )

    def owns(self, claim: ResourceClaim) -> bool:
        """Whether a claim was made for the pod, or for its PodGroup."""
        owner = claim_owner(claim)
        if owner is None or (claim.metadata.namespace or "default") != self.namespace:
            return False
        kind, name, uid = owner
        if kind == "PodGroup":
            return name == self.group
        return name == self.name and (not self.uid or not uid or uid == self.uid)

    def made_for(self, claim: ResourceClaim, entry: str) -> bool:
        """Whether a claim was made for one of the claims of the pod."""
        return claim.metadata.annotations.get(CLAIM_NAME) == entry and self.owns(claim)


def claim_owner(claim: ResourceClaim) -> tuple[str, str, str] | None:
    """Kind, name and UID of the pod or PodGroup that a claim was made for."""
    for reference in claim.metadata.owner_references:
        if reference.controller:
            api = reference.api_version.partition("/")[0]
            if reference.kind == "Pod" or (reference.kind == "PodGroup" and api == _GROUP_API):
                return reference.kind, reference.name, reference.uid
            return None
    return None


def _extended_resources(pod: Pod) -> tuple[str, ...]:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        resources = container.resources
        for names in (resources.requests, resources.limits):
            for name in names:
                if "/" in name:
                    from dra_alloc.features.extended import totals

                    return tuple(totals(pod))
    return ()
