"""CPU, memory and the like: what pods request, what is requested of a node, and whether a pod fits in the rest.

Amounts are whole nanos by resource name. What claims add (KEP-5517) comes as the pod's
`nodeAllocatableResourceClaimStatuses`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import Container, Node, NodeAllocatableResourceClaimStatus, Pod, Quantity, ResourceRequirements
from dra_alloc.api.quantity import QuantityFormat

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = [
    "Amounts",
    "NodeUse",
    "Refusal",
    "aggregate",
    "claimed",
    "effective_requests",
    "fit",
    "footprint",
    "is_finished",
    "is_node_allocatable",
    "pod_level",
    "quantity_of",
    "requested_on",
]

#: Nanos by name of the resource.
Amounts = dict[str, int]

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_HUGE = "hugepages-"
_FINISHED = ("Succeeded", "Failed")


@attrs.frozen
class Refusal:
    """Why a pod does not fit on a node.

    reason: in words. unresolvable: whether it stays so whatever other pods of the node go (the scheduler's
    `UnschedulableAndUnresolvable`). everywhere: whether it holds on every node.
    """

    reason: str
    unresolvable: bool = False
    everywhere: bool = False

    def __str__(self) -> str:
        return self.reason


def is_node_allocatable(name: str) -> bool:
    """Whether devices may be mapped to the resource: cpu, memory, ephemeral-storage, hugepages-<size>."""
    return name in _NATIVE or name.startswith(_HUGE)


def is_finished(pod: Pod) -> bool:
    """Whether the pod has Succeeded or Failed and uses nothing any more."""
    return pod.status is not None and pod.status.phase in _FINISHED


def effective_requests(resources: ResourceRequirements) -> Mapping[str, Quantity]:
    """Requests; what only has a limit requests just that, as the API server fills in."""
    if resources.limits.keys() <= resources.requests.keys():
        return resources.requests
    return {**resources.limits, **resources.requests}


def aggregate(pod: Pod, amounts_of: Callable[[Container], Mapping[str, Quantity]]) -> Amounts:
    """What the containers of a pod need together, resource by resource.

    The larger of: all containers and sidecars at once; each init container with the sidecars that were started before.
    """
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, amounts_of(container))
    if not pod.spec.init_containers:
        return total
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            _add(sidecars, amounts_of(container))
            need = sidecars
        else:
            need = dict(sidecars)
            _add(need, amounts_of(container))
        for name, nano in need.items():
            peak[name] = max(peak.get(name, 0), nano)
    for name, nano in sidecars.items():
        total[name] = total.get(name, 0) + nano
    for name, nano in peak.items():
        total[name] = max(total.get(name, 0), nano)
    return total


def _add(total: Amounts, amounts: Mapping[str, Quantity]) -> None:
    """Add amounts; negative ones, which the API refuses, never make room."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + max(0, amount.nano)


def pod_level(pod: Pod) -> Amounts:
    """Requests for the pod as a whole (`spec.resources`), as far as they can replace those of containers."""
    if pod.spec.resources is None:
        return {}
    return {
        name: amount.nano
        for name, amount in pod.spec.resources.requests.items()
        if name in ("cpu", "memory") or name.startswith(_HUGE)
    }


def footprint(pod: Pod, statuses: Iterable[NodeAllocatableResourceClaimStatus] = ()) -> Amounts:
    """What the pod takes of its node: of containers and claims, replaced by pod-level requests, plus `spec.overhead`.

    A mapped amount counts once a claim, however many containers use it; overhead once a pod and once for each
    container that refers to the claim.
    """
    total = aggregate(pod, lambda container: effective_requests(container.resources))
    for name, nano in claimed(statuses).items():
        total[name] = total.get(name, 0) + nano
    total.update(pod_level(pod))
    _add(total, pod.spec.overhead)
    return total


def claimed(statuses: Iterable[NodeAllocatableResourceClaimStatus]) -> Amounts:
    """What claims add to the requests of a pod."""
    total: Amounts = {}
    for status in statuses:
        for mapped in status.mapping:
            total[mapped.name] = total.get(mapped.name, 0) + mapped.quantity.nano
        for overhead in status.overhead:
            nano = overhead.per_pod.nano if overhead.per_pod is not None else 0
            if overhead.per_container is not None:
                nano += overhead.per_container.nano * len(status.containers)
            total[overhead.name] = total.get(overhead.name, 0) + nano
    return total


def requested_on(
    cluster: Cluster, node: str, *, with_claims: bool, without: Collection[str] = frozenset()
) -> Mapping[str, int]:
    """What the pods that are bound to a node and have not finished take of it.

    with_claims: whether what their claims add counts (gate DRANodeAllocatableResources). without: keys of pods that are
    left out.
    """
    use = cluster.use_of_node(node)
    for key in without:
        pod: Pod | None = cluster.get("Pod", key)
        if pod is not None and pod.spec.node_name == node:
            use = use.with_pod(pod, -1)
    return use.with_claims if with_claims else use.plain


@attrs.frozen
class NodeUse:
    """What pods take of their node: `plain` without, `with_claims` with what their claims add; some may be zero."""

    plain: Mapping[str, int] = attrs.field(factory=dict)
    with_claims: Mapping[str, int] = attrs.field(factory=dict)

    def with_pod(self, pod: Pod, sign: int = 1) -> NodeUse:
        """With one pod more, or with the sign -1 one less; finished pods take nothing."""
        if is_finished(pod):
            return self
        statuses = _statuses(pod)
        own = footprint(pod)
        whole = footprint(pod, statuses) if statuses else own
        return NodeUse(_added(self.plain, own, sign), _added(self.with_claims, whole, sign))


def _added(total: Mapping[str, int], amounts: Mapping[str, int], sign: int) -> Mapping[str, int]:
    if not amounts:
        return total
    found = dict(total)
    for name, nano in amounts.items():
        found[name] = found.get(name, 0) + sign * nano
    return found


def _statuses(pod: Pod) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    return pod.status.node_allocatable_resource_claim_statuses if pod.status is not None else ()


def fit(
    needed: Mapping[str, int], requested: Mapping[str, int], node: Node, must_have: Iterable[str] = ()
) -> Refusal | None:
    """Why a pod that needs these amounts does not fit on a node where others have requested theirs, or None.

    Resources that the node does not publish in `status.allocatable` are not judged, except those in `must_have`,
    of which such a node has none. Amounts are exact, so one nano too many is too many.
    """
    allocatable = node.status.allocatable if node.status is not None else {}
    needs = sorted((name, nano) for name, nano in needed.items() if nano > 0)
    required = set(must_have)
    short: Refusal | None = None
    for name, nano in needs:
        published = allocatable.get(name)
        if published is None and name not in required:
            continue
        most = published.nano if published is not None else 0
        if nano > most:
            takes, has = quantity_of(name, nano), quantity_of(name, most)
            return Refusal(f"{name}: the pod takes {takes}, the node has {has}", unresolvable=True)
        left = most - requested.get(name, 0)
        if nano > left and short is None:
            amounts = (quantity_of(name, each) for each in (nano, max(0, left), most))
            short = Refusal("{}: the pod takes {}, {} of {} are left".format(name, *amounts))
    return short


def quantity_of(name: str, nano: int) -> Quantity:
    """An amount of a resource in the format that is usual for it: binary for bytes."""
    in_bytes = is_node_allocatable(name) and name != "cpu"
    return Quantity(nano, QuantityFormat.BINARY_SI if in_bytes else QuantityFormat.DECIMAL_SI)
