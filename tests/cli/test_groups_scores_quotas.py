"""`dra-alloc group`, `score` and `quota`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_alloc.cli import main

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
GROUP = [
    "group",
    "default/training",
    "-f",
    str(EXAMPLES / "workload-claims"),
    "--features",
    "DRAWorkloadResourceClaims",
]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_group_is_planned_as_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *GROUP, "-o", "json")
    answer = json.loads(out)
    assert (status, answer["fits"]) == (0, True)
    assert answer["plan"]["nodes"] == {"default/worker-0": "b1", "default/worker-1": "b2", "default/worker-2": "b3"}
    assert (answer["plan"]["complete"], answer["plan"]["leftOut"]) == (True, [])


def test_a_group_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *GROUP, "--min-count", "4")
    reason = "4 pods must run, and the input has 3 of the group"
    assert (status, out) == (1, f"group default/training: does not fit\n  {reason}\n")
    status, out, _ = run(capsys, *GROUP, "--min-count", "4", "-o", "json")
    form = {"group": "default/training", "fits": False, "plan": None, "reason": reason}
    assert (status, json.loads(out)) == (1, form)


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        (0, "no node fits even alone: default/a, default/b; dra-alloc explain --pod default/a says why"),
        (1, "each of the 2 pods that wait fits alone, but not 2 of them together"),
    ],
)
def test_where_to_look_first_if_a_group_does_not_fit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, gpus: int, reason: str
) -> None:
    claims = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(gpus)]
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "n"},
            "spec": {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": devices},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t", "namespace": "default"},
            "spec": claims,
        },
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        },
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "containers": [{"name": "main"}],
                    "schedulingGroup": {"podGroupName": "g"},
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
                },
            }
            for name in ("a", "b")
        ),
    ]
    path = tmp_path / "group.json"
    path.write_text(json.dumps(objects))
    status, out, _ = run(capsys, "group", "-f", str(path), "g")
    assert (status, out) == (1, f"group default/g: does not fit\n  {reason}\n")


def test_a_group_that_is_not_there_or_asks_too_much_of_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "group", "default/gone", *GROUP[2:])
    assert status == 2
    assert "there is no PodGroup 'default/gone'" in err
    status, _, err = run(capsys, *GROUP, "--max-tries", "1")
    assert status == 2
    assert "whether there is a plan is not known" in err


def test_pods_that_are_left_out_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *GROUP, "--min-count", "2", "--max-tries", "1")
    assert status == 0
    assert "group default/training: 2 pods have a node" in out
    assert "left out: default/worker-2; a plan with more of them is not ruled out" in out


def test_scores(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(EXAMPLES / "prioritized-list")
    status, out, _ = run(capsys, "score", "-f", example, "-o", "json")
    assert status == 0
    assert json.loads(out) == {
        "scores": [
            {
                "pod": "default/trainer",
                "claims": [],
                "nodes": [
                    {"node": "small", "raw": 6, "score": 75},
                    {"node": "medium", "raw": 7, "score": 87},
                    {"node": "large", "raw": 8, "score": 100},
                ],
                "error": None,
            }
        ]
    }
    status, out, _ = run(capsys, "score", "-f", str(EXAMPLES / "admin-access"), "--claim", "default/another")
    assert (status, out.split()) == (1, ["FOR", "NODE", "RAW", "SCORE"])


def test_one_error_does_not_hide_the_scores_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["score", "-f", str(EXAMPLES / "reasons" / "pod-claims"), "-f", str(EXAMPLES / "reasons" / "too-few")]
    status, out, _ = run(capsys, *asked, "-o", "json")
    failed, scored = json.loads(out)["scores"]
    assert status == 2
    assert (failed["pod"], failed["error"]["kind"], failed["nodes"]) == ("default/trainer", "validation", [])
    assert (scored["claims"], scored["error"]) == (["default/wanted"], None)
    status, out, _ = run(capsys, *asked)
    assert "pod default/trainer: error: Pod default/trainer: spec.resourceClaims[0]: there is no Res" in out


def test_a_group_without_a_namespace_is_one_of_default(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, error = run(capsys, "group", "nothing", "-f", str(EXAMPLES / "demo"))
    assert (status, "there is no PodGroup 'default/nothing'" in error) == (2, True)


def test_quotas(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(EXAMPLES / "extended-resources")
    status, out, _ = run(capsys, "quota", "-f", example, "-o", "json")
    assert (status, json.loads(out)) == (
        0,
        {
            "namespace": "default",
            "used": {
                "count/resourceclaims.resource.k8s.io": 0,
                "requests.deviceclass.resource.kubernetes.io/gpu": 1,
                "requests.example.com/gpu": 5,
            },
        },
    )
    status, out, error = run(capsys, "quota", "-f", example, "--namespace", "other", "-o", "json")
    assert json.loads(out)["used"] == {"count/resourceclaims.resource.k8s.io": 0}
    assert error == "warning: no pod or claim in the namespace other; there are some in default\n"
    assert run(capsys, "quota", "-f", example, "-n", "other", "-o", "json")[1] == out


def test_searching_on_for_devices_that_the_node_is_enough_for(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["-f", str(EXAMPLES / "node-allocatable"), "--features", "all", "--pod", "default/trainer"]
    assert run(capsys, "allocate", *asked)[0] == 1
    assert run(capsys, "nodes", *asked)[0] == 1
    status, out, _ = run(capsys, "allocate", *asked, "--node-resources", "search", "-o", "json")
    (answer,) = json.loads(out)["answers"]
    assert (status, answer["node"]) == (0, "node-1")
    status, out, _ = run(capsys, "nodes", *asked, "--node-resources", "search", "-o", "json")
    assert (status, json.loads(out)["answers"][0]["nodes"]) == (0, ["node-1"])
    status, out, _ = run(capsys, "allocate", *asked, "--node", "node-1")
    assert status == 1
    assert "memory: the pod takes 10216Mi, the node has 8Gi" in out
