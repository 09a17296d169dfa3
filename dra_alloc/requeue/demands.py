"""What a pending pod waits for, as keys: its claims, and, once these are there, the wants of those to be allocated."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import attrs

from dra_alloc._waiting import PodReader, Waiting
from dra_alloc.api import (
    DeviceClass,
    NodeSelector,
    PodGroup,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from dra_alloc.features._objects import key_of
from dra_alloc.requeue.changes import EVERY
from dra_alloc.requeue.wants import Wants, is_want

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.extended import ClassesByResource
    from dra_alloc.requeue.reasons import Blocking

__all__ = ["CHOOSY", "FAILED", "PLACELESS", "Demands", "Overlay", "Source", "allocated", "chosen"]

#: Keys of pods whose attempt ended with an error, of those to which labels of nodes matter, and of those that need no
#: device any more, but a node.
FAILED = "failed"
CHOOSY = "choosy"
PLACELESS = "placeless"

#: What a claim of a pod comes from.
Source = ResourceClaim | ResourceClaimTemplate


@attrs.frozen
class Overlay:
    """A claim as an event has it, whether or not the cluster has followed already; `claim` is None if it is deleted."""

    key: str
    claim: ResourceClaim | None


@attrs.define(eq=False)  # frozen takes longer to make
class _Demand:
    """What the spec of a claim demands, all in keys.

    requests: by name the wants of its alternatives. wanted: all wants, with EVERY if one is for all devices. classes:
    those that it names. missing: whether one of these is not there.
    """

    requests: tuple[tuple[str, tuple[str, ...]], ...]
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


class Demands(PodReader):
    """Turns pods into keys, with the claims, templates, groups and classes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.get)
        self.wants = Wants()
        self._cluster = cluster
        self._classes: ClassesByResource | None = None
        self._numbers = count()
        #: Node selectors of allocations other than the name of one node, by number.
        self.selectors: dict[NodeSelector, int] = {}

    def forget_classes(self) -> None:
        """A class came, went or changed."""
        self.forget()
        self._classes = None

    def _claim(self, key: str, overlay: Overlay | None) -> ResourceClaim | None:
        if overlay is not None and overlay.key == key:
            return overlay.claim
        found: ResourceClaim | None = self._cluster.get("ResourceClaim", key)
        return found

    def _made(self, pod: Waiting, entry: str, template: str, overlay: Overlay | None) -> Source | None:
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

    def _combine(self, pod: Waiting, parts: list[_Demand | str | None] | None) -> tuple[str, ...]:
        """The keys that a pod shares with all others that are in the same state.

        parts: of each claim what it demands, or, if it is allocated, the key of its place, None for everywhere; None
        if a claim is missing or going.
        """
        keys: dict[str, None] = {FAILED: None} if pod.failed else {}
        for template in pod.templates:
            keys[f"template {pod.namespace}/{template}"] = None
        if pod.group:
            keys[f"group {pod.namespace}/{pod.group}"] = None
        for resource in pod.resources:
            keys[f"resource {resource}"] = None
        if parts is not None:
            self._demanded(pod, parts, keys)
        return tuple(keys)

    def _demanded(self, pod: Waiting, parts: list[_Demand | str | None], keys: dict[str, None]) -> None:
        wanted: list[str] = []
        missing = False
        for part in parts:
            if isinstance(part, _Demand):
                missing = missing or part.missing
                for name in part.classes:
                    keys[name] = None
                if part.admin:
                    keys[f"admin {pod.namespace}"] = None
                wanted += part.wanted
            elif part is not None:
                wanted.append(part)
        for resource in pod.resources:
            found = self._class_of(resource)
            if found is not None:
                keys[f"class {found.metadata.name}"] = None
                wanted.append(self.wants.of_class(found).key)
        if missing:
            return  # nothing but the class can help
        if pod.blocking is not None:
            blocking = self._blocking(pod, pod.blocking, parts)
            if blocking:  # a reason that names nothing of what the pod wants is about something else
                wanted = [key for key in wanted if key in blocking or not is_want(key)]
        if not wanted:
            wanted.append(PLACELESS)
        for key in wanted:
            keys[key] = None
        if pod.choosy:
            keys[CHOOSY] = None
            keys.update(dict.fromkeys(map(chosen, wanted)))

    def _blocking(self, pod: Waiting, reason: Blocking, parts: list[_Demand | str | None]) -> set[str]:
        """The keys of the wants of the requests that stand in the way."""
        found: set[str] = set()
        for claim, part in zip(self.resolve(pod) or (), parts, strict=True):
            if isinstance(part, _Demand):
                requests = reason.get(key_of(claim.metadata), ())
                found.update(want for name, wants in part.requests if name in requests for want in wants)
        return found

    def _compile(self, spec: ResourceClaimSpec) -> _Demand:
        requests: list[tuple[str, tuple[str, ...]]] = []
        wanted: dict[str, None] = {}
        classes: dict[str, None] = {}
        missing = admin = False
        for request in spec.devices.requests:
            wants = []
            for body in request.first_available or ((request.exactly,) if request.exactly is not None else ()):
                classes[f"class {body.device_class_name}"] = None
                found: DeviceClass | None = self._cluster.get("DeviceClass", body.device_class_name)
                if found is None:
                    missing = True
                    continue
                want = self.wants.of(found, body)
                wants.append(want.key)
                admin = admin or want.admin
                wanted[want.key] = None
                if want.every:
                    wanted[EVERY] = None
            requests.append((request.name, tuple(wants)))
        return _Demand(tuple(requests), tuple(wanted), tuple(classes), missing, admin)

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
