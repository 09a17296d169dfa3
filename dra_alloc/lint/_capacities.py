"""Findings about the capacities that requests ask for (KEP-5075)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from dra_alloc.api import (
    DeviceCapacity,
    DeviceClaim,
    DeviceSubRequest,
    ExactDeviceRequest,
    KubernetesObject,
    Quantity,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_alloc.lint._findings import Finding, Fix
from dra_alloc.lint._requests import Body
from dra_alloc.lint._world import Item, Row, World, finding

__all__ = ["check_capacities"]

_Spec = TypeVar("_Spec", ExactDeviceRequest, DeviceSubRequest)


def check_capacities(world: World, item: Item, body: Body, rows: Sequence[Row]) -> Iterator[Finding]:
    """Names that no device knows, names given twice, amounts that no device allows."""
    wanted = body.spec.capacity.requests if body.spec.capacity else {}
    # Admin access needs no capacity (KEP-5018).
    admin = isinstance(body.spec, ExactDeviceRequest) and body.spec.admin_access
    if not wanted or admin or not world.features.DRAConsumableCapacity:
        return
    where = f"{body.path}.capacity.requests"
    for name, amount in wanted.items():
        if amount.nano < 0:
            message = f"asks for {amount}, which fails every allocation"
            yield finding(item, "negative-amount", f"{where}[{name}]", message, "an amount of at least 0")
    unknown = [name for name in wanted if not any(_capacity(row, name) for row in rows)]
    for name in unknown:
        yield _unknown(item, body, where, name, rows)
    yield from _twice(item, body, where, wanted, rows)
    if not unknown and not any(_fits(row, wanted) for row in rows):
        yield from _too_large(item, where, wanted, rows)


def _capacity(row: Row, name: str) -> DeviceCapacity | None:
    """The capacity of a device by either spelling; the qualified one takes precedence."""
    capacity = row.device.capacity
    bare = name.removeprefix(f"{row.driver}/")
    return capacity.get(f"{row.driver}/{bare}") or capacity.get(bare) if "/" not in bare else capacity.get(name)


def _unknown(item: Item, body: Body, where: str, name: str, rows: Sequence[Row]) -> Finding:
    known = sorted({key for row in rows for key in row.device.capacity})
    alike = [key for key in known if _plain(key) == _plain(name)]
    fix = None
    given = body.spec.capacity.requests if body.spec.capacity else {}
    if len(alike) == 1 and alike[0] not in given and all(alike[0] in row.device.capacity for row in rows):
        fix = _rename(body, name, alike[0])
    short = {key.rpartition("/")[2]: key for key in known}
    near = alike or [short[key] for key in difflib.get_close_matches(name.rpartition("/")[2][:128], short, n=1)]
    hint = f"did you mean {near[0]!r}?" if near else f"they have {', '.join(known[:8]) or 'no capacities'}"
    return finding(
        item, "capacity-unknown", f"{where}[{name}]", "no device that it may get has this capacity", hint, fix
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9/]", "", name.lower())


def _twice(
    item: Item, body: Body, where: str, wanted: Mapping[str, Quantity], rows: Sequence[Row]
) -> Iterator[Finding]:
    drivers = {row.driver for row in rows}
    for name in wanted:
        domain, slash, bare = name.rpartition("/")
        if slash and bare in wanted and domain in drivers:
            fix = None
            if wanted[bare] == wanted[name] and drivers == {domain}:
                fix = _rename(body, name, None)
            message = f"is {bare} of driver {domain} once more, which fails every allocation"
            yield finding(item, "capacity-spelled-twice", f"{where}[{name}]", message, "one of the two", fix)


def _fits(row: Row, wanted: Mapping[str, Quantity]) -> bool:
    for name, amount in wanted.items():
        capacity = _capacity(row, name)
        consumed = None if capacity is None else _consumed(amount.nano, capacity)
        if capacity is None or consumed is None or consumed > capacity.value.nano:
            return False
    return True


def _consumed(nano: int, capacity: DeviceCapacity) -> int | None:
    """What a request for an amount consumes; None if the policy does not allow so much."""
    policy = capacity.request_policy
    if policy is None or (policy.default is not None and policy.default.nano == nano):
        return nano
    if policy.valid_values:
        return min((value.nano for value in policy.valid_values if value.nano >= nano), default=None)
    limits = policy.valid_range
    if limits is None:
        return nano
    consumed = max(nano, limits.min.nano)
    if limits.step is not None and limits.step.nano > 0:
        steps = -(-(consumed - limits.min.nano) // limits.step.nano)
        consumed = limits.min.nano + steps * limits.step.nano
    return None if limits.max is not None and consumed > limits.max.nano else consumed


def _most(capacity: DeviceCapacity) -> Quantity:
    """The largest amount that one request may consume."""
    policy = capacity.request_policy
    limits = policy.valid_range if policy else None
    if policy and policy.valid_values:
        return max([value for value in policy.valid_values if value <= capacity.value], default=Quantity())
    return min(capacity.value, limits.max) if limits and limits.max is not None else capacity.value


def _too_large(item: Item, where: str, wanted: Mapping[str, Quantity], rows: Sequence[Row]) -> Iterator[Finding]:
    single = [name for name, amount in wanted.items() if not any(_fits(row, {name: amount}) for row in rows)]
    for name in single:
        most = max(_most(capacity) for row in rows if (capacity := _capacity(row, name)))
        message = f"{wanted[name]} is more than any device gives to one request, which is {most} at most"
        yield finding(item, "capacity-too-large", f"{where}[{name}]", message)
    if not single:
        yield finding(item, "capacity-too-large", where, "no device allows all of these amounts together")


def _rename(body: Body, old: str, new: str | None) -> Fix:
    description = f"leave {old} out" if new is None else f"spell it {new}"
    return Fix(description, lambda obj: (_renamed(obj, body.reference, old, new),))


def _renamed(obj: KubernetesObject, reference: str, old: str, new: str | None) -> KubernetesObject:
    """The claim or template with one capacity of a request under another name, or without it."""
    if isinstance(obj, ResourceClaim):
        spec = attrs.evolve(obj.spec, devices=_in_claim(obj.spec.devices, reference, old, new))
        return attrs.evolve(obj, spec=spec)
    assert isinstance(obj, ResourceClaimTemplate)
    inner = attrs.evolve(obj.spec.spec, devices=_in_claim(obj.spec.spec.devices, reference, old, new))
    return attrs.evolve(obj, spec=attrs.evolve(obj.spec, spec=inner))


def _in_claim(claim: DeviceClaim, reference: str, old: str, new: str | None) -> DeviceClaim:
    name, _, alternative = reference.partition("/")
    requests = []
    for request in claim.requests:
        if request.name == name and request.exactly is not None:
            request = attrs.evolve(request, exactly=_in_request(request.exactly, old, new))
        elif request.name == name:
            items = [
                _in_request(item, old, new) if item.name == alternative else item for item in request.first_available
            ]
            request = attrs.evolve(request, first_available=tuple(items))
        requests.append(request)
    return attrs.evolve(claim, requests=tuple(requests))


def _in_request(spec: _Spec, old: str, new: str | None) -> _Spec:
    assert spec.capacity is not None
    names = {name: new if name == old else name for name in spec.capacity.requests}
    amounts = {name: spec.capacity.requests[was] for was, name in names.items() if name is not None}
    return attrs.evolve(spec, capacity=attrs.evolve(spec.capacity, requests=amounts))
