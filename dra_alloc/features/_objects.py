"""What the features share: names of devices, newest generations of pools, and the objects of a cluster by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from dra_alloc.api import (
    DeviceTaintRule,
    KubernetesObject,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.codec.validation import Problem
from dra_alloc.errors import AllocationError, ValidationError

__all__ = [
    "ClusterObjects",
    "DeviceId",
    "aware",
    "controlled_by",
    "gate_off",
    "key_in",
    "key_of",
    "newest_slices",
    "refused",
]


class DeviceId(NamedTuple):
    """A device, named as the API names it in allocation results."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class ClusterObjects(Protocol):
    """What the features read of a cluster; `dra_alloc.Cluster` is one."""

    def slices(self) -> Sequence[ResourceSlice]: ...
    def claims(self) -> Sequence[ResourceClaim]: ...
    def pods(self) -> Sequence[Pod]: ...
    def rules(self) -> Sequence[DeviceTaintRule]: ...
    def nodes(self) -> Sequence[Node]: ...


def newest_slices(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], list[ResourceSlice]]:
    """The slices of each pool (driver, pool name) at the newest generation that any of its slices has."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for item in slices:
        key = (item.spec.driver, item.spec.pool.name)
        known = pools.get(key)
        if known is None or item.spec.pool.generation > known[0].spec.pool.generation:
            pools[key] = [item]
        elif item.spec.pool.generation == known[0].spec.pool.generation:
            known.append(item)
    return pools


def key_of(metadata: ObjectMeta) -> str:
    """`namespace/name` of a namespaced object; without a namespace it is in `default`, as for kubectl."""
    return key_in(metadata.namespace, metadata.name)


def key_in(namespace: str, name: str) -> str:
    """`namespace/name`; no namespace means `default`, as for kubectl."""
    return f"{namespace or 'default'}/{name}"


def controlled_by(owner: KubernetesObject) -> OwnerReference:
    """The entry of `metadata.ownerReferences` in what a controller makes for an object."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid or "",
        controller=True,
        block_owner_deletion=True,
    )


def aware(now: datetime) -> datetime:
    """The time in UTC. A time without zone is refused, since it could mean any instant."""
    if now.tzinfo is None:
        raise refused("now", f"the time {now.isoformat()} has no time zone", "for instance datetime.now(UTC)")
    return now.astimezone(UTC)


def refused(path: str, message: str, hint: str = "") -> ValidationError:
    """The error for one problem."""
    return ValidationError([Problem(path, message, hint)])


def gate_off(what: str, gate: str) -> AllocationError:
    """The error for what needs a feature gate that is off."""
    return AllocationError("unsupported", f"{what} needs the feature gate {gate}, which is off")
