"""Manifests that others publish can be linted; some of them have mistakes that are worth finding."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dra_alloc import DecodeError, Features, load
from dra_alloc.lint import check, rewrite_files
from tests.docs.pages import ROOT

REAL = ROOT.parent / "shared" / "real"
REPORTS = sorted((ROOT / "tests" / "data" / "bugs").glob("*.yaml"))

needs_real = pytest.mark.skipif(
    not REAL.is_dir(), reason="the folder ../shared/real with manifests of others is not there"
)

#: What is wrong in some of them, old versions aside.
MISTAKES = {
    "hami-test.yaml": {"invalid-object"},  # a parenthesis too many in a selector
    "intel-monitor-gpu.yaml": {"questionable-value"},  # tolerations without operator Exists
    "kk-devicetaintrule-nil-selector-v1alpha3.yaml": {"rule-hits-nothing"},
    "kep4815-slices.yaml": {"invalid-object"},  # counters without nodes
    "nv-gpu-test4-v1.yaml": set[str](),
    "ex-admin-access.yaml": set[str](),
}


@needs_real
@pytest.mark.parametrize("path", sorted(REAL.glob("*.*")), ids=lambda path: path.name)
def test_manifests_of_others_can_be_linted(path: Path) -> None:
    try:
        objects = load(path)
    except DecodeError:
        return  # what cannot be read is the business of the tests of reading
    findings = check(objects, features=Features.all())
    assert all(finding.message and finding.where.startswith(str(path)) for finding in findings)
    rewritten, unfixed = rewrite_files(objects, findings)
    assert sum(len(file.applied) for file in rewritten) + len(unfixed) == sum(bool(item.fix) for item in findings)


@needs_real
@pytest.mark.parametrize("name", MISTAKES)
def test_known_mistakes_are_found(name: str) -> None:
    codes = Counter(
        finding.code
        for finding in check(load(REAL / name), features=Features.all())
        if finding.severity.value != "info"
    )
    assert set(codes) - {"deprecated-api-version"} == MISTAKES[name]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_bug_reports_can_be_linted(path: Path) -> None:
    for features in (Features(), Features.all(), Features.none()):
        assert all(finding.message for finding in check(load(path), features=features))
