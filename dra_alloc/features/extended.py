"""Extended resources (KEP-5004): `resources.requests` of pods that devices serve instead of a device plugin.

Gate DRAExtendedResource. A DeviceClass serves the resource of its `spec.extendedResourceName`, and in any case
`deviceclass.resource.kubernetes.io/<class name>`. Where the node has none of the resource in `status.allocatable`, the
scheduler makes a claim for the pod, here `extended_claim`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dra_alloc.api import (
    Container,
    ContainerExtendedResourceRequest,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    Node,
    ObjectMeta,
    Pod,
    Quantity,
    ResourceClaim,
    ResourceClaimSpec,
)
from dra_alloc.features._objects import controlled_by
from dra_alloc.features.noderesources import Amounts, Refusal, aggregate, effective_requests
from dra_alloc.gates import Features

__all__ = [
    "ANNOTATION",
    "DRAFT_NAME",
    "IMPLICIT_PREFIX",
    "ClassesByResource",
    "ExtendedClaim",
    "build_claim",
    "extended_claim",
    "extended_requests",
    "is_extended",
    "is_special_claim",
    "served_by_classes",
    "totals",
]

#: What the name of a class follows in the resource name that every class serves.
IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
#: Marks the claims made for extended resources, with the value "true".
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
#: Name of such a claim before it is written; no real claim can have it.
DRAFT_NAME = "<extended-resources>"

_NANO = 10**9
_MAX_INT64 = 2**63 - 1
_OWN_DOMAIN = "kubernetes.io/"


def is_extended(name: str) -> bool:
    """Whether a resource name is one that device plugins or device classes serve: not one of Kubernetes' own."""
    if name.startswith(IMPLICIT_PREFIX):
        return True
    return "/" in name and _OWN_DOMAIN not in name and not name.startswith("requests.")


def extended_requests(container: Container) -> dict[str, int]:
    """Whole positive amounts of the extended resources that a container requests; others are ignored."""
    return {
        name: amount.nano // _NANO
        for name, amount in effective_requests(container.resources).items()
        if amount.nano > 0 and not amount.nano % _NANO and amount.nano // _NANO <= _MAX_INT64 and is_extended(name)
    }


class ClassesByResource:
    """The device class that serves a resource name.

    Of two classes with one `extendedResourceName` the newer serves it (`metadata.creationTimestamp`; one without counts
    as the oldest), of two of one age the first by name. The implicit name always means the class that it names.
    """

    def __init__(self, classes: Iterable[DeviceClass]) -> None:
        self._by_name: dict[str, DeviceClass] = {}
        self._explicit: dict[str, DeviceClass] = {}
        for item in sorted(classes, key=lambda each: each.metadata.name):
            self._by_name[item.metadata.name] = item
            name = item.spec.extended_resource_name
            if name and (name not in self._explicit or _newer(item, self._explicit[name])):
                self._explicit[name] = item

    def get(self, resource: str) -> DeviceClass | None:
        """The class for a resource name, or None."""
        if resource.startswith(IMPLICIT_PREFIX):
            return self._by_name.get(resource.removeprefix(IMPLICIT_PREFIX))
        return self._explicit.get(resource)


def _newer(one: DeviceClass, other: DeviceClass) -> bool:
    mine, theirs = one.metadata.creation_timestamp, other.metadata.creation_timestamp
    return mine is not None and (theirs is None or mine > theirs)


@attrs.frozen
class ExtendedClaim:
    """The claim for the extended resources of a pod on a node, and which request serves which container.

    claim: under the name `DRAFT_NAME`; requests sorted by name.
    """

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def extended_claim(
    pod: Pod, node: Node, classes: ClassesByResource, features: Features | None = None
) -> ExtendedClaim | Refusal | None:
    """The claim that the scheduler makes for the pod on this node; None if devices serve nothing of it there.

    A node that has any amount of a resource in `status.allocatable` serves it itself (by a device plugin), whether or
    not enough is left. A resource that the node has not and that no class serves: the pod does not fit, a Refusal.
    With the gate off only nodes serve extended resources.
    """
    served = served_by_classes(pod, node, classes, features or Features())
    if isinstance(served, Refusal):
        return served
    return build_claim(pod, served) if served else None


def totals(pod: Pod) -> Amounts:
    """What the pod requests of extended resources: init containers one by one, sidecars all along. In whole units."""
    if not any("/" in name for each in _containers(pod) for name in effective_requests(each.resources)):
        return {}
    total = aggregate(
        pod, lambda each: {name: Quantity(amount * _NANO) for name, amount in extended_requests(each).items()}
    )
    return {name: total[name] // _NANO for name in sorted(total)}


def served_by_classes(
    pod: Pod, node: Node, classes: ClassesByResource, features: Features
) -> dict[str, DeviceClass] | Refusal:
    """The extended resources of the pod that devices serve on this node, with their classes, sorted by name."""
    allocatable = node.status.allocatable if node.status is not None else {}
    served: dict[str, DeviceClass] = {}
    for name in totals(pod):
        amount = allocatable.get(name)
        device_class = classes.get(name) if features.DRAExtendedResource else None
        if device_class is not None and (amount is None or not amount.nano):
            served[name] = device_class
        elif amount is None:
            why = "no DeviceClass serves it" if features.DRAExtendedResource else "DRAExtendedResource is off"
            return Refusal(f"{name}: the node has none, and {why}", unresolvable=True)
    return served


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


@attrs.define
class _Request:
    name: str
    index: int
    count: int


def build_claim(pod: Pod, served: Mapping[str, DeviceClass]) -> ExtendedClaim:
    """The claim for these resources of a pod, whatever the node."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(served):
        own, mapped = _requests_for(pod, resource)
        mappings += mapped
        requests += [
            DeviceRequest(
                name=each.name,
                exactly=ExactDeviceRequest(
                    device_class_name=served[resource].metadata.name, allocation_mode="ExactCount", count=each.count
                ),
            )
            for each in own
        ]
    metadata = ObjectMeta(
        name=DRAFT_NAME,
        namespace=pod.metadata.namespace,
        generate_name=f"{pod.metadata.name}-extended-resources-",
        annotations={ANNOTATION: "true"},
        owner_references=(controlled_by(pod),),
    )
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(sorted(requests, key=lambda request: request.name))))
    return ExtendedClaim(ResourceClaim(metadata=metadata, spec=spec), tuple(mappings))


def _requests_for(pod: Pod, resource: str) -> tuple[list[_Request], list[ContainerExtendedResourceRequest]]:
    """The requests for one resource, and what serves each container.

    Containers that run all along (regular ones and sidecars) have requests of their own. An init container uses those
    of the containers after it that run all along; what it lacks then is a request of its own. Init containers
    run one after the other, so the largest of these requests serves them all.
    """
    lasting: list[_Request] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    containers = _containers(pod)
    first_regular = len(pod.spec.init_containers)
    passing: list[tuple[int, Container, int]] = []
    for index, container in enumerate(containers):
        amount = extended_requests(container).get(resource, 0)
        if not amount:
            continue
        if index >= first_regular or container.restart_policy == "Always":
            lasting.append(_Request(_request_name(index, container, resource), index, amount))
            mappings.append(_mapping(container, resource, lasting[-1].name))
        else:
            passing.append((index, container, amount))
    largest: _Request | None = None
    drafts: list[tuple[Container, list[str], bool]] = []
    for index, container, amount in passing:
        reused: list[str] = []
        have = 0
        for request in lasting:
            if have >= amount:
                break
            if request.index >= index:
                reused.append(request.name)
                have += request.count
        if have < amount:
            candidate = _Request(_request_name(index, container, resource), index, amount - have)
            if largest is None or candidate.count > largest.count:
                largest = candidate
        drafts.append((container, reused, have < amount))
    for container, reused, needs_more in drafts:
        mappings += [_mapping(container, resource, name) for name in reused]
        if needs_more:
            assert largest is not None
            mappings.append(_mapping(container, resource, largest.name))
    return [*lasting, largest] if largest is not None else lasting, mappings


def _request_name(index: int, container: Container, resource: str) -> str:
    position = sorted(effective_requests(container.resources)).index(resource)
    return f"container-{index}-request-{position}"


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def is_special_claim(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for the extended resources of this pod."""
    return claim.metadata.annotations.get(ANNOTATION) == "true" and any(
        owner.controller and owner.kind == "Pod" and owner.name == pod.metadata.name and owner.uid == pod.metadata.uid
        for owner in claim.metadata.owner_references
    )
