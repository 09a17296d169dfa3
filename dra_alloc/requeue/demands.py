"""What a pending pod waits for, as keys: its claims, and, once these are there, the wants of those to be allocated."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import (
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    NodeSelector,
    PodGroup,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from dra_alloc.features._objects import key_of
from dra_alloc.requeue.changes import EVERY
from dra_alloc.requeue.waiting import Waiting
from dra_alloc.requeue.wants import Want, Wants, is_want

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.extended import ClassesByResource

__all__ = ["CHOOSY", "FAILED", "PLACELESS", "Demands", "Overlay", "allocated", "chosen"]

#: Keys of pods whose attempt ended with an error, of those to which labels of nodes matter, and of those that need no
#: device any more, but a node.
FAILED = "failed"
CHOOSY = "choosy"
PLACELESS = "placeless"

_MAX_SHAPES = 4096

#: What a claim of a pod comes from.
_Source = ResourceClaim | ResourceClaimTemplate
_Body = ExactDeviceRequest | DeviceSubRequest


@attrs.frozen
class Overlay:
    """A claim as an event has it, whether or not the cluster has followed already; `claim` is None if it is deleted."""

    key: str
    claim: ResourceClaim | None


@attrs.frozen(eq=False)
class _Demand:
    """What the spec of a claim demands: by request the wants of its alternatives; and the classes that they name.

    wanted: keys of all wants, with EVERY if one is for all devices. missing: whether a class is not there.
    """

    wants: tuple[tuple[str, tuple[Want, ...]], ...]
    wanted: tuple[str, ...]
    classes: tuple[str, ...]
    missing: bool
    admin: bool


def chosen(key: str) -> str:
    """The key of those pods under a key that choose nodes by their labels."""
    return f"{CHOOSY} {key}"


def allocated(claim: ResourceClaim) -> bool:
    """Whether a claim has its devices."""
    return claim.status is not None and claim.status.allocation is not None


class Demands:
    """Turns pods into keys, with the claims, templates, groups and classes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.wants = Wants()
        self._cluster = cluster
        self._demands: dict[object, _Demand] = {}
        self._classes: ClassesByResource | None = None
        self._numbers = count()
        #: Node selectors of allocations other than the name of one node, by number.
        self.selectors: dict[NodeSelector, int] = {}

    def forget_classes(self) -> None:
        """A class came, went or changed."""
        self._demands.clear()
        self._classes = None

    def keys(self, pod: Waiting) -> list[str]:
        """All that the pod is to be found by."""
        keys: dict[str, None] = {FAILED: None} if pod.failed else {}
        for _, claim, template in pod.claims:
            if claim:
                keys[f"claim {claim}"] = None
            else:
                keys[f"owner {pod.namespace}/{pod.name}"] = None
                keys[f"template {pod.namespace}/{template}"] = None
        if pod.group:
            keys[f"group {pod.namespace}/{pod.group}"] = None
        for resource in pod.resources:
            keys[f"resource {resource}"] = None
        claims = self.resolve(pod)
        if claims is not None:
            self._demand(pod, claims, keys)
        return list(keys)

    def resolve(self, pod: Waiting, overlay: Overlay | None = None) -> list[_Source] | None:
        """The claims of a pod, or the templates that they will be made from; None if one is missing or going."""
        found: list[_Source] = []
        get = self._cluster.get
        for entry, name, template in pod.claims:
            item: _Source | None
            if name:
                item = overlay.claim if overlay is not None and overlay.key == name else get("ResourceClaim", name)
                if item is not None and (template or not entry) and not pod.owns(item):
                    return None
            else:
                item = self._made(pod, entry, template, overlay)
            if item is None or item.metadata.deletion_timestamp is not None:
                return None
            found.append(item)
        return found

    def _claim(self, key: str, overlay: Overlay | None) -> ResourceClaim | None:
        if overlay is not None and overlay.key == key:
            return overlay.claim
        found: ResourceClaim | None = self._cluster.get("ResourceClaim", key)
        return found

    def _made(self, pod: Waiting, entry: str, template: str, overlay: Overlay | None) -> _Source | None:
        """The claim made for a claim of the pod that the pod does not know yet, or else its template."""
        if overlay is not None and overlay.claim is not None and pod.made_for(overlay.claim, entry):
            return overlay.claim
        if pod.uid:
            for claim in self._cluster.claims_owned_by(pod.uid):
                if pod.made_for(claim, entry) and (overlay is None or overlay.key != key_of(claim.metadata)):
                    return claim
        if pod.group:
            group: PodGroup | None = self._cluster.get("PodGroup", f"{pod.namespace}/{pod.group}")
            status = group.status if group is not None else None
            for recorded in status.resource_claim_statuses if status is not None else ():
                if recorded.name == entry and recorded.resource_claim_name:
                    return self._claim(f"{pod.namespace}/{recorded.resource_claim_name}", overlay)
        found: ResourceClaimTemplate | None = self._cluster.get("ResourceClaimTemplate", f"{pod.namespace}/{template}")
        return found

    def _demand(self, pod: Waiting, claims: list[_Source], keys: dict[str, None]) -> None:
        wanted: list[str] = []
        blocking: list[str] = []
        missing = False
        for claim in claims:
            if isinstance(claim, ResourceClaim):
                status = claim.status
                if status is not None and status.allocation is not None:
                    if status.allocation.node_selector is not None:
                        wanted.append(self._place(status.allocation.node_selector))
                    continue
                demand = self._of(claim.spec)
            else:
                demand = self._of(claim.spec.spec)
            missing = missing or demand.missing
            for name in demand.classes:
                keys[name] = None
            if demand.admin:
                keys[f"admin {pod.namespace}"] = None
            wanted += demand.wanted
            if pod.blocking is not None:
                blocking += _narrowed(demand, pod.blocking.get(key_of(claim.metadata), ()))
        for resource in pod.resources:
            found = self._class_of(resource)
            if found is not None:
                keys[f"class {found.metadata.name}"] = None
                wanted.append(self.wants.of_class(found).key)
        if missing:
            return  # nothing but the class can help
        if blocking:  # a reason that names nothing of what the pod wants is about something else
            wanted = [key for key in wanted if key in blocking or not is_want(key)]
        if not wanted:
            wanted.append(PLACELESS)
        for key in wanted:
            keys[key] = None
        if pod.choosy:
            keys[CHOOSY] = None
            keys.update(dict.fromkeys(map(chosen, wanted)))

    def _of(self, spec: ResourceClaimSpec) -> _Demand:
        shape = _shape(spec)
        demand = self._demands.get(shape)
        if demand is None:
            if len(self._demands) >= _MAX_SHAPES:
                self._demands.clear()
            demand = self._demands[shape] = self._compile(spec)
        return demand

    def _compile(self, spec: ResourceClaimSpec) -> _Demand:
        wants: list[tuple[str, tuple[Want, ...]]] = []
        wanted: dict[str, None] = {}
        classes: dict[str, None] = {}
        missing = admin = False
        for request in spec.devices.requests:
            alternatives = []
            for body in _bodies(request):
                classes[f"class {body.device_class_name}"] = None
                found = self._cluster.get("DeviceClass", body.device_class_name)
                if not isinstance(found, DeviceClass):
                    missing = True
                    continue
                want = self.wants.of(found, body)
                alternatives.append(want)
                admin = admin or want.admin
                wanted[want.key] = None
                if want.every:
                    wanted[EVERY] = None
            wants.append((request.name, tuple(alternatives)))
        return _Demand(tuple(wants), tuple(wanted), tuple(classes), missing, admin)

    def _place(self, selector: NodeSelector) -> str:
        """The key of the pods that a claim binds to the nodes of a selector."""
        if len(selector.node_selector_terms) == 1:
            term = selector.node_selector_terms[0]
            if not term.match_expressions and len(term.match_fields) == 1:
                field = term.match_fields[0]
                if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
                    return f"node {field.values[0]}"
        return f"place {self._number_of(selector)}"

    def _number_of(self, selector: NodeSelector) -> int:
        return self.selectors.setdefault(selector, next(self._numbers))

    def _class_of(self, resource: str) -> DeviceClass | None:
        if self._classes is None:
            from dra_alloc.features.extended import ClassesByResource

            self._classes = ClassesByResource(self._cluster.classes())
        return self._classes.get(resource)


def _bodies(request: DeviceRequest) -> tuple[_Body, ...]:
    """The request, or its alternatives."""
    return request.first_available or ((request.exactly,) if request.exactly is not None else ())


def _shape(spec: ResourceClaimSpec) -> tuple[object, ...]:
    """What decides about the wants of a claim, cheap to compare: claims made from one template are equal in it.

    Flat, since it is made for every pod: of each request its name and how many alternatives it has, of each of these
    how many selectors.
    """
    shape: list[object] = []
    for request in spec.devices.requests:
        bodies = _bodies(request)
        shape += (request.name, len(bodies))
        for body in bodies:
            capacity = body.capacity
            shape += (
                body.device_class_name,
                body.allocation_mode,
                body.admin_access if isinstance(body, ExactDeviceRequest) else None,
                body.tolerations,
                body.derived_attributes,
                None if capacity is None else tuple(capacity.requests.items()),
                len(body.selectors),
            )
            for selector in body.selectors:
                shape.append(None if selector.cel is None else selector.cel.expression)
    return tuple(shape)


def _narrowed(demand: _Demand, requests: Collection[str]) -> Iterator[str]:
    """The keys of the wants of some requests."""
    for name, wants in demand.wants:
        if name in requests:
            for want in wants:
                yield want.key
