"""Every report of a fault elsewhere has the right outcome here."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import AllocationResult, ResourceSlice
from dra_alloc.errors import AllocationError
from dra_alloc.lint import check as check_objects
from tests.conformance.reports import Report, mismatches, read_reports

REPORTS = {str(report): report for report in read_reports()}

#: Reports about pods are asked through the pod; see the tests at the end.
ABOUT_PODS = {"41-implicit-extended-resource-name", "42-two-classes-one-extended-resource"}

#: What is refused, by which rule, and what then comes of asking nevertheless; see the tests at the end.
REFUSED = {name for name, report in REPORTS.items() if report.expect()["outcome"] == "rejected"}

#: The kind of error that the words of a report stand for.
KINDS = {
    "more than 32 devices requested": "too-many-devices",
    "no such key: sharing": "cel",
    "negative capacity request": "capacity",
}


def allocator(cluster: dra.Cluster) -> dra.Allocator:
    return dra.Allocator(cluster, features=dra.Features.all())


def test_every_report_is_covered() -> None:
    assert len(REPORTS) == 36
    assert {
        "29-slice-count-zero",
        "37-negative-counter-consumption",
        "38-negative-capacity-request",
        "39-huge-count-overflow",
        "52-shared-counters-and-devices-in-one-slice",
    } == REFUSED


@pytest.mark.parametrize("name", sorted(set(REPORTS) - ABOUT_PODS - REFUSED))
def test_report(name: str) -> None:
    report = REPORTS[name]
    expect = report.expect()
    clusters = [report.cluster()]
    if expect.get("permuteSlices"):
        slices = [item for item in report.objects() if isinstance(item, ResourceSlice)]
        others = [item for item in report.objects() if not isinstance(item, ResourceSlice)]
        clusters = [dra.Cluster.from_objects([*others, *order]) for order in permutations(slices)]
    for cluster in clusters:
        if expect.get("evaluateClaimsSeparately"):
            check_separately(report, cluster)
        elif expect.get("sequential"):
            check_in_turn(report, cluster)
        else:
            check_together(report, cluster)


def check_together(report: Report, cluster: dra.Cluster) -> None:
    """All claims of the report are asked for at once."""
    expect, alloc = report.expect(), allocator(cluster)
    claims = report.pending(cluster)
    named = [f"default/{name}" for name in expect.get("unchanged", ())]
    asked = [*named, *(claim.metadata.key for claim in claims)]
    if expect["outcome"] == "unschedulable":
        assert alloc.feasible_nodes(asked) == []
        return
    assert alloc.feasible_nodes(asked) == report.nodes()
    for node in report.nodes():
        results = alloc.allocate(asked, node=node)
        assert results is not None
        for key, result in zip(asked, results, strict=True):
            check_claim(expect, key, result)
        for key, result in zip(named, results, strict=False):
            before = cluster.get("ResourceClaim", key)
            assert before is not None
            assert result == before.status.allocation
        shares = [device.share_id for result in results for device in result.devices.results if device.share_id]
        assert len(shares) == len(set(shares))
    for node, outcome in expect.get("perNode", {}).items():
        assert outcome == "unschedulable"
        assert node not in alloc.feasible_nodes(asked)


def check_separately(report: Report, cluster: dra.Cluster) -> None:
    """Each claim of the report is asked for alone."""
    for claim in report.pending(cluster):
        check_alone(report, cluster, claim.metadata.key)


def check_alone(report: Report, cluster: dra.Cluster, key: str) -> None:
    expect, alloc = report.expect(), allocator(cluster)
    name = key.partition("/")[2]
    (node,) = report.nodes()
    if name in expect.get("errors", {}):
        words = expect["errors"][name]
        with pytest.raises(AllocationError) as caught:
            alloc.allocate(key, node=node)
        assert caught.value.kind == KINDS[words]
        assert caught.value.claim == key
        if KINDS[words] == "cel":
            assert words in str(caught.value)
    elif name in expect.get("unschedulable", ()) or expect["outcome"] == "unschedulable":
        assert alloc.allocate(key, node=node) is None
    else:
        results = alloc.allocate(key, node=node)
        assert results is not None
        check_claim(expect, key, results[0])


def check_in_turn(report: Report, cluster: dra.Cluster) -> None:
    """The claims of the report are asked for one after the other, each committed if it fits."""
    expect, alloc = report.expect(), allocator(cluster)
    (node,) = report.nodes()
    for claim in report.pending(cluster):
        key = claim.metadata.key
        results = alloc.allocate(key, node=node)
        if key.partition("/")[2] in expect.get("unschedulable", ()):
            assert results is None
            continue
        assert results is not None
        check_claim(expect, key, results[0])
        cluster.commit(key, results[0])


def check_claim(expect: dict[str, Any], key: str, result: AllocationResult) -> None:
    wanted = expect.get("allocations", {})
    entries = wanted.get(key) or wanted.get(key.partition("/")[2])
    if entries is not None:
        assert list(mismatches(entries, result.devices.results)) == []
    assert not {device.device for device in result.devices.results} & set(expect.get("forbidden", ()))


# Reports about pods


@pytest.mark.parametrize("name", sorted(ABOUT_PODS))
def test_extended_resources(name: str) -> None:
    report = REPORTS[name]
    expect, cluster = report.expect(), report.cluster()
    (pod,) = cluster.pods()
    plan = allocator(cluster).allocate_pod(pod)
    assert plan is not None
    assert plan.node == expect["node"]
    (claim,), (result,) = plan.claims, plan.allocations
    assert list(mismatches(expect["allocations"][f"pod/{pod.metadata.name}"], result.devices.results)) == []
    if "deviceClass" in expect:
        (request,) = claim.spec.devices.requests
        assert request.exactly is not None
        assert request.exactly.device_class_name == expect["deviceClass"]


def test_two_pods_one_after_the_other() -> None:
    report = REPORTS["47-double-allocation-in-one-run"]
    cluster = report.cluster()
    alloc = allocator(cluster)
    plan = alloc.allocate_pod("default/p0")
    assert plan is not None
    cluster.commit(plan)
    assert alloc.allocate_pod("default/p1") is None


def test_a_pod_with_a_claim_that_is_allocated() -> None:
    report = REPORTS["48-mixed-shared-and-per-node-claims"]
    cluster = report.cluster()
    plan = allocator(cluster).allocate_pod("default/p1")
    assert plan is not None
    assert plan.node in report.nodes()
    assert plan.allocated == ("default/gpu-claim",)
    held = cluster.get("ResourceClaim", "default/chan")
    assert held is not None
    assert plan.allocations[0] == held.status.allocation


# What a person should be told besides


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("22-taint-rule-empty-selector", "rule-hits-everything", "every device"),
        ("37-negative-counter-consumption", "pool-invalid", "negative"),
        ("50-slice-node-selector-two-terms", "invalid-object", "exactly one"),
    ],
)
def test_linter_says_so(name: str, code: str, words: str) -> None:
    findings = check_objects(REPORTS[name].path, features=dra.Features.all(), codes=[code])
    assert [words in str(finding) for finding in findings] == [True]


# What is refused: validation names the rule, and the allocator gives nothing out all the same.


def problems(report: Report) -> list[str]:
    return [str(problem) for item in report.objects() for problem in dra.validate(item)]


def test_slice_count_zero() -> None:
    report = REPORTS["29-slice-count-zero"]
    assert any("spec.pool.resourceSliceCount" in text and "greater than zero" in text for text in problems(report))
    assert allocator(report.cluster()).allocate("default/c0", node="node-a") is None


def test_negative_counter_consumption() -> None:
    report = REPORTS["37-negative-counter-consumption"]
    with pytest.raises(AllocationError) as caught:
        allocator(report.cluster()).allocate("default/c0", node="node-a")
    assert caught.value.kind == "invalid-pool"
    assert "negative" in str(caught.value)


def test_negative_capacity_request() -> None:
    report = REPORTS["38-negative-capacity-request"]
    cluster = report.cluster()
    check_alone(report, cluster, "default/c0")
    check_alone(report, cluster, "default/c1")
    negative = {str(each.object) for each in check_objects(list(cluster)) if each.code == "negative-amount"}
    assert len(negative) == 2
    assert any("default/c0" in name for name in negative)
    assert any("default/old" in name for name in negative)


def test_huge_counts() -> None:
    report = REPORTS["39-huge-count-overflow"]
    with pytest.raises(AllocationError) as caught:
        allocator(report.cluster()).allocate("default/c0", node="node-a")
    assert caught.value.kind == "too-many-devices"


def test_shared_counters_and_devices_in_one_slice() -> None:
    report = REPORTS["52-shared-counters-and-devices-in-one-slice"]
    assert any("sharedCounters" in text and "devices" in text for text in problems(report))
    assert allocator(report.cluster()).allocate("default/c0", node="node-a") is None
