"""AllocationResults from the answer of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from dra_alloc._make import Maker
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
    from dra_alloc.problem import Alternative, Question, RequestSlot

__all__ = ["build_results"]

_device_result = Maker(DeviceRequestAllocationResult)
_device_results = Maker(DeviceAllocationResult)
_allocation = Maker(AllocationResult)
_selector = Maker(NodeSelector)
_term = Maker(NodeSelectorTerm)
_requirement = Maker(NodeSelectorRequirement)

#: Results that a pool keeps.
_MAX_KEPT = 4096

#: By slot: number of the chosen alternative, and (pool, index) of each device.
Answer = Sequence[tuple[int, Sequence[tuple[int, int]]]]


#: A slot, and the answer for it.
_Part = tuple["RequestSlot", tuple[int, Sequence[tuple[int, int]]]]

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
    parts: list[list[_Part]] = [[] for _ in claims]
    for part in zip(question.slots, answer, strict=True):
        parts[part[0].claim].append(part)
    return [
        _claim_result(question.features, claim, node, pools, own, share_ids, clock)
        for claim, own in zip(claims, parts, strict=True)
    ]


def _claim_result(
    features: Features,
    claim: ResourceClaim,
    node: Node,
    pools: Sequence[PoolTable],
    parts: Sequence[_Part],
    share_ids: Callable[[], str],
    clock: Callable[[], datetime],
) -> AllocationResult:
    alternatives: list[Alternative] = []
    chosen: list[_Chosen] = []
    devices: list[DeviceRequestAllocationResult] = []
    waits = False
    for slot, (which, places) in parts:
        alternative = slot.alternatives[which]
        alternatives.append(alternative)
        for pool, index in places:
            table = pools[pool]
            # All but the share ID is always the same for a request and a device.
            result = table.results.get((alternative.number, index))
            if result is None:
                result = _compose(alternative, table, index, features)
            if result.share_id is not None:
                result = _share(result, share_ids())
            if result.binding_conditions:
                waits = True
            chosen.append((alternative, table, index))
            devices.append(result)
    return _allocation(
        _device_results(tuple(devices), _config(claim, alternatives)),
        _node_selector(chosen, node),
        clock() if waits else None,
    )


def _share(result: DeviceRequestAllocationResult, share_id: str) -> DeviceRequestAllocationResult:
    return _device_result(
        result.request,
        result.driver,
        result.pool,
        result.device,
        result.admin_access,
        result.tolerations,
        result.binding_conditions,
        result.binding_failure_conditions,
        share_id,
        result.consumed_capacity,
        result.skip_node_operations,
    )


def _compose(
    alternative: Alternative, table: PoolTable, index: int, features: Features
) -> DeviceRequestAllocationResult:
    """The result of a device for a request, and keep it. A share has an empty share ID until it is given out."""
    device = table.devices[index]
    shared = features.DRAConsumableCapacity and bool(device.allow_multiple_allocations)
    driver, pool = table.key
    if len(table.results) > _MAX_KEPT:
        table.results.clear()
    result = table.results[alternative.number, index] = _device_result(
        alternative.reference,
        driver,
        pool,
        device.name,
        True if alternative.type.admin else None,
        alternative.body.tolerations,
        device.binding_conditions,
        device.binding_failure_conditions,
        "" if shared else None,
        _consumed(alternative, device, driver, features) if shared else {},
        table.slices[table.slice_of[index]].spec.skip_node_operations,
    )
    return result


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
    return _selector((_term((), (_requirement("metadata.name", "In", (name,)),)),))


def _meaning(requirement: NodeSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    return requirement.key, requirement.operator, frozenset(requirement.values)
