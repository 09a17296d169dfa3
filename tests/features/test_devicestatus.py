"""KEP-4817: what drivers report in claims, and who has which address."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from dra_alloc.api import (
    AllocatedDeviceStatus,
    AllocationResult,
    Condition,
    NetworkDeviceData,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    ResourceClaim,
    ResourceClaimStatus,
)
from dra_alloc.errors import AllocationError, ValidationError
from dra_alloc.features.devicestatus import (
    DeviceAddress,
    Permission,
    StatusKey,
    addresses,
    allocation_node,
    canonical_address,
    changed_drivers,
    cluster_addresses,
    device_status,
    in_network,
    needed_permissions,
    put_device_status,
    remove_device_status,
    update_status,
)
from dra_alloc.gates import Features
from tests.features.building import Objects, accepted, at, claim, consumer, pod, result, with_status

SHARE_1, SHARE_2 = (f"00000000-0000-4000-8000-00000000000{index}" for index in (1, 2))
NIC = "nic.example.com"
SPEC = {"devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": "nic"}}]}}


def nic(device: str = "nic-0", share: str | None = None, driver: str = NIC) -> Any:
    return result(device, request="nic", driver=driver, share_id=share)


def held(*results: Any, name: str = "c", **fields: Any) -> ResourceClaim:
    return claim(name, *(results or (nic(),)), spec=SPEC, **fields)


def entry(device: str = "nic-0", *ips: str, share: str | None = None, driver: str = NIC, **fields: Any) -> Any:
    if ips:
        fields["network_data"] = NetworkDeviceData(interface_name="eth1", ips=ips, hardware_address="ea:9f:cb:40:b1:7b")
    return AllocatedDeviceStatus(driver=driver, pool="node-1", device=device, share_id=share, **fields)


def condition(**fields: Any) -> Condition:
    return Condition(
        **{"type": "Ready", "status": "True", "reason": "Configured", "last_transition_time": at(0), **fields}
    )


def reported(claim: ResourceClaim, *entries: AllocatedDeviceStatus) -> ResourceClaim:
    """The claim with these entries, whatever they are."""
    return with_status(claim, devices=entries)


def problems(old: ResourceClaim, new: ResourceClaim) -> list[str]:
    with pytest.raises(ValidationError) as error:
        update_status(old, new)
    return [problem.path for problem in error.value.problems]


def test_worked_example_a() -> None:
    shared = held(nic(share=SHARE_1), nic(share=SHARE_2))
    one = put_device_status(shared, entry(share=SHARE_1))
    assert one.status is not None
    assert one.status.devices == (entry(share=SHARE_1),)
    accepted(one)
    with pytest.raises(ValidationError, match=r"status\.devices\[0\].*nic-0 is not allocated to the claim"):
        put_device_status(shared, entry())
    assert problems(shared, reported(shared, entry(share=SHARE_1), entry(share=SHARE_1))) == ["status.devices[1]"]


def test_worked_example_b() -> None:
    many = [f"10.0.0.{index}/24" for index in range(17)]
    field = "status.devices[0].networkData.ips"
    assert problems(held(), reported(held(), entry("nic-0", "10.0.0.5/24", "2001:DB8::5/64"))) == [f"{field}[1]"]
    assert problems(held(), reported(held(), entry("nic-0", "10.0.0.0/33"))) == [f"{field}[0]"]
    assert problems(held(), reported(held(), entry("nic-0", *many))) == [field]
    with pytest.raises(ValidationError, match="2001:db8::5/64"):
        update_status(held(), reported(held(), entry("nic-0", "2001:DB8::5/64")))


def test_an_entry_takes_the_place_of_the_one_before() -> None:
    both = held(nic("nic-0"), nic("nic-1"))
    first = put_device_status(put_device_status(both, entry("nic-0")), entry("nic-1"))
    ready = condition()
    second = put_device_status(first, entry("nic-0", "10.0.0.5/24", conditions=(ready,), data={"vlan": 7}))
    assert second.status is not None
    assert [item.device for item in second.status.devices] == ["nic-0", "nic-1"]
    found = device_status(second, StatusKey(NIC, "node-1", "nic-0"))
    assert found is not None
    assert (found.data, found.conditions) == ({"vlan": 7}, (ready,))
    accepted(second)

    gone = remove_device_status(second, StatusKey(NIC, "node-1", "nic-0"))
    assert device_status(gone, StatusKey(NIC, "node-1", "nic-0")) is None
    assert gone.status is not None
    assert [item.device for item in gone.status.devices] == ["nic-1"]


def test_addresses_become_canonical() -> None:
    found = put_device_status(held(), entry("nic-0", "2001:DB8:0::5/64"))
    assert found.status is not None
    network = found.status.devices[0].network_data
    assert network is not None
    assert network.ips == ("2001:db8::5/64",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.5/24", "192.0.2.5/24"),
        ("2001:DB8::5/64", "2001:db8::5/64"),
        ("2001:db8:0:0:0:0:0:5/064", "2001:db8::5/64"),
        ("10.0.0.0/33", None),
        ("10.0.0.5", None),
        ("10.0.0.05/24", None),
        ("::ffff:10.0.0.5/96", None),
        ("fe80::1%eth0/64", None),
        ("10.0.0.5/255.255.255.0", None),
        ("x" * 500, None),
    ],
)
def test_canonical_addresses(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ValidationError, match=r"networkData\.ips"):
            canonical_address(text)
    else:
        assert canonical_address(text) == expected


def test_reports_on_what_is_released_are_dropped() -> None:
    old = put_device_status(put_device_status(held(nic("nic-0"), nic("nic-1")), entry("nic-0")), entry("nic-1"))
    assert old.status is not None
    cleared = update_status(old, attrs.evolve(old, status=attrs.evolve(old.status, allocation=None)))
    assert cleared.status == ResourceClaimStatus()
    # One that never was allocated is no stale report but an error.
    stranger = attrs.evolve(old.status, allocation=None, devices=(*old.status.devices, entry("nic-9")))
    assert problems(old, attrs.evolve(old, status=stranger)) == ["status.devices[0]"]


def test_a_status_write_changes_nothing_else() -> None:
    old = held()
    meddling = attrs.evolve(
        put_device_status(old, entry()), metadata=attrs.evolve(old.metadata, labels={"a": "b"}), spec=claim("x").spec
    )
    stored = update_status(old, meddling)
    assert (stored.metadata, stored.spec) == (old.metadata, old.spec)
    assert stored.status == meddling.status


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (entry(data=[1]), "data"),
        (entry(data={"text": "x" * 10240}), "data"),
        (entry(conditions=(condition(status="Maybe"),)), "conditions[0].status"),
        (entry(conditions=(condition(reason=""),)), "conditions[0].reason"),
        (entry(network_data=NetworkDeviceData(interface_name="e" * 257)), "networkData.interfaceName"),
        (entry(network_data=NetworkDeviceData(hardware_address="e" * 129)), "networkData.hardwareAddress"),
    ],
)
def test_values_that_the_api_refuses(bad: AllocatedDeviceStatus, path: str) -> None:
    assert problems(held(), reported(held(), bad)) == [f"status.devices[0].{path}"]


def test_with_the_gate_off() -> None:
    off = Features(DRAResourceClaimDeviceStatus=False)
    with pytest.raises(AllocationError, match="needs the feature gate DRAResourceClaimDeviceStatus") as error:
        put_device_status(held(), entry(), off)
    assert error.value.kind == "unsupported"
    first = update_status(held(), reported(held(), entry()), off)
    assert first.status is not None
    assert first.status.devices == ()
    # What was stored before may be updated.
    stored = put_device_status(held(), entry())
    again = update_status(stored, reported(stored, entry("nic-0", "10.0.0.5/24")), off)
    assert device_status(again, StatusKey(NIC, "node-1", "nic-0")) == entry("nic-0", "10.0.0.5/24")
    assert addresses([again], [], off) == ()


def test_shares_are_dropped_with_their_gate_off() -> None:
    new = with_status(held(nic(share=SHARE_1)), devices=(entry(share=SHARE_1),))
    stored = update_status(claim("c", spec=SPEC), new, Features(DRAConsumableCapacity=False))
    assert stored.status is not None
    assert stored.status.devices == (entry(),)
    assert stored.status.allocation is not None
    assert stored.status.allocation.devices.results == (nic(),)


def bound_to(node: str | None) -> NodeSelector:
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,) if node else ("a", "b"))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def test_the_node_of_an_allocation() -> None:
    assert allocation_node(held(node_selector=bound_to("node-1"))) == "node-1"
    assert allocation_node(held(node_selector=bound_to(None))) is None
    assert allocation_node(held()) is None
    assert allocation_node(claim("c")) is None
    labels = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="rack", operator="Exists"),))
    assert allocation_node(held(node_selector=NodeSelector(node_selector_terms=(labels,)))) is None


def test_permissions_that_a_write_needs() -> None:
    old = held(nic("nic-0"), nic("gpu-0", driver="gpu.example.com"), node_selector=bound_to("node-1"))
    new = reported(old, entry("nic-0"), entry("gpu-0", driver="gpu.example.com"))
    assert changed_drivers(old, new) == ("gpu.example.com", NIC)
    verbs = ("associated-node:patch", "arbitrary-node:patch")
    assert needed_permissions(old, new, "patch") == tuple(
        Permission(verbs, "resourceclaims/driver", "default", driver, "node-1") for driver in ("gpu.example.com", NIC)
    )
    anywhere = reported(held(), entry())
    assert needed_permissions(held(), anywhere) == (
        Permission(("arbitrary-node:update",), "resourceclaims/driver", "default", NIC),
    )
    assert needed_permissions(old, with_status(old, reserved_for=(consumer(pod("p")),))) == (
        Permission(("update",), "resourceclaims/binding"),
    )
    assert needed_permissions(claim("c"), claim("c")) == ()


def network_of_pods() -> tuple[list[ResourceClaim], list[Pod]]:
    pods = [pod("a", "c"), pod("b", "c"), pod("d", templates={"net": "d-net-x"}), pod("waiting", "c")]
    claims = [
        reported(held(reserved_for=pods[:2]), entry("nic-0", "10.0.0.5/24", "2001:db8::5/64")),
        reported(held(name="d-net-x", reserved_for=[pods[2]], owner=pods[2]), entry("nic-0", "10.1.0.5/24")),
        reported(held(name="left"), entry("nic-0", "10.0.0.9/24", "broken")),
        held(name="silent"),
    ]
    return claims, pods


def test_which_pod_has_which_address() -> None:
    claims, pods = network_of_pods()
    found = addresses(claims, pods)
    assert found[0] == DeviceAddress(
        pods=("default/a", "default/b"),
        claim="default/c",
        device=StatusKey(NIC, "node-1", "nic-0"),
        address="10.0.0.5/24",
        interface="eth1",
        hardware_address="ea:9f:cb:40:b1:7b",
    )
    assert [(item.address, item.pods) for item in found[1:]] == [
        ("2001:db8::5/64", ("default/a", "default/b")),
        ("10.1.0.5/24", ("default/d",)),
        ("10.0.0.9/24", ()),
        ("broken", ()),
    ]
    assert cluster_addresses(Objects(claims=claims, pods=pods)) == found


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("10.0.0.0/8", ["10.0.0.5/24", "10.1.0.5/24", "10.0.0.9/24"]),
        ("10.0.0.0/24", ["10.0.0.5/24", "10.0.0.9/24"]),
        ("10.0.0.5", ["10.0.0.5/24"]),
        ("2001:db8::/32", ["2001:db8::5/64"]),
        ("0.0.0.0/0", ["10.0.0.5/24", "10.1.0.5/24", "10.0.0.9/24"]),
    ],
)
def test_addresses_found_by_network(network: str, expected: list[str]) -> None:
    assert [item.address for item in in_network(addresses(*network_of_pods()), network)] == expected


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValidationError, match="network: 'here' is no network"):
        in_network([], "here")


def test_keys_name_the_share() -> None:
    assert str(StatusKey("d", "p", "n")) == "d/p/n"
    assert str(StatusKey("d", "p", "n", SHARE_1)) == f"d/p/n (share {SHARE_1})"


def test_an_allocation_without_results_reports_nothing() -> None:
    empty = attrs.evolve(claim("c"), status=ResourceClaimStatus(allocation=AllocationResult()))
    assert changed_drivers(empty, empty) == ()
