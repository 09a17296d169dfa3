"""Optional node operations (KEP-5945): which drivers a node must call to prepare and to unprepare a pod's claims.

Gate DRAOptionalNodeOperations. A driver that lists operations in `ResourceSlice.spec.skipNodeOperations` needs no call
for them; the list is copied into each allocation result, and what was copied there decides.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dra_alloc.api import DeviceRequestAllocationResult, Node, Pod, ResourceClaim
from dra_alloc.errors import AllocationError
from dra_alloc.features._consumers import pod_claims
from dra_alloc.features._objects import key_of, refused
from dra_alloc.gates import Features

__all__ = [
    "NODE_FEATURE",
    "PREPARE",
    "SKIP_ALL",
    "UNPREPARE",
    "NodeCalls",
    "node_calls",
    "node_supports",
    "pod_node_calls",
    "skips",
    "unprepare_calls",
]

PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"
#: In `skipNodeOperations`: every operation.
SKIP_ALL = "*"

#: What a node must list in `status.declaredFeatures` to be given devices that skip operations.
NODE_FEATURE = "DRAOptionalNodeOperations"


@attrs.frozen
class NodeCalls:
    """The calls that the kubelet makes for one claim (`namespace/name`): the drivers, in the order of their results."""

    claim: str
    prepare: tuple[str, ...]
    unprepare: tuple[str, ...]


def skips(result: DeviceRequestAllocationResult, operation: str) -> bool:
    """Whether an allocated device needs no call of `operation` (`PREPARE`, `UNPREPARE`); unknown words do not count."""
    return operation in result.skip_node_operations or SKIP_ALL in result.skip_node_operations


def node_calls(claim: ResourceClaim, features: Features | None = None) -> NodeCalls:
    """Which drivers the node of a pod calls for an allocated claim.

    A call is made once for the claim and driver, unless every device of the driver in the claim skips it. Raises
    ValidationError for a claim without allocation, and AllocationError (`unsupported`) where a device skips preparation
    while the gate is off, since the kubelet refuses to prepare such a claim; `unprepare_calls` says what it still does.
    """
    results = _results(claim)
    if not (features or Features()).DRAOptionalNodeOperations:
        for result in results:
            if skips(result, PREPARE):
                raise AllocationError(
                    "unsupported",
                    f"skipping {PREPARE} needs the feature gate DRAOptionalNodeOperations, which is off",
                    claim=key_of(claim.metadata),
                    request=result.request,
                    device=f"{result.driver}/{result.pool}/{result.device}",
                )
    return NodeCalls(key_of(claim.metadata), _drivers(results, PREPARE), _drivers(results, UNPREPARE))


def unprepare_calls(claim: ResourceClaim) -> tuple[str, ...]:
    """The drivers to call when the pod has ended; with the gate off too, so that pods of before can end.

    Raises ValidationError for a claim without allocation.
    """
    return _drivers(_results(claim), UNPREPARE)


def pod_node_calls(
    pod: Pod, claims: Iterable[ResourceClaim], features: Features | None = None
) -> tuple[NodeCalls, ...]:
    """`node_calls` of each claim of a pod in order, the one for its extended resources last, each claim once.

    claims: those of the cluster. Raises ValidationError for a claim that does not exist (or was not made for the pod)
    or is not allocated, and what `node_calls` raises.
    """
    features = features or Features()
    known = {key_of(claim.metadata): claim for claim in claims}
    found = list(pod_claims(pod, known, features, extended=True))
    names = {name for name, _ in found}
    without = (
        {entry.name for entry in pod.status.resource_claim_statuses if not entry.resource_claim_name}
        if pod.status
        else set()
    )
    for index, entry in enumerate(pod.spec.resource_claims):
        if entry.name not in names and entry.name not in without:
            raise refused(
                f"Pod {key_of(pod.metadata)}: spec.resourceClaims[{index}]",
                f"there is no ResourceClaim for {entry.name!r}",
                "it must exist; one from a template must be in status.resourceClaimStatuses and owned by the pod",
            )
    unique = {key_of(claim.metadata): claim for _, claim in found}
    return tuple(node_calls(claim, features) for claim in unique.values())


def node_supports(node: Node, claims: Iterable[ResourceClaim]) -> bool:
    """Whether the node may be given the claims: with a device that skips operations it must declare the feature.

    That is an entry DRAOptionalNodeOperations in the node's `status.declaredFeatures`.
    """
    if node.status is not None and NODE_FEATURE in node.status.declared_features:
        return True
    return not any(
        result.skip_node_operations
        for claim in claims
        if claim.status and claim.status.allocation
        for result in claim.status.allocation.devices.results
    )


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    if claim.status is None or claim.status.allocation is None:
        raise refused(
            f"ResourceClaim {key_of(claim.metadata)}: status.allocation",
            "the claim is not allocated",
            "a node prepares allocated claims only",
        )
    return claim.status.allocation.devices.results


def _drivers(results: Iterable[DeviceRequestAllocationResult], operation: str) -> tuple[str, ...]:
    """The drivers with a device that does not skip the operation."""
    return tuple(dict.fromkeys(result.driver for result in results if not skips(result, operation)))
