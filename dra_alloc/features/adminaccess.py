"""Admin access (KEP-5018): requests for devices whoever uses them, which only labelled namespaces may make.

Gate DRAAdminAccess. The API server refuses `adminAccess: true` in claims, and results with it in their status, unless
the namespace has the label `resource.kubernetes.io/admin-access: "true"`. Here the check is made where a claim would be
given devices, and only where the Namespace object is in the cluster: without it nothing is known of its labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from dra_alloc.errors import AllocationError

if TYPE_CHECKING:
    from dra_alloc.api import Namespace, ResourceClaim

__all__ = ["LABEL", "admits_admin_access", "check_admin_access"]

#: The label that a namespace must have, with exactly the value "true".
LABEL = "resource.kubernetes.io/admin-access"


class _Namespaces(Protocol):
    def get(self, kind: str, key: str) -> Namespace | None: ...


def admits_admin_access(namespace: Namespace) -> bool:
    """Whether claims of the namespace may ask for admin access: the value of the label is case-sensitive."""
    return namespace.metadata.labels.get(LABEL) == "true"


def check_admin_access(claims: Iterable[ResourceClaim], cluster: _Namespaces) -> None:
    """Raise AllocationError (`forbidden`) for the first claim that asks for admin access and may not.

    cluster: where Namespace objects are looked up. Claims that are allocated already are not to be given here; what
    they have stays valid when the label is taken away.
    """
    for claim in claims:
        name = claim.metadata.namespace or "default"
        for position, request in enumerate(claim.spec.devices.requests):
            if request.exactly is None or not request.exactly.admin_access:
                continue
            namespace = cluster.get("Namespace", name)
            if namespace is not None and not admits_admin_access(namespace):
                raise AllocationError(
                    "forbidden",
                    f"spec.devices.requests[{position}].exactly.adminAccess is allowed only in namespaces with the "
                    f'label {LABEL}: "true", which namespace {name} lacks',
                    claim=claim.metadata.key,
                    request=request.name,
                )
            break
