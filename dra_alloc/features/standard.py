"""Standard attributes of devices (KEP-6072, KEP-4381): names, formats, and their values read from sysfs.

No gate; the list forms need DRAListTypeAttributes. Vendors that use these names make their devices comparable: a claim
can ask for a GPU and a NIC with a common `resource.kubernetes.io/numaNode`, whoever publishes them. Each helper takes
the root of sysfs, so that it works on a copy or a fake as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from dra_alloc.api import Device, DeviceAttribute
from dra_alloc.codec.validation import Problem
from dra_alloc.errors import DecodeError
from dra_alloc.features._objects import refused
from dra_alloc.gates import Features

__all__ = [
    "DOMAIN",
    "MDEV_UUID",
    "NUMA_NODE",
    "PCIE_ROOT",
    "PCI_BUS_ID",
    "STANDARD_ATTRIBUTES",
    "SYSFS",
    "attribute_problems",
    "cpu_numa_node",
    "near_numa_nodes",
    "numa_node_attribute",
    "pci_attributes",
    "pci_bus_id",
    "pci_numa_node",
    "pci_root",
    "physical_numa_node",
]

DOMAIN = "resource.kubernetes.io"
#: The NUMA node of a device: `int`, or `ints` with the physical node first and nodes as near after it.
NUMA_NODE = f"{DOMAIN}/numaNode"
#: The address of a PCI device: `string` in the form 0000:3b:00.0, lower case.
PCI_BUS_ID = f"{DOMAIN}/pciBusID"
#: The root complex above a device: `string` (or `strings`) in the form pci0000:3a.
PCIE_ROOT = f"{DOMAIN}/pcieRoot"
#: The UUID of a mediated device: `string`, lower case.
MDEV_UUID = f"{DOMAIN}/mdevUUID"
STANDARD_ATTRIBUTES = frozenset({NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, MDEV_UUID})

Value = TypeVar("Value")

#: Where sysfs is on Linux.
SYSFS = Path("/sys")

#: NUMA nodes are numbered below this.
MAX_NUMA_NODES = 1024

_BUS_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIRST_CPU = re.compile(r"[0-9]+")

_NODE_HINT = f"a NUMA node from 0 to {MAX_NUMA_NODES - 1}; a device without one leaves the attribute out"
_BUS_ID_HINT = "domain, bus, device and function in lower-case hexadecimal, as in 0000:3b:00.0"
_TEXT_FORMATS = {
    PCI_BUS_ID: (_BUS_ID, _BUS_ID_HINT),
    PCIE_ROOT: (_ROOT, "pci, domain and bus in lower-case hexadecimal, as in pci0000:3a"),
    MDEV_UUID: (_UUID, "a UUID in lower case"),
}


def attribute_problems(
    attributes: Mapping[str, DeviceAttribute], features: Features | None = None
) -> tuple[Problem, ...]:
    """What is wrong with the standard attributes among these; others are not looked at.

    The API server does not check it: a wrong value only never matches. Paths begin with the attribute's name.
    """
    lists = (features or Features()).DRAListTypeAttributes
    found: list[Problem] = []
    for name in sorted(STANDARD_ATTRIBUTES & attributes.keys()):
        value = attributes[name]
        if name == NUMA_NODE:
            found.extend(_numa_problems(value, lists))
        else:
            found.extend(_text_problems(name, value, lists))
    return tuple(found)


def _numa_problems(value: DeviceAttribute, lists: bool) -> Iterable[Problem]:
    nodes = (value.int,) if value.int is not None else value.ints
    if nodes is None:
        yield Problem(NUMA_NODE, "is no integer", "int, or with DRAListTypeAttributes ints")
        return
    if value.ints is not None and not lists:
        yield Problem(f"{NUMA_NODE}.ints", "a list needs the feature gate DRAListTypeAttributes, which is off", "int")
    if not nodes:
        yield Problem(f"{NUMA_NODE}.ints", "is empty", _NODE_HINT)
    for node in nodes:
        if not 0 <= node < MAX_NUMA_NODES:
            yield Problem(NUMA_NODE, f"{node} is no NUMA node", _NODE_HINT)
    if list(nodes[1:]) != sorted(set(nodes[1:]) - set(nodes[:1])):
        yield Problem(f"{NUMA_NODE}.ints", f"{list(nodes)} is not in order", "the physical node, then others ascending")


def _text_problems(name: str, value: DeviceAttribute, lists: bool) -> Iterable[Problem]:
    pattern, hint = _TEXT_FORMATS[name]
    texts = (value.string,) if value.string is not None else value.strings if name == PCIE_ROOT else None
    if texts is None:
        yield Problem(name, "is no string", hint)
        return
    if value.string is None and not lists:
        yield Problem(f"{name}.strings", "a list needs the feature gate DRAListTypeAttributes, which is off", "string")
    if not texts:
        yield Problem(f"{name}.strings", "is empty", hint)
    for text in texts:
        if not pattern.fullmatch(text):
            yield Problem(name, f"{text!r} has not the standard form", hint)


def physical_numa_node(device: Device) -> int | None:
    """The NUMA node that a device is attached to: its `numaNode`, the first of a list. None is unknown, not node 0."""
    value = device.attributes.get(NUMA_NODE)
    if value is None:
        return None
    return value.int if value.int is not None else next(iter(value.ints or ()), None)


def numa_node_attribute(node: int, *, near: Iterable[int] | None = None) -> DeviceAttribute:
    """The value of `numaNode`; with `near` (also empty) as a list: the node, then the others ascending.

    Raises ValidationError for a number that is no NUMA node; -1 means that the device has none.
    """
    nodes = (node, *sorted(set(near or ()) - {node}))
    for number in nodes:
        if not 0 <= number < MAX_NUMA_NODES:
            raise refused(NUMA_NODE, f"{number} is no NUMA node", _NODE_HINT)
    return DeviceAttribute(int=node) if near is None else DeviceAttribute(ints=nodes)


def pci_bus_id(text: str) -> str:
    """The standard form of a PCI address: in lower case, with the domain 0000 where it is left out.

    Raises ValidationError for what is no PCI address.
    """
    lower = text.strip().lower()
    full = f"0000:{lower}" if lower.count(":") == 1 else lower
    if not _BUS_ID.fullmatch(full):
        raise refused(PCI_BUS_ID, f"{text[:40]!r} is no PCI address", _BUS_ID_HINT)
    return full


def pci_numa_node(address: str, sysfs: Path = SYSFS) -> int:
    """The NUMA node of a PCI device (`bus/pci/devices/<address>/numa_node`).

    Raises DecodeError if the file cannot be read or the kernel knows no node (-1): leave the attribute out then;
    ValidationError for what is no PCI address.
    """
    path = sysfs / "bus/pci/devices" / pci_bus_id(address) / "numa_node"
    text = _read(path)
    node = _number(text)
    if node is None or not 0 <= node < MAX_NUMA_NODES:
        raise DecodeError(str(path), f"{text[:40]!r} is no NUMA node", _NODE_HINT)
    return node


def pci_root(address: str, sysfs: Path = SYSFS) -> str:
    """The PCIe root of a PCI device: the first part below `devices` of what its link in `bus/pci/devices` leads to.

    Raises DecodeError if there is no such link or it leads elsewhere, ValidationError for what is no PCI address.
    """
    path = sysfs / "bus/pci/devices" / pci_bus_id(address)
    hint = "a link into devices/pci<domain>:<bus>/, as the kernel makes it"
    try:
        below = path.resolve(strict=True).relative_to((sysfs / "devices").resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise DecodeError(str(path), f"does not lead to a PCI device: {error}", hint) from None
    if not below.parts or not _ROOT.fullmatch(below.parts[0]):
        raise DecodeError(str(path), f"leads to {below}, which is not below a PCIe root", hint)
    return below.parts[0]


def near_numa_nodes(node: int, sysfs: Path = SYSFS) -> tuple[int, ...]:
    """The node and, ascending, those at the least distance from it on the same socket (`numaNode` as a list).

    Distances are `devices/system/node/node<n>/distance`, in which the reference takes places for numbers of nodes. A
    socket that is unknown is no obstacle. Where nothing can be read the answer is the node alone.
    Raises ValidationError for a number that is no NUMA node.
    """
    if not 0 <= node < MAX_NUMA_NODES:
        raise refused(NUMA_NODE, f"{node} is no NUMA node", _NODE_HINT)
    numbers = [_number(word) for word in _read_or(sysfs / f"devices/system/node/node{node}/distance", "").split()]
    distances = [number for number in numbers if number is not None]
    if len(distances) != len(numbers) or node >= len(distances) or len(distances) < 2:
        return (node,)
    least = min(distance for other, distance in enumerate(distances) if other != node)
    socket = _socket(node, sysfs)
    near = [
        other
        for other, distance in enumerate(distances)
        if other != node and distance == least and (socket is None or _socket(other, sysfs) in (None, socket))
    ]
    return (node, *near)


def _socket(node: int, sysfs: Path) -> int | None:
    """The socket of a node's first CPU, None if unknown."""
    cpu = _FIRST_CPU.match(_read_or(sysfs / f"devices/system/node/node{node}/cpulist", ""))
    if cpu is None:
        return None
    return _number(_read_or(sysfs / f"devices/system/cpu/cpu{cpu[0]}/topology/physical_package_id", ""))


def cpu_numa_node(cpu: int, sysfs: Path = SYSFS) -> int:
    """The NUMA node of a CPU: the entry `node<N>` of `devices/system/cpu/cpu<k>`. Raises DecodeError without one."""
    path = sysfs / f"devices/system/cpu/cpu{cpu}"
    try:
        nodes = sorted(int(entry.name[4:]) for entry in path.iterdir() if re.fullmatch(r"node[0-9]{1,4}", entry.name))
    except OSError as error:
        raise DecodeError(
            str(path), f"cannot be read: {error.strerror}", "the number of a CPU of this machine"
        ) from None
    if not nodes:
        raise DecodeError(str(path), "has no NUMA node", "an entry node<N>, as the kernel makes it with NUMA support")
    return nodes[0]


def pci_attributes(address: str, sysfs: Path = SYSFS, *, lists: bool = False) -> dict[str, DeviceAttribute]:
    """The standard attributes of a PCI device, for its entry in a ResourceSlice; what is unknown is left out.

    lists: `numaNode` as a list with the nodes as near, which the API server must allow (DRAListTypeAttributes), for
    otherwise it refuses the whole slice. Raises ValidationError for what is no PCI address.
    """
    bus_id = pci_bus_id(address)
    found = {PCI_BUS_ID: DeviceAttribute(string=bus_id)}
    root = _known(lambda: pci_root(bus_id, sysfs))
    if root is not None:
        found[PCIE_ROOT] = DeviceAttribute(string=root)
    node = _known(lambda: pci_numa_node(bus_id, sysfs))
    if node is not None:
        found[NUMA_NODE] = numa_node_attribute(node, near=near_numa_nodes(node, sysfs) if lists else None)
    return found


def _known(read: Callable[[], Value]) -> Value | None:
    try:
        return read()
    except DecodeError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise DecodeError(str(path), f"cannot be read: {error.strerror}", "a sysfs with this device") from None


def _read_or(path: Path, default: str) -> str:
    try:
        return _read(path)
    except DecodeError:
        return default


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None
