"""`dra-alloc allocate` and `dra-alloc nodes` on whole inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEMO = EXAMPLES / "demo"
DATA = Path(__file__).with_name("data")

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def gpu_slice(*devices: str, node: str = "node-1", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpu"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": device, **fields} for device in devices],
        },
    }


def claim(name: str, *, count: int = 1, device_class: str = "gpu") -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def dump(*objects: dict[str, Any]) -> str:
    """As `kubectl get -o json` prints several objects."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects, "metadata": {"resourceVersion": ""}})


def chosen(answer: dict[str, Any]) -> list[str]:
    return [
        f"{result['pool']}/{result['device']}"
        for entry in answer["claims"]
        for result in entry["allocation"]["devices"]["results"]
    ]


def test_claims_are_served_one_after_the_other(run: Run) -> None:
    shown = run(
        "allocate", "-f", "-", "-o", "json", stdin=dump(NODE, CLASS, gpu_slice("a", "b"), *map(claim, ("x", "y", "z")))
    )
    assert shown.status == 1
    answers = shown.json["answers"]
    assert [answer["claims"][0]["claim"] for answer in answers] == ["default/x", "default/y", "default/z"]
    assert [answer["fits"] for answer in answers] == [True, True, False]
    assert [chosen(answer) for answer in answers[:2]] == [["node-1/a"], ["node-1/b"]]
    assert answers[2] == {
        "pod": None,
        "node": None,
        "fits": False,
        "claims": [{"claim": "default/z"}],
        "reason": None,
        "error": None,
    }


def test_separately_nothing_is_taken_up(run: Run) -> None:
    text = dump(NODE, CLASS, gpu_slice("a"), claim("x"), claim("y"))
    shown = run("allocate", "-f", "-", "-o", "json", "--separately", stdin=text)
    assert shown.status == 0
    assert [chosen(answer) for answer in shown.json["answers"]] == [["node-1/a"], ["node-1/a"]]


def test_named_claims_are_served_together(run: Run) -> None:
    text = dump(NODE, CLASS, gpu_slice("a", "b"), claim("x"), claim("y"), claim("other"))
    shown = run("allocate", "-f", "-", "-o", "json", "--claim", "y", "--claim", "default/x", stdin=text)
    assert shown.status == 0
    (answer,) = shown.json["answers"]
    assert [entry["claim"] for entry in answer["claims"]] == ["default/y", "default/x"]
    assert chosen(answer) == ["node-1/a", "node-1/b"]


def test_the_first_node_that_fits_is_chosen_or_the_one_named(run: Run) -> None:
    second = {**NODE, "metadata": {"name": "node-2"}}
    text = dump(NODE, second, CLASS, gpu_slice("a"), gpu_slice("a", "b", node="node-2"), claim("pair", count=2))
    assert run("allocate", "-f", "-", "-o", "json", stdin=text).json["answers"][0]["node"] == "node-2"
    named = run("allocate", "-f", "-", "-o", "json", "--node", "node-1", stdin=text)
    assert named.status == 1
    assert named.json["answers"][0]["fits"] is False


def test_pods_that_share_a_claim_share_its_device(run: Run) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]},
        }
        for name in ("p", "q")
    ]
    second = {**NODE, "metadata": {"name": "node-0"}}
    text = dump(second, NODE, CLASS, gpu_slice("a"), claim("shared"), claim("late"), *pods)
    shown = run("allocate", "-f", "-", "-o", "json", stdin=text)
    assert shown.status == 1
    p, q, late = shown.json["answers"]
    assert (p["node"], chosen(p)) == (q["node"], chosen(q)) == ("node-1", ["node-1/a"])
    assert not late["fits"]


def test_a_gated_pod_takes_no_device_from_those_after_it(run: Run) -> None:
    def pod(name: str, **fields: Any) -> dict[str, Any]:
        spec = {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "dev", "resourceClaimName": name}],
            **fields,
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}

    gated = pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    text = dump(NODE, CLASS, gpu_slice("a"), claim("gated"), claim("free"), gated, pod("free"))
    shown = run("allocate", "-f", "-", "-o", "json", stdin=text)
    assert [(answer["pod"], answer["node"]) for answer in shown.json["answers"]] == [("default/free", "node-1")]
    assert shown.err == (
        "warning: pod default/gated waits for its scheduling gates: example.com/quota; passed over, as schedulers do\n"
    )
    named = run("allocate", "-f", "-", "--pod", "gated", stdin=text)
    assert named.status == 0
    assert "scheduling gates: example.com/quota; what it would get all the same:" in named.err


def test_a_pod_gets_the_claim_of_its_template_and_of_its_extended_resources(run: Run) -> None:
    served = {**CLASS, "spec": {"extendedResourceName": "example.com/gpu"}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": claim("unused")["spec"]},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}],
            "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "t"}],
        },
    }
    text = dump(NODE, served, gpu_slice("a", "b"), template, pod)
    shown = run("allocate", "-f", "-", "-o", "json", stdin=text)
    assert shown.status == 0
    (answer,) = shown.json["answers"]
    assert chosen(answer) == ["node-1/a", "node-1/b"]
    made, extended = (entry["claim"] for entry in answer["claims"])
    assert made.startswith("default/p-dev-")
    assert extended.startswith("default/p-extended-resources-")
    table = run("allocate", "-f", "-", stdin=text)
    assert [line.split()[0] for line in table.out.splitlines()[2:3]] == ["dev"]


def test_the_answer_depends_on_the_input_alone(run: Run) -> None:
    first, second = (run("allocate", "-f", EXAMPLES / "consumable-capacity", "-o", "json") for _ in range(2))
    assert first == second
    shares = [
        result["shareID"]
        for answer in first.json["answers"]
        for entry in answer["claims"]
        for result in entry.get("allocation", {}).get("devices", {}).get("results", ())
        if "shareID" in result
    ]
    assert len(shares) == len(set(shares)) == 5


def test_ids_are_none_that_the_input_has(run: Run) -> None:
    text = (EXAMPLES / "consumable-capacity" / "cluster.yaml").read_text(encoding="utf-8")
    first = run(
        "allocate", "-f", "-", "-o", "json", stdin=f"{text}---\n{yaml.safe_dump(claim('x', device_class='nic'))}"
    )
    ((entry,),) = (answer["claims"] for answer in first.json["answers"])
    holder = {**claim("x", device_class="nic"), "status": {"allocation": entry["allocation"]}}
    both = f"{text}---\n{yaml.safe_dump(holder)}---\n{yaml.safe_dump(claim('y', device_class='nic'))}"
    ((other,),) = (answer["claims"] for answer in run("allocate", "-f", "-", "-o", "json", stdin=both).json["answers"])
    (old,), (new,) = (each["allocation"]["devices"]["results"] for each in (entry, other))
    assert old["device"] == new["device"] == "nic-0"
    assert old["shareID"] != new["shareID"]


def test_why_a_pod_does_not_fit_on_a_node(run: Run) -> None:
    shown = run("allocate", "-f", DEMO, "--pod", "trainer-0", "--node", "node-4", "-o", "json")
    assert shown.status == 1
    assert "devices" in shown.json["answers"][0]["reason"]


def test_without_nodes_in_the_input_those_of_slices_are_taken(run: Run) -> None:
    shown = run("allocate", "-f", "-", "-o", "json", stdin=dump(CLASS, gpu_slice("a"), claim("x")))
    assert shown.status == 0
    assert shown.json["answers"][0]["node"] == "node-1"
    assert "no Node in the input" in shown.err


def test_a_node_that_is_not_there_is_an_error(run: Run) -> None:
    text = dump(NODE, CLASS, gpu_slice("a"), claim("x"))
    for command in ("allocate", "nodes", "score", "explain", "whatif"):
        shown = run(command, "-f", "-", "--node", "node-7", stdin=text)
        assert (shown.status, shown.out) == (2, "")
        assert "no Node node-7 in the input; did you mean node-1?" in shown.err


def test_an_error_of_one_claim_is_told_and_the_others_go_on(run: Run) -> None:
    text = dump(NODE, CLASS, gpu_slice("a"), claim("x", device_class="gone"), claim("y"))
    shown = run("allocate", "-f", "-", "-o", "json", stdin=text)
    assert shown.status == 2
    first, second = shown.json["answers"]
    assert first["error"]["kind"] == "class-not-found"
    assert "gone" in first["error"]["message"]
    assert (first["fits"], second["fits"]) == (False, True)


def test_an_error_in_the_table(run: Run) -> None:
    shown = run("allocate", "-f", "-", stdin=dump(NODE, CLASS, gpu_slice("a"), claim("x", device_class="gone")))
    assert shown.status == 2
    assert shown.out.startswith("claim default/x: error\n")
    assert "gone" in shown.out
    assert shown.out.endswith("0 of 1 fit\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "error: "),
        ("kind: ResourceClaim\n", "apiVersion"),
        (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: 3}\n",
            "spec.devices",
        ),
    ],
)
def test_bad_input_is_a_message_and_status_2(text: str, message: str, run: Run) -> None:
    shown = run("allocate", "-f", "-", stdin=text)
    assert (shown.status, shown.out) == (2, "")
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_nothing_to_do_fits(run: Run) -> None:
    shown = run("allocate", "-f", "-", stdin=dump(NODE, CLASS, gpu_slice("a")))
    assert (shown.status, shown.out) == (0, "nothing waits for devices\n")
    empty = run("allocate", "-f", "-", "-o", "json", stdin=dump(NODE, CLASS, gpu_slice("a")))
    assert (empty.status, empty.json) == (0, {"answers": []})


def test_json_and_yaml_say_the_same(run: Run) -> None:
    text = dump(NODE, CLASS, gpu_slice("a"), claim("x"), claim("y"))
    as_json = run("allocate", "-f", "-", "-o", "json", stdin=text)
    as_yaml = run("allocate", "-f", "-", "-o", "yaml", stdin=text)
    assert yaml.safe_load(as_yaml.out) == as_json.json


def test_the_table_shows_what_a_person_wants_to_know_of_a_device(run: Run) -> None:
    attributes = {
        "uuid": {"string": "GPU-8a7f"},
        "driverVersion": {"version": "1.2.3"},
        "gpu.example.com/productName": {"string": "Example R48"},
        "healthy": {"bool": True},
        "resource.kubernetes.io/pcieRoot": {"strings": ["pci0000:00", "pci0000:10"]},
    }
    offered = gpu_slice("a", attributes=attributes, capacity={"memory": {"value": "48Gi"}})
    shown = run("allocate", "-f", "-", stdin=dump(NODE, CLASS, offered, claim("x")))
    assert shown.status == 0
    words = " ".join(shown.out.split())
    assert "gpu.example.com/node-1/a" in words
    assert "productName=Example R48, memory=48Gi, pcieRoot=pci0000:00|pci0000:10, healthy=true" in words
    assert "GPU-8a7f" not in words
    assert "1.2.3" not in words


def test_the_demo_as_json(run: Run) -> None:
    shown = run("allocate", "-f", DEMO / "cluster.yaml", "-f", DEMO / "workloads.yaml", "-o", "json")
    assert (shown.status, shown.err) == (1, "")
    assert {answer["pod"]: [answer["node"], *chosen(answer)] for answer in shown.json["answers"] if answer["fits"]} == {
        "default/trainer-0": ["node-1", "node-1/gpu-1", "node-1/nic-1"],
        "default/trainer-1": ["node-2", "node-2/gpu-1", "node-2/nic-1"],
        "default/memory-test": ["node-2", "node-2/gpu-0"],
        "default/inference-0": ["node-3", "node-3/card-0-quarter-0", "node-3/nic-0"],
        "default/inference-1": ["node-3", "node-3/card-0-quarter-1", "node-3/nic-0"],
        "default/notebook-0": ["node-3", "node-3/card-1"],
        "default/notebook-1": ["node-3", "node-3/card-0-half-0"],
        "ops/monitor": ["node-1", "node-1/gpu-0", "node-1/gpu-1"],
    }
    waiting = {answer["pod"] for answer in shown.json["answers"] if not answer["fits"]}
    assert waiting == {"default/trainer-2", "default/inference-2"}


def test_nodes_lists_where_each_would_fit_alone(run: Run) -> None:
    shown = run("nodes", "-f", DEMO, "-o", "json")
    assert shown.status == 0
    assert {answer["pod"]: answer["nodes"] for answer in shown.json["answers"]} == {
        "default/trainer-0": ["node-1", "node-2"],
        "default/trainer-1": ["node-1", "node-2"],
        "default/trainer-2": ["node-1", "node-2"],
        "default/memory-test": ["node-1", "node-2"],
        "default/inference-0": ["node-3"],
        "default/inference-1": ["node-3"],
        "default/notebook-0": ["node-3"],
        "default/notebook-1": ["node-3"],
        "default/inference-2": ["node-3"],
        "ops/monitor": ["node-1", "node-2", "node-3"],
    }


def test_nodes_that_do_not_fit_and_errors(run: Run) -> None:
    text = dump(NODE, CLASS, gpu_slice("a"), claim("x", count=2), claim("y", device_class="gone"))
    shown = run("nodes", "-f", "-", "--claim", "x", stdin=text)
    assert shown.status == 1
    assert [line.split() for line in shown.out.splitlines()] == [
        ["FOR", "FIT", "NODES"],
        ["claim", "default/x", "0/1", "none"],
    ]
    failed = run("nodes", "-f", "-", "-o", "json", stdin=text)
    assert failed.status == 2
    assert [answer["error"] and answer["error"]["kind"] for answer in failed.json["answers"]] == [
        None,
        "class-not-found",
    ]


def test_a_dump_of_kubectl_through_standard_input() -> None:
    """As a user runs it; the dump has what clusters have: managed fields, other kinds, unknown fields."""
    with (DATA / "dump.json").open(encoding="utf-8") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "dra_alloc", "allocate", "-f", "-", "-o", "json"],
            stdin=stream,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    (answer,) = json.loads(done.stdout)["answers"]
    assert (answer["pod"], answer["node"], answer["fits"]) == ("ml/train-0", "worker-b", True)
    (entry,) = answer["claims"]
    assert entry["claim"] == "ml/train-0-gpu-qx9vt"
    assert entry["allocation"] == {
        "devices": {
            "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "worker-b", "device": "gpu-0"}],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["worker-b"]}]}]
        },
    }
