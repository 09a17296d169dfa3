"""Node allocatable resources (KEP-5517): devices that are, or need, CPU, memory and the like of their node.

Gate DRANodeAllocatableResources. A device says in `nodeAllocatableResources` what an allocation of it means; the sum
over the claims of a pod goes into `pod.status.nodeAllocatableResourceClaimStatuses` and counts on the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import (
    AllocationResult,
    Device,
    DeviceRequestAllocationResult,
    Node,
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResource,
    NodeAllocatableResourceClaimStatus,
    Pod,
)
from dra_alloc.errors import AllocationError
from dra_alloc.features.noderesources import (
    Amounts,
    Refusal,
    aggregate,
    claimed,
    effective_requests,
    pod_level,
    quantity_of,
)
from dra_alloc.nodeselection import device_concerns, slice_concerns
from dra_alloc.rules import qualified

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["NODE_FEATURE", "AllocatedClaim", "claim_statuses", "containers_of", "pod_level_fault", "uses_mapping"]

#: What a node lists in `status.declaredFeatures` if its kubelet knows of these resources; see `allocate_pod`.
NODE_FEATURE = "DRANodeAllocatableResources"

_NANO = 10**9


@attrs.frozen
class AllocatedClaim:
    """A claim of a pod with what it has: `key` is `namespace/name`, `names` what the pod calls it (none: extended)."""

    key: str
    names: tuple[str, ...]
    allocation: AllocationResult

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


def claim_statuses(
    pod: Pod, claims: Iterable[AllocatedClaim], node: Node, cluster: Cluster
) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """The entries of `pod.status.nodeAllocatableResourceClaimStatuses`, by name of the claim.

    Claims whose devices add nothing have no entry. Raises AllocationError (`node-resources`) for a device that is in
    none of the slices of the node, if another of its claim means something for the node, and for a mapping by capacity
    of a device whose allocation records no consumed capacity (that is: one without `allowMultipleAllocations`).
    """
    found = (_status(pod, claim, node, cluster) for claim in claims)
    return tuple(sorted((status for status in found if status is not None), key=lambda each: each.resource_claim_name))


def containers_of(pod: Pod, names: Sequence[str]) -> tuple[str, ...]:
    """The containers that list one of these claims of the pod, init containers first; once for each time they do."""
    return tuple(
        container.name
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for entry in container.resources.claims
        if entry.name in names
    )


def uses_mapping(statuses: Iterable[NodeAllocatableResourceClaimStatus], claim: str) -> bool:
    """Whether a claim (by name) stands for resources of the node, so that only one pod may use it."""
    return any(status.mapping and status.resource_claim_name == claim for status in statuses)


def pod_level_fault(pod: Pod, statuses: Sequence[NodeAllocatableResourceClaimStatus]) -> Refusal | None:
    """Which pod-level request or limit is too small for containers and claims together, or None.

    Only resources that `spec.resources` sets are looked at. No node can help, whatever other pods do.
    """
    resources = pod.spec.resources
    if resources is None:
        return None
    added = claimed(statuses)
    base = aggregate(pod, lambda container: effective_requests(container.resources))
    for name, nano in sorted(pod_level(pod).items()):
        total = base.get(name, 0) + added.get(name, 0)
        if total > nano:
            return _over(f"spec.resources.requests[{name}]", name, total, nano)
    limits = aggregate(pod, lambda container: container.resources.limits)
    for name, limit in sorted(resources.limits.items()):
        if name.startswith("hugepages-"):
            total = limits.get(name, 0) + added.get(name, 0)
            if total > limit.nano:
                return _over(f"spec.resources.limits[{name}]", name, total, limit.nano)
            continue
        for container in pod.spec.containers:
            own = container.resources.limits.get(name)
            if own is not None:
                total = own.nano + _container_part(pod, container.name, name, statuses)
                if total > limit.nano:
                    return _over(f"spec.resources.limits[{name}] (container {container.name})", name, total, limit.nano)
    return None


def _over(field: str, name: str, total: int, value: int) -> Refusal:
    return Refusal(
        f"{field} is {quantity_of(name, value)}, less than the {quantity_of(name, total)} of containers and claims",
        unresolvable=True,
    )


def _container_part(pod: Pod, container: str, name: str, statuses: Iterable[NodeAllocatableResourceClaimStatus]) -> int:
    """What the claims of one container add to its limit: their mapping and overhead whole."""
    return sum(
        claimed([attrs.evolve(status, containers=(container,))]).get(name, 0)
        for status in statuses
        if container in status.containers
    )


def _status(pod: Pod, claim: AllocatedClaim, node: Node, cluster: Cluster) -> NodeAllocatableResourceClaimStatus | None:
    mapped: Amounts = {}
    per_pod: Amounts = {}
    per_container: Amounts = {}
    found = [(result, _device(result, node, cluster)) for result in claim.allocation.devices.results]
    if not any(device is not None and device.node_allocatable_resources for _, device in found):
        return None  # the scheduler passes over such claims before it minds what is not there
    for result, device in found:
        if device is None:
            raise AllocationError(
                "node-resources",
                "the device is in none of the slices of the node, so that what it takes of the node is not known",
                claim=claim.key,
                request=result.request,
                device=f"{result.driver}/{result.pool}/{result.device}",
                node=node.metadata.name,
            )
        for name, resource in device.node_allocatable_resources.items():
            amount = _mapped(claim, result, name, resource)
            if amount is not None:
                mapped[name] = mapped.get(name, 0) + amount
            overhead = resource.overhead
            if overhead is not None:
                for totals, value in ((per_pod, overhead.per_pod), (per_container, overhead.per_container)):
                    if value is not None:
                        totals[name] = totals.get(name, 0) + max(0, value.nano)
    if not mapped and not per_pod and not per_container:
        return None
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=claim.name,
        containers=containers_of(pod, claim.names),
        mapping=tuple(
            NodeAllocatableMappedResources(name=name, quantity=quantity_of(name, mapped[name]))
            for name in sorted(mapped)
        ),
        overhead=tuple(
            NodeAllocatableOverheadResources(
                name=name,
                per_pod=quantity_of(name, per_pod[name]) if name in per_pod else None,
                per_container=quantity_of(name, per_container[name]) if name in per_container else None,
            )
            for name in sorted({*per_pod, *per_container})
        ),
    )


def _mapped(
    claim: AllocatedClaim, result: DeviceRequestAllocationResult, name: str, resource: NodeAllocatableResource
) -> int | None:
    mapping = resource.mapping
    if mapping is None:
        return None
    if mapping.device_multiplier is not None:
        return max(0, mapping.device_multiplier.nano)
    if mapping.capacity_key is None or mapping.capacity_multiplier is None:
        return None
    if not result.consumed_capacity:
        raise AllocationError(
            "node-resources",
            f"nodeAllocatableResources[{name}].mapping names the capacity {mapping.capacity_key}, but the allocation "
            "records no consumed capacity; the device needs allowMultipleAllocations, or a deviceMultiplier",
            claim=claim.key,
            request=result.request,
            device=f"{result.driver}/{result.pool}/{result.device}",
        )
    wanted = qualified(mapping.capacity_key, result.driver)
    for key, amount in result.consumed_capacity.items():
        if qualified(key, result.driver) == wanted:
            # Exact down to the nano, and rounded up from there, as quantities are.
            return max(0, -(-amount.nano * mapping.capacity_multiplier.nano // _NANO))
    return None


def _device(result: DeviceRequestAllocationResult, node: Node, cluster: Cluster) -> Device | None:
    """The device as the slices that concern the node describe it, the newest generation first; None if none does."""
    slices = sorted(cluster.slices_of_pool((result.driver, result.pool)), key=lambda item: -item.spec.pool.generation)
    for item in slices:
        for device in item.spec.devices:
            if device.name != result.device:
                continue
            if device_concerns(device, node) if item.spec.per_device_node_selection else slice_concerns(item, node):
                return device
    return None
