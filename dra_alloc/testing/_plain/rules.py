"""The rules that decide whether one more device can be taken, given the devices chosen so far.

Nothing is kept between two questions: each rule looks at the whole list of picks.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_alloc.api import (
    Device,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    Node,
    ResourceClaim,
)
from dra_alloc.cel import compile_selector, device_env
from dra_alloc.errors import CelError
from dra_alloc.gates import Features
from dra_alloc.testing._plain.attributes import constraint_holds
from dra_alloc.testing._plain.capacity import capacity_fits, check_capacity_request, consumed, shares_in_use
from dra_alloc.testing._plain.counters import counters_suffice
from dra_alloc.testing._plain.nodes import device_concerns
from dra_alloc.testing._plain.picks import Pick, Picks
from dra_alloc.testing._plain.pools import DeviceID, Offer, Pool, list_offers
from dra_alloc.testing._plain.requests import Plan, Want


class Rules:
    """All rules for one node."""

    def __init__(
        self,
        node: Node,
        features: Features,
        pools: list[Pool],
        taint_rules: list[DeviceTaintRule],
        holders: list[ResourceClaim],
    ) -> None:
        self.node = node
        self.features = features
        self.pools = pools
        self.offers = list_offers(pools)
        self._taint_rules = taint_rules
        self._held: dict[DeviceID, list[DeviceRequestAllocationResult]] = {}
        for claim in holders:
            assert claim.status is not None
            assert claim.status.allocation is not None
            for result in claim.status.allocation.devices.results:
                if not result.admin_access:
                    self._held.setdefault((result.driver, result.pool, result.device), []).append(result)
        self._selectable: dict[tuple[int, int], bool] = {}
        self._wants: list[Want] = []

    # Rule 1

    def shareable(self, device: Device) -> bool:
        """Whether several requests may have the device."""
        return self.features.DRAConsumableCapacity and bool(device.allow_multiple_allocations)

    def in_use(self, claim: int, want: Want, offer: Offer, picks: Picks) -> bool:
        """Whether the device is taken, by others or in this attempt."""
        held = self._held.get(offer.id, [])
        if self.shareable(offer.device):
            return not want.admin and any(result.share_id is None for result in held)
        chosen = [pick for pick in picks if pick.offer is offer]
        if want.admin:
            return any(pick.claim == claim for pick in chosen)
        return bool(held or chosen)

    # Rule 2

    def selectable(self, want: Want, offer: Offer) -> bool:
        """Whether selectors and node let the device through."""
        key = id(want), offer.position
        if key not in self._selectable:
            self._wants.append(want)  # keeps the id in the key from being used again
            self._selectable[key] = self._is_selectable(want, offer)
        return self._selectable[key]

    def _is_selectable(self, want: Want, offer: Offer) -> bool:
        device, spec = offer.device, offer.slice.spec
        if device.binding_conditions and not self.binding_conditions:
            return False
        for expression in want.selectors:
            try:
                program = compile_selector(expression, list_attributes=self.features.DRAListTypeAttributes)
                verdict = program.evaluate(device_env(offer.pool.driver, device))
            except CelError as error:
                raise want.error("cel", str(error), offer) from error
            if verdict is not True:
                return False
        if spec.per_device_node_selection and not device_concerns(device, self.node):
            return False
        if spec.skip_node_operations:
            declared = self.node.status.declared_features if self.node.status else ()
            return self.features.DRAOptionalNodeOperations and "DRAOptionalNodeOperations" in declared
        return True

    @property
    def binding_conditions(self) -> bool:
        """Whether devices with binding conditions are offered; they need status.devices of claims too."""
        return self.features.DRADeviceBindingConditions and self.features.DRAResourceClaimDeviceStatus

    # Rule 3

    def tolerated(self, want: Want, offer: Offer) -> bool:
        """Whether the request tolerates every taint of the device that keeps it from being allocated."""
        return all(
            any(_tolerates(toleration, taint) for toleration in want.tolerations)
            for taint in self._taints(offer)
            if taint.effect in ("NoSchedule", "NoExecute")
        )

    def _taints(self, offer: Offer) -> Iterator[DeviceTaint]:
        if not self.features.DRADeviceTaints:
            return
        yield from offer.device.taints
        if not self.features.DRADeviceTaintRules:
            return
        for rule in self._taint_rules:
            selector = rule.spec.device_selector
            if selector is not None:
                fields = (selector.driver, selector.pool, selector.device)
                if all(given in (None, own) for given, own in zip(fields, offer.id, strict=True)):
                    yield rule.spec.taint

    # Rules 4 to 7

    def counters_suffice(self, want: Want, offer: Offer, picks: Picks) -> bool:
        """Whether shared counters suffice and compatibility groups agree; admin access needs neither."""
        if not offer.device.consumes_counters:
            return True
        if not self.features.DRAPartitionableDevices:
            return False
        return want.admin or counters_suffice(offer, self._held, picks)

    def constraints_hold(self, plan: Plan, claim: int, want: Want, offer: Offer, picks: Picks) -> bool:
        """Whether the constraints of the claim hold with this device added."""
        chosen = [(pick.want, pick.offer) for pick in picks if pick.claim == claim]
        return all(constraint_holds(constraint, chosen, want, offer, self.features) for constraint in plan.constraints)

    def check_capacity_request(self, want: Want, offer: Offer) -> None:
        """Raise for amounts that make no sense for the device."""
        check_capacity_request(want, offer)

    def large_enough(self, want: Want, offer: Offer) -> bool:
        """Whether the device has the capacity if nothing of it is in use."""
        return capacity_fits(want, offer, {}, self.features)

    def capacity_suffices(self, want: Want, offer: Offer, picks: Picks) -> bool:
        """Whether the device has the capacity besides what is in use; admin access may use it all over again."""
        used = {} if want.admin else shares_in_use(offer, self._held.get(offer.id, []), picks)
        return capacity_fits(want, offer, used, self.features)

    def pick(self, claim: int, want: Want, offer: Offer) -> Pick:
        """The choice of this device."""
        return Pick(claim, want, offer, consumed(want, offer, self.features))


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.value or "") == (taint.value or "")
    return False
