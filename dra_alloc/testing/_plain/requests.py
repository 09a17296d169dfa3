"""What each claim asks for, and the errors that show before the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import (
    CapacityRequirements,
    DeviceClass,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_alloc.errors import AllocationError

if TYPE_CHECKING:
    from dra_alloc.testing._plain.pools import Offer
    from dra_alloc.testing._plain.rules import Rules

#: The most devices that a claim can get.
MAX_RESULTS = 32


@attrs.frozen(eq=False)
class Want:
    """One thing to try for a request: the request itself, or one alternative of `firstAvailable`.

    `count` is how many devices it takes. With `takes_all`, `offers` are these devices and their number is the count.
    """

    claim: ResourceClaim
    request: str
    reference: str
    device_class: DeviceClass
    selectors: tuple[str, ...]
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: CapacityRequirements | None
    derived: tuple[DeviceDerivedAttribute, ...]
    count: int
    takes_all: bool
    offers: tuple[Offer, ...] = ()

    def error(self, kind: str, message: str, offer: Offer | None = None, node: str = "") -> AllocationError:
        """An error of this request."""
        device = "/".join(offer.id) if offer else ""
        return AllocationError(
            kind, message, claim=self.claim.metadata.key, request=self.reference, device=device, node=node
        )


@attrs.frozen(eq=False)
class Ask:
    """A request: its alternatives in order, just one unless `alternatives`."""

    request: DeviceRequest
    wants: tuple[Want, ...]

    @property
    def has_alternatives(self) -> bool:
        """Whether the request is of the form `firstAvailable`."""
        return bool(self.request.first_available)


@attrs.frozen(eq=False)
class Plan:
    """A claim that is to be allocated."""

    claim: ResourceClaim
    asks: tuple[Ask, ...]
    constraints: tuple[DeviceConstraint, ...]


def read_claims(claims: list[ResourceClaim], classes: list[DeviceClass], rules: Rules) -> list[Plan]:
    """Resolve what the claims refer to. Raises for what is wrong with a claim on any node."""
    by_name = {item.metadata.name: item for item in classes}
    return [_read_claim(claim, by_name, rules) for claim in claims]


def count_devices(plans: list[Plan], rules: Rules) -> list[Plan]:
    """Find the devices of requests for all, and count, claim by claim. Raises for what is wrong on this node."""
    return [_count_devices(plan, rules) for plan in plans]


def _read_claim(claim: ResourceClaim, classes: dict[str, DeviceClass], rules: Rules) -> Plan:
    spec = claim.spec.devices
    asks = tuple(Ask(request, tuple(_read_request(claim, request, classes, rules))) for request in spec.requests)
    for number, constraint in enumerate(spec.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            raise AllocationError(
                "unknown-constraint",
                f"spec.devices.constraints[{number}]: neither matchAttribute nor distinctAttribute is set",
                claim=claim.metadata.key,
            )
    return Plan(claim, asks, spec.constraints)


def _count_devices(plan: Plan, rules: Rules) -> Plan:
    asks = tuple(Ask(ask.request, tuple(_find_all(want, rules) for want in ask.wants)) for ask in plan.asks)
    fewest = sum(min(want.count for want in ask.wants) for ask in asks)
    if fewest > MAX_RESULTS:
        raise AllocationError(
            "too-many-devices",
            f"{fewest} devices requested, a claim can have at most {MAX_RESULTS}",
            claim=plan.claim.metadata.key,
        )
    return Plan(plan.claim, asks, plan.constraints)


def _read_request(
    claim: ResourceClaim, request: DeviceRequest, classes: dict[str, DeviceClass], rules: Rules
) -> Iterator[Want]:
    features = rules.features

    def unsupported(message: str) -> AllocationError:
        return AllocationError("unsupported", message, claim=claim.metadata.key, request=request.name)

    bodies = request.first_available or ((request.exactly,) if request.exactly else ())
    if not bodies:
        raise unsupported("neither exactly nor firstAvailable is set")
    if request.first_available and not features.DRAPrioritizedList:
        raise unsupported("firstAvailable needs the feature DRAPrioritizedList")
    if not features.DRAConsumableCapacity and any(body.capacity is not None for body in bodies):
        raise unsupported("capacity requests need the feature DRAConsumableCapacity")
    for body in bodies:
        yield _read_want(claim, request, body, classes, rules)


def _read_want(
    claim: ResourceClaim,
    request: DeviceRequest,
    body: ExactDeviceRequest | DeviceSubRequest,
    classes: dict[str, DeviceClass],
    rules: Rules,
) -> Want:
    reference = f"{request.name}/{body.name}" if isinstance(body, DeviceSubRequest) else request.name
    admin = body.admin_access if isinstance(body, ExactDeviceRequest) else None

    def error(kind: str, message: str) -> AllocationError:
        return AllocationError(kind, message, claim=claim.metadata.key, request=reference)

    if admin is not None and not rules.features.DRAAdminAccess:
        raise error("unsupported", "adminAccess needs the feature DRAAdminAccess")
    device_class = classes.get(body.device_class_name)
    if device_class is None or not body.device_class_name:
        raise error("class-not-found", f"there is no DeviceClass {body.device_class_name!r}")
    selectors = []
    for selector in (*device_class.spec.selectors, *body.selectors):
        if selector.cel is None:
            raise error("unknown-selector", "a selector without cel is of an unknown kind")
        selectors.append(selector.cel.expression)
    if (body.allocation_mode or "ExactCount") not in ("ExactCount", "All"):
        raise error("unknown-mode", f"allocationMode {body.allocation_mode!r} is not ExactCount or All")
    return Want(
        claim=claim,
        request=request.name,
        reference=reference,
        device_class=device_class,
        selectors=tuple(selectors),
        admin=bool(admin),
        tolerations=body.tolerations,
        capacity=body.capacity,
        derived=body.derived_attributes,
        count=body.count or 1,
        takes_all=body.allocation_mode == "All",
    )


def _find_all(want: Want, rules: Rules) -> Want:
    if not want.takes_all:
        return want
    offers = _all_devices(want, rules)
    return attrs.evolve(want, count=len(offers), offers=offers)


def _all_devices(want: Want, rules: Rules) -> tuple[Offer, ...]:
    """What `All` means here. Pools are looked at in search order, and the first error counts."""
    found = []
    for pool in rules.pools:
        if pool.fault:
            raise want.error(
                "pool-all",
                f"all devices are asked for, but pool {pool.driver}/{pool.name} is {pool.fault}",
                node=rules.node.metadata.name,
            )
        for offer in rules.offers:
            if offer.pool is pool and rules.selectable(want, offer):
                rules.check_capacity_request(want, offer)
                if rules.large_enough(want, offer):
                    found.append(offer)
    return tuple(found)
