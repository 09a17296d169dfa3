"""Rule 6: the values of attributes, and the constraints of a claim on them."""

from __future__ import annotations

from dra_alloc.api import DeviceAttribute, DeviceConstraint
from dra_alloc.cel import compile_derived, device_env
from dra_alloc.errors import CelError
from dra_alloc.gates import Features
from dra_alloc.testing._plain.pools import Offer
from dra_alloc.testing._plain.requests import Want

Values = frozenset[tuple[str, object]]
"""The values of an attribute, each with the name of its type."""


def constraint_holds(
    constraint: DeviceConstraint, chosen: list[tuple[Want, Offer]], want: Want, offer: Offer, features: Features
) -> bool:
    """Whether the constraint holds over the devices chosen for its claim and this one, if it concerns this one."""

    def concerns(one: Want) -> bool:
        names = constraint.requests
        return not names or one.request in names or one.reference in names

    if not concerns(want):
        return True
    matching = constraint.match_attribute is not None
    attribute = (constraint.match_attribute if matching else constraint.distinct_attribute) or ""
    together = [pair for pair in chosen if concerns(pair[0])] + [(want, offer)]
    values = [_values(*pair, attribute, features) for pair in together]
    if not all(values):
        return False
    if matching:
        return bool(frozenset.intersection(*values))
    return sum(map(len, values)) == len(frozenset.union(*values))


def _values(want: Want, offer: Offer, attribute: str, features: Features) -> Values:
    """The values of an attribute of a device for a request; empty if it is absent."""
    if features.DRADerivedAttributes:
        for derived in want.derived:
            if derived.name == attribute:
                return _derived(want, offer, derived.expression, features)
    domain, _, name = attribute.rpartition("/")
    found = offer.device.attributes.get(attribute)
    if found is None and domain == offer.pool.driver:
        found = offer.device.attributes.get(name)
    return published_values(found, features) if found is not None else frozenset()


def _derived(want: Want, offer: Offer, expression: str, features: Features) -> Values:
    try:
        value = compile_derived(expression).evaluate(device_env(offer.pool.driver, offer.device))
    except CelError as error:
        raise want.error("cel", str(error), offer) from error
    if isinstance(value, tuple):
        return frozenset(map(typed_value, value)) if features.DRAListTypeAttributes else frozenset()
    return frozenset({typed_value(value)})


def published_values(attribute: DeviceAttribute, features: Features) -> Values:
    """The values that a device publishes under one name."""
    lists = (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    )
    for kind, items in lists:
        if items:
            return frozenset((kind, item) for item in items) if features.DRAListTypeAttributes else frozenset()
    scalars = (
        ("int", attribute.int),
        ("bool", attribute.bool),
        ("string", attribute.string),
        ("version", attribute.version),
    )
    return frozenset([(kind, value) for kind, value in scalars if value is not None][:1])


def typed_value(value: object) -> tuple[str, object]:
    """A value that an expression gave, with the name of its type."""
    match value:
        case bool():
            return "bool", value
        case int():
            return "int", value
        case str():
            return "string", value
    return "version", str(value)
