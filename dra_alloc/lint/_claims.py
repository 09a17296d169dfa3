"""Findings about what claims and templates ask for."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

import attrs

from dra_alloc.api import (
    AllocationResult,
    DeviceClaim,
    DeviceTaint,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_alloc.codec.validation import ADMIN_ACCESS_LABEL
from dra_alloc.features.taints import BLOCKING_EFFECTS, describe, tolerates
from dra_alloc.lint._capacities import check_capacities
from dra_alloc.lint._classes import failed_selector
from dra_alloc.lint._constraints import check_constraints
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._requests import Body, Request, requests_of
from dra_alloc.lint._world import Item, Published, Selection, World, finding

__all__ = ["check_claims"]

#: Devices that a claim may get in all.
RESULTS_MAX = 32


def check_claims(world: World) -> Iterator[Finding]:
    """Everything about claims that are not allocated yet, and templates."""
    for item, claim in world.of(ResourceClaim):
        if claim.status is None or claim.status.allocation is None:
            yield from _check(world, item, claim.spec.devices, "spec.devices")
        else:
            yield from _stored_amounts(item, claim.status.allocation)
    for item, template in world.of(ResourceClaimTemplate):
        yield from _check(world, item, template.spec.spec.devices, "spec.spec.devices")


def _stored_amounts(item: Item, allocation: AllocationResult) -> Iterator[Finding]:
    for index, result in enumerate(allocation.devices.results):
        for name, amount in result.consumed_capacity.items():
            if amount.nano < 0:
                path = f"status.allocation.devices.results[{index}].consumedCapacity[{name}]"
                yield finding(item, "negative-amount", path, f"consumes {amount}", "it counts as 0 and makes no room")


def _check(world: World, item: Item, claim: DeviceClaim, path: str) -> Iterator[Finding]:
    requests = requests_of(claim, path)
    fewest = sum(request.fewest for request in requests)
    if fewest > RESULTS_MAX:
        message = f"asks for {fewest} devices"
        yield finding(item, "too-many-devices", f"{path}.requests", message, f"at most {RESULTS_MAX} in a claim")
    yield from _admin_access(world, item, requests)
    selections: dict[str, Selection] = {}
    for request in requests:
        for body in request.bodies:
            selection, found = _body(world, item, body)
            yield from found
            if selection is not None:
                selections[body.reference] = selection
    if world.rows:
        yield from check_constraints(world, item, claim, path, requests, selections)


def _admin_access(world: World, item: Item, requests: list[Request]) -> Iterator[Finding]:
    name = item.obj.metadata.namespace or "default"
    namespace = world.namespaces.get(name)
    if namespace is None or namespace.metadata.labels.get(ADMIN_ACCESS_LABEL) == "true":
        return
    for request in requests:
        for body in request.bodies:
            if isinstance(body.spec, ExactDeviceRequest) and body.spec.admin_access:
                message = f"namespace {name!r} does not allow it"
                hint = f'label the namespace {ADMIN_ACCESS_LABEL}: "true"'
                yield finding(item, "admin-access-not-allowed", f"{body.path}.adminAccess", message, hint)


def _body(world: World, item: Item, body: Body) -> tuple[Selection | None, list[Finding]]:
    """What a request may get, and what is wrong with it; None where that is not known."""
    spec = body.spec
    of_class = world.of_class(spec.device_class_name)
    if of_class is None:
        return None, list(_no_class(world, item, body))
    if not world.rows:
        return None, []
    selection = world.select(of_class.rows, spec.selectors)
    found = [failed_selector(item, f"{body.path}.selectors", failure) for failure in selection.failures]
    if of_class.unknown or selection.unknown or not of_class.rows:
        return None, found
    if not selection.rows:
        return None, found or list(_no_match(world, item, body, of_class))
    found.extend(_numbers(item, body, selection))
    found.extend(_taints(world, item, body, selection))
    found.extend(check_capacities(world, item, body, selection.rows))
    return selection, found


def _no_class(world: World, item: Item, body: Body) -> Iterator[Finding]:
    name = body.spec.device_class_name
    if world.classes and name:
        near = difflib.get_close_matches(name[:256], world.classes, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(world.classes)[:8])}"
        yield finding(item, "class-not-found", f"{body.path}.deviceClassName", f"there is no class {name!r}", hint)


def _no_match(world: World, item: Item, body: Body, of_class: Selection) -> Iterator[Finding]:
    total, name = of_class.total, body.spec.device_class_name
    alone = [
        index for index, selector in enumerate(body.spec.selectors) if not world.select(of_class.rows, (selector,)).rows
    ]
    for index in alone:
        message = f"none of {total} published devices of class {name!r} passes"
        yield finding(item, "selector-never-matches", f"{body.path}.selectors[{index}].cel.expression", message)
    if not alone:
        message = (
            f"none of {total} published devices of class {name!r} passes all of them, though each is passed by some"
        )
        yield finding(item, "selector-never-matches", f"{body.path}.selectors", message)


def _numbers(item: Item, body: Body, selection: Selection) -> Iterator[Finding]:
    most = selection.most_on_a_node
    if most is not None and most < body.fewest:
        message = f"asks for {body.fewest} devices, no node has more than {most}"
        yield finding(item, "too-few-devices", f"{body.path}.count", message, f"at most {most}")


def _taints(world: World, item: Item, body: Body, selection: Selection) -> Iterator[Finding]:
    if not world.features.DRADeviceTaints:
        return
    blocking: Counter[DeviceTaint] = Counter()
    for row in selection.rows:
        for published in row.members:
            taint = _blocking(published, body)
            if taint is None:
                return
            blocking[attrs.evolve(taint, time_added=None)] += 1
    kinds = ", ".join(f"{describe(taint)} ({count})" for taint, count in blocking.most_common(3))
    total = sum(blocking.values())
    (first, _), *_ = blocking.most_common(1)
    message = f"every device that it could get ({total}) has a taint that it does not tolerate: {kinds}"
    yield finding(item, "missing-toleration", f"{body.path}.tolerations", message, _toleration(first))


def _toleration(taint: DeviceTaint) -> str:
    return f"for instance {{key: {taint.key}, operator: Exists, effect: {taint.effect}}}"


def _blocking(published: Published, body: Body) -> DeviceTaint | None:
    for taint in published.taints:
        if taint.effect in BLOCKING_EFFECTS and not any(tolerates(item, taint) for item in body.spec.tolerations):
            return taint
    return None
