"""`dra-alloc whatif`: what it prints, and how it ends."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run

REASONS = Path(__file__).parents[2] / "examples" / "reasons"


def test_text_and_status(run: Run) -> None:
    ran = run("whatif", "-f", REASONS / "taint", "--remedies", 1)
    assert ran.status == 1
    assert ran.out == (
        "claim default/wanted: does not fit; what would help, the least first:\n"
        "  1. tolerate the taint example.com/maintenance:NoSchedule in request gpus of claim default/wanted\n"
        "      cost 10; on node node-1 it would get gpus: gpu.example.com/node-1/gpu-1\n"
        "  (1 trial on 1 of 1 nodes; not all combinations were tried)\n"
    )


def test_an_error_that_no_change_mends(run: Run) -> None:
    ran = run("whatif", "-f", REASONS / "pod-claims")
    assert ran.status == 2
    assert ran.out == (
        "pod default/trainer: error, and nothing that was tried would help\n"
        "  [pod-claims] Pod default/trainer: spec.resourceClaims[0]: there is no ResourceClaimTemplate\n"
        "      default/gpu (add the object to the cluster)\n"
        "  (0 trials on 0 of 1 nodes)\n"
    )
    (answer,) = run("whatif", "-f", REASONS / "pod-claims", "-o", "json").json["answers"]
    assert (answer["failure"]["code"], answer["remedies"]) == ("pod-claims", [])


FAILING = """
{apiVersion: v1, kind: Node, metadata: {name: n}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: default}
spec:
  devices:
    requests:
      - name: r
        exactly:
          deviceClassName: gpu
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "big"'}}]
"""


def test_an_error_that_a_change_mends(run: Run) -> None:
    ran = run("whatif", "-f", "-", "--remedies", 1, stdin=FAILING)
    assert ran.status == 1
    assert ran.out.startswith(
        "claim default/c: error; what would help, the least first:\n"
        "  [cel] claim default/c, request r, device gpu.example.com/n/gpu-0: selector 0 of the request: no\n"
        "      such key: model\n"
    )
    assert '  1. drop device.attributes["gpu.example.com"].model == "big" from the selectors of request r' in ran.out


def test_json_and_csv(run: Run) -> None:
    (answer,) = run("whatif", "-f", REASONS / "in-use", "-o", "json").json["answers"]
    assert (answer["fits"], answer["remedies"][0]["changes"][0]["text"]) == (False, "release claim default/first")
    ran = run("whatif", "-f", REASONS / "in-use", "-o", "csv")
    assert ran.out.splitlines()[:2] == [
        "subject,remedy,cost,node,kind,claim,request,change",
        "claim default/wanted,1,50,node-1,preempt,,,release claim default/first",
    ]


def test_preemption(run: Run) -> None:
    ran = run("whatif", "-f", REASONS / "node-resources", "--preempt")
    assert (ran.status, ran.out) == (1, "pod default/trainer: preemption would not help\n")
    ran = run("whatif", "-f", REASONS / "claim-elsewhere", "--pod", "trainer", "--preempt", "-o", "json")
    assert ran.status == 0
    (found,) = ran.json["preemptions"]
    assert (found["node"], found["victims"]) == ("node-1", [])


def test_preemption_is_for_pods(run: Run) -> None:
    for selection in (["--claim", "wanted"], []):
        ran = run("whatif", "-f", REASONS / "in-use", "--preempt", *selection)
        assert ran.status == 2
        assert "only claims are asked for; give --pod" in ran.err
