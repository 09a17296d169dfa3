"""Manifests as their authors published them: each is read, or refused with an error that a person understands.

They are not a part of this repository; the tests look for them beside it. The reports in tests/data/bugs are ours.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from dra_alloc import api
from dra_alloc.codec import decode, encode, load
from dra_alloc.errors import DecodeError

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "real"
BUGS = ROOT / "tests" / "data" / "bugs"

#: Files that cannot be read, with the place and the reason that the error must give.
REFUSED = {
    "amd-claim-status.yaml": ("", "no apiVersion and no kind"),
    "composite-match.yaml": ("", "no apiVersion and no kind"),
    "devs-nv-gpu-attrs.yaml": ("[0]", "no apiVersion and no kind"),
    "devs-nv-vfio-attrs.yaml": ("[0]", "no apiVersion and no kind"),
    "kep4815-tpu-fragment.yaml": ("", "no apiVersion and no kind"),
    "intel-aligned-gpus.yaml": ("[2] Pod test-inline-claim", "no apiVersion"),
    "ex-podgroup-resourceclaimtemplate.yaml": ("[3] PodGroup", "no version 'scheduling.k8s.io/v1alpha2'"),
    "intel-quantity-rct.yaml": ("exactly.selectors[0].expression", "belongs under `cel`"),
    "web-resourceclaim-misindented-cel.yaml": ("exactly.selectors[0].expression", "belongs under `cel`"),
    "kep4381-slice.yaml": ("line 4", "write out what it stands for"),
    "kep5075-claim.yaml": ("line 3", "write out what it stands for"),
    "kep5075-slice.yaml": ("line 3", "write out what it stands for"),
    "kep5491-claims2.yaml": ("line 30", "no valid YAML"),
    "kep5517-ex4.yaml": ("line 62", "no valid YAML"),
    "kep4815-claim.yaml": ("ResourceClaim mig-devices: spec.spec", "form of a ResourceClaimTemplate"),
    "kep4815-multihost.yaml": ("spec.devices[0].capacity[tpus]", "expected an object, found '16'"),
    "kep5491-claim.yaml": ("ResourceClaim: spec.requests", "belongs under `devices`"),
    "kep5941-slice2.yaml": ("counters[bandwidth].value", "is missing"),
    "kep5963-claims.yaml": ("requests[0].deviceClassName", "belongs under `exactly`"),
    "kk-slice-consumablecapacity.tmpl.yaml": ("line 32", "render it first"),
    "kk-slice-partitionable-v1beta2.tmpl.yaml": ("line 36", "render it first"),
    "kk-slice-partitionable-backtracking-countersets.tmpl.yaml": ("metadata.name", "render it first"),
    "kk-slice-partitionable-backtracking-devices.tmpl.yaml": ("metadata.name", "render it first"),
    "nv-mig-mps-claims.yaml": ("[1] ResourceClaim sharing-demo/gpu-ts-sharing", "classic Dynamic Resource Allocation"),
    "nv-selectors-claims.yaml": ("[1] ResourceClaimTemplate", "classic Dynamic Resource Allocation"),
    "wg-dra-evolution-classes.yaml": ("[1] DeviceClass", "classic Dynamic Resource Allocation"),
    "wg-dra-evolution-pools-dgxa100.yaml": ("[0] ResourcePool", "has no kind 'ResourcePool'"),
    "slice-ibm-spyre-v1-basic.yaml": ("spec.devices[0].basic", "the form of v1beta1"),
    "slice-nv-view-resources.yaml": ("spec.devices[0]", "expected an object, found '...'"),
}

#: Files with fields that no version of the API has; they are left out with a warning.
WARNED = {"kep5941-slice1.yaml": ["spec.sharedCounters[0].counters[bandwidth].requestPolicy"]}

#: Files with no Pod, but a Deployment or a Job whose pods have claims; that is told.
MAKERS = {
    "kueue-sample-capacity.yaml",
    "kueue-sample-rct.yaml",
    "nv-consumable-memory.yaml",
    "nv-consumable-unlimited.yaml",
    "nv-gpu-test4-v1.yaml",
    "nv-gpu-test6-v1beta1.yaml",
    "sriov-multus-multi.yaml",
}

#: Files of which no object has anything to do with the allocation of devices.
SKIPPED = {"karpenter-kwok-nodeoverlay.yaml": {"test.karpenter.sh/v1alpha1 NodeOverlay": 1}}


def _files() -> list[object]:
    found = sorted(path.name for path in REAL.glob("*") if path.suffix in (".yaml", ".json", ".txt"))
    absent = pytest.mark.skip(reason="the folder ../shared/real with manifests of others is not there")
    return [*found] or [pytest.param("", marks=absent)]


@pytest.mark.parametrize("name", _files())
def test_is_read_or_refused_with_its_reason(name: str) -> None:
    path = REAL / name
    if name in REFUSED:
        with pytest.raises(DecodeError) as caught:
            load(path)
        place, reason = REFUSED[name]
        assert caught.value.path.startswith(str(path))
        assert place in caught.value.path
        assert reason in f"{caught.value.message} ({caught.value.hint})"
        return
    found = load(path)
    assert [warning.path.split(": ")[1] for warning in found.warnings] == (
        ["spec.template.spec.resourceClaims"] if name in MAKERS else WARNED.get(name, [])
    )
    if name in SKIPPED:
        assert (found, found.skipped) == ([], SKIPPED[name])
        return
    assert found
    for obj in found:
        assert decode(encode(obj), strict=True) == obj


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder ../shared/real with manifests of others is not there")
def test_is_not_misread() -> None:
    (plain,) = load(REAL / "derived-amd-unquoted-pci.yaml")
    assert isinstance(plain, api.ResourceSlice)
    attributes = plain.spec.devices[0].attributes
    assert attributes["pciAddr"] == api.DeviceAttribute(string="0003:00:02.0")
    assert attributes["driverVersion"] == api.DeviceAttribute(version="6.12.12")
    assert attributes["cardIndex"] == api.DeviceAttribute(int=40)
    (merged,) = load(REAL / "derived-anchors.yaml")
    assert isinstance(merged, api.ResourceSlice)
    one, two = merged.spec.devices
    assert two.attributes == {**one.attributes, "index": api.DeviceAttribute(int=1)}
    assert two.capacity is one.capacity
    kinds = Counter(type(obj).__name__ for obj in load(REAL / "slice-ex-readme.txt"))
    assert kinds == {"ResourceSlice": 1}
    (rule,) = load(REAL / "kk-devicetaintrule-nil-selector-v1alpha3.yaml")
    assert isinstance(rule, api.DeviceTaintRule)
    assert rule.spec.device_selector is None


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder ../shared/real with manifests of others is not there")
def test_golden_files_are_given_back_word_by_word() -> None:
    golden = sorted(REAL.glob("api-golden-*"))
    assert golden
    for path in golden:
        data = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
        for metadata in (data["metadata"], data["spec"].get("metadata", {})):
            metadata.pop("managedFields", None)
        (obj,) = load(path, strict=True)
        assert _texts(encode(obj, data["apiVersion"])) == _texts(data), path.name


def _texts(value: object) -> object:
    """All scalars as text, for the golden data are read without types."""
    if isinstance(value, dict):
        return {key: _texts(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_texts(entry) for entry in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("path", sorted(BUGS.glob("*.yaml")), ids=lambda path: path.name)
def test_bug_reports_are_read_in_full(path: Path) -> None:
    found = load(path, strict=True)
    assert found
    assert sum(found.skipped.values()) == 1
    assert next(iter(found.skipped)).endswith(" Expect")
    for obj in found:
        assert decode(encode(obj), strict=True) == obj
