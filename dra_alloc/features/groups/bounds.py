"""Counting what a group needs at least, so that it need not be tried out that there is too little for it.

Devices that a pod has for itself are taken whole and by one pod: if the pods together need more devices of one kind,
or of all kinds, than the nodes have free for them, no choice of nodes gives each its own. The same holds for CPU and
other resources that nodes publish. Both say only what is impossible; what they let pass is tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from dra_alloc.api import DeviceRequest
from dra_alloc.attempt import Attempt
from dra_alloc.features.extended import is_extended
from dra_alloc.features.noderesources import Refusal, requested_on

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.features.pods.planner import PodPlanner

__all__ = ["Scarcity"]

#: A device by driver, pool and name.
_Device = tuple[str, str, str]
#: Stands for devices of any kind.
_ANY = "devices"


class Scarcity:
    """What there is for the pods of a group, and what each of them needs.

    planners: one for each kind of pod. kinds: by pod, the number of its kind. nodes: names of those to choose among.
    """

    def __init__(
        self, allocator: Allocator, planners: Sequence[PodPlanner], kinds: Sequence[int], nodes: Iterable[str]
    ) -> None:
        self._allocator = allocator
        self._kinds = kinds
        self._needs = [_needs(planner) for planner in planners]
        self._devices: dict[Hashable, set[_Device]] = {}
        self._amounts: dict[Hashable, int] = {}
        self._unbounded: set[Hashable] = set()
        for name in nodes:
            for planner in planners:
                self._add_devices(planner, name)
            self._add_resources(name)

    def rules_out(self, skips: int) -> bool:
        """Whether it is impossible that all pods but so many find a place."""
        for key in {key for needs in self._needs for key in needs} - self._unbounded:
            wanted = sorted((self._needs[kind].get(key, 0) for kind in self._kinds), reverse=True)
            if sum(wanted[skips:]) > self._amounts.get(key, 0) + len(self._devices.get(key, ())):
                return True
        return False

    def _add_devices(self, planner: PodPlanner, name: str) -> None:
        """Devices of a node that could serve the claims that a pod of this kind has for itself."""
        node = self._allocator._node(name)
        claims = planner.claims_on(node)
        if isinstance(claims, Refusal):
            return
        ask = self._allocator._ask(claims)
        if ask.question is None:
            return
        place = Attempt.at(ask, node, self._allocator.budget)
        own = {claim.metadata.key for claim in planner.own_claims}
        for number, slot in enumerate(ask.question.slots):
            if ask.pending[slot.claim].metadata.key not in own:
                continue
            keys = (_ANY, _kind(slot.request))
            for position in range(len(slot.alternatives)):
                for pool, index, _ in place.search.every_list(number, position):
                    table = place.pools[pool]
                    device = table.devices[index]
                    if device.allow_multiple_allocations:
                        self._unbounded.update(keys)
                    for key in keys:
                        self._devices.setdefault(key, set()).add((*table.key, device.name))

    def _add_resources(self, name: str) -> None:
        """What is left of each resource of a node; one that some node does not publish is not judged."""
        node = self._allocator._node(name)
        allocatable = node.status.allocatable if node.status is not None else {}
        requested = requested_on(
            self._allocator.cluster, name, with_claims=self._allocator.features.DRANodeAllocatableResources
        )
        for key in {key for needs in self._needs for key in needs if isinstance(key, tuple) and key[0] == "node"}:
            resource = key[1]
            if resource in allocatable:
                left = allocatable[resource].nano - requested.get(resource, 0)
                self._amounts[key] = self._amounts.get(key, 0) + max(0, left)
            else:
                self._unbounded.add(key)


def _needs(planner: PodPlanner) -> dict[Hashable, int]:
    """What one pod needs at least: devices by kind and in all, and nanos by resource of the node."""
    needs: dict[Hashable, int] = {
        # Devices may serve extended resources, so that what nodes publish of them bounds nothing.
        ("node", name): nano
        for name, nano in planner.base.items()
        if nano > 0 and not is_extended(name)
    }
    for claim in planner.own_claims:
        for request in claim.spec.devices.requests:
            count = _fewest(request)
            for key in (_ANY, _kind(request)):
                needs[key] = needs.get(key, 0) + count
    return needs


def _fewest(request: DeviceRequest) -> int:
    """The fewest devices that a request takes away from others."""
    bodies = request.first_available or ((request.exactly,) if request.exactly is not None else ())
    if request.exactly is not None and request.exactly.admin_access:
        return 0
    return min((0 if body.allocation_mode == "All" else body.count or 1 for body in bodies), default=0)


def _kind(request: DeviceRequest) -> Hashable:
    """Equal for requests that the same devices could serve."""
    bodies = request.first_available or ((request.exactly,) if request.exactly is not None else ())
    return "kind", tuple((body.device_class_name, body.selectors) for body in bodies)
