"""PodGroup and Workload of scheduling.k8s.io (KEP-4671), which may hold claims for all their pods (KEP-5729)."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model
from dra_alloc.api.meta import Condition, KubernetesObject, ObjectMeta

__all__ = [
    "CompositeDisruptionMode",
    "CompositeGangSchedulingPolicy",
    "CompositePodGroupSchedulingConstraints",
    "CompositePodGroupSchedulingPolicy",
    "CompositePodGroupTemplate",
    "DisruptionMode",
    "GangSchedulingPolicy",
    "PodGroup",
    "PodGroupResourceClaim",
    "PodGroupResourceClaimStatus",
    "PodGroupSchedulingConstraints",
    "PodGroupSchedulingPolicy",
    "PodGroupSpec",
    "PodGroupStatus",
    "PodGroupTemplate",
    "TopologyConstraint",
    "TypedLocalObjectReference",
    "Workload",
    "WorkloadReference",
    "WorkloadSpec",
]


@attrs.frozen(kw_only=True)
class PodGroupResourceClaim(Model):
    """A claim that the pods of a group share (KEP-5729): an existing one, or one made from a template."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


@attrs.frozen(kw_only=True)
class GangSchedulingPolicy(Model):
    """At least `min_count` pods of the group are scheduled together, or none."""

    min_count: int = attrs.field(default=0, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class PodGroupSchedulingPolicy(Model):
    """How the pods of a group are scheduled: each for itself (`basic`, an empty object), or as a gang."""

    basic: dict[str, Any] | None = None
    gang: GangSchedulingPolicy | None = None


@attrs.frozen(kw_only=True)
class TopologyConstraint(Model):
    """The pods of a group run on nodes with one value of the label `key`."""

    key: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class PodGroupSchedulingConstraints(Model):
    """Constraints on where the pods of a group run."""

    topology: tuple[TopologyConstraint, ...] = ()


@attrs.frozen(kw_only=True)
class DisruptionMode(Model):
    """Whether pods of a group may be disrupted one by one (`single`) or only together (`all`); empty objects."""

    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


@attrs.frozen(kw_only=True)
class WorkloadReference(Model):
    """The template of a Workload that a group was made from."""

    workload_name: str = attrs.field(default="", metadata=REQUIRED)
    template_name: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class PodGroupSpec(Model):
    """The pods that belong together are those whose `scheduling_group` names this group."""

    scheduling_policy: PodGroupSchedulingPolicy = attrs.field(factory=PodGroupSchedulingPolicy, metadata=REQUIRED)
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None


@attrs.frozen(kw_only=True)
class PodGroupResourceClaimStatus(Model):
    """The ResourceClaim made for a claim of the group; None if none was needed."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    resource_claim_name: str | None = None


@attrs.frozen(kw_only=True)
class PodGroupStatus(Model):
    """Conditions of the group and the claims made for it."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


@attrs.frozen(kw_only=True)
class PodGroup(KubernetesObject):
    """Pods that are scheduled together."""

    kind: ClassVar[str] = "PodGroup"
    api_version: ClassVar[str] = "scheduling.k8s.io/v1beta1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: PodGroupSpec = attrs.field(factory=PodGroupSpec, metadata=REQUIRED)
    status: PodGroupStatus | None = None


@attrs.frozen(kw_only=True)
class PodGroupTemplate(Model):
    """A group that a controller makes for a Workload."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    scheduling_policy: PodGroupSchedulingPolicy = attrs.field(factory=PodGroupSchedulingPolicy, metadata=REQUIRED)
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None


@attrs.frozen(kw_only=True)
class CompositeGangSchedulingPolicy(Model):
    """At least `min_group_count` groups of a composite group are scheduled together, or none."""

    min_group_count: int = attrs.field(default=0, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class CompositePodGroupSchedulingPolicy(Model):
    """How the groups of a composite group are scheduled: each for itself (`basic`, an empty object), or as a gang."""

    basic: dict[str, Any] | None = None
    gang: CompositeGangSchedulingPolicy | None = None


@attrs.frozen(kw_only=True)
class CompositePodGroupSchedulingConstraints(Model):
    """Constraints on where the pods of a composite group run."""

    topology: tuple[TopologyConstraint, ...] = ()


@attrs.frozen(kw_only=True)
class CompositeDisruptionMode(Model):
    """Whether the groups may be disrupted one by one (`single`) or only together (`all`); empty objects."""

    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


@attrs.frozen(kw_only=True)
class CompositePodGroupTemplate(Model):
    """A tree of groups that a controller makes for a Workload."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    scheduling_policy: CompositePodGroupSchedulingPolicy = attrs.field(
        factory=CompositePodGroupSchedulingPolicy, metadata=REQUIRED
    )
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()
    scheduling_constraints: CompositePodGroupSchedulingConstraints | None = None
    disruption_mode: CompositeDisruptionMode | None = None
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None


@attrs.frozen(kw_only=True)
class TypedLocalObjectReference(Model):
    """An object of the same namespace."""

    api_group: str | None = None
    kind: str = attrs.field(default="", metadata=REQUIRED)
    name: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class WorkloadSpec(Model):
    """The groups of a workload, and the object that controls it."""

    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


@attrs.frozen(kw_only=True)
class Workload(KubernetesObject):
    """The groups of pods that make up one workload."""

    kind: ClassVar[str] = "Workload"
    api_version: ClassVar[str] = "scheduling.k8s.io/v1beta1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: WorkloadSpec = attrs.field(factory=WorkloadSpec, metadata=REQUIRED)
