"""The commands of the features around the search: taints, status of pools and devices, binding, calls, metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

NOON = "2026-09-01T12:00:00Z"


def test_taints_tell_who_goes_when_and_why(run: Run) -> None:
    found = run("taints", "-f", "examples/taints/cluster.yaml", "--now", NOON)
    assert (found.status, found.err) == (1, "")
    assert found.out == (
        "2026-09-01T12:30:00Z team-b/simulation on node-1, with team-b/patient:\n"
        "    gpu.example.com/ecc=uncorrectable:NoExecute on gpu.example.com/node-1/gpu-1\n"
    )
    late = run("taints", "-f", "examples/taints", "--now", "2026-09-01T15:00:00+02:30", "-o", "json").json
    assert late["now"] == "2026-09-01T12:30:00Z"
    (eviction,) = late["evictions"]
    assert (eviction["pod"], eviction["due"], eviction["claims"]) == ("team-b/simulation", True, ["team-b/patient"])
    assert eviction["reasons"] == [
        {
            "device": "gpu.example.com/node-1/gpu-1",
            "rule": None,
            "taint": {
                "key": "gpu.example.com/ecc",
                "value": "uncorrectable",
                "effect": "NoExecute",
                "timeAdded": "2026-09-01T12:00:00Z",
            },
        }
    ]


def test_nobody_goes_with_taints_switched_off(run: Run) -> None:
    found = run("taints", "-f", "examples/taints", "--features", "DRADeviceTaints=false")
    assert (found.status, found.out) == (0, "No pod is evicted.\n")
    none = run("taints", "-f", "examples/taints", "--features", "DRADeviceTaints=false", "--devices")
    assert (none.status, none.out) == (0, "No device is tainted.\n")


def test_the_dry_run_of_a_rule(run: Run) -> None:
    arguments = ("taints", "-f", "examples/taints", "--rule", "open-rack", "--now", NOON)
    found = run(*arguments)
    assert found.status == 1
    assert found.out.startswith("3 published devices selected. 2 allocated devices selected. 3 pods would be evicted ")
    form = run(*arguments, "-o", "json").json
    assert form["namespaces"] == ["team-a", "team-b"]
    assert form["allocatedDevices"][1] == {"claim": "team-b/patient", "device": "gpu.example.com/node-1/gpu-1"}
    assert len(form["evictions"]) == 3


def test_a_rule_that_is_not_there(run: Run) -> None:
    found = run("taints", "-f", "examples/taints", "--rule", "closed-rack")
    assert found.status == 2
    assert "no DeviceTaintRule 'closed-rack'; there are: open-rack" in found.err
    none = run("taints", "-f", "examples/taints/cluster.yaml", "--rule", "closed-rack")
    assert "there is none in the input" in none.err
    file = run("taints", "-f", "examples/taints", "--rule", "examples/taints/cluster.yaml")
    assert "a file of rules is given with -f, and the rule by its name" in file.err


def test_devices_with_their_taints(run: Run) -> None:
    form = run("taints", "-f", "examples/taints", "--devices", "-o", "json").json
    assert [(item["device"], len(item["taints"])) for item in form["devices"]] == [
        ("gpu.example.com/node-1/gpu-0", 1),
        ("gpu.example.com/node-1/gpu-1", 2),
        ("gpu.example.com/node-1/gpu-2", 1),
    ]
    assert "rule open-rack" in run("taints", "-f", "examples/taints", "--devices").out


def test_the_strict_reading_of_the_controller(run: Run, tmp_path: Path) -> None:
    text = Path("examples/taints/cluster.yaml").read_text(encoding="utf-8")
    path = tmp_path / "cluster.yaml"
    path.write_text(text.replace("effect: NoExecute, tolerationSeconds: 1800", ""), encoding="utf-8")
    assert run("taints", "-f", path).status == 0
    assert run("taints", "-f", path, "--as-controller").status == 1


@pytest.mark.parametrize(("text", "message"), [("noon", "is no time"), ("2026-09-01T12:00:00", "has no time zone")])
def test_times_that_are_none(run: Run, text: str, message: str) -> None:
    found = run("taints", "-f", "examples/taints", "--now", text)
    assert found.status == 2
    assert message in found.err


def test_pool_status(run: Run) -> None:
    arguments = ("pool-status", "-f", "examples/pool-status")
    form = run(*arguments, "-o", "json").json
    assert [(pool["driver"], pool["poolName"], pool.get("availableDevices")) for pool in form["pools"]] == [
        ("gpu.example.com", "node-1", 2),
        ("gpu.example.com", "node-2", 2),
        ("gpu.example.com", "node-4", None),
        ("nic.example.com", "node-3", 1),
    ]
    types = run(*arguments, "--driver", "gpu.example.com", "--features", "DRAPartitionableDevicesType").out
    assert "gpu.example.com/node-2: 1 of 2 more of type Half can be allocated\n" in types
    assert "gpu.example.com/node-4: PoolIncomplete: " in types
    assert "nic.example.com/node-3: 170G of 200G bandwidth left\n" in run(*arguments, "--pool", "node-3").out
    assert run(*arguments, "--pool", "node-9").out == "No pool matches.\n"


def test_a_partition_type_needs_its_gate(run: Run) -> None:
    found = run("pool-status", "-f", "examples/pool-status", "--partition-type", "gpu.example.com/profile")
    assert found.status == 2
    assert "needs the feature gate DRAPartitionableDevicesType" in found.err


def test_requests_for_pool_status_are_answered(run: Run) -> None:
    arguments = ("pool-status", "-f", "examples/pool-status", "--answer", "--now", NOON)
    off = run(*arguments)
    assert (off.status, off.out) == (2, "")
    assert "ResourcePoolStatusRequest gpus needs the feature gate DRAResourcePoolStatus" in off.err
    on = (*arguments, "--features", "DRAResourcePoolStatus")
    (answered,) = run(*on, "-o", "json").json
    assert (answered["status"]["poolCount"], len(answered["status"]["pools"])) == (3, 2)
    assert run(*on).out.startswith("gpus: Calculated status for 2 pools\n")
    assert "the requests say which pools" in run(*on, "--driver", "x").err
    assert "no ResourcePoolStatusRequest" in run("pool-status", "-f", "examples/taints", "--answer").err


def test_addresses_of_pods(run: Run) -> None:
    arguments = ("devices-status", "-f", "examples/device-status")
    form = run(*arguments, "-o", "json").json
    assert form["addresses"][0] == {
        "address": "10.20.0.5/24",
        "pods": ["default/web-0"],
        "claim": "default/web-net",
        "driver": "nic.example.com",
        "pool": "node-1",
        "device": "shared",
        "shareID": "5d7f3c1a-0a51-4f5c-8d51-3e0f7c1b2a01",
        "interfaceName": "net1",
        "hardwareAddress": "02:00:5e:10:00:01",
    }
    assert "2001:db8:20::5/64" in run(*arguments, "--network", "2001:db8::/32").out
    nobody = run(*arguments, "--network", "10.30.0.0/16")
    assert (nobody.status, nobody.out) == (1, "No address.\n")
    assert run(*arguments, "--network", "here").status == 2


def test_claims_that_wait_to_be_bound(run: Run) -> None:
    arguments = ("binding", "-f", "examples/binding-conditions", "--now", NOON)
    found = run(*arguments, "-o", "json")
    assert found.status == 1
    assert found.json["claims"] == [
        {
            "claim": "default/unlucky",
            "state": "failed",
            "device": "gpu.example.com/fabric/remote-1",
            "condition": "gpu.example.com/attach-failed",
            "until": None,
        }
    ]
    assert "failed" in run(*arguments).out
    assert run(*arguments, "--features", "DRADeviceBindingConditions=false").status == 0
    assert run("binding", "-f", "examples/taints").out == "No claim has a device with binding conditions.\n"
    assert run(*arguments, "--timeout", "0").status == 2


def test_calls_of_nodes(run: Run) -> None:
    arguments = ("node-calls", "-f", "examples/node-operations")
    off = run(*arguments)
    assert off.status == 2
    assert "skipping NodePrepareResources needs the feature gate DRAOptionalNodeOperations" in off.err
    on = (*arguments, "--features", "DRAOptionalNodeOperations")
    assert run(*on, "--pod", "solver", "-o", "json").json["calls"] == [
        {
            "pod": "default/solver",
            "node": "node-2",
            "claim": "default/running",
            "prepare": ["gpu.example.com"],
            "unprepare": ["gpu.example.com"],
        }
    ]
    assert "gpu.example.com" in run(*on).out
    assert "there is no Pod default/nobody" in run(*on, "--pod", "nobody").err
    assert run("node-calls", "-f", "examples/standard-attributes").out == "No pod on a node has claims.\n"


def test_metadata_files(run: Run, tmp_path: Path) -> None:
    path = "examples/device-metadata/gpu.example.com-metadata.json"
    found = run("metadata", path)
    assert found.status == 0
    assert "driverVersion=1.4.0" in found.out
    assert run("metadata", path, "-o", "json").json["podClaimName"] == "devices"
    bad = tmp_path / "bad.json"
    bad.write_text(Path(path).read_text(encoding="utf-8").replace('"gpu-0"', '"GPU 0"'), encoding="utf-8")
    broken = run("metadata", bad)
    assert broken.status == 1
    assert "warning: requests[0].devices[0].name: " in broken.err
    bad.write_text("{", encoding="utf-8")
    assert run("metadata", bad).status == 2


def test_metadata_files_are_written_as_a_driver_would(run: Run, tmp_path: Path) -> None:
    arguments = ("metadata-write", "-f", "examples/device-metadata/cluster.yaml", "--root", tmp_path)
    folder = "dra-device-metadata/default_trainer-0-devices-x7k2q"
    files = [f"plugins/{kind}.example.com/{folder}/{kind}/metadata.json" for kind in ("gpu", "nic")]
    assert run(*arguments, "-o", "json").json == {
        "files": [
            {
                "claim": "default/trainer-0-devices-x7k2q",
                "request": kind,
                "driver": f"{kind}.example.com",
                "cdiDeviceID": f"{kind}.example.com/metadata=3f0d9a52-7a3e-4f0e-9a51-0c5a1d2e3f40_{kind}",
                "file": file,
            }
            for kind, file in zip(("gpu", "nic"), files, strict=True)
        ]
    }
    # What is read back is the example, whose slice publishes the GPU and not the NIC.
    example = run("metadata", "examples/device-metadata/gpu.example.com-metadata.json", "-o", "json").json
    assert run("metadata", tmp_path / files[0], "-o", "json").json == example
    (request,) = run("metadata", tmp_path / files[1], "-o", "json").json["requests"]
    assert request["devices"] == [{"driver": "nic.example.com", "pool": "node-1", "name": "nic-0"}]
    assert len(list((tmp_path / "cdi").iterdir())) == 2
    again = run(*arguments, "--claim", "trainer-0-devices-x7k2q")
    assert (again.status, again.out.split()[:4]) == (0, ["CLAIM", "REQUEST", "DRIVER", "FILE"])
    missing = run(*arguments, "--claim", "none")
    assert (missing.status, missing.out) == (2, "")
    assert "there is no allocated ResourceClaim default/none in the input" in missing.err
    none = ("metadata-write", "-f", "examples/standard-attributes", "--root", tmp_path / "none")
    assert run(*none).out == "No claim is allocated.\n"
    assert not (tmp_path / "none").exists()


def test_metadata_is_written_for_claims_that_can_be_named(run: Run, tmp_path: Path) -> None:
    text = Path("examples/device-metadata/cluster.yaml").read_text(encoding="utf-8")
    arguments = ("metadata-write", "-f", "-", "--root", tmp_path)
    bare = run(*arguments, "-o", "json", stdin=text.replace("  namespace: default\n", "", 1))
    assert [item["claim"] for item in bare.json["files"]] == ["default/trainer-0-devices-x7k2q"] * 2
    nameless = run(*arguments, stdin=text.replace("  uid: 3f0d9a52-7a3e-4f0e-9a51-0c5a1d2e3f40\n", "", 1))
    assert (nameless.status, nameless.out) == (2, "")
    assert "ResourceClaim default/trainer-0-devices-x7k2q: metadata.uid: '' is no UID" in nameless.err


def test_attributes_of_pci_devices(run: Run, tmp_path: Path) -> None:
    device = tmp_path / "devices/pci0000:3a/0000:3b:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n", encoding="ascii")
    (tmp_path / "bus/pci/devices").mkdir(parents=True)
    (tmp_path / "bus/pci/devices/0000:3b:00.0").symlink_to(device)
    arguments = ("pci-attributes", "3b:00.0", "--sysfs", tmp_path)
    assert run(*arguments, "-o", "json").json == {
        "devices": {
            "3b:00.0": {
                "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"},
                "resource.kubernetes.io/pcieRoot": {"string": "pci0000:3a"},
                "resource.kubernetes.io/numaNode": {"int": 1},
            }
        }
    }
    assert "pci0000:3a" in run(*arguments, "--lists").out
    assert run("pci-attributes", "gpu-0", "--sysfs", tmp_path).status == 2
