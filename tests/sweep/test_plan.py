"""Plans: what their fields mean, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import dra_alloc as dra
from dra_alloc.sweeps import Plan, read_plan, sweep

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep"


def plan(tmp_path: Path, text: str) -> Plan:
    """A plan beside the files of the example."""
    for name in ("cluster.yaml", "workload.yaml", "notebooks.yaml"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text(encoding="utf-8"), encoding="utf-8")
    file = tmp_path / "plan.yaml"
    file.write_text(text, encoding="utf-8")
    return read_plan(file)


def test_scenarios_are_all_combinations_the_last_axis_fastest() -> None:
    found = read_plan(EXAMPLE / "plan.yaml")
    assert len(found) == 12
    names = [scenario.name for scenario in found]
    assert names[:3] == [
        "nodes=1 jobs=2 beside=nothing",
        "nodes=1 jobs=2 beside=notebooks",
        "nodes=1 jobs=4 beside=nothing",
    ]
    assert names[-1] == "nodes=4 jobs=4 beside=notebooks"
    assert [found[number] for number in range(12)] == list(found)
    assert found[-1] == found[11]
    assert found[2:4] == list(found)[2:4]
    assert found[0].labels == {"nodes": 1, "jobs": 2, "beside": "nothing"}
    with pytest.raises(IndexError, match="there are 12 scenarios"):
        _ = found[12]


def test_the_example_comes_out_as_a_person_would_count() -> None:
    fits = {outcome.name: outcome.placed for outcome in sweep(read_plan(EXAMPLE / "plan.yaml"))}
    assert fits["nodes=1 jobs=4 beside=nothing"] == 1
    assert fits["nodes=2 jobs=4 beside=nothing"] == 2
    assert fits["nodes=4 jobs=4 beside=nothing"] == 4
    assert fits["nodes=4 jobs=4 beside=notebooks"] == 5


def test_a_plan_without_axes_is_one_scenario(tmp_path: Path) -> None:
    (scenario,) = plan(tmp_path, "cluster: cluster.yaml\nworkload: [workload.yaml, notebooks.yaml]\n")
    assert scenario.name == "base"
    assert [item.kind for item in scenario.workload] == ["ResourceClaimTemplate", "Pod", "ResourceClaim"]


def test_clones_have_names_labels_and_pools_of_their_own(tmp_path: Path) -> None:
    found = plan(tmp_path, "cluster: cluster.yaml\naxes: {n: [{label: x, clone: {node: node-1, times: 2}}]}\n")
    nodes = [item for item in found[0].upsert if item.kind == "Node"]
    slices = [item for item in found[0].upsert if item.kind == "ResourceSlice"]
    assert [node.metadata.name for node in nodes] == ["node-1-copy-1", "node-1-copy-2"]
    assert [node.metadata.labels["kubernetes.io/hostname"] for node in nodes] == ["node-1-copy-1", "node-1-copy-2"]
    assert [(item.spec.node_name, item.spec.pool.name) for item in slices] == [
        ("node-1-copy-1", "node-1-copy-1"),
        ("node-1-copy-2", "node-1-copy-2"),
    ]
    assert len({item.metadata.name for item in slices}) == 2


def test_a_node_goes_with_its_slices(tmp_path: Path) -> None:
    found = plan(tmp_path, "cluster: cluster.yaml\naxes: {n: [{label: x, remove: [Node/node-2]}]}\n")
    assert found[0].delete == (("Node", "node-2"), ("ResourceSlice", "node-2-gpu"))


def test_repeated_pods_name_the_claims_of_their_number(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(
        """
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: own, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: user, namespace: default}
spec: {resourceClaims: [{name: a, resourceClaimName: own}, {name: b, resourceClaimName: other}], containers: []}
""",
        encoding="utf-8",
    )
    found = plan(tmp_path, "cluster: cluster.yaml\nworkload: pair.yaml\naxes: {n: [{label: 2, repeat: 2}]}\n")
    assert [(item.kind, item.metadata.name) for item in found[0].workload] == [
        ("ResourceClaim", "own-1"),
        ("Pod", "user-1"),
        ("ResourceClaim", "own-2"),
        ("Pod", "user-2"),
    ]
    pod = found[0].workload[3]
    assert [each.resource_claim_name for each in pod.spec.resource_claims] == ["own-2", "other"]


def test_a_setting_repeats_the_workload_that_it_brings(tmp_path: Path) -> None:
    text = (
        "cluster: cluster.yaml\nworkload: workload.yaml\naxes: {n: [{label: x, workload: notebooks.yaml, repeat: 3}]}"
    )
    kinds = [item.kind for item in plan(tmp_path, text)[0].workload]
    assert kinds == ["ResourceClaimTemplate", "Pod", "ResourceClaim", "ResourceClaim", "ResourceClaim"]


def test_features_of_the_plan_and_of_settings(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        """
cluster: cluster.yaml
kubernetesVersion: "1.36"
features: {DRAAdminAccess: false}
axes:
  gates:
    - {label: as given}
    - {label: more, features: {DRADerivedAttributes: true}}
    - {label: older, kubernetesVersion: "1.34"}
""",
    )
    base = dra.Features.for_version("1.36", disable=["DRAAdminAccess"])
    assert found.features == base
    assert [scenario.features for scenario in found] == [
        None,
        base.replace(DRADerivedAttributes=True),
        dra.Features.for_version("1.34"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a plan is one document, not 0"),
        ("cluster: cluster.yaml\n---\ncluster: cluster.yaml\n", "a plan is one document, not 2"),
        ("[1", "no valid YAML"),
        ("- 1\n", "expected an object, found [1]"),
        ("workload: workload.yaml\n", "there is no `cluster`"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "this is a Kubernetes object, and no plan (a plan names files"),
        ("cluster: 3\n", "cluster: files are named by their paths"),
        ("cluster: gone.yaml\n", "there is no"),
        ("cluster: cluster.yaml\nfetures: {}\n", "unknown field 'fetures'"),
        ("cluster: cluster.yaml\nfeatures: {DRANonsense: true}\n", "unknown feature gate DRANonsense"),
        (
            "cluster: cluster.yaml\nfeatures: {DRAAdminAccess: maybe}\n",
            "features.DRAAdminAccess: a gate is true or false",
        ),
        ("cluster: cluster.yaml\nkubernetesVersion: '0.1'\n", "no gate table for Kubernetes '0.1'"),
        ("cluster: cluster.yaml\naxes: []\n", None),
        ("cluster: cluster.yaml\naxes: [1]\n", "axes: expected an object"),
        ("cluster: cluster.yaml\naxes: {n: []}\n", "axes.n: an axis is a list of settings"),
        ("cluster: cluster.yaml\naxes: {n: {label: 1}}\n", "axes.n: an axis is a list of settings"),
        ("cluster: cluster.yaml\naxes: {n: [{}]}\n", "axes.n[0].label: a setting needs a label"),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1}, {label: 1}]}\n", "axes.n: the label 1 is there twice"),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, repeat: -1}]}\n", "axes.n[0].repeat: -1 is no number"),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, repeat: 1000000}]}\n", "from 0 to 10000"),
        (
            "cluster: cluster.yaml\naxes: {n: [{label: 1, remove: [Node/x]}]}\n",
            "axes.n[0].remove[0]: there is no 'Node/x'",
        ),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, remove: node-1}]}\n", "KIND/NAME"),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, remove: 3}]}\n", "axes.n[0].remove: "),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, clone: {node: x}}]}\n", "clone.node: there is no node 'x'"),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, clone: node-1}]}\n", "axes.n[0].clone: expected an object"),
        ("cluster: cluster.yaml\naxes: {n: [{label: 1, add: broken.yaml}]}\n", "broken.yaml"),
        (
            "cluster: cluster.yaml\naxes: {a: &a ["
            + ", ".join(f"{{label: {number}}}" for number in range(1100))
            + "], b: *a}\n",
            "1210000 scenarios are too many (at most 1000000)",
        ),
    ],
)
def test_wrong_plans_are_refused_with_the_field(tmp_path: Path, text: str, message: str | None) -> None:
    (tmp_path / "broken.yaml").write_text(
        "kind: ResourceClaim\napiVersion: resource.k8s.io/v1\nspec: 3\n", encoding="utf-8"
    )
    if message is None:
        assert len(plan(tmp_path, text)) == 1
        return
    with pytest.raises(dra.DecodeError) as caught:
        plan(tmp_path, text)
    assert message in str(caught.value)
