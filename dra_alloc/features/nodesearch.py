"""Searching on for devices that the rest of the node is enough for (KEP-5517, `node_resources="search"`).

Kubernetes looks at the first answer of the search and gives the node up if its CPU, memory or the like do not suffice
for the devices in it. Here the search goes on, in its order, until an answer suffices.

Two bounds keep that from walking through every answer. Both are sound because what devices take of a node only adds up:
a device that takes more than is left by itself is in no answer that suffices; and if even the devices that take least
exceed what is left, no answer suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import AllocationResult, Device, Node, NodeAllocatableResourceClaimStatus, Pod, ResourceClaim
from dra_alloc.features.noderesources import (
    Amounts,
    Refusal,
    aggregate,
    effective_requests,
    footprint,
    is_node_allocatable,
    pod_level,
)
from dra_alloc.rules import consumed_amount, qualified

if TYPE_CHECKING:
    from dra_alloc._core import Cancel
    from dra_alloc.allocator import Allocator
    from dra_alloc.gates import Features
    from dra_alloc.problem import Alternative

__all__ = ["NodeLimits", "search_within"]

_NANO = 10**9

Statuses = tuple[NodeAllocatableResourceClaimStatus, ...]
Judge = Callable[[Sequence[AllocationResult]], Statuses | Refusal]


@attrs.frozen
class NodeLimits:
    """The most, in nanos by resource, that the claims of a pod may add on a node. Others are not limited."""

    most: Amounts

    @classmethod
    def of(cls, pod: Pod, node: Node, requested: Mapping[str, int]) -> NodeLimits:
        """What is left on the node besides the pod's own requests, or of its pod-level requests."""
        allocatable = node.status.allocatable if node.status is not None else {}
        own = footprint(pod)
        whole = pod_level(pod)
        containers = aggregate(pod, lambda container: effective_requests(container.resources))
        most = {
            name: amount.nano - requested.get(name, 0) - own.get(name, 0)
            for name, amount in allocatable.items()
            if is_node_allocatable(name)
        }
        most.update({name: nano - containers.get(name, 0) for name, nano in whole.items()})
        return cls(most)

    def exceeded_by(self, amounts: Mapping[str, int]) -> bool:
        """Whether some amount is more than may be added; of what the node does not have nothing may be."""
        return any(nano > max(0, self.most.get(name, 0)) for name, nano in amounts.items())


def search_within(
    allocator: Allocator,
    claims: Sequence[ResourceClaim],
    node: Node,
    limits: NodeLimits,
    judge: Judge,
    cancel: Cancel | None,
) -> tuple[list[AllocationResult], Statuses] | Refusal | None:
    """The first answer of the search that the judge lets pass, with what it takes of the node.

    Devices that take too much by themselves are passed over once the selectors have looked at them, so that errors of
    selectors show as ever. A request for all devices wants them all the same. Returns the reason why the first answer
    was refused if none passes, None if there is no answer at all. Raises BudgetExceeded within the bounds of
    `Allocator.budget`: answers looked at count as 1,000 steps.
    """
    first: Refusal | None = None
    statuses: Statuses = ()

    def accepts(found: Sequence[AllocationResult]) -> bool:
        nonlocal first, statuses
        verdict = judge(found)
        if isinstance(verdict, Refusal):
            first = first or verdict
            return False
        statuses = verdict
        return True

    weigh = _Weights(allocator.features)

    def passes(device: Device, driver: str, alternatives: Sequence[Alternative]) -> bool:
        if not device.node_allocatable_resources:
            return True
        return any(not limits.exceeded_by(weigh.of(device, driver, each)) for each in alternatives)

    def hopeless(least: Sequence[Sequence[tuple[int, Sequence[tuple[Device, str]], Alternative]]]) -> bool:
        """Whether the devices that take least exceed the limits: by slot, the alternatives with their candidates."""
        totals: Amounts = {}
        for slot in least:
            for name in {name for name, nano in limits.most.items() if nano >= 0}:
                amounts = []
                for count, candidates, alternative in slot:
                    each = sorted(weigh.of(device, driver, alternative).get(name, 0) for device, driver in candidates)
                    amounts.append(sum(each[:count]))
                totals[name] = totals.get(name, 0) + min(amounts, default=0)
        return limits.exceeded_by({name: nano for name, nano in totals.items() if nano})

    found = allocator._allocate_where(claims, node, accepts, passes, hopeless, cancel)
    if found is None:
        return first
    return found, statuses


class _Weights:
    """What one device adds to the node's requests at least: its mapping and its overhead per pod."""

    def __init__(self, features: Features) -> None:
        self._features = features

    def of(self, device: Device, driver: str, alternative: Alternative) -> Amounts:
        amounts: Amounts = {}
        for name, resource in device.node_allocatable_resources.items():
            nano = 0
            if resource.mapping is not None:
                if resource.mapping.device_multiplier is not None:
                    nano += resource.mapping.device_multiplier.nano
                elif resource.mapping.capacity_key and resource.mapping.capacity_multiplier is not None:
                    consumed = self._consumed(device, driver, alternative, resource.mapping.capacity_key)
                    nano += -(-consumed * resource.mapping.capacity_multiplier.nano // _NANO)
            if resource.overhead is not None and resource.overhead.per_pod is not None:
                nano += resource.overhead.per_pod.nano
            amounts[name] = nano
        return amounts

    def _consumed(self, device: Device, driver: str, alternative: Alternative, key: str) -> int:
        """What the request consumes of a capacity of the device; 0 where it cannot be had, or where nobody says."""
        wanted = qualified(key, driver)
        published = {qualified(name, driver): each for name, each in device.capacity.items()}
        capacity = published.get(wanted)
        if capacity is None or not device.allow_multiple_allocations:
            return 0
        requests = alternative.body.capacity.requests if alternative.body.capacity is not None else {}
        asked = next((amount.nano for name, amount in requests.items() if qualified(name, driver) == wanted), None)
        return consumed_amount(asked, capacity, self._features) or 0
