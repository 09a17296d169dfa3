"""The queueing hints of the scheduler's DRA plugin (Kubernetes 1.37), pod by pod and without an index."""

from __future__ import annotations

import dra_alloc as dra
from dra_alloc.api import Device, Pod, ResourceClaim
from dra_alloc.cel import compile_selector, device_env
from dra_alloc.errors import CelError


def queues(event: dra.Event, pod: Pod, cluster: dra.Cluster) -> bool:
    """Whether the hint for an event lets through a pod that did not fit. cluster: after the event."""
    if event.kind == "ResourceClaim":
        return _claim_hint(event, pod, cluster)
    if event.kind in ("ResourceSlice", "DeviceClass"):
        return event.action != "deleted"
    if event.kind == "DeviceTaintRule":
        return True  # the tracker makes a ResourceSlice update of it
    if event.kind == "Node":
        return event.action == "added" or (event.action == "updated" and _node_changed(event))
    return False


def _claim_hint(event: dra.Event, pod: Pod, cluster: dra.Cluster) -> bool:
    names = [f"default/{entry.resource_claim_name}" for entry in pod.spec.resource_claims]
    if any(cluster.get("ResourceClaim", name) is None for name in names):
        return False
    new: ResourceClaim | None = None if event.action == "deleted" else event.object
    old: ResourceClaim | None = event.object if event.action == "deleted" else event.old
    if is_deallocated(event):
        return True
    if event.key not in names:
        return False
    if old is None or new is None:
        return True
    # A spec never changes: a claim that asks for something else is a new one of the same name.
    return old.status != new.status or old.spec != new.spec


def is_deallocated(event: dra.Event) -> bool:
    """Whether a claim gave up its devices, or was deleted while it had some."""
    old = event.object if event.action == "deleted" else event.old
    return _allocated(old) and (event.action == "deleted" or not _allocated(event.object))


def _allocated(claim: ResourceClaim | None) -> bool:
    return claim is not None and claim.status is not None and claim.status.allocation is not None


def _node_changed(event: dra.Event) -> bool:
    old, new = event.old, event.object
    if old.status.declared_features != new.status.declared_features:
        return True  # the hint forgets it, though a device may need a feature of its node
    return old.metadata.labels != new.metadata.labels or old.status.allocatable != new.status.allocatable


def selects(pod: Pod, driver: str, device: Device, cluster: dra.Cluster) -> bool:
    """Whether the selectors of one of the requests of a pod admit a device."""
    env = device_env(driver, device)
    for entry in pod.spec.resource_claims:
        claim = cluster.get("ResourceClaim", f"default/{entry.resource_claim_name}")
        for request in claim.spec.devices.requests if claim is not None else ():
            for body in request.first_available or (request.exactly,):
                device_class = cluster.get("DeviceClass", body.device_class_name)
                if device_class is None:
                    continue
                texts = [each.cel.expression for each in (*device_class.spec.selectors, *body.selectors)]
                if all(_true(text, env) for text in texts):
                    return True
    return False


def _true(text: str, env: object) -> bool:
    try:
        return compile_selector(text).evaluate(env) is True
    except CelError:
        return False
