"""The AllocationResult of each claim from the devices that were chosen for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from dra_alloc.api import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from dra_alloc.gates import Features
from dra_alloc.testing._plain.picks import Pick, Picks
from dra_alloc.testing._plain.requests import Plan, Want


def allocation_results(
    plans: list[Plan],
    picks: Picks,
    node: Node,
    features: Features,
    share_ids: Callable[[], str],
    clock: Callable[[], datetime],
) -> list[AllocationResult]:
    """One result per plan."""
    results = []
    for number, plan in enumerate(plans):
        own = [pick for pick in picks if pick.claim == number]
        devices = tuple(_device_result(pick, features, share_ids) for pick in own)
        results.append(
            AllocationResult(
                devices=DeviceAllocationResult(results=devices, config=_config(plan, own)),
                node_selector=_node_selector(own, node),
                allocation_timestamp=clock() if any(result.binding_conditions for result in devices) else None,
            )
        )
    return results


def _device_result(pick: Pick, features: Features, share_ids: Callable[[], str]) -> DeviceRequestAllocationResult:
    driver, pool, name = pick.offer.id
    device = pick.offer.device
    shared = features.DRAConsumableCapacity and device.allow_multiple_allocations
    return DeviceRequestAllocationResult(
        request=pick.want.reference,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if pick.want.admin else None,
        tolerations=pick.want.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=share_ids() if shared else None,
        consumed_capacity=(
            {capacity: device.capacity[capacity].value.with_nano(nano) for capacity, nano in pick.consumed.items()}
            if shared
            else {}
        ),
        skip_node_operations=pick.offer.slice.spec.skip_node_operations,
    )


def _config(plan: Plan, picks: list[Pick]) -> tuple[DeviceAllocationConfiguration, ...]:
    chosen = [_chosen(ask.wants, picks) for ask in plan.asks]
    entries = []
    seen = set()
    for want in chosen:
        name = want.device_class.metadata.name
        if name in seen:
            continue
        seen.add(name)
        users = tuple(other.reference for other in chosen if other.device_class.metadata.name == name)
        entries += [
            DeviceAllocationConfiguration(source="FromClass", requests=users, opaque=config.opaque)
            for config in want.device_class.spec.config
        ]
    for config in plan.claim.spec.devices.config:
        if not config.requests or any(_covers(config.requests, want) for want in chosen):
            entries.append(
                DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
            )
    return tuple(
        attrs.evolve(entry, requests=()) if all(_covers(entry.requests, want) for want in chosen) else entry
        for entry in entries
    )


def _chosen(wants: tuple[Want, ...], picks: list[Pick]) -> Want:
    """The alternative that was taken; without devices it is the first that asks for none (a count below zero)."""
    taken = (pick.want for pick in picks if pick.want in wants)
    return next(taken, None) or next(want for want in wants if want.count < 1 and not want.takes_all)


def _covers(requests: tuple[str, ...], want: Want) -> bool:
    return want.request in requests or want.reference in requests


def _node_selector(picks: list[Pick], node: Node) -> NodeSelector | None:
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for pick in picks:
        spec, device = pick.offer.slice.spec, pick.offer.device
        place = device if spec.per_device_node_selection else spec
        if place.node_name or device.binds_to_node:
            here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node.metadata.name,))
            return _one_term((), (here,))
        for term in place.node_selector.node_selector_terms if place.node_selector else ():
            _add_new(term.match_expressions, expressions)
            _add_new(term.match_fields, fields)
    return _one_term(tuple(expressions), tuple(fields)) if expressions or fields else None


def _one_term(
    expressions: tuple[NodeSelectorRequirement, ...], fields: tuple[NodeSelectorRequirement, ...]
) -> NodeSelector:
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=expressions, match_fields=fields),))


def _add_new(needs: tuple[NodeSelectorRequirement, ...], known: list[NodeSelectorRequirement]) -> None:
    for need in needs:
        same = [(other.key, other.operator, frozenset(other.values)) for other in known]
        if (need.key, need.operator, frozenset(need.values)) not in same:
            known.append(need)
