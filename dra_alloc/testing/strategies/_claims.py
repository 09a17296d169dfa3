"""Classes and claims: what is asked for."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dra_alloc.api import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ObjectMeta,
    OpaqueDeviceConfiguration,
    Quantity,
    ResourceClaim,
    ResourceClaimSpec,
)
from dra_alloc.testing.strategies._knobs import Knobs
from dra_alloc.testing.strategies._values import quantities, tolerations
from dra_alloc.testing.strategies._words import (
    CAPACITIES,
    CLASSES,
    DERIVED,
    DRIVERS,
    FIRMWARE,
    INDEX,
    NUMA,
    ROOT,
    chance,
    some,
    some_but_none,
)

__all__ = ["claims", "classes", "derived_attributes", "requests", "selectors"]

_GPU = DRIVERS[0]

#: Of each device they are true, false, or (the second group) fail at run time; the third group does not compile.
_SELECTORS = (
    "true",
    f'device.driver == "{_GPU}"',
    f'device.attributes["{_GPU}"].?index.orValue(0) < 2',
    'device.attributes["topo.example.org"].?numa.hasValue()',
    "!device.allowMultipleAllocations",
    f'has(device.attributes["{_GPU}"].ecc) && device.attributes["{_GPU}"].ecc',
)
_FRAGILE = (
    f'device.attributes["{_GPU}"].index >= 1',
    f'device.driver != "{_GPU}" || device.attributes["{_GPU}"].ecc',
    'device.attributes["topo.example.org"].numa == 0',
    f'device.capacity["{_GPU}"].memory.isGreaterThan(quantity("1"))',
)
_UNCOMPILED = ("device.nope", "1 + 1", "device.driver ==")

#: Counts of which two or three come close to 32, or pass it.
_MANY = (8, 10, 15, 16, 17, 24, 31, 32, 33)

_DERIVED = (
    "device.driver",
    f'device.attributes["{_GPU}"].?index.orValue(0) % 2 == 0',
    'device.driver.endsWith(".com") ? "x" : "y"',
)
_DERIVED_FRAGILE = (
    'device.attributes["topo.example.org"].numa',
    f'string(device.attributes["{_GPU}"].index)',
    '[device.attributes["topo.example.org"].numa, 7]',
)


@st.composite
def selectors(draw: st.DrawFn, knobs: Knobs | None = None) -> DeviceSelector:
    """A CEL selector that some devices of `devices` pass; with `broken` in the knobs it may fail."""
    use = knobs or Knobs()
    choices: tuple[str, ...] = _SELECTORS
    if use.broken and chance(draw, 6):
        choices = _UNCOMPILED if chance(draw, 1) else _FRAGILE
    return DeviceSelector(cel=CELDeviceSelector(expression=draw(st.sampled_from(choices))))


@st.composite
def derived_attributes(draw: st.DrawFn, knobs: Knobs | None = None) -> DeviceDerivedAttribute:
    """A derived attribute, at times with the name of a published one."""
    use = knobs or Knobs()
    choices = _DERIVED_FRAGILE if use.broken and chance(draw, 3) else _DERIVED
    name = draw(st.sampled_from((DERIVED, NUMA)))
    return DeviceDerivedAttribute(name=name, expression=draw(st.sampled_from(choices)))


def classes(knobs: Knobs | None = None) -> st.SearchStrategy[tuple[DeviceClass, ...]]:
    """The classes that `claims` refers to: any device, those of one driver, those that can be shared."""
    use = knobs or Knobs()
    configured = st.lists(st.integers(0, 1), max_size=2) if use.config else st.just([])
    return st.tuples(configured, configured).map(_classes)


def _classes(config: tuple[list[int], list[int]]) -> tuple[DeviceClass, ...]:
    expressions = ((), (f'device.driver == "{_GPU}"',), ("device.allowMultipleAllocations",))
    return tuple(
        DeviceClass(
            metadata=ObjectMeta(name=name),
            spec=DeviceClassSpec(
                selectors=tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in texts),
                config=tuple(DeviceClassConfiguration(opaque=_opaque("class", number)) for number in numbers),
            ),
        )
        for name, texts, numbers in zip(CLASSES, expressions, (*config, []), strict=True)
    )


def _opaque(origin: str, number: int) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver=_GPU, parameters={"from": origin, "number": number})


@st.composite
def requests(draw: st.DrawFn, name: str = "req-0", knobs: Knobs | None = None) -> DeviceRequest:
    """A request for one to three devices, or all, or the first of two or three alternatives."""
    use = knobs or Knobs()
    if use.first_available and chance(draw, 3):
        number = draw(st.integers(2, 3))
        return DeviceRequest(
            name=name,
            first_available=tuple(DeviceSubRequest(name=f"sub-{place}", **_body(draw, use)) for place in range(number)),
        )
    admin = True if use.admin_access and chance(draw, 2) else None
    return DeviceRequest(name=name, exactly=ExactDeviceRequest(admin_access=admin, **_body(draw, use)))


def _body(draw: st.DrawFn, use: Knobs) -> dict[str, Any]:
    """The fields that requests and alternatives share."""
    everything = use.all_mode and chance(draw, 2)
    device_class = draw(st.sampled_from((CLASSES[0], *(CLASSES if use.capacity else CLASSES[:2]))))
    if use.broken and chance(draw, 1) and chance(draw, 1):
        device_class = "missing"
    return {
        "device_class_name": device_class,
        "selectors": tuple(draw(st.lists(selectors(use), max_size=1))) if use.selectors else (),
        "allocation_mode": "All" if everything else "ExactCount",
        "count": None if everything else _count(draw, use),
        "tolerations": tuple(draw(st.lists(tolerations(), max_size=2))) if use.taints and chance(draw, 6) else (),
        "capacity": _capacity(draw, use) if use.capacity and chance(draw, 4) else None,
        "derived_attributes": (draw(derived_attributes(use)),) if use.derived and chance(draw, 4) else (),
    }


def _count(draw: st.DrawFn, use: Knobs) -> int:
    if use.many and chance(draw, 7):
        return draw(st.sampled_from(_MANY))
    return draw(st.integers(1, 3)) if chance(draw, 4) else 1


def _capacity(draw: st.DrawFn, use: Knobs) -> CapacityRequirements:
    lowest = -1 if use.broken and chance(draw, 4) else 0
    amounts: dict[str, Quantity] = {}
    for name in some_but_none(draw, CAPACITIES):
        spelled = f"{draw(st.sampled_from(DRIVERS))}/{name}" if chance(draw, 1) else name
        amounts[spelled] = draw(quantities(lowest, 5, fractional=use.fractional))
    if use.broken and chance(draw, 2):
        amounts[f"{_GPU}/{CAPACITIES[0]}"] = draw(quantities(0, 2))
    return CapacityRequirements(requests=amounts)


@st.composite
def claims(draw: st.DrawFn, name: str = "claim-0", knobs: Knobs | None = None) -> ResourceClaim:
    """A claim that is not allocated, with one or more requests and at times constraints and config over them."""
    use = knobs or Knobs()
    number = draw(st.integers(1, use.max_requests))
    asked = tuple(draw(requests(f"req-{place}", use)) for place in range(number))
    names = tuple(request.name for request in asked)
    names += tuple(f"{request.name}/{sub.name}" for request in asked for sub in request.first_available)
    constraints = [_constraint(draw, asked, names) for _ in range(draw(st.integers(0, 2)))] if use.constraints else []
    config = [_config(draw, names, place) for place in range(draw(st.integers(0, 2)))] if use.config else []
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(requests=asked, constraints=tuple(constraints), config=tuple(config))
        ),
    )


def _constraint(draw: st.DrawFn, asked: tuple[DeviceRequest, ...], names: tuple[str, ...]) -> DeviceConstraint:
    attribute = draw(st.sampled_from((ROOT, ROOT, NUMA, NUMA, INDEX, FIRMWARE)))
    concerned = some(draw, names)
    deriving = tuple(request.name for request in asked if request.exactly and request.exactly.derived_attributes)
    if deriving and chance(draw, 6):
        attribute, concerned = DERIVED, some_but_none(draw, deriving)
    if chance(draw, 3):
        return DeviceConstraint(requests=concerned, distinct_attribute=attribute)
    return DeviceConstraint(requests=concerned, match_attribute=attribute)


def _config(draw: st.DrawFn, names: tuple[str, ...], number: int) -> DeviceClaimConfiguration:
    return DeviceClaimConfiguration(requests=some(draw, names), opaque=_opaque("claim", number))
