"""What is certain is repaired, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_alloc import load
from dra_alloc.lint import RULES, Finding, apply_fixes, check, rewrite_files
from tests.docs.pages import ROOT
from tests.lint.building import claim, device, device_class, either, node, obj, pool, request

EXAMPLES = ROOT / "examples" / "lint"
FIXABLE = ["capacity-spelled-twice", "capacity-unknown", "counters-with-devices", "deprecated-api-version"]


@pytest.mark.parametrize("code", FIXABLE)
def test_a_fixed_example_has_no_such_finding_that_can_be_fixed(code: str, tmp_path: Path) -> None:
    path = tmp_path / f"{code}.yaml"
    path.write_bytes((EXAMPLES / f"{code}.yaml").read_bytes())
    objects = load(path)
    (rewritten,), unfixed = rewrite_files(objects, check(objects))
    assert unfixed == []
    assert {finding.code for finding in rewritten.applied} == {code}
    path.write_text(rewritten.text, encoding="utf-8")
    again = load(path)
    assert [finding for finding in check(again) if finding.fix] == []
    # Fixing what is fixed changes nothing.
    assert rewrite_files(again, check(again)) == ([], [])


def test_no_other_rule_offers_a_fix_in_its_example() -> None:
    fixable = {
        finding.code for code in RULES for finding in check(load(EXAMPLES / f"{code}.yaml")) if finding.fix is not None
    }
    assert fixable == set(FIXABLE)


def test_counters_get_a_slice_of_their_own() -> None:
    objects = load(EXAMPLES / "counters-with-devices.yaml")
    fixed = apply_fixes(objects, check(objects))
    counters, devices = (item.to_dict()["spec"] for item in fixed.objects)
    assert counters["pool"] == devices["pool"] == {"name": "node-1", "generation": 2, "resourceSliceCount": 2}
    assert [item["name"] for item in counters["sharedCounters"]] == ["card-0"]
    assert [item["name"] for item in devices["devices"]] == ["whole", "half"]
    assert "devices" not in counters
    assert "sharedCounters" not in devices
    assert check(fixed.objects) == []


def test_counters_of_a_pool_of_several_slices_are_left_alone() -> None:
    both = pool(device(), count=2, sharedCounters=[{"name": "set", "counters": {"a": {"value": "1"}}}])
    (finding,) = [item for item in check([both]) if item.code == "counters-with-devices"]
    assert finding.fix is None


def test_capacities_are_renamed_in_the_alternative_that_asks_for_them() -> None:
    slices = pool(device(capacity={"memory": {"value": "9"}, "cores": {"value": "9"}}))
    wanted = {"requests": {"MEMORY": "1", "cores": "2"}}
    asked = claim(either("gpu", request("gpu-a", capacity=wanted), request("gpu-b")))
    objects = load([slices, device_class("gpu"), asked])
    fixed = apply_fixes(objects, check(objects))
    first, second = fixed.objects[2].to_dict()["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert first["capacity"]["requests"] == {"memory": "1", "cores": "2"}
    assert "capacity" not in second
    assert fixed.objects[:2] == tuple(objects[:2])
    assert [finding.code for finding in fixed.applied] == ["capacity-unknown"]


def test_a_name_that_some_devices_lack_is_not_put_in() -> None:
    slices = pool(device("a", capacity={"memory": {"value": "9"}}), device("b"))
    objects = load([slices, device_class("gpu"), claim(request("gpu", capacity={"requests": {"MEMORY": "1"}}))])
    assert [(finding.code, finding.fix) for finding in check(objects)] == [("capacity-unknown", None)]


def test_an_amount_given_twice_and_differently_is_left_alone() -> None:
    slices = pool(device(capacity={"memory": {"value": "9"}}))
    wanted = {"memory": "1", "gpu.example.com/memory": "2"}
    objects = load([slices, device_class("gpu"), claim(request("gpu", capacity={"requests": wanted}))])
    assert [(finding.code, finding.fix) for finding in check(objects)] == [("capacity-spelled-twice", None)]


def test_templates_are_fixed_as_claims_are() -> None:
    slices = pool(device(capacity={"memory": {"value": "9"}}))
    spec = claim(request("gpu", capacity={"requests": {"Memory": "1"}}))["spec"]
    objects = load([slices, device_class("gpu"), obj("ResourceClaimTemplate", "t", spec={"spec": spec})])
    fixed = apply_fixes(objects, check(objects)).objects[2].to_dict()
    assert fixed["spec"]["spec"]["devices"]["requests"][0]["exactly"]["capacity"]["requests"] == {"memory": "1"}


# Files

OLD = """\
apiVersion: resource.k8s.io/v1beta1
kind: DeviceClass
metadata:
  name: gpu
spec:
  selectors:
    - cel:
        expression: device.driver == "gpu.example.com"
"""
OTHER = "apiVersion: v1\nkind: Node  # a comment\nmetadata: {name:   n1}\n"


def rewritten(tmp_path: Path, text: str, name: str = "objects.yaml") -> tuple[str | None, list[str]]:
    """The new text of a file (None: nothing to write), and why findings could not be fixed in it."""
    path = tmp_path / name
    path.write_bytes(text.encode())
    objects = load(path)
    files, unfixed = rewrite_files(objects, check(objects))
    assert path.read_bytes() == text.encode(), "nothing is written"
    return (files[0].text if files else None), [item.reason for item in unfixed]


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "# licence\n\n---\n# about the class\n{}",
        OTHER + "---\n{}---\n" + OTHER,
        "---\n{}...\n---\n" + OTHER,
        "{}\n# the end\n",
        OTHER + "\n---   # next\n\n\n{}\n\n---\n---\n" + OTHER,
    ],
)
def test_only_the_document_of_the_object_is_replaced(around: str, tmp_path: Path) -> None:
    text, unfixed = rewritten(tmp_path, around.replace("{}", OLD))
    assert unfixed == []
    assert text is not None
    before, after = around.split("{}")
    assert text.startswith(before)
    assert text.endswith(after)
    path = tmp_path / "again.yaml"
    path.write_text(text, encoding="utf-8")
    assert load(path) == load(tmp_path / "objects.yaml")
    assert [finding.code for finding in check(load(path)) if finding.fix] == []


def test_several_documents_of_a_file(tmp_path: Path) -> None:
    second = OLD.replace("name: gpu", "name: nic")
    text, _ = rewritten(tmp_path, f"{OLD}---\n{OTHER}---\n{second}")
    assert text is not None
    assert text.count("resource.k8s.io/v1\n") == 2
    assert f"---\n{OTHER}---\n" in text


IN_A_LIST = "apiVersion: v1\nkind: List\nitems:\n- " + OLD.rstrip().replace("\n", "\n  ")
AS_JSON = '{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "a"}}'


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        (IN_A_LIST, "a.yaml", "it is an item of a list"),
        (AS_JSON, "a.json", "the file is JSON"),
        (AS_JSON, "a.yaml", "it is written as JSON"),
        (OLD + "  typo: 1\n", "a.yaml", "it has fields that would be lost (spec.typo)"),
    ],
)
def test_what_would_lose_something_is_left_alone(text: str, name: str, reason: str, tmp_path: Path) -> None:
    assert rewritten(tmp_path, text, name) == (None, [reason])


def test_objects_that_were_not_read_from_files_are_left_alone() -> None:
    objects = load([{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "a"}}])
    files, unfixed = rewrite_files(objects, check(objects))
    assert (files, [item.reason for item in unfixed]) == ([], ["it was not read from a file"])


def test_lost_comments_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    for text, lost in ((OLD, False), (OLD.replace("name: gpu", "name: gpu  # ours"), True)):
        path.write_text(text, encoding="utf-8")
        objects = load(path)
        (file,), _ = rewrite_files(objects, check(objects))
        assert file.loses_comments is lost


def test_pods_are_never_written_again() -> None:
    old_group = obj("PodGroup", "g", "scheduling.k8s.io/v1alpha3", spec={"schedulingPolicy": {"basic": {}}})
    findings: list[Finding] = check([old_group, node()])
    assert [(finding.code, finding.fix) for finding in findings] == [("deprecated-api-version", None)]
