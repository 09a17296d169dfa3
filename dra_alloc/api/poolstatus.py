"""ResourcePoolStatusRequest: asking how much of a pool is in use (KEP-5677)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model
from dra_alloc.api.meta import Condition, KubernetesObject, ObjectMeta
from dra_alloc.api.quantity import Quantity

__all__ = [
    "PartitionTypeStatus",
    "PoolStatus",
    "ResourcePoolStatusRequest",
    "ResourcePoolStatusRequestSpec",
    "ResourcePoolStatusRequestStatus",
    "ShareableCapacityStatus",
    "ShareableSummaryStatus",
]


@attrs.frozen(kw_only=True)
class ResourcePoolStatusRequestSpec(Model):
    """Which pools: those of `driver`, or the one of `pool_name`; at most `limit` (None: 100).

    `default_partition_type_attribute` groups the partitions of slices that declare no attribute themselves.
    """

    driver: str = attrs.field(default="", metadata=REQUIRED)
    pool_name: str | None = None
    limit: int | None = None
    default_partition_type_attribute: str | None = None


@attrs.frozen(kw_only=True)
class PartitionTypeStatus(Model):
    """How many devices of a partition type exist, and how many more can still be allocated."""

    attribute: str = attrs.field(default="", metadata=REQUIRED)
    type: str = attrs.field(default="", metadata=REQUIRED)
    total: int = attrs.field(default=0, metadata=REQUIRED)
    allocatable: int = attrs.field(default=0, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class ShareableCapacityStatus(Model):
    """One capacity summed over the shareable devices of a pool."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    total: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)
    consumed: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)
    available: Quantity = attrs.field(factory=Quantity, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class ShareableSummaryStatus(Model):
    """The shareable devices of a pool: how many are untouched, how many in part in use, and their capacities."""

    fully_available_devices: int = attrs.field(default=0, metadata=REQUIRED)
    partially_available_devices: int = attrs.field(default=0, metadata=REQUIRED)
    capacity: tuple[ShareableCapacityStatus, ...] = ()


@attrs.frozen(kw_only=True)
class PoolStatus(Model):
    """The state of one pool; with `validation_error` the counts may be absent."""

    driver: str = attrs.field(default="", metadata=REQUIRED)
    pool_name: str = attrs.field(default="", metadata=REQUIRED)
    generation: int = attrs.field(default=0, metadata=REQUIRED)
    node_name: str | None = None
    resource_slice_count: int | None = None
    total_devices: int | None = None
    allocated_devices: int | None = None
    available_devices: int | None = None
    unavailable_devices: int | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    shareable_summary: ShareableSummaryStatus | None = None
    validation_error: str | None = None


@attrs.frozen(kw_only=True)
class ResourcePoolStatusRequestStatus(Model):
    """The answer: `pool_count` pools matched, `pools` are the first of them."""

    pool_count: int = attrs.field(default=0, metadata=REQUIRED)
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


@attrs.frozen(kw_only=True)
class ResourcePoolStatusRequest(KubernetesObject):
    """A question about the state of pools, answered once (KEP-5677)."""

    kind: ClassVar[str] = "ResourcePoolStatusRequest"
    api_version: ClassVar[str] = "resource.k8s.io/v1alpha3"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ResourcePoolStatusRequestSpec = attrs.field(factory=ResourcePoolStatusRequestSpec, metadata=REQUIRED)
    status: ResourcePoolStatusRequestStatus | None = None
