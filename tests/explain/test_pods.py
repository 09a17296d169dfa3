"""Explanations of pods look at all that `allocate_pod` looks at, and agree with it."""

from __future__ import annotations

import pytest

import dra_alloc as dra
from tests.explain.building import GPU_CLASS, GPUS, NODES, cluster, gpus, pod, template


def test_devices_resources_and_placement_over_all_nodes() -> None:
    alloc = dra.Allocator(cluster(NODES, GPUS, pod("p", cpu="4")))
    found = alloc.explain(pod="default/p")
    assert found.fits
    assert found.fitting == ("a",)
    assert {group.code: group.nodes for group in found.groups} == {"node-resources": ("b",), "no-devices": ("c",)}
    assert found.text() == (
        "pod default/p: fits on 1/3 nodes: a\n"
        "  1 node [node-resources] too little cpu is left on the node\n"
        "    b\n"
        "  1 node [no-devices] the node has no devices\n"
        "    c\n"
        "\n"
        "node b:\n"
        "  [node-resources] too little cpu is left on the node\n"
        "  note: cpu: the pod takes 4, the node has 2\n"
        "\n"
        "node c:\n"
        "  [no-devices] the node has no devices\n"
        "  request default/p-gpus-*/gpus wants 2 devices of class gpu, by itself could have none"
    )


def test_placement() -> None:
    alloc = dra.Allocator(cluster(NODES, GPUS, pod("p", more="nodeSelector: {zone: north}")))
    found = alloc.explain(pod="default/p")
    assert not found.fits
    assert [(group.code, group.summary, len(group.nodes)) for group in found.groups] == [
        ("placement", "the node lacks the label zone=north of spec.nodeSelector", 3)
    ]


def test_what_is_in_use_names_claim_and_pod() -> None:
    objects = cluster(NODES, GPUS, pod("first"), pod("second"))
    alloc = dra.Allocator(objects, suffixes=lambda: "abcde")
    plan = alloc.allocate_pod("default/first", "a")
    assert plan is not None
    objects.commit(plan)
    found = alloc.explain(pod="default/second", node="a")
    assert found.code == "in-use"
    assert "held by claim default/first-gpus-abcde (pod first)" in found.text(200)


def test_missing_template() -> None:
    alloc = dra.Allocator(cluster(NODES, GPUS, pod("p", template="three")))
    found = alloc.explain(pod="default/p")
    assert not found.fits
    assert found.code == "pod-claims"
    assert "three" in found.text()


def test_an_error_of_the_attempt() -> None:
    text = GPUS.replace("deviceClassName: gpu", "deviceClassName: cpu")
    alloc = dra.Allocator(cluster(NODES, text, pod("p")))
    found = alloc.explain(pod="default/p")
    assert found.code == "class-not-found"
    assert found.text() == (
        "pod default/p: error\n  [class-not-found] claim default/p-gpus-*, request gpus: there is no DeviceClass 'cpu'"
    )


def test_fits_as_the_plan_says_and_draws_nothing_from_the_callers_sources() -> None:
    drawn: list[str] = []

    def draw() -> str:
        drawn.append("drawn")
        return "fghij"

    objects = cluster(NODES, GPUS, pod("p"))
    alloc = dra.Allocator(objects, suffixes=draw, share_ids=draw)
    found = alloc.explain(pod="default/p")
    assert list(found.fitting) == alloc.feasible_nodes(pod="default/p") == ["a", "b"]
    drawn.clear()
    one = alloc.explain(objects.get("Pod", "default/p"), "a").only
    assert one is not None
    assert [each.device for each in one.chosen] == ["gpu.example.com/a/gpu-0", "gpu.example.com/a/gpu-1"]
    assert drawn == []


def test_claims_or_a_pod_not_both() -> None:
    alloc = dra.Allocator(cluster(NODES, GPUS, pod("p")))
    with pytest.raises(ValueError, match="claims or a pod"):
        alloc.explain()
    with pytest.raises(dra.DraError, match="no Pod 'default/q'"):
        alloc.explain(pod="default/q")
    with pytest.raises(dra.DraError, match="no Node 'z'"):
        alloc.explain(pod="default/p", node="z")


GREEDY = "{name: greedy, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 20}}}}"
MODEST = "{name: modest, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 2}}}}"


def test_the_first_answer_takes_too_much_of_the_node_and_another_would_not() -> None:
    objects = cluster(NODES, GPU_CLASS, gpus("a", GREEDY, MODEST), template("one", 1), pod("p", template="one"))
    alloc = dra.Allocator(objects, dra.Features.all())
    assert alloc.allocate_pod("default/p", "a") is None
    found = alloc.explain(pod="default/p", node="a")
    assert not found.fits
    assert found.code == "node-resources"
    assert found.only is not None
    assert found.only.summary == "too little cpu is left on the node"
    assert found.only.notes == (
        "cpu: the pod takes 21, the node has 8",
        "only the first answer of the search was judged, as Kubernetes does; other devices would fit "
        '(node_resources="search")',
    )
    searched = alloc.explain(pod="default/p", node="a", node_resources="search")
    assert searched.fits
    assert searched.only is not None
    assert [each.device for each in searched.only.chosen] == ["gpu.example.com/a/modest"]
    over_all = alloc.explain(pod="default/p")
    assert {group.code: group.nodes for group in over_all.groups} == {
        "node-resources": ("a",),
        "no-devices": ("b", "c"),
    }
