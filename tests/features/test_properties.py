"""What holds for every input: counts add up, plans follow the rules taint by taint, files come back as written."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_alloc.api import (
    Device,
    DeviceAttribute,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    NetworkDeviceData,
    ObjectMeta,
)
from dra_alloc.errors import DraError
from dra_alloc.features.devicestatus import canonical_address
from dra_alloc.features.metadata import (
    VERSIONS,
    DeviceMetadata,
    MetadataDevice,
    MetadataRequest,
    MetadataWriter,
    encode_stream,
    metadata_problems,
    read_file,
    read_stream,
)
from dra_alloc.features.poolstatus import pool_status
from dra_alloc.features.standard import pci_bus_id
from dra_alloc.features.taints import (
    DeviceId,
    DeviceTaints,
    eviction_plan,
    rule_impact,
    selects,
    tolerates,
    untolerated,
)
from tests.features.building import at, claim, pod, result, rule, slice_of, taint

FOREVER = datetime.max.replace(tzinfo=UTC)
KEYS, VALUES = st.sampled_from(["a", "b"]), st.sampled_from([None, "", "x", "y"])
EFFECTS = st.sampled_from(["None", "NoSchedule", "NoExecute", "Later"])
TAINTS = st.builds(
    DeviceTaint,
    key=KEYS,
    value=VALUES,
    effect=EFFECTS,
    time_added=st.none() | st.integers(0, 100).map(at),
)
TOLERATIONS = st.builds(
    DeviceToleration,
    key=st.none() | KEYS,
    operator=st.sampled_from([None, "", "Equal", "Exists", "Other"]),
    value=VALUES,
    effect=st.none() | st.sampled_from(["", "NoSchedule", "NoExecute", "None"]),
    toleration_seconds=st.none() | st.integers(-5, 50) | st.sampled_from([2**63 - 1, -(2**63)]),
)
NAMES = st.sampled_from(["gpu-0", "gpu-1", "gpu-2"])
SELECTORS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "driver": st.sampled_from(["gpu.example.com", "nic.example.com"]),
        "pool": st.sampled_from(["node-1", "node-2"]),
        "device": NAMES,
    },
)
RULES = st.lists(st.tuples(TAINTS, SELECTORS), max_size=5).map(
    lambda parts: [rule(f"r{index}", item, selector) for index, (item, selector) in enumerate(parts)]
)
DEVICES = st.lists(st.lists(TAINTS, max_size=2), min_size=3, max_size=3).map(
    lambda parts: [Device(name=f"gpu-{index}", taints=tuple(items)) for index, items in enumerate(parts)]
)


@given(DEVICES, RULES, NAMES)
def test_the_index_of_rules_finds_what_each_rule_selects(
    devices: list[Device], rules: list[DeviceTaintRule], name: str
) -> None:
    device = DeviceId("gpu.example.com", "node-1", name)
    found = [item.rule for item in DeviceTaints([slice_of(*devices)], rules).of(device) if item.rule]
    assert found == [item.metadata.name for item in rules if selects(item.spec.device_selector, device)]


@given(DEVICES, RULES, NAMES, st.lists(TOLERATIONS, max_size=3), st.booleans())
def test_a_plan_is_what_the_rules_say_taint_by_taint(
    devices: list[Device],
    rules: list[DeviceTaintRule],
    name: str,
    tolerations: list[DeviceToleration],
    strict: bool,
) -> None:
    user = pod("p", "c")
    held = claim("c", result(name, tolerations=tuple(tolerations)), reserved_for=[user])
    slices = [slice_of(*devices)]
    ends = []
    for item in DeviceTaints(slices, rules).of(DeviceId("gpu.example.com", "node-1", name)):
        if item.taint.effect != "NoExecute":
            continue
        effects = {"NoExecute"} if strict else {"NoExecute", "", None}
        matching = [each for each in tolerations if each.effect in effects and tolerates(each, item.taint)]
        if not any(each.toleration_seconds is None for each in matching):
            seconds = min((max(0, each.toleration_seconds or 0) for each in matching), default=0)
            added = item.taint.time_added or at(200)
            ends.append(FOREVER if seconds > 10**12 else added + timedelta(seconds=seconds))
    plan = eviction_plan(slices, [held], [user], rules, now=at(200), strict=strict)
    assert len(plan) == bool(ends)
    if ends:
        assert plan.evictions[0].when == min(ends)
        assert len(plan.evictions[0].reasons) == len(ends)
    # The strict reading never spares a pod that the other one evicts.
    if not strict and ends:
        assert len(eviction_plan(slices, [held], [user], rules, now=at(200), strict=True)) == 1


@given(st.lists(TAINTS, max_size=4), st.lists(TOLERATIONS, max_size=3))
def test_more_tolerations_never_keep_a_device_away(taints: list[DeviceTaint], more: list[DeviceToleration]) -> None:
    device = DeviceId("gpu.example.com", "node-1", "gpu-0")
    found = DeviceTaints([slice_of(Device(name="gpu-0", taints=tuple(taints)))]).of(device)
    assert set(map(str, untolerated(found, more))) <= set(map(str, untolerated(found, more[:1])))
    everything = DeviceToleration(operator="Exists")
    assert untolerated(found, [*more, everything]) == ()


@given(DEVICES, RULES, st.lists(st.tuples(NAMES, st.booleans()), max_size=5))
def test_the_numbers_of_a_pool_add_up(
    devices: list[Device], rules: list[DeviceTaintRule], uses: list[tuple[str, bool]]
) -> None:
    claims = [claim(f"c-{index}", result(name, admin_access=admin)) for index, (name, admin) in enumerate(uses)]
    (pool,) = pool_status([slice_of(*devices)], claims, rules)
    assert pool.total_devices == 3
    assert pool.allocated_devices == len({name for name, admin in uses if not admin})
    counts = (pool.allocated_devices, pool.available_devices, pool.unavailable_devices)
    assert sum(count or 0 for count in counts) == 3
    assert min(count or 0 for count in counts) >= 0


@given(DEVICES, SELECTORS)
def test_a_dry_run_tells_what_the_rule_then_does(devices: list[Device], selector: dict[str, str] | None) -> None:
    plain = [attrs.evolve(device, taints=()) for device in devices]
    users = [pod(f"p-{index}", f"c-{index}") for index in range(2)]
    claims = [claim(f"c-{index}", result(f"gpu-{index}"), reserved_for=[users[index]]) for index in range(2)]
    impact = rule_impact(rule("r", taint("k:None"), selector), [slice_of(*plain)], claims, users, now=at(7))
    wet = rule("r", taint("k:NoExecute", 7), selector)
    assert impact.evictions == eviction_plan([slice_of(*plain)], claims, users, [wet], now=at(7))


@given(st.ip_addresses() | st.text(max_size=20), st.integers(-1, 130))
def test_canonical_addresses_stay_as_they_are_and_mean_the_same(address: object, length: int) -> None:
    try:
        found = canonical_address(f"{address}/{length}")
    except DraError:
        return
    assert canonical_address(found) == found
    assert ipaddress.ip_interface(found) == ipaddress.ip_interface(f"{address}/{length}")
    metadata = DeviceMetadata(
        requests=(
            MetadataRequest(
                name="r",
                devices=(MetadataDevice(driver="d", pool="p", name="n", network_data=NetworkDeviceData(ips=(found,))),),
            ),
        )
    )
    assert metadata_problems(metadata) == ()


@given(st.text(max_size=20))
def test_addresses_of_devices_are_in_standard_form_or_refused(text: str) -> None:
    try:
        found = pci_bus_id(text)
    except DraError:
        return
    assert pci_bus_id(found) == found == found.lower()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ATTRIBUTES = st.dictionaries(
    TEXT.filter(bool),
    st.one_of(
        st.builds(DeviceAttribute, int=st.integers(-(2**63), 2**63 - 1)),
        st.builds(DeviceAttribute, bool=st.booleans()),
        st.builds(DeviceAttribute, string=TEXT),
        st.builds(DeviceAttribute, strings=st.lists(TEXT, max_size=3).map(tuple)),
    ),
    max_size=3,
)
METADATA = st.builds(
    DeviceMetadata,
    metadata=st.builds(ObjectMeta, name=TEXT, namespace=TEXT, uid=TEXT.filter(bool), generation=st.integers(1, 9)),
    pod_claim_name=st.none() | TEXT.filter(bool),
    requests=st.lists(
        st.builds(
            MetadataRequest,
            name=TEXT,
            devices=st.lists(
                st.builds(MetadataDevice, driver=TEXT, pool=TEXT, name=TEXT, attributes=ATTRIBUTES), max_size=2
            ).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


@given(METADATA)
def test_metadata_comes_back_as_it_was_written(metadata: DeviceMetadata) -> None:
    assert read_stream(encode_stream(metadata, VERSIONS)) == metadata
    assert read_stream(encode_stream(metadata, reversed(VERSIONS))) == metadata


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(DraError):
        read_stream(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), max_size=3), min_size=1, max_size=4))
def test_updates_follow_one_another(tmp_path: Path, updates: list[list[str]]) -> None:
    writer = MetadataWriter("gpu.x", tmp_path / "data", VERSIONS, cdi_dir=tmp_path / "cdi")
    held = attrs.evolve(claim("c"), metadata=ObjectMeta(name="c", namespace="ns", uid="1"))
    writer.prepare(held, {"gpu": [MetadataDevice(driver="gpu.x", pool="p", name="gpu-9")]})
    path = writer.host_path("ns", "c", "gpu")
    for number, names in enumerate(updates, start=2):
        devices = tuple(MetadataDevice(driver="gpu.x", pool="p", name=name) for name in names)
        writer.update("ns", "c", "1", "gpu", devices)
        found = read_file(path)
        assert (found.metadata.generation, found.requests[0].devices) == (number, devices)
    writer.cleanup("ns", "c", "1")
    assert not path.exists()
