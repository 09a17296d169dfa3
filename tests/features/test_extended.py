"""KEP-5004: extended resources of pods that devices serve."""

from __future__ import annotations

from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc.api import Node, Pod, ResourceClaim
from dra_alloc.features.extended import (
    ANNOTATION,
    DRAFT_NAME,
    ClassesByResource,
    ExtendedClaim,
    extended_claim,
    extended_requests,
    is_extended,
    totals,
)
from dra_alloc.features.noderesources import Refusal
from tests.features.building import accepted
from tests.features.scenes import a_pod, asking, container, devices, gpu_class, gpu_node, node, pending, scene

NAME = "example.com/gpu"
CLASSES = ClassesByResource([gpu_class("gpu-c", NAME)])


def built(pod: Pod, on: Node | None = None, classes: ClassesByResource = CLASSES) -> ExtendedClaim:
    found = extended_claim(pod, on or node("n"), classes)
    assert isinstance(found, ExtendedClaim)
    return found


def requests(found: ExtendedClaim) -> dict[str, int]:
    return {
        each.name: each.exactly.count or 0 for each in found.claim.spec.devices.requests if each.exactly is not None
    }


def mappings(found: ExtendedClaim) -> list[tuple[str, str]]:
    return [(each.container_name, each.request_name) for each in found.mappings]


EXAMPLE_1 = a_pod(
    "p",
    container("c0", {"cpu": 1, NAME: 2}),
    container("c1", {NAME: 1}),
    initContainers=[container("init0", {NAME: 3})],
)
EXAMPLE_2 = a_pod(
    "p",
    container("c3", {NAME: 1}),
    initContainers=[
        container("init0", {NAME: 1}),
        container("sidecar1", {NAME: 1}, restartPolicy="Always"),
        container("init2", {NAME: 2}),
    ],
)


def test_worked_example_1() -> None:
    found = built(EXAMPLE_1)
    assert requests(found) == {"container-1-request-1": 2, "container-2-request-0": 1}
    assert mappings(found) == [
        ("c0", "container-1-request-1"),
        ("c1", "container-2-request-0"),
        ("init0", "container-1-request-1"),
        ("init0", "container-2-request-0"),
    ]
    assert {each.resource_name for each in found.mappings} == {NAME}
    assert totals(EXAMPLE_1) == {NAME: 3}


def test_worked_example_2() -> None:
    found = built(EXAMPLE_2)
    assert requests(found) == {"container-1-request-0": 1, "container-2-request-0": 1, "container-3-request-0": 1}
    assert [each for each in mappings(found) if each[0] == "init2"] == [
        ("init2", "container-3-request-0"),
        ("init2", "container-2-request-0"),
    ]
    assert [each for each in mappings(found) if each[0] == "init0"] == [("init0", "container-1-request-0")]
    assert totals(EXAMPLE_2) == {NAME: 3}


def test_the_claim_is_named_annotated_and_owned_as_the_scheduler_does() -> None:
    metadata = built(EXAMPLE_1).claim.metadata
    assert (metadata.name, metadata.generate_name) == (DRAFT_NAME, "p-extended-resources-")
    assert metadata.annotations == {ANNOTATION: "true"}
    (owner,) = metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "p", "uid-p", True)
    (first, *_) = built(EXAMPLE_1).claim.spec.devices.requests
    assert first.exactly is not None
    assert (first.exactly.device_class_name, first.exactly.allocation_mode) == ("gpu-c", "ExactCount")


def test_requests_are_sorted_as_text() -> None:
    many = a_pod("p", *(container(f"c{index}", {NAME: 1}) for index in range(11)))
    assert [*requests(built(many))][:3] == ["container-0-request-0", "container-1-request-0", "container-10-request-0"]


def test_one_request_serves_all_init_containers_that_lack_something() -> None:
    found = built(a_pod("p", initContainers=[container("a", {NAME: 2}), container("b", {NAME: 3})]))
    assert requests(found) == {"container-1-request-0": 3}
    assert mappings(found) == [("a", "container-1-request-0"), ("b", "container-1-request-0")]


def test_what_has_only_a_limit_is_requested() -> None:
    limited = a_pod("p", {"name": "c", "image": "example.com/a:1", "resources": {"limits": {"cpu": 1, NAME: "2"}}})
    assert requests(built(limited)) == {"container-0-request-1": 2}


@pytest.mark.parametrize("amount", ["0", "1500m", "-1", "9223372036854775808"])
def test_amounts_that_are_no_positive_whole_numbers_are_ignored(amount: str) -> None:
    pod = a_pod("p", container("c", {NAME: amount}))
    assert extended_requests(pod.spec.containers[0]) == {}
    assert extended_claim(pod, node("n"), ClassesByResource(())) is None


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        (NAME, True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/thing", False),
        ("sub.kubernetes.io/thing", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_names_of_extended_resources(name: str, extended: bool) -> None:
    assert is_extended(name) is extended


def test_every_class_serves_its_implicit_name() -> None:
    classes = ClassesByResource([gpu_class("plain"), gpu_class("both", NAME)])
    for name in ("plain", "both"):
        found = classes.get(f"deviceclass.resource.kubernetes.io/{name}")
        assert found is not None
        assert found.metadata.name == name
    assert classes.get("deviceclass.resource.kubernetes.io/other") is None


def test_of_two_classes_the_newer_serves_a_name_then_the_first_by_name() -> None:
    old = gpu_class("a", NAME, creationTimestamp="2026-01-01T00:00:00Z")
    new = gpu_class("z", NAME, creationTimestamp="2026-02-01T00:00:00Z")
    twin = gpu_class("y", NAME, creationTimestamp="2026-02-01T00:00:00Z")
    unknown = gpu_class("0", NAME)
    assert ClassesByResource([old, new]).get(NAME) == new
    assert ClassesByResource([new, twin, old]).get(NAME) == twin
    assert ClassesByResource([unknown, old]).get(NAME) == old
    assert ClassesByResource([unknown, gpu_class("1", NAME)]).get(NAME) == unknown


def test_a_node_that_advertises_the_resource_serves_it_itself() -> None:
    pod = a_pod("p", container("c", {NAME: 2}))
    assert extended_claim(pod, node("a", {NAME: "8"}), CLASSES) is None
    assert isinstance(extended_claim(pod, node("b"), CLASSES), ExtendedClaim)
    assert isinstance(extended_claim(pod, node("c", {NAME: "0"}), CLASSES), ExtendedClaim)
    refused = extended_claim(pod, node("d"), ClassesByResource(()))
    assert isinstance(refused, Refusal)
    assert (str(refused), refused.unresolvable) == (
        "example.com/gpu: the node has none, and no DeviceClass serves it",
        True,
    )


def test_one_pod_may_have_one_resource_from_a_plugin_and_another_from_devices() -> None:
    nic = "example.com/nic"
    pod = a_pod("p", container("c", {NAME: 1, nic: 1}))
    assert requests(built(pod, node("n", {nic: "4"}))) == {"container-0-request-0": 1}


def two_kinds() -> list[Any]:
    """Node `a` with a device plugin for two GPUs, node `b` with a driver for two."""
    return [node("a", {NAME: "2"}), *gpu_node("b", "gpu-0", "gpu-1"), gpu_class("gpu-c", NAME)]


def test_a_plan_where_devices_serve_the_pod() -> None:
    cluster, allocator = scene(two_kinds(), EXAMPLE_1)
    assert allocator.feasible_nodes(pod=EXAMPLE_1) == []  # three are asked for, and each node has two
    pod = a_pod("q", container("c", {NAME: 2}))
    plan = allocator.allocate_pod(pod, node="b")
    assert plan is not None
    (claim,) = plan.claims
    assert claim.metadata.name == "q-extended-resources-00001"
    assert plan.created == plan.allocated == ("default/q-extended-resources-00001",)
    assert devices(plan) == ["gpu-0", "gpu-1"]
    accepted(claim)
    status = plan.pod.status
    assert status is not None
    assert status.extended_resource_claim_status is not None
    assert status.extended_resource_claim_status.to_dict() == {
        "resourceClaimName": "q-extended-resources-00001",
        "requestMappings": [
            {"containerName": "c", "resourceName": NAME, "requestName": "container-0-request-0"},
        ],
    }
    accepted(plan.pod)
    cluster.commit(plan)
    assert allocator.allocate_pod(a_pod("r", container("c", {NAME: 1})), node="b") is None
    cluster.release(pod)
    assert cluster.claims() == []
    assert allocator.allocate_pod(a_pod("r", container("c", {NAME: 1})), node="b") is not None


def test_a_plan_where_a_device_plugin_serves_the_pod() -> None:
    cluster, allocator = scene(two_kinds())
    plan = allocator.allocate_pod(a_pod("p", container("c", {NAME: 2})))
    assert plan is not None
    assert (plan.node, plan.claims) == ("a", ())
    cluster.commit(plan)
    # What the plugin has is used up, and there is no mixing with devices on that node.
    second = a_pod("q", container("c", {NAME: 1}))
    assert allocator.feasible_nodes(pod=second) == ["b"]
    refused = allocator.refusal(second, "a")
    assert str(refused) == "example.com/gpu: the pod takes 1, 0 of 2 are left"


def test_a_claim_of_an_earlier_attempt_is_in_the_way() -> None:
    cluster, allocator = scene(two_kinds())
    pod = a_pod("p", container("c", {NAME: 1}))
    plan = allocator.allocate_pod(pod, node="b")
    assert plan is not None
    cluster.commit([(claim, claim.status.allocation) for claim in plan.claims if claim.status])  # but not the pod
    assert allocator.allocate_pod(pod) is None
    refused = allocator.refusal(pod, "b")
    assert refused is not None
    assert refused.everywhere
    assert "must be deleted first" in str(refused)
    with cluster.fork() as trial:
        trial.delete("ResourceClaim", plan.created[0])
        assert dra.Allocator(trial).allocate_pod(pod, node="b") is not None
    # Nobody looks for it once no class serves any resource of the pod.
    cluster.upsert(gpu_class("gpu-c"))
    assert allocator.feasible_nodes(pod=pod) == ["a"]


def test_a_pod_that_is_bound_keeps_its_claim() -> None:
    cluster, allocator = scene(two_kinds())
    plan = allocator.allocate_pod(a_pod("p", container("c", {NAME: 1})), node="b")
    assert plan is not None
    cluster.commit(plan)
    again = allocator.allocate_pod("default/p")
    assert again is not None
    assert (again.created, again.allocated) == ((), ())
    assert [claim.metadata.name for claim in again.claims] == ["p-extended-resources-00001"]


def test_the_name_of_a_claim_has_at_most_63_characters() -> None:
    _, allocator = scene(two_kinds())
    plan = allocator.allocate_pod(a_pod("p" * 60, container("c", {NAME: 1})), node="b")
    assert plan is not None
    assert plan.created == (f"default/{'p' * 58}00001",)


def test_extended_resources_and_claims_are_allocated_together() -> None:
    _, allocator = scene(two_kinds(), pending("one", asking(device_class="gpu-c")))
    both = a_pod("p", container("c", {NAME: 1}), claims={"one": "one"})
    plan = allocator.allocate_pod(both)
    assert plan is not None
    # On the node with the plugin the claim finds no device.
    assert (plan.node, devices(plan)) == ("b", ["gpu-0", "gpu-1"])
    assert [claim.metadata.name for claim in plan.claims] == ["one", "p-extended-resources-00001"]


def test_with_the_gate_off_only_nodes_serve_the_resource() -> None:
    off = dra.Features(DRAExtendedResource=False)
    _, allocator = scene(two_kinds(), features=off)
    assert allocator.feasible_nodes(pod=a_pod("p", container("c", {NAME: 1}))) == ["a"]
    implicit = a_pod("p", container("c", {"deviceclass.resource.kubernetes.io/gpu-c": 1}))
    assert allocator.feasible_nodes(pod=implicit) == []
    assert str(allocator.refusal(implicit, "b")).endswith("the node has none, and DRAExtendedResource is off")


def test_more_devices_than_a_claim_can_have() -> None:
    _, allocator = scene(two_kinds())
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate_pod(a_pod("p", container("c", {NAME: 33})), node="b")
    assert (caught.value.kind, caught.value.claim) == ("too-many-devices", f"default/{DRAFT_NAME}")


def test_claims_are_what_the_api_accepts() -> None:
    cluster, allocator = scene(two_kinds())
    plan = allocator.allocate_pod(a_pod("p", container("c", {NAME: 1})), node="b")
    assert plan is not None
    cluster.commit(plan)
    (claim,) = cluster.claims()
    assert isinstance(claim, ResourceClaim)
    assert dra.validate(claim) == []
