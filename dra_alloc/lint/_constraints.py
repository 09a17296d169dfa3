"""Findings about the constraints of a claim: whether any devices at all could satisfy them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dra_alloc.api import DeviceClaim, DeviceConstraint
from dra_alloc.errors import CelError
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._requests import Body, Request
from dra_alloc.lint._standard import bridge_hint
from dra_alloc.lint._supply import most_of_one_value, most_values
from dra_alloc.lint._values import Values, derived_values, published, published_values, shown_values
from dra_alloc.lint._world import Item, Row, Selection, World, finding

__all__ = ["check_constraints"]


@attrs.define
class _Compared:
    """What a constraint compares: values by row of devices, those of each request, how many devices there must be."""

    rows: dict[Row, Values] = attrs.field(factory=dict)
    of_request: dict[str, Values] = attrs.field(factory=dict)
    needed: int = 0


def check_constraints(
    world: World,
    item: Item,
    claim: DeviceClaim,
    path: str,
    requests: Sequence[Request],
    selections: Mapping[str, Selection],
) -> Iterator[Finding]:
    """Constraints that cannot hold, and derived attributes that fail or hide others.

    selections: the devices of each request or alternative, as far as known.
    """
    for request in requests:
        for body in request.bodies:
            if body.reference in selections:
                yield from _derived(world, item, body, selections[body.reference].rows)
    for index, constraint in enumerate(claim.constraints):
        where = f"{path}.constraints[{index}]"
        match, distinct = constraint.match_attribute, constraint.distinct_attribute
        name = match if match is not None else distinct
        if not name:
            continue
        compared = _Compared()
        missing = list(_compare(world, item, constraint, name, where, requests, selections, compared))
        yield from missing
        if missing:
            continue
        if match is not None:
            yield from _match(item, f"{where}.matchAttribute", compared)
        else:
            yield from _distinct(item, f"{where}.distinctAttribute", compared)


def _derived(world: World, item: Item, body: Body, rows: Sequence[Row]) -> Iterator[Finding]:
    if not world.features.DRADerivedAttributes:
        return
    for index, attribute in enumerate(body.spec.derived_attributes):
        where = f"{body.path}.derivedAttributes[{index}]"
        failed = [
            (row, values) for row in rows if isinstance(values := derived_values(row, body, attribute.name), CelError)
        ]
        if failed and not world.compiles(attribute.expression):
            continue
        if failed:
            row, error = failed[0]
            count = sum(len(row.members) for row, _ in failed) - 1
            more = f" and {count} more" if count else ""
            message = f"fails on device {row.members[0].name}{more}: {error.message}"
            hint = "use .? and orValue(), or selectors that leave such devices out"
            yield finding(item, "derived-attribute-fails", f"{where}.expression", message, hint)
        hidden = [row for row in rows if published(row.driver, row.device, attribute.name) is not None]
        if hidden:
            message = f"hides the attribute of this name that {hidden[0].members[0].name} publishes"
            hint = "a name of your own, such as derived/…, unless this is meant"
            yield finding(item, "derived-attribute-shadows", f"{where}.name", message, hint)


def _compare(
    world: World,
    item: Item,
    constraint: DeviceConstraint,
    name: str,
    where: str,
    requests: Sequence[Request],
    selections: Mapping[str, Selection],
    compared: _Compared,
) -> Iterator[Finding]:
    """Gather what is compared; findings where a request has nothing to compare."""
    field = "matchAttribute" if constraint.match_attribute is not None else "distinctAttribute"
    for request in requests:
        meant = [body for body in request.bodies if body.is_meant_by(constraint)]
        known = [body for body in meant if body.reference in selections]
        values: dict[Row, Values] = {}
        for body in known:
            rows = selections[body.reference].rows
            of_body = {row: found for row in rows if (found := _values(world, row, body, name)) is not None}
            if not of_body:
                message = f"no device that {body.reference!r} may get has {name}"
                hint = bridge_hint(world, name, body.reference, rows)
                yield finding(item, "attribute-not-published", f"{where}.{field}", message, hint)
            for row, found in of_body.items():
                values[row] = values.get(row, frozenset()) | found
        for row, found in values.items():
            compared.rows[row] = compared.rows.get(row, frozenset()) | found
        # A request that may be served by an alternative out of the constraint, or one not known, bounds nothing.
        if meant and len(known) == len(request.bodies):
            compared.of_request[request.name] = frozenset().union(*values.values())
            compared.needed += request.fewest


def _values(world: World, row: Row, body: Body, name: str) -> Values | None:
    if world.features.DRADerivedAttributes:
        derived = derived_values(row, body, name)
        if derived is not None:
            # What fails is told for itself; here it must not look like a value, nor like none.
            return frozenset({("failed", id(row))}) if isinstance(derived, CelError) else derived
    return published_values(row, name, world.features)


def _match(item: Item, where: str, compared: _Compared) -> Iterator[Finding]:
    if any(kind == "failed" for values in compared.rows.values() for kind, _ in values):
        return
    sets = compared.of_request
    if len(sets) > 1 and not frozenset.intersection(*sets.values()):
        parts = "; ".join(f"{name}: {shown_values(values)}" for name, values in sets.items())
        yield finding(item, "match-never-holds", where, f"the requests have no value in common ({parts})")
        return
    most = most_of_one_value(tuple(compared.rows), lambda row: compared.rows[row])
    if most is not None and most < compared.needed:
        message = f"needs {compared.needed} devices with one value, no node has more than {most}"
        yield finding(item, "match-never-holds", where, message)


def _distinct(item: Item, where: str, compared: _Compared) -> Iterator[Finding]:
    # A device with an empty list differs from every other one.
    if not all(compared.rows.values()) or not compared.rows:
        return
    most = most_values(tuple(compared.rows), lambda row: compared.rows[row])
    if most < compared.needed:
        message = f"needs {compared.needed} devices that differ, no node has more than {most} values"
        yield finding(item, "distinct-too-few-values", where, message, f"at most {most} devices, or another attribute")
