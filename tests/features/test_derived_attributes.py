"""KEP-6080: attributes that a request derives from what a device publishes, for the constraints of its claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import Device
from tests.features.building import slice_of
from tests.features.scenes import gpu_class, node, pending, scene

NUMA = 'device.attributes["gpu.example.com"].numa'
NIC_NUMA = 'device.attributes["net.example.com"].numaNode'


def device(name: str, **attributes: Mapping[str, Any]) -> Device:
    return Device.from_dict({"name": name, "attributes": attributes})


def wanted(name: str, derived: Mapping[str, str], device_class: str = "gpu", count: int = 1) -> dict[str, Any]:
    attributes = [{"name": key, "expression": expression} for key, expression in derived.items()]
    body = {"deviceClassName": device_class, "count": count, "derivedAttributes": attributes}
    return {"name": name, "exactly": body}


def had(
    devices: list[Any], *requests: Mapping[str, Any], match: str, features: dra.Features | None = None
) -> list[str] | None:
    classes = [gpu_class(), gpu_class("nic", driver="net.example.com")]
    _, allocator = scene(node("node-1"), classes, devices, features=features)
    spec = {"devices": {"requests": list(requests), "constraints": [{"matchAttribute": match}]}}
    found = allocator.allocate(pending("c", spec), node="node-1")
    return None if found is None else [each.device for each in found[0].devices.results]


NODE = [
    slice_of(*(device(f"gpu-{place}", numa={"int": numa}) for place, numa in enumerate((0, 0, 1)))),
    slice_of(device("nic-0", numaNode={"int": 1}), driver="net.example.com"),
]


def test_worked_example_1() -> None:
    nic = wanted("nic", {"derived/numa": NIC_NUMA}, "nic")
    assert had(NODE, wanted("gpu", {"derived/numa": NUMA}), nic, match="derived/numa") == ["gpu-2", "nic-0"]
    assert had(NODE, wanted("gpu", {"derived/numa": NUMA}, count=2), nic, match="derived/numa") is None


RACK = "example.com/rack"


@pytest.fixture
def racks() -> list[Any]:
    """Two devices in two racks; only the first says what else it is."""
    first = {"name": "a", "attributes": {"example.com/rack": {"string": "a"}, "x.example.com/foo": {"string": "none"}}}
    second = {"name": "b", "attributes": {"example.com/rack": {"string": "b"}}}
    return [slice_of(Device.from_dict(first), Device.from_dict(second))]


def test_worked_example_2(racks: list[Any]) -> None:
    foo = 'device.attributes["x.example.com"].'
    assert had(racks, wanted("r", {}, count=2), match=RACK) is None
    assert had(racks, wanted("r", {RACK: '"same"'}, count=2), match=RACK) == ["a", "b"]
    with pytest.raises(dra.AllocationError, match="no such key: foo") as caught:
        had(racks, wanted("r", {RACK: f"{foo}foo"}, count=2), match=RACK)
    assert (caught.value.kind, caught.value.device) == ("cel", "gpu.example.com/node-1/b")
    assert had(racks, wanted("r", {RACK: f'{foo}?foo.orValue("none")'}, count=2), match=RACK) == ["a", "b"]


def test_each_request_shadows_for_itself(racks: list[Any]) -> None:
    as_a = {RACK: '"a"'}
    assert had(racks, wanted("own", {}), wanted("derived", as_a), match=RACK) == ["a", "b"]
    assert had(racks, wanted("derived", as_a), wanted("own", {}), match=RACK) == ["b", "a"]


def test_with_the_gate_off_constraints_see_what_is_published(racks: list[Any]) -> None:
    features = dra.Features.all().replace(DRADerivedAttributes=False)
    assert had(racks, wanted("r", {RACK: '"same"'}, count=2), match=RACK, features=features) is None
    assert had(NODE, wanted("gpu", {"derived/numa": NUMA}), match="derived/numa", features=features) is None
    assert had(racks, wanted("r", {RACK: "nonsense("}), match=RACK, features=features) == ["a"]


@pytest.mark.parametrize(
    ("derived", "match", "problem"),
    [
        ({"numa": NUMA}, "derived/numa", "derivedAttributes[0].name"),
        ({"derived/other": NUMA}, "derived/numa", "derivedAttributes[0].name"),
        ({"derived/numa": "device"}, "derived/numa", "derivedAttributes[0].expression"),
    ],
    ids=["without-domain", "no-constraint-needs-it", "not-a-value"],
)
def test_derived_attributes_that_the_api_refuses(derived: dict[str, str], match: str, problem: str) -> None:
    spec = {"devices": {"requests": [wanted("gpu", derived)], "constraints": [{"matchAttribute": match}]}}
    paths = [each.path for each in dra.validate(pending("c", spec), features=dra.Features.all())]
    assert [path for path in paths if path.endswith(problem)], paths
