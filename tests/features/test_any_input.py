"""Whatever objects say, the features answer or refuse with an exception of the library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_alloc.api import (
    AllocatedDeviceStatus,
    Device,
    DeviceRequestAllocationResult,
    DeviceTaintRuleSpec,
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra_alloc.api import DeviceTaintRule as Rule
from dra_alloc.errors import DraError
from dra_alloc.features.binding import pod_readiness, retry_plan
from dra_alloc.features.devicestatus import (
    addresses,
    in_network,
    needed_permissions,
    put_device_status,
    update_status,
)
from dra_alloc.features.metadata import (
    VERSIONS,
    MetadataDevice,
    MetadataWriter,
    container_files,
    metadata_problems,
    published_metadata,
)
from dra_alloc.features.nodeoperations import node_supports, pod_node_calls
from dra_alloc.features.poolstatus import answer, expired, pool_status
from dra_alloc.features.standard import attribute_problems, physical_numa_node
from dra_alloc.features.taints import (
    create_rule,
    default_time_added,
    eviction_plan,
    keep_time_added,
    rule_condition,
    update_rule,
)
from dra_alloc.gates import Features
from tests.codec.strategies import objects
from tests.features.building import at

DRIVERS, POOLS = st.sampled_from(["", "d", "a/b", "gpu.x"]), st.sampled_from(["p", "p/q"])
NAMES = st.sampled_from(["", "n", "../n", "m"])
UIDS = st.sampled_from([None, "", "u", "a/b"])
GATES = st.sampled_from([Features(), Features.all(), Features.none()])

SLICES = st.builds(
    lambda spec, devices, driver, pool: ResourceSlice(
        spec=attrs.evolve(
            spec, driver=driver, devices=tuple(devices), pool=attrs.evolve(spec.pool, name=pool, generation=1)
        )
    ),
    objects(ResourceSliceSpec),
    st.lists(st.builds(lambda device, name: attrs.evolve(device, name=name), objects(Device), NAMES), max_size=2),
    DRIVERS,
    POOLS,
)


def of_devices(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Objects of a kind about devices that the slices may have."""
    return st.builds(
        lambda item, driver, pool, device: attrs.evolve(item, driver=driver, pool=pool, device=device),
        objects(kind),
        DRIVERS,
        POOLS,
        NAMES,
    )


RESULTS = of_devices(DeviceRequestAllocationResult)
ENTRIES = of_devices(AllocatedDeviceStatus)


def _claim(
    status: ResourceClaimStatus, name: str, uid: str | None, results: list[Any], entries: list[Any]
) -> ResourceClaim:
    allocation = status.allocation
    if allocation is not None:
        devices = attrs.evolve(allocation.devices, results=tuple(results))
        allocation = attrs.evolve(allocation, devices=devices)
    consumers = (ResourceClaimConsumerReference(resource="pods", name="n", uid=uid or ""), *status.reserved_for)
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="", uid=uid),
        status=attrs.evolve(status, allocation=allocation, reserved_for=consumers, devices=tuple(entries)),
    )


CLAIMS = st.builds(
    _claim,
    objects(ResourceClaimStatus),
    NAMES,
    UIDS,
    st.lists(RESULTS, max_size=2),
    st.lists(ENTRIES, max_size=2),
)
PODS = st.builds(
    lambda spec, status, name, uid: Pod(metadata=ObjectMeta(name=name, uid=uid), spec=spec, status=status),
    objects(PodSpec),
    st.none() | objects(PodStatus),
    NAMES,
    UIDS,
)
RULES = st.builds(
    lambda spec, name: Rule(metadata=ObjectMeta(name=name), spec=spec), objects(DeviceTaintRuleSpec), NAMES
)


def refusing(act: Callable[[], object]) -> None:
    """Run it; an exception that is not one of the library fails the test."""
    with suppress(DraError):
        act()


CAREFREE = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    max_examples=60,
)


@CAREFREE
@given(st.lists(SLICES, max_size=2), st.lists(CLAIMS, max_size=2), st.lists(PODS, max_size=2), RULES, GATES)
def test_taints_and_evictions(
    slices: list[Any], claims: list[Any], pods: list[Any], rule: Rule, gates: Features
) -> None:
    for strict in (False, True):
        eviction_plan(slices, claims, pods, [rule], now=at(0), features=gates, strict=strict, extended_resources=True)
    refusing(lambda: rule_condition(rule, slices, claims, pods, now=at(0), features=gates, evicted=1))
    stored = create_rule(rule, at(0))
    assert update_rule(stored, stored, at(1)) == stored
    for item in slices:
        assert keep_time_added(item, default_time_added(item, at(0))).spec.driver == item.spec.driver


@CAREFREE
@given(st.lists(SLICES, max_size=3), st.lists(CLAIMS, max_size=2), RULES, objects(ResourcePoolStatusRequestSpec), GATES)
def test_pool_status(
    slices: list[Any], claims: list[Any], rule: Rule, spec: ResourcePoolStatusRequestSpec, gates: Features
) -> None:
    for pool in pool_status(slices, claims, [rule], features=gates):
        assert pool.validation_error is None or len(pool.validation_error.encode()) <= 256
    request = ResourcePoolStatusRequest(spec=spec)
    refusing(lambda: answer(request, slices, claims, [rule], now=at(0), features=gates))
    assert not expired(request, at(0))


@CAREFREE
@given(CLAIMS, CLAIMS, ENTRIES, PODS, GATES)
def test_claims_and_their_status(
    old: ResourceClaim, new: ResourceClaim, entry: AllocatedDeviceStatus, pod: Pod, gates: Features
) -> None:
    refusing(lambda: update_status(old, new, gates))
    refusing(lambda: put_device_status(old, entry, gates))
    needed_permissions(old, new)
    for item in in_network(addresses([old, new], [pod], gates), "0.0.0.0/0"):
        assert item.address
    pod_readiness([old, new], now=at(0), waiting_since=at(0), features=gates)
    retry_plan(pod, [old, new], now=at(0), features=gates)
    refusing(lambda: pod_node_calls(pod, [old, new], gates))
    node_supports(Node(), [old, new])
    for container in pod.spec.containers:
        container_files(pod, container.name, [old, new], gates)


@CAREFREE
@given(objects(Device), CLAIMS, NAMES)
def test_devices_and_their_metadata(tmp_path: Path, device: Device, claim: ResourceClaim, request: str) -> None:
    attribute_problems(device.attributes)
    physical_numa_node(device)
    entry = published_metadata("gpu.x", "p", device)
    assert isinstance(entry, MetadataDevice)
    writer = MetadataWriter("gpu.x", tmp_path / "inner/data", VERSIONS, cdi_dir=tmp_path / "inner/cdi")
    placed = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, namespace="ns"))
    refusing(lambda: writer.prepare(placed, {request: [entry]}))
    refusing(lambda: metadata_problems(writer.update("ns", placed.metadata.name, "u", request, [entry])))
    refusing(lambda: writer.cleanup("ns", placed.metadata.name, "u"))
    # Whatever the names were, nothing was written elsewhere.
    assert {path.name for path in tmp_path.iterdir()} <= {"inner"}
