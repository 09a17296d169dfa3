"""What a pending pod waits for, as keys: its claims, and, once these are there, the wants of those to be allocated."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import DeviceClass, NodeSelector, PodGroup, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from dra_alloc.requeue.changes import EVERY
from dra_alloc.requeue.waiting import Waiting, find, full_key
from dra_alloc.requeue.wants import Want, Wants

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.extended import ClassesByResource

__all__ = ["CHOOSY", "FAILED", "PLACELESS", "Demands", "Overlay", "allocated", "chosen"]

#: Keys of pods whose attempt ended with an error, of those to which labels of nodes matter, and of those that need no
#: device any more, but a node.
FAILED = "failed"
CHOOSY = "choosy"
PLACELESS = "placeless"

_MAX_SPECS = 4096

#: What a claim of a pod comes from.
_Source = ResourceClaim | ResourceClaimTemplate


@attrs.frozen
class Overlay:
    """A claim as an event has it, whether or not the cluster has followed already; `claim` is None if it is deleted."""

    key: str
    claim: ResourceClaim | None


@attrs.frozen(eq=False)
class _Demand:
    """What the spec of a claim demands: by request the wants of its alternatives; and the classes that they name."""

    wants: tuple[tuple[str, tuple[Want, ...]], ...]
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
        self._of_spec: dict[int, tuple[ResourceClaimSpec, _Demand]] = {}
        self._classes: ClassesByResource | None = None
        self._numbers = count()
        #: Node selectors of allocations other than the name of one node, by number.
        self.selectors: dict[NodeSelector, int] = {}

    def forget_classes(self) -> None:
        """A class came, went or changed."""
        self._of_spec.clear()
        self._classes = None

    def keys(self, pod: Waiting) -> list[str]:
        """All that the pod is to be found by."""
        keys: dict[str, None] = {}
        if pod.failed:
            keys[FAILED] = None
        for _, claim, template in pod.claims:
            if claim:
                keys[f"claim {pod.namespace}/{claim}"] = None
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
        for entry, name, template in pod.claims:
            item: _Source | None
            if name:
                item = self._claim(pod.namespace, name, overlay)
                if item is not None and (template or not entry) and not pod.owns(item):
                    return None
            else:
                item = self._made(pod, entry, template, overlay)
            if item is None or item.metadata.deletion_timestamp is not None:
                return None
            found.append(item)
        return found

    def _claim(self, namespace: str, name: str, overlay: Overlay | None) -> ResourceClaim | None:
        if overlay is not None and overlay.key == f"{namespace}/{name}":
            return overlay.claim
        found = find(self._cluster, "ResourceClaim", namespace, name)
        return found if isinstance(found, ResourceClaim) else None

    def _made(self, pod: Waiting, entry: str, template: str, overlay: Overlay | None) -> _Source | None:
        """The claim made for a claim of the pod that the pod does not know yet, or else its template."""
        if overlay is not None and overlay.claim is not None and pod.made_for(overlay.claim, entry):
            return overlay.claim
        if pod.uid:
            for claim in self._cluster.claims_owned_by(pod.uid):
                if pod.made_for(claim, entry) and (overlay is None or overlay.key != full_key(claim.metadata)):
                    return claim
        if pod.group:
            group = find(self._cluster, "PodGroup", pod.namespace, pod.group)
            status = group.status if isinstance(group, PodGroup) else None
            for recorded in status.resource_claim_statuses if status is not None else ():
                if recorded.name == entry and recorded.resource_claim_name:
                    return self._claim(pod.namespace, recorded.resource_claim_name, overlay)
        found = find(self._cluster, "ResourceClaimTemplate", pod.namespace, template)
        return found if isinstance(found, ResourceClaimTemplate) else None

    def _demand(self, pod: Waiting, claims: list[_Source], keys: dict[str, None]) -> None:
        places: dict[str, None] = {}
        wanted: dict[str, None] = {}
        missing = False
        for claim in claims:
            spec = claim.spec
            if isinstance(claim, ResourceClaim) and claim.status is not None and claim.status.allocation is not None:
                if claim.status.allocation.node_selector is not None:
                    places[self._place(claim.status.allocation.node_selector)] = None
                continue
            demand = self._of(spec if isinstance(spec, ResourceClaimSpec) else spec.spec)
            missing = missing or demand.missing
            for name in demand.classes:
                keys[f"class {name}"] = None
            if demand.admin:
                keys[f"admin {pod.namespace}"] = None
            blocking = None if pod.blocking is None else pod.blocking.get(claim.metadata.key, ())
            for request, wants in demand.wants:
                for want in wants:
                    if want.every:
                        wanted[EVERY] = None
                    if blocking is None or request in blocking:
                        wanted[want.key] = None
        for resource in pod.resources:
            found = self._class_of(resource)
            if found is not None:
                keys[f"class {found.metadata.name}"] = None
                wanted[self.wants.of_class(found).key] = None
        if missing:
            return  # nothing but the class can help
        if not wanted and not places:
            wanted[PLACELESS] = None
        keys.update(wanted)
        keys.update(places)
        if pod.choosy:
            keys[CHOOSY] = None
            keys.update(dict.fromkeys(map(chosen, (*wanted, *places))))

    def _of(self, spec: ResourceClaimSpec) -> _Demand:
        known = self._of_spec.get(id(spec))
        if known is not None:
            return known[1]
        wants: list[tuple[str, tuple[Want, ...]]] = []
        classes: dict[str, None] = {}
        missing = admin = False
        for request in spec.devices.requests:
            alternatives = []
            for body in request.first_available or ((request.exactly,) if request.exactly is not None else ()):
                classes[body.device_class_name] = None
                found = self._cluster.get("DeviceClass", body.device_class_name)
                if isinstance(found, DeviceClass):
                    want = self.wants.of(found, body)
                    alternatives.append(want)
                    admin = admin or want.admin
                else:
                    missing = True
            wants.append((request.name, tuple(alternatives)))
        demand = _Demand(tuple(wants), tuple(classes), missing, admin)
        if len(self._of_spec) >= _MAX_SPECS:
            self._of_spec.clear()
        self._of_spec[id(spec)] = spec, demand  # the spec is kept, so that its id stays its own
        return demand

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
