"""What holds of every allocation, checked from the objects alone, without searching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from dra_alloc.api import (
    AllocationResult,
    Device,
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    Node,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.cel import compile_derived, compile_selector, device_env
from dra_alloc.testing._plain.attributes import Values, published_values, typed_value
from dra_alloc.testing._plain.nodes import device_concerns, selector_matches, slice_concerns
from dra_alloc.testing._plain.requests import MAX_RESULTS
from dra_alloc.testing.scenario import Scenario

__all__ = ["check_allocation", "violations"]

DeviceID = tuple[str, str, str]
Body = ExactDeviceRequest | DeviceSubRequest


def check_allocation(scenario: Scenario, node: Node, results: Sequence[AllocationResult]) -> None:
    """Raise AssertionError with all that is wrong with an answer to the scenario on one of its nodes."""
    problems = list(violations(scenario, node, results))
    assert not problems, "\n".join(problems)


def violations(scenario: Scenario, node: Node, results: Sequence[AllocationResult]) -> Iterator[str]:
    """Every rule that the answer breaks, in words that name claim, request and device.

    With all feature gates on. Nothing is yielded for a good answer.
    """
    if len(results) != len(scenario.claims):
        yield f"{len(results)} results for {len(scenario.claims)} claims"
        return
    book = _Book(scenario, results)
    for claim, result in zip(scenario.claims, results, strict=True):
        yield from _requests_served(claim, result)
        if not selector_matches(result.node_selector, node):
            yield f"{claim.metadata.key}: the node selector of the result leaves the node out"
    for use in book.new:
        yield from _device_sound(book, use, node)
    yield from _constraints_hold(book)
    yield from _devices_alone(book)
    yield from _counters_kept(book)
    yield from _groups_agree(book)
    yield from _capacities_kept(book)


@attrs.frozen(eq=False)
class _Use:
    """One device of one claim; `body` is the request or alternative that it serves."""

    claim: ResourceClaim
    result: DeviceRequestAllocationResult
    body: Body | None = None

    @property
    def id(self) -> DeviceID:
        return self.result.driver, self.result.pool, self.result.device

    def __str__(self) -> str:
        return f"{self.claim.metadata.key}, request {self.result.request}, device {'/'.join(self.id)}"


class _Book:
    """Who has what: `held` before, `new` by the results; admin access is in `new` alone."""

    def __init__(self, scenario: Scenario, results: Sequence[AllocationResult]) -> None:
        self.scenario = scenario
        newest: dict[tuple[str, str], int] = {}
        for item in scenario.slices:
            key = item.spec.driver, item.spec.pool.name
            newest[key] = max(newest.get(key, 0), item.spec.pool.generation)
        self.slices = [
            item
            for item in scenario.slices
            if item.spec.pool.generation == newest[item.spec.driver, item.spec.pool.name]
        ]
        self.devices = {
            (item.spec.driver, item.spec.pool.name, device.name): (item, device)
            for item in self.slices
            for device in item.spec.devices
        }
        self.held = [
            _Use(claim, result)
            for claim in scenario.allocated_claims
            if claim.status and claim.status.allocation
            for result in claim.status.allocation.devices.results
            if not result.admin_access
        ]
        self.new = [
            _Use(claim, device, _bodies(claim).get(device.request.partition("/")[0], {}).get(device.request))
            for claim, result in zip(scenario.claims, results, strict=True)
            for device in result.devices.results
        ]
        self.charged = [use for use in self.new if not use.result.admin_access]

    def place(self, use: _Use) -> tuple[ResourceSlice, Device]:
        return self.devices[use.id]

    def members(self, driver: str, pool: str) -> list[Device]:
        """The devices of the pool that are in use."""
        used = {use.id for use in (*self.held, *self.charged)} & set(self.devices)
        return [self.devices[key][1] for key in sorted(used) if key[:2] == (driver, pool)]


def _bodies(claim: ResourceClaim) -> dict[str, dict[str, Body]]:
    """What can serve each request of the claim, by the name that results give it."""
    found: dict[str, dict[str, Body]] = {}
    for request in claim.spec.devices.requests:
        found[request.name] = {f"{request.name}/{sub.name}": sub for sub in request.first_available}
        if request.exactly and not request.first_available:
            found[request.name] = {request.name: request.exactly}
    return found


def _requests_served(claim: ResourceClaim, result: AllocationResult) -> Iterator[str]:
    """Each request has the number of devices that it asks for, from one alternative."""
    counts = Counter(device.request for device in result.devices.results)
    bodies = _bodies(claim)
    for name, choices in bodies.items():
        served = [choice for choice in choices if counts[choice]]
        if len(served) != 1:
            yield f"{claim.metadata.key}: request {name} is served by {served or 'nothing'}"
        elif choices[served[0]].allocation_mode != "All" and counts[served[0]] != (choices[served[0]].count or 1):
            yield f"{claim.metadata.key}: request {served[0]} got {counts[served[0]]} devices"
    places = Counter((device.request, device.driver, device.pool, device.device) for device in result.devices.results)
    for place, times in places.items():
        if times > 1:
            yield f"{claim.metadata.key}: request {place[0]} got device {'/'.join(place[1:])} {times} times"
    if counts.total() > MAX_RESULTS:
        yield f"{claim.metadata.key}: {counts.total()} devices in one claim"
    if unknown := set(counts).difference(*bodies.values()):
        yield f"{claim.metadata.key}: results for unknown requests {sorted(unknown)}"


def _device_sound(book: _Book, use: _Use, node: Node) -> Iterator[str]:
    """The device is there, concerns the node, passes the selectors and has no taint that matters."""
    if use.id not in book.devices or use.body is None:
        yield f"{use}: there is no such device or request"
        return
    item, device = book.place(use)
    concerned = device_concerns(device, node) if item.spec.per_device_node_selection else slice_concerns(item, node)
    if not concerned:
        yield f"{use}: the device does not concern node {node.metadata.name}"
    pool = [other for other in book.slices if (other.spec.driver, other.spec.pool.name) == use.id[:2]]
    if any(other.spec.pool.resource_slice_count != len(pool) for other in pool):
        yield f"{use}: the pool is incomplete"
    yield from _selected(use, device, book.scenario.classes)
    yield from _tolerated(use, device, book.scenario)
    if bool(device.allow_multiple_allocations) != (use.result.share_id is not None):
        yield f"{use}: shareID and allowMultipleAllocations disagree"


def _selected(use: _Use, device: Device, classes: Sequence[DeviceClass]) -> Iterator[str]:
    assert use.body is not None
    env = None
    for item in classes:
        if item.metadata.name == use.body.device_class_name:
            for selector in (*item.spec.selectors, *use.body.selectors):
                assert selector.cel is not None
                env = env or device_env(use.result.driver, device)
                if compile_selector(selector.cel.expression).evaluate(env) is not True:
                    yield f"{use}: selector {selector.cel.expression} is not true"


def _tolerated(use: _Use, device: Device, scenario: Scenario) -> Iterator[str]:
    assert use.body is not None
    present = list(device.taints)
    for rule in scenario.taint_rules:
        selector = rule.spec.device_selector
        if selector is not None:
            wanted = (selector.driver or use.id[0], selector.pool or use.id[1], selector.device or use.id[2])
            present += [rule.spec.taint] if wanted == use.id else []
    for taint in present:
        accepted = any(
            (not toleration.effect or toleration.effect == taint.effect)
            and (not toleration.key or toleration.key == taint.key)
            and (toleration.operator == "Exists" or (toleration.value or "") == (taint.value or ""))
            for toleration in use.body.tolerations
        )
        if taint.effect != "None" and not accepted:
            yield f"{use}: taint {taint.key} with effect {taint.effect} is not tolerated"


def _constraints_hold(book: _Book) -> Iterator[str]:
    for claim in book.scenario.claims:
        for constraint in claim.spec.devices.constraints:
            names = constraint.requests
            values = [
                _values(use, book, constraint.match_attribute or constraint.distinct_attribute or "")
                for use in book.new
                if use.claim is claim
                and use.id in book.devices
                and (not names or use.result.request in names or use.result.request.partition("/")[0] in names)
            ]
            common = frozenset.intersection(*values) if values else True
            apart = sum(map(len, values)) == len(frozenset().union(*values))
            if not (common if constraint.match_attribute else apart and all(values)):
                yield f"{claim.metadata.key}: {constraint} does not hold"


def _values(use: _Use, book: _Book, attribute: str) -> Values:
    device = book.place(use)[1]
    for derived in use.body.derived_attributes if use.body else ():
        if derived.name == attribute:
            value = compile_derived(derived.expression).evaluate(device_env(use.result.driver, device))
            return frozenset(map(typed_value, value if isinstance(value, tuple) else (value,)))
    found = device.attributes.get(attribute) or device.attributes.get(attribute.removeprefix(f"{use.result.driver}/"))
    return published_values(found, book.scenario.features) if found else frozenset()


def _devices_alone(book: _Book) -> Iterator[str]:
    """A device is one's own, or everybody's share of it."""
    holders: dict[DeviceID, list[_Use]] = {}
    for use in (*book.held, *book.charged):
        holders.setdefault(use.id, []).append(use)
    for use in book.charged:
        others = [other for other in holders[use.id] if other is not use]
        if others and (use.result.share_id is None or any(other.result.share_id is None for other in others)):
            yield f"{use}: the device is also held by {others[0]}"
    shares = [use.result.share_id for use in book.new if use.result.share_id is not None]
    if len(shares) != len(set(shares)):
        yield "two shares have the same share ID"


def _counters_kept(book: _Book) -> Iterator[str]:
    """Whatever a new device draws on is not overdrawn, unless it was in use before."""
    before = {use.id for use in book.held}
    for use in book.charged:
        if use.id in before or use.id not in book.devices:
            continue
        driver, pool, _ = use.id
        limits = {
            (counter_set.name, name): counter.value.nano
            for item in book.slices
            if (item.spec.driver, item.spec.pool.name) == (driver, pool)
            for counter_set in item.spec.shared_counters
            for name, counter in counter_set.counters.items()
        }
        drawn: Counter[tuple[str, str]] = Counter()
        for device in book.members(driver, pool):
            for part in device.consumes_counters:
                for name, counter in part.counters.items():
                    drawn[part.counter_set, name] += counter.value.nano
        for part in book.place(use)[1].consumes_counters:
            for name in part.counters:
                key = part.counter_set, name
                if drawn[key] > limits[key]:
                    yield f"{use}: counter {'/'.join(key)} of the pool is overdrawn"


def _groups_agree(book: _Book) -> Iterator[str]:
    """The devices on a counter set that a new device is placed on have a compatibility group in common, or none."""
    before = {use.id for use in book.held}
    for use in book.charged:
        if use.id in before or use.id not in book.devices:
            continue
        for part in book.place(use)[1].consumes_counters:
            groups = [
                set(other.compatibility_groups)
                for device in book.members(*use.id[:2])
                for other in device.consumes_counters
                if other.counter_set == part.counter_set
            ]
            if any(groups) and not set.intersection(*groups):
                yield f"{use}: the compatibility groups on counter set {part.counter_set} disagree"


def _capacities_kept(book: _Book) -> Iterator[str]:
    """The shares of a device that got a new one do not exceed what it has."""
    for key in {use.id for use in book.charged if use.result.share_id is not None} & set(book.devices):
        device = book.devices[key][1]
        for name, capacity in device.capacity.items():
            bare = name.removeprefix(f"{key[0]}/")
            qualified = name if "/" in name else f"{key[0]}/{name}"
            if name != qualified and qualified in device.capacity:
                continue  # the qualified entry takes precedence
            used = sum(
                max(0, amount.nano)
                for use in (*book.held, *book.charged)
                if use.id == key
                for spelled, amount in use.result.consumed_capacity.items()
                if spelled in (bare, qualified)
            )
            if used > capacity.value.nano:
                yield f"device {'/'.join(key)}: capacity {name} is overdrawn"
