"""A trial: a fork of the cluster in which changes are made, and the question asked anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import DeviceRequest, DeviceSubRequest, ExactDeviceRequest, Pod, ResourceClaim
from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.explain.model import Chosen

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.cluster import Cluster

__all__ = ["Case", "Trial"]

Body = ExactDeviceRequest | DeviceSubRequest


@attrs.frozen(eq=False)
class Case:
    """What is asked for. pod: as it was given; planned: with its claims, among them those that do not exist yet."""

    allocator: Allocator
    claims: tuple[ResourceClaim, ...]
    pod: Pod | None = None
    planned: Pod | None = None


class Trial:
    """Changes made to a case in a fork. `cluster` may be changed at will; `added` are names of nodes that came."""

    def __init__(self, case: Case) -> None:
        self.cluster: Cluster = case.allocator.cluster.fork()
        self.added: list[str] = []
        self._case = case
        self._claims = {claim.metadata.key: claim for claim in case.claims}

    def edit_claim(self, key: str, edit: Callable[[ResourceClaim], ResourceClaim]) -> None:
        """Change a claim that is asked for."""
        self._claims[key] = edit(self._claims[key])

    def edit_body(self, key: str, reference: str, edit: Callable[[Body], Body]) -> None:
        """Change a request (`req`) or an alternative of one (`req/sub`) of a claim that is asked for."""
        name, _, sub = reference.partition("/")

        def change(request: DeviceRequest) -> DeviceRequest:
            if request.name != name:
                return request
            if not sub:
                return attrs.evolve(request, exactly=edit(request.exactly))  # type: ignore[arg-type]
            alternatives: tuple[Any, ...] = tuple(
                edit(each) if each.name == sub else each for each in request.first_available
            )
            return attrs.evolve(request, first_available=alternatives)

        def change_claim(claim: ResourceClaim) -> ResourceClaim:
            devices = attrs.evolve(
                claim.spec.devices, requests=tuple(change(request) for request in claim.spec.devices.requests)
            )
            return attrs.evolve(claim, spec=attrs.evolve(claim.spec, devices=devices))

        self.edit_claim(key, change_claim)

    def outcome(self, nodes: Iterable[str]) -> tuple[str, tuple[Chosen, ...]] | None:
        """The first of the nodes (those that were added come first) on which it fits, with what it gets there.

        An error that ends the question for all nodes, on any of them, is no answer; neither is a search that ran out of
        its budget.
        """
        allocator = self._case.allocator._over(self.cluster)
        claims = tuple(self._claims.values())
        if self._case.planned is not None:
            self.cluster.upsert(self._case.planned, *claims)
        names = [*self.added, *nodes]
        try:
            if self._case.planned is not None:
                plan = allocator.allocate_pod(self._case.planned.metadata.key, nodes=names)
                return None if plan is None else (plan.node, Chosen.of(plan.claims, plan.allocations))
            fitting = allocator.feasible_nodes(claims, nodes=names)
            results = allocator.allocate(claims, fitting[0]) if fitting else None
        except (AllocationError, BudgetExceeded):
            return None
        return None if results is None else (fitting[0], Chosen.of(claims, results))
