"""`dra-alloc convert`."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.cli.conftest import Run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SLICE = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: node-1-gpu}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
    - name: gpu-0
      basic:
        attributes: {busID: {string: "0003:00:02.0"}}
        capacity: {memory: {value: 48Gi}}
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec: {containers: []}\n"


def test_an_old_object_becomes_the_newest_version(run: Run) -> None:
    shown = run("convert", "-f", "-", stdin=SLICE)
    assert (shown.status, shown.err) == (0, "")
    written = yaml.safe_load(shown.out)
    assert written["apiVersion"] == "resource.k8s.io/v1"
    assert written["spec"]["devices"] == [
        {
            "name": "gpu-0",
            "attributes": {"busID": {"string": "0003:00:02.0"}},
            "capacity": {"memory": {"value": "48Gi"}},
        }
    ]


def test_there_and_back_is_the_same(run: Run) -> None:
    new = run("convert", "-f", "-", stdin=SLICE)
    old = run("convert", "-f", "-", "--to", "v1beta1", stdin=new.out)
    assert yaml.safe_load(old.out) == yaml.safe_load(SLICE)


def test_several_objects_are_documents_or_a_list(run: Run) -> None:
    path = EXAMPLES / "list-attributes" / "claims.yaml"
    as_yaml = run("convert", "-f", path, "--to", "v1beta2")
    as_json = run("convert", "-f", path, "--to", "v1beta2", "-o", "json")
    written = json.loads(as_json.out)
    assert (written["apiVersion"], written["kind"]) == ("v1", "List")
    assert list(yaml.safe_load_all(as_yaml.out)) == written["items"]
    assert [item["apiVersion"] for item in written["items"]] == ["resource.k8s.io/v1beta2"] * 3


def test_objects_of_other_groups_stay_as_they_are(run: Run) -> None:
    shown = run("convert", "-f", "-", "--to", "v1beta1", stdin=f"{SLICE}---\n{POD}")
    assert [found["apiVersion"] for found in yaml.safe_load_all(shown.out)] == ["resource.k8s.io/v1beta1", "v1"]


def test_what_the_version_cannot_hold_is_an_error_that_names_the_field(run: Run) -> None:
    text = SLICE.replace("basic:", "basic:\n        allowMultipleAllocations: true")
    shown = run("convert", "-f", "-", "--to", "v1alpha3", stdin=text)
    assert (shown.status, shown.out) == (2, "")
    assert "ResourceSlice node-1-gpu: spec.devices[0]" in shown.err
    assert "allowMultipleAllocations" in shown.err


def test_a_version_that_does_not_exist_is_met_with_those_that_do(run: Run) -> None:
    shown = run("convert", "-f", "-", "--to", "v3", stdin=SLICE)
    assert (shown.status, shown.out) == (2, "")
    assert "resource.k8s.io/v1beta2" in shown.err
