"""Playing one scenario on a fork of the cluster."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import attrs

from dra_alloc.allocator import Allocator, Budget
from dra_alloc.api import Pod, ResourceClaim
from dra_alloc.errors import DraError
from dra_alloc.gates import Features
from dra_alloc.sweeps.model import Outcome, Placement, Scenario

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["Rules", "play", "warm"]

#: The same in every run, so that outcomes are.
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.frozen
class Rules:
    """What holds for all scenarios of a sweep. explain: find out the reason for what is not placed."""

    features: Features
    budget: Budget
    explain: bool


def warm(cluster: Cluster, rules: Rules) -> None:
    """Compile the cluster, so that forks of it need not."""
    inventory = cluster.inventory(rules.features)
    for node in cluster.nodes():
        inventory.view(node)


def play(cluster: Cluster, scenario: Scenario, rules: Rules) -> Outcome:
    """What comes of a scenario. Depends on nothing but the arguments; the cluster is not changed."""
    try:
        with cluster.fork() as trial:
            for kind, key in scenario.delete:
                if trial.get(kind, key) is None:
                    raise DraError(f"there is no {kind} {key} to delete")
                trial.delete(kind, key)
            trial.upsert(*scenario.upsert, *scenario.workload)
            allocator = _allocator(trial, scenario.features or rules.features, rules.budget)
            held: Counter[str] = Counter()
            placements = tuple(_place(allocator, item, held, rules.explain) for item in _waiting(scenario))
    except DraError as error:
        return Outcome(name=scenario.name, labels=scenario.labels, error=str(error))
    return Outcome(
        name=scenario.name, labels=scenario.labels, placements=placements, devices=dict(sorted(held.items()))
    )


def _allocator(cluster: Cluster, features: Features, budget: Budget) -> Allocator:
    suffixes, shares = itertools.count(), itertools.count()
    return Allocator(
        cluster,
        features,
        budget=budget,
        share_ids=lambda: f"00000000-0000-4000-8000-{next(shares):012x}",
        clock=lambda: _EPOCH,
        suffixes=lambda: f"{next(suffixes):05x}",
    )


def _waiting(scenario: Scenario) -> Iterator[Pod | ResourceClaim]:
    """What of the workload is to be placed: see `Scenario`."""
    named = {
        f"{item.metadata.namespace}/{reference.resource_claim_name}"
        for item in scenario.workload
        if isinstance(item, Pod)
        for reference in item.spec.resource_claims
    }
    for item in scenario.workload:
        if isinstance(item, Pod):
            finished = item.status is not None and item.status.phase in ("Succeeded", "Failed")
            waits = not item.spec.node_name and not finished
        elif isinstance(item, ResourceClaim) and item.metadata.key not in named:
            waits = item.status is None or item.status.allocation is None
        else:
            waits = False
        if waits:
            yield item


def _place(allocator: Allocator, item: Pod | ResourceClaim, held: Counter[str], explain: bool) -> Placement:
    subject = f"{'pod' if isinstance(item, Pod) else 'claim'} {item.metadata.key}"
    try:
        if isinstance(item, Pod):
            plan = allocator.allocate_pod(item)
            if plan is not None:
                allocator.cluster.commit(plan)
                new = [claim for claim in plan.claims if claim.metadata.key in plan.allocated]
                drivers = [driver for claim in new for driver in _drivers(claim)]
                held.update(drivers)
                return Placement(subject, plan.node, devices=len(drivers))
            code = allocator.explain(pod=item).code if explain else "does-not-fit"
        else:
            for node in allocator.feasible_nodes(item, limit=1):
                found = allocator.allocate(item, node=node)
                assert found is not None  # the node is feasible
                allocator.cluster.commit(item, found[0])
                drivers = [result.driver for result in found[0].devices.results]
                held.update(drivers)
                return Placement(subject, node, devices=len(drivers))
            code = allocator.explain(item).code if explain else "does-not-fit"
    except DraError as error:
        code = error.kind
    return Placement(subject, reason=code)


def _drivers(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation if claim.status is not None else None
    return [result.driver for result in allocation.devices.results] if allocation is not None else []
