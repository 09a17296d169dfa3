"""ResourceClaim and ResourceClaimTemplate: requests, constraints, configuration. The status is in `_claimstatus`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dra_alloc.api import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    Namespace,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation import _parts as parts
from dra_alloc.codec.validation._claimstatus import claim_status
from dra_alloc.codec.validation._meta import metadata, template_metadata
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    forbidden,
    immutable,
    invalid,
    keyed,
    listed,
    one_of,
    required,
)
from dra_alloc.codec.validation._references import request_names, request_references
from dra_alloc.gates import Features

__all__ = ["ADMIN_ACCESS_LABEL", "has_admin_access", "resource_claim", "resource_claim_template"]

REQUESTS_MAX = 32
ALTERNATIVES_MAX = 8
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
DERIVED_MAX = 32

#: The label that a namespace needs, with the value "true", for claims with admin access (KEP-5018).
ADMIN_ACCESS_LABEL = "resource.kubernetes.io/admin-access"


def resource_claim(
    new: ResourceClaim, old: ResourceClaim | None, features: Features, namespace: Namespace | None
) -> Iterator[Problem]:
    """All problems of a claim and its status; with `old`, of the update from that."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=True))
    if old is not None:
        yield from immutable("spec", new.spec, old.spec)
    else:
        yield from at("spec.devices", _device_claim(new.spec.devices, features, namespace))
    yield from at("status", claim_status(new, old, features, namespace))


def resource_claim_template(
    new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, features: Features, namespace: Namespace | None
) -> Iterator[Problem]:
    """All problems of a template; with `old`, of the update from that."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=True))
    if old is not None:
        yield from immutable("spec", new.spec, old.spec)
    else:
        yield from at("spec.metadata", template_metadata(new.spec.metadata))
        yield from at("spec.spec.devices", _device_claim(new.spec.spec.devices, features, namespace))


def has_admin_access(namespace: Namespace) -> bool:
    """Whether claims of this namespace may ask for admin access."""
    return namespace.metadata.labels.get(ADMIN_ACCESS_LABEL) == "true"


def _device_claim(claim: DeviceClaim, features: Features, namespace: Namespace | None) -> Iterator[Problem]:
    names = request_names(claim)
    checker = _Requests(claim.constraints, features)
    yield from keyed(claim.requests, REQUESTS_MAX, checker.request, lambda request: request.name, "requests")
    if checker.derived_cost > parts.CEL_MAX_COST:
        hint = f"an estimated cost of at most {parts.CEL_MAX_COST} for all of a claim"
        yield forbidden(f"derives attributes at an estimated cost of {checker.derived_cost}", hint)
    yield from listed(
        claim.constraints, CONSTRAINTS_MAX, lambda item: _constraint(item, names, features), "constraints"
    )
    yield from listed(claim.config, CONFIG_MAX, lambda item: _config(item, names), "config")
    if namespace is not None and not has_admin_access(namespace):
        yield from _admin_access(claim, namespace)


def _admin_access(claim: DeviceClaim, namespace: Namespace) -> Iterator[Problem]:
    for index, request in enumerate(claim.requests):
        if request.exactly is not None and request.exactly.admin_access:
            fault = f"is not allowed in namespace {namespace.metadata.name!r}"
            hint = f'the namespace needs the label {ADMIN_ACCESS_LABEL}: "true"'
            yield from at(f"requests[{index}].exactly.adminAccess", [forbidden(fault, hint)])
            return


class _Requests:
    """Checks requests, and adds up what their derived attributes cost."""

    def __init__(self, constraints: Sequence[DeviceConstraint], features: Features) -> None:
        self.features = features
        self.derived_cost = 0
        self._used = _attributes_by_reference(constraints)

    def request(self, request: DeviceRequest) -> Iterator[Problem]:
        yield from at("name", formats.label(request.name))
        if request.exactly is not None and request.first_available:
            yield Problem("", "has both exactly and firstAvailable", "one of them")
        elif request.exactly is not None:
            yield from at("exactly", self._body(request.exactly, request.name))
        elif request.first_available:
            yield from keyed(
                request.first_available,
                ALTERNATIVES_MAX,
                lambda item: self._alternative(item, request.name),
                lambda item: item.name,
                "firstAvailable",
            )
        else:
            gate = "" if self.features.DRAPrioritizedList else "; firstAvailable needs the gate DRAPrioritizedList"
            yield Problem("", "asks for nothing", f"exactly or firstAvailable{gate}")

    def _alternative(self, request: DeviceSubRequest, parent: str) -> Iterator[Problem]:
        yield from at("name", formats.label(request.name))
        yield from self._body(request, f"{parent}/{request.name}")

    def _body(self, request: ExactDeviceRequest | DeviceSubRequest, reference: str) -> Iterator[Problem]:
        yield from at("deviceClassName", formats.subdomain(request.device_class_name))
        yield from parts.selectors(request.selectors, self.features)
        yield from _count(request.allocation_mode, request.count)
        yield from parts.tolerations(request.tolerations)
        derived = request.derived_attributes
        yield from keyed(
            derived,
            DERIVED_MAX,
            lambda item: self._derived(item, reference),
            lambda item: item.name,
            "derivedAttributes",
        )

    def _derived(self, item: DeviceDerivedAttribute, reference: str) -> Iterator[Problem]:
        yield from at("name", formats.fully_qualified_name(item.name))
        parent = reference.partition("/")[0]
        if item.name and not any(item.name in self._used.get(key, ()) for key in ("", parent, reference)):
            hint = "a matchAttribute or distinctAttribute that applies to this request must name it"
            yield from at("name", [invalid(item.name, "is used by no constraint", hint)])
        verdict = parts.cel(item.expression, self.features, derived=True)
        self.derived_cost += verdict.cost
        yield from at("expression", verdict.problems)


def _attributes_by_reference(constraints: Sequence[DeviceConstraint]) -> Mapping[str, set[str]]:
    """Names of the attributes that constraints compare, by the request that they are about ("": all)."""
    used: dict[str, set[str]] = {}
    for constraint in constraints:
        name = constraint.match_attribute if constraint.match_attribute is not None else constraint.distinct_attribute
        for reference in constraint.requests or ("",):
            if name is not None:
                used.setdefault(reference, set()).add(name)
    return used


def _count(mode: str | None, count: int | None) -> Iterator[Problem]:
    yield from at("allocationMode", one_of(mode or "ExactCount", ("ExactCount", "All")))
    if mode == "All" and count:
        yield from at("count", [invalid(count, "is set with allocationMode All", "no count")])
    elif (mode or "ExactCount") == "ExactCount" and count is not None and count < 0:
        yield from at("count", [invalid(count, "is not greater than zero")])


def _constraint(item: DeviceConstraint, names: Mapping[str, frozenset[str]], features: Features) -> Iterator[Problem]:
    yield from request_references(item.requests, names)
    # With both set the server looks at the first alone; `warnings` tells of it.
    if item.match_attribute is not None:
        yield from at("matchAttribute", formats.fully_qualified_name(item.match_attribute))
    elif item.distinct_attribute is not None:
        yield from at("distinctAttribute", formats.fully_qualified_name(item.distinct_attribute))
    elif features.DRAConsumableCapacity:
        yield required("matchAttribute or distinctAttribute")
    else:
        yield from at("matchAttribute", [required("distinctAttribute needs the gate DRAConsumableCapacity")])


def _config(item: DeviceClaimConfiguration, names: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    yield from request_references(item.requests, names)
    yield from parts.opaque(item.opaque)
