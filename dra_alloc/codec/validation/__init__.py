"""Validation as the API server does it for the kinds of Dynamic Resource Allocation.

`validate` lists every rule that an object breaks; `warnings` what the server accepts and a person should know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from dra_alloc.api import (
    DeviceClass,
    DeviceTaintRule,
    KubernetesObject,
    Namespace,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePoolStatusRequest,
    ResourceSlice,
    Workload,
)
from dra_alloc.codec.validation._claims import ADMIN_ACCESS_LABEL, resource_claim, resource_claim_template
from dra_alloc.codec.validation._gates import disabled_fields, drop_disabled
from dra_alloc.codec.validation._others import device_class, device_taint_rule, pool_status_request
from dra_alloc.codec.validation._problems import Problem, immutable
from dra_alloc.codec.validation._slices import COUNTERS_WITH_DEVICES, resource_slice
from dra_alloc.codec.validation._warnings import version_of, warnings_about
from dra_alloc.codec.validation._workloads import pod, pod_group, workload
from dra_alloc.gates import Features

__all__ = ["ADMIN_ACCESS_LABEL", "COUNTERS_WITH_DEVICES", "Problem", "examine", "validate", "warnings"]


def validate(
    obj: object, old: object = None, features: Features | None = None, *, namespace: object = None
) -> list[Problem]:
    """Everything about an object that the API server of Kubernetes 1.37 would refuse, all at once.

    obj: an api object, a dict in Kubernetes form, or an object of a client library. Its status is checked as a write
    of the status would be. Kinds that DRA adds nothing to (Node, Namespace) have no problems.
    old: the stored object, for an update: what may not change is compared with it, and what has not changed is not
    held against rules that are stricter than when it was stored.
    features: gates that are off drop their fields before the rest is checked, as the server does, unless `old` uses
    them; default: those of Kubernetes 1.37.
    namespace: the Namespace of a claim or template; then requests with admin access (KEP-5018) need its label.

    An empty list means that the object is valid. Raises DecodeError for what is no object at all.
    """
    switches = Features() if features is None else features
    new = _model(obj)
    before = None if old is None else _model(old)
    if before is not None and type(before) is not type(new):
        return list(immutable("kind", type(new).__name__, type(before).__name__))
    around = None if namespace is None else _model(namespace)
    return list(_problems(drop_disabled(new, before, switches), before, switches, cast("Namespace | None", around)))


def warnings(obj: object, old: object = None, features: Features | None = None) -> list[Problem]:
    """What the API server accepts, and a person should know: deprecated versions, fields that it drops, values that do
    nothing or not what they seem to.

    Arguments as for `validate`. The API version is only known of dicts and objects of client libraries.
    """
    switches = Features() if features is None else features
    new = _model(obj)
    dropped = disabled_fields(new, None if old is None else _model(old), switches)
    return list(warnings_about(version_of(obj), new, dropped))


def examine(obj: KubernetesObject, features: Features) -> tuple[list[Problem], list[Problem]]:
    """What `validate` and `warnings` say about a new object, for the work of one."""
    dropped = tuple(disabled_fields(obj, None, features))
    stored = drop_disabled(obj, None, features) if dropped else obj
    return list(_problems(stored, None, features, None)), list(warnings_about("", obj, dropped))


def _model(obj: object) -> KubernetesObject:
    if isinstance(obj, KubernetesObject):
        return obj
    from dra_alloc.codec import decode

    return decode(obj)


def _problems(
    new: KubernetesObject, old: KubernetesObject | None, features: Features, namespace: Namespace | None
) -> Iterator[Problem]:
    # The kinds of `new` and `old` are the same.
    match new:
        case ResourceSlice():
            yield from resource_slice(new, cast("ResourceSlice | None", old), features)
        case DeviceClass():
            yield from device_class(new, cast("DeviceClass | None", old), features)
        case ResourceClaim():
            yield from resource_claim(new, cast("ResourceClaim | None", old), features, namespace)
        case ResourceClaimTemplate():
            yield from resource_claim_template(new, cast("ResourceClaimTemplate | None", old), features, namespace)
        case DeviceTaintRule():
            yield from device_taint_rule(new, cast("DeviceTaintRule | None", old))
        case ResourcePoolStatusRequest():
            yield from pool_status_request(new, cast("ResourcePoolStatusRequest | None", old), features)
        case Pod():
            yield from pod(new, cast("Pod | None", old))
        case PodGroup():
            yield from pod_group(new, cast("PodGroup | None", old))
        case Workload():
            yield from workload(new, cast("Workload | None", old))
        case _:
            pass
