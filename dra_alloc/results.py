"""AllocationResults from the answer of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Quantity,
)
from dra_alloc.rules import consumed_amount, qualified

if TYPE_CHECKING:
    from dra_alloc.api import Device, Node, ResourceClaim
    from dra_alloc.gates import Features
    from dra_alloc.inventory import PoolTable
    from dra_alloc.problem import Alternative, Question

__all__ = ["build_results"]

#: Results that a pool keeps.
_MAX_KEPT = 4096

#: By slot: number of the chosen alternative, and (pool, index) of each device.
Answer = Sequence[tuple[int, Sequence[tuple[int, int]]]]


#: A device that was chosen: for what, and its place in its pool.
_Chosen = tuple["Alternative", "PoolTable", int]


def build_results(
    question: Question,
    claims: Sequence[ResourceClaim],
    node: Node,
    pools: Sequence[PoolTable],
    answer: Answer,
    share_ids: Callable[[], str],
    clock: Callable[[], datetime],
) -> list[AllocationResult]:
    """One AllocationResult for each claim of the question, in order."""
    alternatives: list[list[Alternative]] = [[] for _ in claims]
    chosen: list[list[_Chosen]] = [[] for _ in claims]
    for slot, (which, places) in zip(question.slots, answer, strict=True):
        alternative = slot.alternatives[which]
        alternatives[slot.claim].append(alternative)
        for pool, index in places:
            chosen[slot.claim].append((alternative, pools[pool], index))
    results = []
    for number, claim in enumerate(claims):
        devices = tuple([_device_result(*each, question.features, share_ids) for each in chosen[number]])
        waits = any(result.binding_conditions for result in devices)
        results.append(
            AllocationResult(
                devices=DeviceAllocationResult(results=devices, config=_config(claim, alternatives[number])),
                node_selector=_node_selector(chosen[number], node),
                allocation_timestamp=clock() if waits else None,
            )
        )
    return results


def _device_result(
    alternative: Alternative, table: PoolTable, index: int, features: Features, share_ids: Callable[[], str]
) -> DeviceRequestAllocationResult:
    # All but the share ID is always the same for a request and a device.
    key = alternative.number, index
    found = table.results.get(key)
    if found is None:
        if len(table.results) > _MAX_KEPT:
            table.results.clear()
        found = table.results[key] = _compose(alternative, table, index, features)
    if not (features.DRAConsumableCapacity and table.devices[index].allow_multiple_allocations):
        return found
    return DeviceRequestAllocationResult(
        request=found.request,
        driver=found.driver,
        pool=found.pool,
        device=found.device,
        admin_access=found.admin_access,
        tolerations=found.tolerations,
        binding_conditions=found.binding_conditions,
        binding_failure_conditions=found.binding_failure_conditions,
        share_id=share_ids(),
        consumed_capacity=found.consumed_capacity,
        skip_node_operations=found.skip_node_operations,
    )


def _compose(
    alternative: Alternative, table: PoolTable, index: int, features: Features
) -> DeviceRequestAllocationResult:
    device = table.devices[index]
    shared = features.DRAConsumableCapacity and bool(device.allow_multiple_allocations)
    driver, pool = table.key
    return DeviceRequestAllocationResult(
        request=alternative.reference,
        driver=driver,
        pool=pool,
        device=device.name,
        admin_access=True if alternative.type.admin else None,
        tolerations=alternative.body.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        consumed_capacity=_consumed(alternative, device, driver, features) if shared else {},
        skip_node_operations=table.slices[table.slice_of[index]].spec.skip_node_operations,
    )


def _consumed(alternative: Alternative, device: Device, driver: str, features: Features) -> dict[str, Quantity]:
    """What a request consumes of each capacity of a device, by the name that the device publishes."""
    body = alternative.body
    asked = (
        {}
        if body.capacity is None
        else {qualified(name, driver): amount for name, amount in body.capacity.requests.items()}
    )
    published = device.capacity
    consumed = {}
    for name, capacity in published.items():
        full = qualified(name, driver)
        if full != name and full in published:
            continue
        request = asked.get(full)
        nano = consumed_amount(None if request is None else request.nano, capacity, features)
        assert nano is not None  # the device was chosen, so its policy allows the amount
        consumed[name] = (request or capacity.value).with_nano(nano)
    return consumed


def _config(claim: ResourceClaim, chosen: Sequence[Alternative]) -> tuple[DeviceAllocationConfiguration, ...]:
    """Configuration of the classes in the order of their first request, then of the claim."""
    if not claim.spec.devices.config and not any(each.type.device_class.spec.config for each in chosen):
        return ()
    entries: list[DeviceAllocationConfiguration] = []
    users: dict[str, list[str]] = {}
    for alternative in chosen:
        users.setdefault(alternative.type.device_class.metadata.name, []).append(alternative.reference)
    for alternative in chosen:
        device_class = alternative.type.device_class
        references = users.pop(device_class.metadata.name, None)
        if references is not None:
            entries += [
                DeviceAllocationConfiguration(source="FromClass", requests=tuple(references), opaque=config.opaque)
                for config in device_class.spec.config
            ]
    entries += [
        DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        for config in claim.spec.devices.config
        if not config.requests or any(_concerns(config.requests, alternative) for alternative in chosen)
    ]
    return tuple(
        attrs.evolve(entry, requests=())
        if entry.requests and all(_concerns(entry.requests, alternative) for alternative in chosen)
        else entry
        for entry in entries
    )


def _concerns(requests: Sequence[str], alternative: Alternative) -> bool:
    return alternative.reference in requests or alternative.reference.split("/", 1)[0] in requests


def _node_selector(chosen: Sequence[_Chosen], node: Node) -> NodeSelector | None:
    """The nodes on which the devices can be used: this node alone if one of them is bound to it, None for all."""
    expressions: dict[object, NodeSelectorRequirement] = {}
    fields: dict[object, NodeSelectorRequirement] = {}
    for _, table, index in chosen:
        device, spec = table.devices[index], table.slices[table.slice_of[index]].spec
        place = device if spec.per_device_node_selection else spec
        if place.node_name or device.binds_to_node:
            return _only(node.metadata.name)
        for term in place.node_selector.node_selector_terms if place.node_selector is not None else ():
            for requirement in term.match_expressions:
                expressions.setdefault(_meaning(requirement), requirement)
            for requirement in term.match_fields:
                fields.setdefault(_meaning(requirement), requirement)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions.values()), match_fields=tuple(fields.values()))
    return NodeSelector(node_selector_terms=(term,))


@lru_cache(maxsize=4096)
def _only(name: str) -> NodeSelector:
    here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))


def _meaning(requirement: NodeSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    return requirement.key, requirement.operator, frozenset(requirement.values)
