"""What a ResourceQuota counts of devices: claims, and extended resources of device plugins and classes (KEP-5004).

Gate DRAExtendedResource for the names of resources; the counts of claims and classes are there without it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dra_alloc.api import DeviceClass, Pod, ResourceClaim
from dra_alloc.features.extended import IMPLICIT_PREFIX, ClassesByResource, totals
from dra_alloc.features.noderesources import is_finished
from dra_alloc.gates import Features

__all__ = ["CLAIMS", "CLASS_SUFFIX", "MOST_DEVICES", "devices_of", "quota_usage"]

#: The resource name that counts claims.
CLAIMS = "count/resourceclaims.resource.k8s.io"
#: What follows the class in the resource name that counts its devices.
CLASS_SUFFIX = ".deviceclass.resource.k8s.io/devices"
#: What a request for all devices counts as: the most results that a claim can have.
MOST_DEVICES = 32


def devices_of(claim: ResourceClaim) -> dict[str, int]:
    """The devices that a claim counts as, by class, allocated or not.

    A request for all devices counts as 32; of the alternatives of `firstAvailable` the largest of each class counts.
    Requests with admin access count like others.
    """
    found: dict[str, int] = {}
    for request in claim.spec.devices.requests:
        most: dict[str, int] = {}
        for body in request.first_available or ((request.exactly,) if request.exactly is not None else ()):
            count = MOST_DEVICES if body.allocation_mode == "All" else body.count or 1
            most[body.device_class_name] = max(most.get(body.device_class_name, 0), count)
        for name, count in most.items():
            found[name] = found.get(name, 0) + count
    return found


def quota_usage(
    pods: Iterable[Pod],
    claims: Iterable[ResourceClaim],
    classes: Iterable[DeviceClass],
    *,
    namespace: str,
    features: Features | None = None,
) -> dict[str, int]:
    """What is used of each name that a ResourceQuota of the namespace can limit, sorted by name.

    `count/resourceclaims.resource.k8s.io`: claims. `<class>.deviceclass.resource.k8s.io/devices`: devices of all
    claims, those made for extended resources included. `requests.deviceclass.resource.kubernetes.io/<class>`: the same
    devices, and what pods request by this name that no claim serves yet. `requests.<extended name>`: the devices of the
    class that serves the name, and what pods request of device plugins. Pods that have finished count nothing.
    """
    switched = features or Features()
    own_claims = [claim for claim in claims if (claim.metadata.namespace or "default") == namespace]
    known = list(classes)
    by_resource = ClassesByResource(known)
    usage: dict[str, int] = {CLAIMS: len(own_claims)}
    by_class: dict[str, int] = {}
    for claim in own_claims:
        for name, count in devices_of(claim).items():
            by_class[name] = by_class.get(name, 0) + count
    for name, count in by_class.items():
        usage[f"{name}{CLASS_SUFFIX}"] = count
    if switched.DRAExtendedResource:
        for item in known:
            name = item.metadata.name
            explicit = item.spec.extended_resource_name
            count = by_class.get(name, 0)
            if count:
                usage[f"requests.{IMPLICIT_PREFIX}{name}"] = count
                if explicit and by_resource.get(explicit) is item:
                    usage[f"requests.{explicit}"] = count
    for pod in pods:
        if (pod.metadata.namespace or "default") == namespace and not is_finished(pod):
            for name, count in _without_claim(pod).items():
                usage[f"requests.{name}"] = usage.get(f"requests.{name}", 0) + count
    return dict(sorted(usage.items()))


def _without_claim(pod: Pod) -> dict[str, int]:
    """The extended resources of a pod that its claim, if it has one, does not serve."""
    status = pod.status.extended_resource_claim_status if pod.status is not None else None
    served = {mapping.resource_name for mapping in status.request_mappings} if status is not None else set()
    return {name: amount for name, amount in totals(pod).items() if name not in served}
