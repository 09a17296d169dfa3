"""Whole clusters with claims: scenarios."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from dra_alloc.api import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ExactDeviceRequest,
    ObjectMeta,
    Quantity,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
)
from dra_alloc.gates import Features
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies._claims import claims, classes
from dra_alloc.testing.strategies._knobs import Knobs
from dra_alloc.testing.strategies._knobs import knobs as some_knobs
from dra_alloc.testing.strategies._pools import nodes, pools
from dra_alloc.testing.strategies._values import quantities, taints
from dra_alloc.testing.strategies._words import CLASSES, DRIVERS, NODES, POOLS, chance

__all__ = ["allocated_claims", "clusters", "features", "taint_rules"]

_GATES = tuple(field.name for field in attrs.fields(Features))


@st.composite
def features(draw: st.DrawFn) -> Features:
    """Feature gates: all on in most cases, else some of them off."""
    if not chance(draw, 3):
        return Features.all()
    off = draw(st.lists(st.sampled_from(_GATES), min_size=1, max_size=2, unique=True))
    return Features.all().replace(**dict.fromkeys(off, False))


@st.composite
def taint_rules(draw: st.DrawFn, name: str = "rule-0") -> DeviceTaintRule:
    """A rule that taints some devices, all of them, or none."""
    selector = DeviceTaintSelector(
        driver=draw(st.sampled_from((*DRIVERS, None))),
        pool=draw(st.sampled_from((*POOLS, None))),
        device=draw(st.sampled_from(("dev-0", "dev-1", None))),
    )
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name),
        spec=DeviceTaintRuleSpec(device_selector=None if chance(draw, 2) else selector, taint=draw(taints())),
    )


@st.composite
def allocated_claims(
    draw: st.DrawFn, slices: list[ResourceSlice], name: str = "holder-0", knobs: Knobs | None = None
) -> ResourceClaim:
    """A claim that holds one or two devices of the slices.

    With `broken` in the knobs a device may be gone, held in another mode than it has, or held for an amount below zero.
    """
    use = knobs or Knobs()
    places = [(item.spec.driver, item.spec.pool.name, device) for item in slices for device in item.spec.devices]
    chosen = draw(st.lists(st.integers(0, len(places) - 1), min_size=1, max_size=2, unique=True)) if places else []
    results = tuple(
        _held(draw, *places[place], share=f"00000000-0000-4000-8000-{int(name[-1]):06}{number:06}", use=use)
        for number, place in enumerate(chosen)
    )
    request = DeviceRequest(name="req-0", exactly=ExactDeviceRequest(device_class_name=CLASSES[0], count=len(results)))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
        status=ResourceClaimStatus(allocation=AllocationResult(devices=DeviceAllocationResult(results=results))),
    )


def _held(
    draw: st.DrawFn, driver: str, pool: str, device: Device, *, share: str, use: Knobs
) -> DeviceRequestAllocationResult:
    shared = bool(device.allow_multiple_allocations)
    lowest = 0
    name = device.name
    if use.broken and chance(draw, 2):
        match draw(st.integers(0, 2)):
            case 0:
                name = "gone"
            case 1:
                shared = not shared
            case 2:
                lowest = -2
    used: dict[str, Quantity] = {}
    if shared:
        for capacity in device.capacity:
            used[_respelled(draw, capacity, driver, use)] = draw(quantities(lowest, 4, fractional=use.fractional))
    return DeviceRequestAllocationResult(
        request="req-0",
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if use.admin_access and chance(draw, 1) else None,
        share_id=share if shared else None,
        consumed_capacity=used,
    )


def _respelled(draw: st.DrawFn, capacity: str, driver: str, use: Knobs) -> str:
    """The name of a capacity with or without its domain: drivers change their spelling in time."""
    if not (use.broken and chance(draw, 1)):
        return capacity
    return capacity.rpartition("/")[2] if "/" in capacity else f"{driver}/{capacity}"


@st.composite
def clusters(draw: st.DrawFn, knobs: Knobs | None = None, *, gates: bool = False) -> Scenario:
    """A whole scenario: nodes, pools, classes, taint rules, claims that hold devices, claims to allocate.

    knobs: what it may contain at most; each scenario uses a random part of it. gates: switch some feature gates off.
    Small enough for the plain-search model, and tuned so that claims fit, do not fit, and fail in fair shares.
    """
    use = draw(some_knobs(knobs or Knobs()))
    node_count = draw(st.integers(1, use.max_nodes))
    first = draw(st.integers(0, 3))
    slices = [
        item
        for number in range(draw(st.integers(1, use.max_pools)))
        for item in draw(pools(first + number, node_count, use))
    ]
    return Scenario(
        nodes=tuple(draw(nodes(name)) for name in NODES[:node_count]),
        slices=tuple(slices),
        classes=draw(classes(use)),
        taint_rules=tuple(draw(taint_rules(f"rule-{number}")) for number in range(draw(st.integers(0, 2))))
        if use.taint_rules
        else (),
        allocated_claims=tuple(
            draw(allocated_claims(slices, f"holder-{number}", use)) for number in range(draw(st.integers(0, 3)))
        )
        if use.allocated
        else (),
        claims=tuple(draw(claims(f"claim-{number}", use)) for number in range(draw(st.integers(1, use.max_claims)))),
        features=draw(features()) if gates else Features.all(),
    )
