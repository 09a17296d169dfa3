"""KEP-6072: standard attributes, and reading them from sysfs (fake trees)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dra_alloc.api import Device, DeviceAttribute
from dra_alloc.errors import DecodeError, ValidationError
from dra_alloc.features.standard import (
    MDEV_UUID,
    NUMA_NODE,
    PCI_BUS_ID,
    PCIE_ROOT,
    attribute_problems,
    cpu_numa_node,
    near_numa_nodes,
    numa_node_attribute,
    pci_attributes,
    pci_bus_id,
    pci_numa_node,
    pci_root,
    physical_numa_node,
)
from dra_alloc.gates import Features

LISTS = Features(DRAListTypeAttributes=True)
NIC = "0000:3b:00.0"


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """A sysfs with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return root


def machine(root: Path, distances: str, sockets: Mapping[int, int]) -> Path:
    """A sysfs with the distances of node 6 and the sockets of nodes; node n has the CPUs 2n and 2n+1."""
    files = {"devices/system/node/node6/distance": f"{distances}\n"}
    for node, socket in sockets.items():
        files[f"devices/system/node/node{node}/cpulist"] = f"{2 * node}-{2 * node + 1}\n"
        files[f"devices/system/cpu/cpu{2 * node}/topology/physical_package_id"] = f"{socket}\n"
    return tree(root, files)


def pci(root: Path, address: str = NIC, numa_node: str = "6", below: str = "pci0000:3a/0000:3a:00.0") -> Path:
    """A sysfs with one PCI device."""
    device = root / "devices" / below / address
    tree(device, {"numa_node": f"{numa_node}\n"})
    link = root / "bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(device)
    return root


def test_worked_example_a(tmp_path: Path) -> None:
    sockets = {node: node // 4 for node in range(8)}
    sysfs = machine(tmp_path, "32 32 32 32 12 12 10 12", sockets)
    assert near_numa_nodes(6, sysfs) == (6, 4, 5, 7)
    assert numa_node_attribute(6) == DeviceAttribute(int=6)
    assert numa_node_attribute(6, near=near_numa_nodes(6, sysfs)) == DeviceAttribute(ints=(6, 4, 5, 7))


def test_worked_example_b() -> None:
    gpu, nic = numa_node_attribute(5, near=(4, 6, 7)), numa_node_attribute(6, near=(4, 5, 7))
    assert gpu.ints is not None
    assert nic.ints is not None
    assert (gpu.ints, nic.ints) == ((5, 4, 6, 7), (6, 4, 5, 7))
    assert set(gpu.ints) & set(nic.ints) & {4} == {4}
    assert not set(gpu.ints) & set(nic.ints) & {0}
    assert numa_node_attribute(5).int != numa_node_attribute(6).int


def test_nodes_on_another_socket_are_not_near(tmp_path: Path) -> None:
    sockets = {node: node // 2 for node in range(8)}
    assert near_numa_nodes(6, machine(tmp_path, "12 12 12 12 12 12 10 12", sockets)) == (6, 7)


def test_a_socket_that_is_unknown_is_no_obstacle(tmp_path: Path) -> None:
    assert near_numa_nodes(6, machine(tmp_path / "a", "12 12 12 12 12 12 10 12", {6: 1, 7: 0})) == (6, 0, 1, 2, 3, 4, 5)
    assert near_numa_nodes(6, machine(tmp_path / "b", "32 32 32 32 32 32 10 12", {7: 0})) == (6, 7)


@pytest.mark.parametrize("distances", ["", "10", "10 12", "32 32 32 32 12 many 10 12", "1 2 3 4 5 6"])
def test_without_usable_distances_a_node_is_near_itself_alone(tmp_path: Path, distances: str) -> None:
    assert near_numa_nodes(6, machine(tmp_path, distances, {})) == (6,)


def test_a_missing_tree_leaves_the_node_alone(tmp_path: Path) -> None:
    assert near_numa_nodes(3, tmp_path) == (3,)


def test_attributes_of_a_pci_device(tmp_path: Path) -> None:
    sysfs = pci(machine(tmp_path, "32 32 32 32 12 12 10 12", {}))
    expected = {
        PCI_BUS_ID: DeviceAttribute(string=NIC),
        PCIE_ROOT: DeviceAttribute(string="pci0000:3a"),
        NUMA_NODE: DeviceAttribute(int=6),
    }
    assert pci_attributes("3B:00.0", sysfs) == expected
    assert attribute_problems(expected) == ()
    lists = pci_attributes(NIC, sysfs, lists=True)
    assert lists == expected | {NUMA_NODE: DeviceAttribute(ints=(6, 4, 5, 7))}
    assert attribute_problems(lists, LISTS) == ()


def test_what_the_kernel_does_not_know_is_left_out(tmp_path: Path) -> None:
    assert pci_attributes(NIC, pci(tmp_path / "a", numa_node="-1")).keys() == {PCI_BUS_ID, PCIE_ROOT}
    assert pci_attributes(NIC, tmp_path / "b").keys() == {PCI_BUS_ID}
    with pytest.raises(DecodeError, match=r"numa_node: '-1' is no NUMA node"):
        pci_numa_node(NIC, tmp_path / "a")
    with pytest.raises(DecodeError, match=r"numa_node: cannot be read: No such file"):
        pci_numa_node(NIC, tmp_path / "b")


def test_a_numa_node_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    for index, text in enumerate(["", "six", "1024", "9" * 5000]):
        with pytest.raises(DecodeError, match="is no NUMA node"):
            pci_numa_node(NIC, pci(tmp_path / str(index), numa_node=text))


def test_a_device_that_is_not_below_a_root_has_none(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="which is not below a PCIe root"):
        pci_root(NIC, pci(tmp_path / "a", below="platform/soc"))
    with pytest.raises(DecodeError, match="does not lead to a PCI device"):
        pci_root(NIC, tmp_path / "b")
    outside = tmp_path / "c/bus/pci/devices" / NIC
    outside.parent.mkdir(parents=True)
    outside.symlink_to(tmp_path)
    with pytest.raises(DecodeError, match="does not lead to a PCI device"):
        pci_root(NIC, tmp_path / "c")
    loop = tmp_path / "d/bus/pci/devices" / NIC
    loop.parent.mkdir(parents=True)
    loop.symlink_to(loop)
    with pytest.raises(DecodeError, match="does not lead to a PCI device"):
        pci_root(NIC, tmp_path / "d")


def test_the_node_of_a_cpu(tmp_path: Path) -> None:
    (tmp_path / "devices/system/cpu/cpu3/node1").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/cpu4/nodeless").mkdir(parents=True)
    assert cpu_numa_node(3, tmp_path) == 1
    with pytest.raises(DecodeError, match="cpu4: has no NUMA node"):
        cpu_numa_node(4, tmp_path)
    with pytest.raises(DecodeError, match="cpu5: cannot be read"):
        cpu_numa_node(5, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"), [("3b:00.0", NIC), (" 0000:3B:00.0\n", NIC), ("10de:ff:1f.7", "10de:ff:1f.7")]
)
def test_addresses_are_brought_into_standard_form(text: str, expected: str) -> None:
    assert pci_bus_id(text) == expected


@pytest.mark.parametrize("text", ["", "3b:00", "0000:3b:00.0/../../..", "0000:3b:00.00", "gpu-0"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="is no PCI address"):
        pci_bus_id(text)


@pytest.mark.parametrize("node", [-1, 1024])
def test_numbers_that_are_no_node_are_refused(node: int, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=f"{node} is no NUMA node"):
        numa_node_attribute(node)
    with pytest.raises(ValidationError, match=f"{node} is no NUMA node"):
        near_numa_nodes(node, tmp_path)


def test_an_unknown_node_is_not_node_0() -> None:
    assert physical_numa_node(Device(name="d")) is None
    assert physical_numa_node(Device(name="d", attributes={NUMA_NODE: DeviceAttribute(int=0)})) == 0
    assert physical_numa_node(Device(name="d", attributes={NUMA_NODE: DeviceAttribute(ints=(6, 4))})) == 6
    assert physical_numa_node(Device(name="d", attributes={NUMA_NODE: DeviceAttribute(ints=())})) is None
    assert physical_numa_node(Device(name="d", attributes={NUMA_NODE: DeviceAttribute(string="0")})) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (NUMA_NODE, DeviceAttribute(int=-1), "-1 is no NUMA node"),
        (NUMA_NODE, DeviceAttribute(string="0"), "is no integer"),
        (NUMA_NODE, DeviceAttribute(ints=()), "is empty"),
        (NUMA_NODE, DeviceAttribute(ints=(6, 5, 4)), "[6, 5, 4] is not in order"),
        (NUMA_NODE, DeviceAttribute(ints=(6, 6)), "[6, 6] is not in order"),
        (PCI_BUS_ID, DeviceAttribute(string="0000:3B:00.0"), "'0000:3B:00.0' has not the standard form"),
        (PCI_BUS_ID, DeviceAttribute(strings=(NIC,)), "is no string"),
        (PCIE_ROOT, DeviceAttribute(string="0000:3a"), "'0000:3a' has not the standard form"),
        (PCIE_ROOT, DeviceAttribute(strings=()), "is empty"),
        (PCIE_ROOT, DeviceAttribute(int=3), "is no string"),
        (MDEV_UUID, DeviceAttribute(string="C7E7B22E-239b-4498-b27c-7f1344481e14"), "has not the standard form"),
    ],
)
def test_values_that_never_match(name: str, value: DeviceAttribute, message: str) -> None:
    (problem,) = attribute_problems({name: value, "vendor.example.com/numa": DeviceAttribute(int=-1)}, LISTS)
    assert message in problem.message
    assert problem.path.startswith(name)


def test_lists_need_their_gate() -> None:
    attributes = {NUMA_NODE: DeviceAttribute(ints=(6, 4)), PCIE_ROOT: DeviceAttribute(strings=("pci0000:3a",))}
    assert attribute_problems(attributes, LISTS) == ()
    assert [problem.path for problem in attribute_problems(attributes)] == [f"{NUMA_NODE}.ints", f"{PCIE_ROOT}.strings"]
