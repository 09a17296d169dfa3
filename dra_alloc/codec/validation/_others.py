"""DeviceClass, DeviceTaintRule and ResourcePoolStatusRequest."""

from __future__ import annotations

from collections.abc import Iterator

from dra_alloc.api import (
    DeviceClass,
    DeviceTaintRule,
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation import _parts as parts
from dra_alloc.codec.validation._meta import metadata, object_conditions
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    byte_length,
    forbidden,
    immutable,
    invalid,
    listed,
    too_long,
)
from dra_alloc.gates import Features

__all__ = ["device_class", "device_taint_rule", "pool_status_request"]

CONFIG_MAX = 32
RULE_CONDITIONS_MAX = 8
POOL_CONDITIONS_MAX = 10
POOL_LIMIT_MAX = 1000
SUMMARY_MAX = 32
VALIDATION_ERROR_MAX = 256


def device_class(new: DeviceClass, old: DeviceClass | None, features: Features) -> Iterator[Problem]:
    """All problems of a class. What is stored as it is in `old` is not checked for what became stricter since."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=False))
    spec = new.spec
    same_selectors = old is not None and old.spec.selectors == spec.selectors
    same_config = old is not None and old.spec.config == spec.config
    yield from at("spec", parts.selectors(spec.selectors, features, stored=same_selectors))
    yield from at(
        "spec",
        listed(spec.config, CONFIG_MAX, lambda item: parts.opaque(item.opaque, stored=same_config), "config"),
    )
    if spec.extended_resource_name is not None:
        yield from at("spec.extendedResourceName", formats.extended_resource_name(spec.extended_resource_name))


def device_taint_rule(new: DeviceTaintRule, old: DeviceTaintRule | None) -> Iterator[Problem]:
    """All problems of a rule and its status."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=False))
    selector = new.spec.device_selector
    if selector is not None:
        if selector.driver is not None:
            yield from at("spec.deviceSelector.driver", formats.driver_name(selector.driver))
        if selector.pool is not None:
            yield from at("spec.deviceSelector.pool", formats.pool_name(selector.pool))
        if selector.device is not None:
            yield from at("spec.deviceSelector.device", formats.label(selector.device))
    yield from at("spec.taint", parts.taint(new.spec.taint, old.spec.taint if old else None))
    if new.status is not None:
        yield from at("status", object_conditions(new.status.conditions, RULE_CONDITIONS_MAX))


def pool_status_request(
    new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest | None, features: Features
) -> Iterator[Problem]:
    """All problems of a request and its answer."""
    if not features.DRAResourcePoolStatus:
        yield from at(
            "kind", [forbidden("ResourcePoolStatusRequest is not served", "switch the gate DRAResourcePoolStatus on")]
        )
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=False))
    if old is not None:
        yield from immutable("spec", new.spec, old.spec)
    else:
        yield from at("spec", _request(new.spec, features))
    if old is not None and old.status is not None:
        yield from immutable("status", new.status, old.status)
    elif new.status is not None:
        yield from at("status", _answer(new.status))


def _request(spec: ResourcePoolStatusRequestSpec, features: Features) -> Iterator[Problem]:
    yield from at("driver", formats.driver_name(spec.driver))
    if spec.pool_name is not None:
        yield from at("poolName", formats.pool_name(spec.pool_name))
    if spec.limit is not None and not 1 <= spec.limit <= POOL_LIMIT_MAX:
        yield from at("limit", [invalid(spec.limit, "is out of range", f"from 1 to {POOL_LIMIT_MAX}")])
    attribute = spec.default_partition_type_attribute
    if attribute is not None:
        field = "defaultPartitionTypeAttribute"
        if not features.DRAPartitionableDevicesType:
            yield from at(field, [forbidden("must not be set", "it needs the gate DRAPartitionableDevicesType")])
        yield from at(field, formats.fully_qualified_name(attribute))


def _answer(status: ResourcePoolStatusRequestStatus) -> Iterator[Problem]:
    yield from object_conditions(status.conditions, POOL_CONDITIONS_MAX)
    if status.pool_count < 0:
        yield from at("poolCount", [invalid(status.pool_count, "is negative")])
    yield from listed(status.pools, POOL_LIMIT_MAX, _pool, "pools")


def _pool(pool: PoolStatus) -> Iterator[Problem]:
    yield from at("driver", formats.driver_name(pool.driver))
    yield from at("poolName", formats.pool_name(pool.pool_name))
    if pool.node_name is not None:
        yield from at("nodeName", formats.subdomain(pool.node_name))
    counts = {
        "generation": pool.generation,
        "totalDevices": pool.total_devices,
        "allocatedDevices": pool.allocated_devices,
        "availableDevices": pool.available_devices,
        "unavailableDevices": pool.unavailable_devices,
    }
    for field, count in counts.items():
        if count is not None and count < 0:
            yield from at(field, [invalid(count, "is negative")])
    if pool.resource_slice_count is not None and pool.resource_slice_count < 1:
        yield from at("resourceSliceCount", [invalid(pool.resource_slice_count, "is not greater than zero")])
    yield from listed(pool.partition_summary, SUMMARY_MAX, lambda _: (), "partitionSummary")
    if pool.shareable_summary is not None:
        capacity = pool.shareable_summary.capacity
        yield from at("shareableSummary", listed(capacity, SUMMARY_MAX, lambda _: (), "capacity"))
    if pool.validation_error is not None:
        length = byte_length(pool.validation_error)
        if length > VALIDATION_ERROR_MAX:
            yield from at("validationError", [too_long(length, VALIDATION_ERROR_MAX)])
