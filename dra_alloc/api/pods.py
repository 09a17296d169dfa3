"""Pod, Node and Namespace, as far as Dynamic Resource Allocation reads or writes them."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model
from dra_alloc.api.meta import KubernetesObject, NodeSelector, ObjectMeta
from dra_alloc.api.quantity import Quantity

__all__ = [
    "Affinity",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerResourceClaim",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeAllocatableMappedResources",
    "NodeAllocatableOverheadResources",
    "NodeAllocatableResourceClaimStatus",
    "NodeSpec",
    "NodeStatus",
    "Pod",
    "PodCondition",
    "PodExtendedResourceClaimStatus",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSpec",
    "PodStatus",
    "ResourceRequirements",
    "Taint",
    "Toleration",
]


@attrs.frozen(kw_only=True)
class ContainerResourceClaim(Model):
    """A claim of the pod that a container uses (`ResourceClaim` of core/v1); with `request` only that request of it."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    request: str | None = None


@attrs.frozen(kw_only=True)
class ResourceRequirements(Model):
    """Requests and limits by resource name, and the claims that a container uses."""

    requests: dict[str, Quantity] = attrs.field(factory=dict)
    limits: dict[str, Quantity] = attrs.field(factory=dict)
    claims: tuple[ContainerResourceClaim, ...] = ()


@attrs.frozen(kw_only=True)
class Container(Model):
    """A container. An init container with `restart_policy` Always is a sidecar."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    resources: ResourceRequirements = attrs.field(factory=ResourceRequirements)
    restart_policy: str | None = None


@attrs.frozen(kw_only=True)
class PodResourceClaim(Model):
    """A claim of a pod: an existing ResourceClaim, or one made for the pod from a ResourceClaimTemplate."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


@attrs.frozen(kw_only=True)
class PodSchedulingGroup(Model):
    """The PodGroup, in the namespace of the pod, that the pod is a member of (KEP-5729)."""

    pod_group_name: str | None = None


@attrs.frozen(kw_only=True)
class Toleration(Model):
    """A node taint that a pod tolerates."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


@attrs.frozen(kw_only=True)
class PodSchedulingGate(Model):
    """Something that a pod waits for before any scheduler looks at it."""

    name: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class NodeAffinity(Model):
    """The nodes that a pod must run on; preferences are not kept."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


@attrs.frozen(kw_only=True)
class Affinity(Model):
    """Affinity of a pod, as far as it concerns nodes alone."""

    node_affinity: NodeAffinity | None = None


@attrs.frozen(kw_only=True)
class PodSpec(Model):
    """The part of a pod's specification that matters to DRA and to the node's resources."""

    node_name: str | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    containers: tuple[Container, ...] = attrs.field(default=(), metadata=REQUIRED)
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: dict[str, Quantity] = attrs.field(factory=dict)
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    restart_policy: str | None = None
    scheduler_name: str | None = None
    node_selector: dict[str, str] = attrs.field(factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()


@attrs.frozen(kw_only=True)
class PodCondition(Model):
    """A condition of a pod. `status` is "True", "False" or "Unknown"."""

    type: str = attrs.field(default="", metadata=REQUIRED)
    status: str = attrs.field(default="", metadata=REQUIRED)
    reason: str | None = None
    message: str | None = None
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


@attrs.frozen(kw_only=True)
class PodResourceClaimStatus(Model):
    """The ResourceClaim that stands for a claim of the pod made from a template; None if none was needed."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    resource_claim_name: str | None = None


@attrs.frozen(kw_only=True)
class ContainerExtendedResourceRequest(Model):
    """The request that serves an extended resource of a container (KEP-5004)."""

    container_name: str = attrs.field(default="", metadata=REQUIRED)
    resource_name: str = attrs.field(default="", metadata=REQUIRED)
    request_name: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class PodExtendedResourceClaimStatus(Model):
    """The claim made for the extended resources of a pod, and which request serves which container (KEP-5004)."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = attrs.field(default=(), metadata=REQUIRED)
    resource_claim_name: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class NodeAllocatableMappedResources(Model):
    """An amount of a node resource that a claim stands for (KEP-5517)."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    quantity: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class NodeAllocatableOverheadResources(Model):
    """An amount of a node resource that a claim needs besides, per pod and per container that uses it (KEP-5517)."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


@attrs.frozen(kw_only=True)
class NodeAllocatableResourceClaimStatus(Model):
    """Node resources that a pod has through one claim, and the containers that use the claim (KEP-5517)."""

    resource_claim_name: str = attrs.field(default="", metadata=REQUIRED)
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()


@attrs.frozen(kw_only=True)
class PodStatus(Model):
    """The part of a pod's status that DRA reads or writes."""

    phase: str | None = None
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


@attrs.frozen(kw_only=True)
class Pod(KubernetesObject):
    """A pod, reduced to what matters to its claims and to the resources of its node."""

    kind: ClassVar[str] = "Pod"
    api_version: ClassVar[str] = "v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: PodSpec = attrs.field(factory=PodSpec)
    status: PodStatus | None = None


@attrs.frozen(kw_only=True)
class Taint(Model):
    """A taint of a node."""

    key: str = attrs.field(default="", metadata=REQUIRED)
    value: str | None = None
    effect: str = attrs.field(default="", metadata=REQUIRED)
    time_added: datetime | None = None


@attrs.frozen(kw_only=True)
class NodeSpec(Model):
    """Whether pods may be scheduled onto the node."""

    unschedulable: bool | None = None
    taints: tuple[Taint, ...] = ()


@attrs.frozen(kw_only=True)
class NodeStatus(Model):
    """What the node can offer: `allocatable` is `capacity` less what the system keeps. Features it declares."""

    capacity: dict[str, Quantity] = attrs.field(factory=dict)
    allocatable: dict[str, Quantity] = attrs.field(factory=dict)
    declared_features: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Node(KubernetesObject):
    """A node, reduced to labels, taints, resources and declared features."""

    kind: ClassVar[str] = "Node"
    api_version: ClassVar[str] = "v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: NodeSpec = attrs.field(factory=NodeSpec)
    status: NodeStatus | None = None


@attrs.frozen(kw_only=True)
class Namespace(KubernetesObject):
    """A namespace; its labels decide about admin access (KEP-5018)."""

    kind: ClassVar[str] = "Namespace"
    api_version: ClassVar[str] = "v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
