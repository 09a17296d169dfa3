"""The plan of a group: the plans of its pods, which hold together and are written in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import Pod, PodGroup, ResourceClaim
from dra_alloc.features.pods.plan import Parts, PodPlan, commit_parts

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["GroupPlan"]


@attrs.frozen
class GroupPlan:
    """What becomes of the pods of a group; nothing is written until `cluster.commit(plan)`.

    group: key of the PodGroup, empty if pods were asked for. plans: of the pods that get a node, in order; each builds
    on those before it. left_out: keys of the pods that get none. complete: whether it is certain that no plan has more
    pods. tries: pods that were placed while nodes were tried.
    """

    group: str
    plans: tuple[PodPlan, ...]
    left_out: tuple[str, ...] = ()
    complete: bool = True
    tries: int = 0

    @property
    def nodes(self) -> dict[str, str]:
        """The node of each pod that gets one, by key of the pod."""
        return {plan.pod.metadata.key: plan.node for plan in self.plans}

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """All claims, each once, as they will be."""
        return tuple({claim.metadata.key: claim for plan in self.plans for claim in plan.claims}.values())

    @property
    def created(self) -> tuple[str, ...]:
        """Keys of the claims that the plan makes."""
        return tuple(key for plan in self.plans for key in plan.created)

    def status_updates(self) -> tuple[PodGroup | ResourceClaim | Pod, ...]:
        """The objects whose status is to be written, each once, after the claims of `created` exist."""
        groups = {plan.group.metadata.key: plan.group for plan in self.plans if plan.group is not None}
        return (*groups.values(), *self.claims, *(plan.pod for plan in self.plans))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: group, node by pod, pods left out, completeness, claims, and what is to be written."""
        return {
            "group": self.group,
            "nodes": self.nodes,
            "leftOut": list(self.left_out),
            "complete": self.complete,
            "claims": [claim.to_dict() for claim in self.claims],
            "created": list(self.created),
            "statusUpdates": [item.to_dict() for item in self.status_updates()],
        }

    def commit_parts(self, cluster: Cluster) -> Parts:
        """For `Cluster.commit`: what is written. Raises Conflict if the cluster is not as it was."""
        return commit_parts(self.plans, cluster)
