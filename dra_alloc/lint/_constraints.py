"""Findings about the constraints of a claim: whether any devices at all could satisfy them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dra_alloc.api import DeviceClaim, DeviceConstraint
from dra_alloc.errors import CelError
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._requests import Body, Request
from dra_alloc.lint._standard import bridge_hint
from dra_alloc.lint._supply import Summary, can_differ, can_match, summarize
from dra_alloc.lint._values import Values, derived_values, published, published_values, shown_values
from dra_alloc.lint._world import Item, Row, Selection, World, finding

__all__ = ["check_constraints"]


@attrs.frozen(eq=False)
class _Compared:
    """What a request has to compare: values by row, their summary, and derived attributes that fail."""

    rows: Mapping[Row, Values]
    summary: Summary
    failed: bool


class _Values:
    """What requests have to compare, gathered once for all requests with the same devices and expressions."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._found: dict[tuple[object, ...], tuple[_Compared, tuple[Row, ...]]] = {}

    def of(self, body: Body, rows: tuple[Row, ...], name: str) -> _Compared:
        """The values of an attribute on the devices of a request."""
        derived = self._world.features.DRADerivedAttributes
        expression = next((item.expression for item in body.spec.derived_attributes if item.name == name), None)
        key = (id(rows), name, expression if derived else None)
        found = self._found.get(key)
        if found is None:
            # The rows are kept with it, so that their id stays theirs.
            found = self._found[key] = (self._gather(body, rows, name), rows)
        return found[0]

    def _gather(self, body: Body, rows: tuple[Row, ...], name: str) -> _Compared:
        values: dict[Row, Values] = {}
        failed = False
        for row in rows:
            found: Values | CelError | None = None
            if self._world.features.DRADerivedAttributes:
                found = derived_values(row, body, name)
            if found is None:
                found = published_values(row, name, self._world.features)
            if isinstance(found, CelError):
                failed = True
            elif found is not None:
                values[row] = found
        return _Compared(values, summarize(values.items()), failed)


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
        name = constraint.match_attribute or constraint.distinct_attribute
        if name:
            field = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
            where = f"{path}.constraints[{index}].{field}"
            yield from _constraint(world, item, constraint, name, where, requests, selections)


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


def _constraint(
    world: World,
    item: Item,
    constraint: DeviceConstraint,
    name: str,
    where: str,
    requests: Sequence[Request],
    selections: Mapping[str, Selection],
) -> Iterator[Finding]:
    gather = world.memo("constraint values", _Values)
    groups: dict[int, tuple[_Compared, int, list[str]]] = {}
    doubtful = False
    for request in requests:
        known = [
            (body, gather.of(body, selections[body.reference].rows, name))
            for body in request.bodies
            if body.is_meant_by(constraint) and body.reference in selections
        ]
        for body, compared in known:
            if not compared.rows and not compared.failed:
                message = f"no device that {body.reference!r} may get has {name}"
                hint = bridge_hint(world, name, body.reference, selections[body.reference].rows)
                yield finding(item, "attribute-not-published", where, message, hint)
            doubtful = doubtful or not compared.rows or compared.failed
        # A request that may be served by an alternative out of the constraint, or one not known, bounds nothing; nor
        # do alternatives that have different devices.
        if known and len(known) == len(request.bodies) and len({id(compared) for _, compared in known}) == 1:
            compared = known[0][1]
            _, needed, names = groups.get(id(compared), (compared, 0, []))
            groups[id(compared)] = (compared, needed + request.fewest, [*names, request.name])
    if groups and not doubtful:
        yield from _possible(item, constraint, where, list(groups.values()))


def _possible(
    item: Item, constraint: DeviceConstraint, where: str, groups: Sequence[tuple[_Compared, int, list[str]]]
) -> Iterator[Finding]:
    needs = [(compared.summary, needed) for compared, needed, _ in groups]
    parts = [(" and ".join(names), compared.summary, needed) for compared, needed, names in groups]
    total = sum(needed for _, needed in needs)
    if constraint.match_attribute:
        if not frozenset.intersection(*(summary.values for summary, _ in needs)):
            shown = "; ".join(f"{name}: {shown_values(summary.values)}" for name, summary, _ in parts)
            yield finding(item, "match-never-holds", where, f"the requests have no value in common ({shown})")
        elif not can_match(needs):
            shown = ", ".join(f"{needed} for {name}" for name, _, needed in parts)
            yield finding(item, "match-never-holds", where, f"no node has so many devices with one value ({shown})")
    elif not can_differ(needs):
        most = max(len(summary.values) for summary, _ in needs)
        message = f"needs {total} devices that differ; no node has so many values, and there are {most} in all"
        yield finding(item, "distinct-too-few-values", where, message, "fewer devices, or another attribute")
