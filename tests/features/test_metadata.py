"""KEP-5304: metadata files and CDI specifications, written into and read from real folders."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator

from dra_alloc.api import Device, DeviceAttribute, NetworkDeviceData, ObjectMeta, ResourceClaim
from dra_alloc.errors import DecodeError, ValidationError
from dra_alloc.features.metadata import (
    CONTAINER_ROOT,
    POD_CLAIM_NAME,
    VERSIONS,
    DeviceMetadata,
    MetadataDevice,
    MetadataFile,
    MetadataRequest,
    MetadataWriter,
    cdi_spec,
    container_files,
    container_path,
    encode_stream,
    metadata_problems,
    published_devices,
    published_metadata,
    read_claim,
    read_file,
    read_stream,
    read_template_claim,
)
from tests.features.building import claim, pod, result, slice_of

V1BETA1, V1ALPHA1 = VERSIONS
UID = "c7e7b22e-239b-4498-b27c-7f1344481e14"
#: Written after the text of the CDI specification; nothing that it does not name is let through.
CDI = Draft202012Validator(json.loads((Path(__file__).parents[1] / "data" / "cdi-schema.json").read_bytes()))
GPU_0 = MetadataDevice(driver="gpu.x", pool="n1", name="gpu-0", attributes={"model": DeviceAttribute(string="A")})


def claim_named(name: str, namespace: str = "ns", uid: str = UID, template: str | None = None) -> ResourceClaim:
    annotations = {POD_CLAIM_NAME: template} if template else {}
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid, annotations=annotations))


def writer(root: Path, driver: str = "gpu.x", versions: tuple[str, ...] = VERSIONS) -> MetadataWriter:
    return MetadataWriter(driver=driver, data_dir=root / driver, versions=versions, cdi_dir=root / "cdi")


def mounted(root: Path) -> Path:
    """The container's folder, with the mounts of all CDI specifications as links, as a runtime would bind them."""
    folder = root / "container"
    for path in sorted((root / "cdi").glob("*.json")):
        spec = json.loads(path.read_bytes())
        cdi_rules(spec)
        for mount in spec["devices"][0]["containerEdits"]["mounts"]:
            target = folder / PurePosixPath(mount["containerPath"]).relative_to(CONTAINER_ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(mount["hostPath"], target)
    return folder


def cdi_rules(spec: Any) -> None:
    """What the CDI specification (0.5.0) demands of a document."""
    CDI.validate(spec)


def test_worked_example_a(tmp_path: Path) -> None:
    ids = writer(tmp_path).prepare(claim_named("c1"), {"gpu": [GPU_0]})
    assert ids == {"gpu": f"gpu.x/metadata={UID}_gpu"}
    (spec_path,) = (tmp_path / "cdi").iterdir()
    assert spec_path.name == f"gpu.x_metadata_{UID}_gpu.json"
    assert json.loads(spec_path.read_bytes()) == {
        "cdiVersion": "0.5.0",
        "kind": "gpu.x/metadata",
        "devices": [
            {
                "name": f"{UID}_gpu",
                "containerEdits": {
                    "mounts": [
                        {
                            "hostPath": f"{tmp_path}/gpu.x/dra-device-metadata/ns_c1/gpu/metadata.json",
                            "containerPath": "/var/run/kubernetes.io/dra-device-attributes"
                            "/resourceclaims/c1/gpu/gpu.x-metadata.json",
                            "options": ["ro", "bind"],
                        }
                    ]
                },
            }
        ],
    }
    assert read_claim(mounted(tmp_path), "c1", "gpu") == DeviceMetadata(
        metadata=ObjectMeta(name="c1", namespace="ns", uid=UID, generation=1),
        requests=(MetadataRequest(name="gpu", devices=(GPU_0,)),),
    )


def test_worked_example_b(tmp_path: Path) -> None:
    nic, made = writer(tmp_path, "nic.x"), claim_named("p-net-7k", template="net")
    bare = MetadataDevice(driver="nic.x", pool="n1", name="nic-0")
    assert nic.prepare(made, {"nic/fast": [bare]}) == {"nic": f"nic.x/metadata={UID}_nic"}
    container = mounted(tmp_path)
    path = container / "resourceclaimtemplates/net/nic/nic.x-metadata.json"
    before = read_file(path)
    assert (before.pod_claim_name, before.requests[0].name, before.metadata.generation) == ("net", "nic/fast", 1)

    addressed = attrs.evolve(bare, network_data=NetworkDeviceData(ips=("10.0.0.5/24",)))
    updated = nic.update("ns", "p-net-7k", UID, "nic", [addressed])
    # The container sees it: the file it has mounted is still the one.
    assert read_template_claim(container, "net", "nic") == updated
    assert (updated.metadata.generation, updated.requests[0].name) == (2, "nic/fast")
    assert updated.requests[0].devices == (addressed,)
    assert updated.pod_claim_name == "net"

    nic.cleanup("ns", "p-net-7k", UID)
    assert list((tmp_path / "cdi").iterdir()) == []
    assert not nic.host_path("ns", "p-net-7k", "nic").exists()
    nic.cleanup("ns", "p-net-7k", UID)


def test_files_are_readable_by_everyone_and_nothing_else_is_left(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        gpu = writer(tmp_path)
        gpu.prepare(claim_named("c1"), {"gpu": [GPU_0]})
    finally:
        os.umask(old)
    path = gpu.host_path("ns", "c1", "gpu")
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.parent.stat().st_mode & 0o777 == 0o755
    assert [entry.name for entry in path.parent.iterdir()] == ["metadata.json"]


def test_the_stream_holds_each_version_in_the_given_order(tmp_path: Path) -> None:
    gpu = writer(tmp_path, versions=(V1ALPHA1, V1BETA1))
    gpu.prepare(claim_named("c1"), {"gpu": [GPU_0]})
    text = gpu.host_path("ns", "c1", "gpu").read_text()
    first, end = json.JSONDecoder().raw_decode(text)
    second = json.loads(text[end:])
    assert (first.pop("apiVersion"), second.pop("apiVersion")) == (V1ALPHA1, V1BETA1)
    assert first == second
    assert first == {
        "kind": "DeviceMetadata",
        "metadata": {"name": "c1", "namespace": "ns", "uid": UID, "generation": 1},
        "requests": [
            {
                "name": "gpu",
                "devices": [
                    {"driver": "gpu.x", "pool": "n1", "name": "gpu-0", "attributes": {"model": {"string": "A"}}}
                ],
            }
        ],
    }


def test_requests_without_devices_get_no_file(tmp_path: Path) -> None:
    assert writer(tmp_path).prepare(claim_named("c1"), {"gpu": []}) == {}
    assert list(tmp_path.iterdir()) == []


def test_prepared_again_a_generation_never_goes_back(tmp_path: Path) -> None:
    gpu, held = writer(tmp_path), claim_named("c1")
    gpu.prepare(held, {"gpu": [GPU_0]})
    path = gpu.host_path("ns", "c1", "gpu")
    inode = path.stat().st_ino
    assert gpu.prepare(held, {"gpu": [GPU_0]}) == {"gpu": f"gpu.x/metadata={UID}_gpu"}
    assert read_file(path).metadata.generation == 1
    gpu.prepare(held, {"gpu": [attrs.evolve(GPU_0, attributes={})]})
    assert read_file(path).metadata.generation == 2
    assert path.stat().st_ino == inode
    # A new claim of the same name begins anew.
    gpu.prepare(claim_named("c1", uid="another"), {"gpu": [GPU_0]})
    assert (read_file(path).metadata.uid, read_file(path).metadata.generation) == ("another", 1)
    path.write_text("garbage")
    gpu.prepare(held, {"gpu": [GPU_0]})
    assert read_file(path).metadata.uid == UID


def test_a_shorter_update_never_leaves_the_rest_of_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = writer(tmp_path)
    gpu.prepare(claim_named("c1"), {"gpu": [attrs.evolve(GPU_0, name=f"gpu-{index}") for index in range(32)]})
    path = gpu.host_path("ns", "c1", "gpu")
    cut, seen = os.truncate, list[bytes]()

    def truncate(name: Path, length: int) -> None:
        seen.append(name.read_bytes())
        cut(name, length)

    monkeypatch.setattr(os, "truncate", truncate)
    updated = gpu.update("ns", "c1", UID, "gpu", [GPU_0])
    # Before the file is cut, it holds the new stream and blank lines; afterwards the new stream alone.
    assert seen[0].rstrip(b"\n") + b"\n" == path.read_bytes() == encode_stream(updated, VERSIONS)
    assert len(seen[0]) > len(path.read_bytes())


def test_a_file_that_is_being_rewritten_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    old, new = (encode_stream(DeviceMetadata(metadata=ObjectMeta(name=name)), VERSIONS) for name in ("old", "new"))
    states = iter([old[:40], new, new])
    monkeypatch.setattr("dra_alloc.features.metadata.reading._read", lambda _: next(states))
    assert read_file(path).metadata.name == "new"


def test_updates_of_what_was_not_prepared_are_refused(tmp_path: Path) -> None:
    gpu = writer(tmp_path)
    with pytest.raises(ValidationError, match="ResourceClaim ns/c1: request 'gpu' is not found in the prepared claim"):
        gpu.update("ns", "c1", UID, "gpu", [GPU_0])
    gpu.prepare(claim_named("c1"), {"gpu": [GPU_0]})
    with pytest.raises(ValidationError, match="is not found in the prepared claim"):
        gpu.update("ns", "c1", "another", "gpu", [GPU_0])


def test_cleanup_leaves_other_claims_and_drivers_alone(tmp_path: Path) -> None:
    gpu, nic = writer(tmp_path), writer(tmp_path, "nic.x")
    gpu.prepare(claim_named("c1"), {"gpu": [GPU_0], "more": [GPU_0]})
    gpu.prepare(claim_named("c2", uid="2"), {"gpu": [GPU_0]})
    nic.prepare(claim_named("c1"), {"nic": [GPU_0]})
    gpu.cleanup("ns", "c1", UID)
    left = {path.name for path in (tmp_path / "cdi").iterdir()}
    assert left == {"gpu.x_metadata_2_gpu.json", f"nic.x_metadata_{UID}_nic.json"}


def test_what_was_begun_is_undone_when_writing_fails(tmp_path: Path) -> None:
    gpu = writer(tmp_path)
    (tmp_path / "cdi").write_text("not a folder")
    with pytest.raises(OSError):
        gpu.prepare(claim_named("c1"), {"gpu": [GPU_0]})
    assert not gpu.host_path("ns", "c1", "gpu").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"driver": "9gpu.x"}, "driver: '9gpu.x' is no CDI vendor"),
        ({"driver": "../gpu"}, "driver: "),
        ({"versions": ()}, "versions: there is none"),
        ({"versions": ("v1",)}, r"versions\[0\]: 'v1' is not known"),
    ],
)
def test_writers_that_cannot_work_are_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        writer(tmp_path, **fields)


@pytest.mark.parametrize(
    ("made", "requests", "path"),
    [
        (claim_named("../c"), ["gpu"], "metadata.name"),
        (claim_named("c", namespace="../.."), ["gpu"], "metadata.namespace"),
        (claim_named("c", namespace=""), ["gpu"], "metadata.namespace"),
        (claim_named("c", uid=""), ["gpu"], "metadata.uid"),
        (claim_named("c", uid="a/b"), ["gpu"], "metadata.uid"),
        (claim_named("c", template="../../x"), ["gpu"], f"metadata.annotations[{POD_CLAIM_NAME}]"),
        (claim_named("c"), ["../gpu"], "devices[../gpu]"),
        (claim_named("c"), ["gpu/a", "gpu/b"], "devices[gpu/b]"),
    ],
)
def test_names_never_lead_out_of_the_folder(
    tmp_path: Path, made: ResourceClaim, requests: list[str], path: str
) -> None:
    with pytest.raises(ValidationError) as error:
        writer(tmp_path).prepare(made, {name: [GPU_0] for name in requests})
    assert [problem.path for problem in error.value.problems] == [path]
    assert list(tmp_path.iterdir()) == []


def test_names_are_checked_by_update_and_cleanup_too(tmp_path: Path) -> None:
    for act in (
        lambda: writer(tmp_path).update("ns", "../c", UID, "gpu", []),
        lambda: writer(tmp_path).update("ns", "c", UID, "../gpu", []),
        lambda: writer(tmp_path).cleanup("..", "c", UID),
    ):
        with pytest.raises(ValidationError):
            act()


OBJECT = {"kind": "DeviceMetadata", "apiVersion": V1BETA1, "metadata": {"name": "c"}, "requests": []}


def stream(*values: Any) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


def test_the_first_known_version_wins() -> None:
    future = {"kind": "DeviceMetadata", "apiVersion": "metadata.resource.k8s.io/v2", "requests": "new form"}
    found = read_stream(stream(future, OBJECT, {**OBJECT, "apiVersion": V1ALPHA1, "metadata": {"name": "old"}}))
    assert found.metadata.name == "c"
    # What follows the first known object is not looked at.
    assert read_stream(stream(OBJECT) + b" garbage") == found


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no metadata objects found"),
        (b" \n ", "no metadata objects found"),
        (stream({**OBJECT, "apiVersion": "a/v9"}), "only versions that are not known: a/v9"),
        (stream({**OBJECT, "requests": 3}), r"f\[0\]\.requests"),
        (stream({**OBJECT, "kind": "Other"}), r"f\[0\]\.kind: is not DeviceMetadata"),
        (stream({"kind": "DeviceMetadata"}), r"f\[0\]\.apiVersion: is no string"),
        (stream([1]), r"f\[0\]: is no object"),
        (stream({**OBJECT, "apiVersion": "a/v9"}) + b"{", "f: is no JSON"),
        (b"{" * 3, "f: is no JSON"),
        (b"[" * 200_000, "f: is no JSON"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"9" * 10_000, "f: is no JSON"),
        (b"\xff", "f: is not UTF-8"),
    ],
)
def test_streams_that_cannot_be_read(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        read_stream(data, "f")


def test_files_that_are_missing_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="no metadata files found"):
        read_claim(tmp_path, "c1", "gpu")
    with pytest.raises(DecodeError, match="cannot be read: No such file"):
        read_file(tmp_path / "none")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(DecodeError, match="is too large"):
        read_file(large)


def test_files_of_several_drivers_are_merged(tmp_path: Path) -> None:
    nic_0 = MetadataDevice(driver="a-nic.x", pool="n1", name="nic-0")
    for driver, device in (("gpu.x", GPU_0), ("a-nic.x", nic_0)):
        writer(tmp_path, driver).prepare(claim_named("p-x", template="all"), {"any": [device]})
    assert read_template_claim(mounted(tmp_path), "all", "any") == DeviceMetadata(
        pod_claim_name="all", requests=(MetadataRequest(name="any", devices=(nic_0, GPU_0)),)
    )


def test_a_container_sees_the_requests_that_it_names() -> None:
    spec = {
        "containers": [
            {"name": "one", "resources": {"claims": [{"name": "c", "request": "gpu"}, {"name": "missing"}]}},
            {"name": "none"},
        ],
        "initContainers": [{"name": "all", "resources": {"claims": [{"name": "c"}]}}],
    }
    user = pod("p", "c", spec=spec)
    held = claim(
        "c",
        result("gpu-0", request="gpu/big"),
        result("gpu-1", request="gpu/big"),
        result("nic-0", request="nic", driver="nic.example.com"),
    )
    root = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c"
    gpu = MetadataFile(
        "default/c", "gpu/big", "gpu.example.com", PurePosixPath(f"{root}/gpu/gpu.example.com-metadata.json")
    )
    nic = MetadataFile(
        "default/c", "nic", "nic.example.com", PurePosixPath(f"{root}/nic/nic.example.com-metadata.json")
    )
    assert container_files(user, "one", [held]) == (gpu,)
    assert container_files(user, "all", [held]) == (gpu, nic)
    assert container_files(user, "none", [held]) == ()
    assert container_files(user, "all", [claim("c")]) == ()


def test_the_attributes_of_the_slice_can_be_passed_on() -> None:
    device = Device(name="gpu-0", attributes={"model": DeviceAttribute(string="A")})
    assert published_metadata("gpu.x", "n1", device) == GPU_0


def test_the_newest_slices_say_what_a_device_publishes() -> None:
    old, new = (
        slice_of(Device(name="gpu-0", attributes={"model": DeviceAttribute(string=model)}), generation=generation)
        for generation, model in enumerate(("A", "B"))
    )
    held = claim("c", result("gpu-0", request="gpu/big"), result("gone", request="gpu/big"), result("gpu-0", pool="x"))
    entry = MetadataDevice(
        driver="gpu.example.com", pool="node-1", name="gpu-0", attributes=new.spec.devices[0].attributes
    )
    assert published_devices(held, [new, old]) == {
        "gpu.example.com": {
            "gpu/big": [entry, attrs.evolve(entry, name="gone", attributes={})],
            "gpu": [attrs.evolve(entry, pool="x", attributes={})],
        }
    }
    assert published_devices(claim("c"), [new]) == {}


def test_paths_on_the_host_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer(Path()).prepare(claim_named("c1"), {"gpu": [GPU_0]})
    assert read_claim(mounted(tmp_path), "c1", "gpu").requests[0].devices == (GPU_0,)


def test_specifications_follow_the_rules_of_cdi() -> None:
    made = claim_named("p-x", template="net")
    cdi_rules(cdi_spec("nic.x", UID, "nic", Path("/data/metadata.json"), container_path(made, "nic/fast", "nic.x")))


def cdi_of(**changes: Any) -> dict[str, Any]:
    return {**cdi_spec("nic.x", UID, "nic", Path("/data/metadata.json"), PurePosixPath("/metadata.json")), **changes}


def mounting(name: str = "a", **mount: Any) -> list[dict[str, Any]]:
    return [{"name": name, "containerEdits": {"mounts": [mount]}}]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (cdi_of(cdiVersion="0.4.0"), "$.cdiVersion"),
        (cdi_of(kind="nic.x"), "$.kind"),
        (cdi_of(kind="9nic.x/metadata"), "$.kind"),
        (cdi_of(devices=[]), "$.devices"),
        (cdi_of(annotations={}), "$"),
        (cdi_of(devices=[{"name": "a", "containerEdits": {}}]), "$.devices[0].containerEdits"),
        (cdi_of(devices=mounting("_a", hostPath="/a", containerPath="/a")), "$.devices[0].name"),
        (cdi_of(devices=mounting(hostPath="/a")), "$.devices[0].containerEdits.mounts[0]"),
        (cdi_of(devices=mounting(hostPath="a", containerPath="/a")), "$.devices[0].containerEdits.mounts[0].hostPath"),
    ],
)
def test_the_schema_of_cdi_refuses_what_breaks_a_rule(spec: dict[str, Any], path: str) -> None:
    assert [error.json_path for error in CDI.iter_errors(spec)] == [path]


def metadata_of(**device: Any) -> DeviceMetadata:
    entry = MetadataDevice(**{"driver": "gpu.x", "pool": "n1", "name": "gpu-0", **device})
    return DeviceMetadata(requests=(MetadataRequest(name="gpu", devices=(entry,)),))


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        (DeviceMetadata(pod_claim_name="A b"), "podClaimName"),
        (DeviceMetadata(requests=(MetadataRequest(),)), "requests[0].name"),
        (metadata_of(driver="no driver"), "requests[0].devices[0].driver"),
        (metadata_of(pool="a//b"), "requests[0].devices[0].pool"),
        (metadata_of(name="GPU"), "requests[0].devices[0].name"),
        (metadata_of(attributes={"a": DeviceAttribute()}), "requests[0].devices[0].attributes[a]"),
        (metadata_of(attributes={"a": DeviceAttribute(int=1, bool=True)}), "requests[0].devices[0].attributes[a]"),
        (
            metadata_of(attributes={f"a{index}": DeviceAttribute(int=1) for index in range(33)}),
            "requests[0].devices[0].attributes",
        ),
        (
            metadata_of(network_data=NetworkDeviceData(ips=("10.0.0.5",))),
            "requests[0].devices[0].networkData.ips[0]",
        ),
        (
            metadata_of(network_data=NetworkDeviceData(ips=("10.0.0.5/24",) * 2)),
            "requests[0].devices[0].networkData.ips[1]",
        ),
        (
            metadata_of(network_data=NetworkDeviceData(ips=("10.0.0.5/24",) * 17)),
            "requests[0].devices[0].networkData.ips",
        ),
        (
            metadata_of(network_data=NetworkDeviceData(interface_name="i" * 257)),
            "requests[0].devices[0].networkData.interfaceName",
        ),
        (
            metadata_of(network_data=NetworkDeviceData(hardware_address="0" * 129)),
            "requests[0].devices[0].networkData.hardwareAddress",
        ),
    ],
)
def test_rules_that_a_reader_may_check(metadata: DeviceMetadata, path: str) -> None:
    assert [problem.path for problem in metadata_problems(metadata)] == [path]


def test_valid_metadata_has_no_problems() -> None:
    network = NetworkDeviceData(interface_name="eth1", ips=("2001:db8::5/64",), hardware_address="aa:bb")
    assert metadata_problems(metadata_of(driver="GPU.x", network_data=network)) == ()
