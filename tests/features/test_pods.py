"""Pods end to end: which claims they have, where they fit, what is written, what is left when they end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import (
    AllocatedDeviceStatus,
    Condition,
    Device,
    NodeStatus,
    Pod,
    PodResourceClaimStatus,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from dra_alloc.features import put_device_status
from dra_alloc.features.binding import BindingState
from dra_alloc.features.pods.claims import generated_name, random_suffix
from tests.features.building import accepted, at, slice_of
from tests.features.scenes import (
    a_group,
    a_pod,
    asking,
    container,
    devices,
    gpu_class,
    gpu_node,
    node,
    pending,
    scene,
    template,
)


def reserved(claim: ResourceClaim | None) -> list[str]:
    assert claim is not None
    return [] if claim.status is None else [entry.name for entry in claim.status.reserved_for]


def placed(cluster: dra.Cluster, allocator: dra.Allocator, pod: Any, **options: Any) -> Any:
    plan = allocator.allocate_pod(pod, **options)
    assert plan is not None
    cluster.commit(plan)
    return plan


# Plans


def test_a_plan_says_all_that_is_to_be_written() -> None:
    more = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    cluster, allocator = scene(gpu_node("n1", "gpu-0", "gpu-1"), gpu_class(), template("t", **more), pending("own"))
    pod = a_pod("p", claims={"one": "own"}, templates={"two": "t"})
    plan = allocator.allocate_pod(pod)
    assert plan is not None
    assert (plan.node, devices(plan), plan.drivers) == ("n1", ["gpu-0", "gpu-1"], ("gpu.example.com",))
    assert plan.created == ("default/p-two-00001",)
    assert plan.allocated == ("default/own", "default/p-two-00001")
    own, made = plan.claims
    for claim in (own, made):
        assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        assert claim.status is not None
        assert claim.status.reserved_for == (ResourceClaimConsumerReference(resource="pods", name="p", uid="uid-p"),)
        accepted(claim)
    assert made.metadata.labels == {"team": "a"}
    assert made.metadata.annotations == {"note": "b", "resource.kubernetes.io/pod-claim-name": "two"}
    (owner,) = made.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == ("v1", "Pod", "p", "uid-p", True)
    assert plan.pod.spec.node_name == "n1"
    assert plan.pod.status == PodStatus(
        resource_claim_statuses=(PodResourceClaimStatus(name="two", resource_claim_name="p-two-00001"),)
    )
    assert plan.status_updates() == (own, made, plan.pod)
    shown = plan.to_dict()
    assert (shown["pod"], shown["node"], shown["prepare"]) == ("default/p", "n1", ["gpu.example.com"])
    assert [item["kind"] for item in shown["statusUpdates"]] == ["ResourceClaim", "ResourceClaim", "Pod"]
    # Nothing is written by planning.
    assert cluster.pods() == []
    assert [claim.metadata.name for claim in cluster.claims()] == ["own"]

    cluster.commit(plan)
    assert cluster.get("ResourceClaim", "default/own") == own
    assert cluster.get("ResourceClaim", "default/p-two-00001") == made
    assert cluster.get("Pod", "default/p") == plan.pod


def test_pods_come_as_models_dicts_and_names() -> None:
    pod = a_pod("p", templates={"g": "t"})
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), template("t"), pod)
    for form in (pod, pod.to_dict(), "default/p"):
        plan = allocator.allocate_pod(form)
        assert plan is not None
        assert plan.pod.metadata.name == "p"
    with pytest.raises(dra.DraError, match="there is no Pod 'default/q' in the cluster"):
        allocator.allocate_pod("default/q")
    with pytest.raises(dra.DraError, match="a Pod is needed here, not a Node"):
        allocator.allocate_pod({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert len(cluster.pods()) == 1


def test_a_pod_without_claims_goes_anywhere() -> None:
    _, allocator = scene(gpu_node("n1"), gpu_node("n2"))
    assert allocator.feasible_nodes(pod=a_pod("p")) == ["n1", "n2"]
    plan = allocator.allocate_pod(a_pod("p"))
    assert plan is not None
    assert (plan.node, plan.claims, plan.drivers) == ("n1", (), ())


def test_nodes_are_tried_in_order_and_may_be_chosen() -> None:
    cluster, allocator = scene(*(gpu_node(f"n{index}") for index in range(9)), gpu_class(), template("t"))
    names = [placed(cluster, allocator, a_pod(f"p{index}", templates={"g": "t"})).node for index in range(5)]
    assert names == ["n0", "n1", "n2", "n3", "n4"]
    pod = a_pod("p", templates={"g": "t"})
    assert allocator.feasible_nodes(pod=pod) == ["n5", "n6", "n7", "n8"]
    assert allocator.feasible_nodes(pod=pod, limit=2) == ["n5", "n6"]
    assert allocator.feasible_nodes(nodes=["n8", "n0", "n6"], pod=pod) == ["n8", "n6"]
    plan = allocator.allocate_pod(pod, nodes=["n8", "n0", "n6"])
    assert plan is not None
    assert plan.node == "n8"
    assert allocator.allocate_pod(pod, node="n0") is None
    with pytest.raises(dra.DraError, match="there is no Node 'n99'"):
        allocator.allocate_pod(pod, node="n99")


def test_the_pod_must_be_able_to_run_on_the_node() -> None:
    labelled = node("b", labels={"disk": "ssd"})
    tainted = attrs.evolve(
        node("c"), spec=type(node("c").spec).from_dict({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    )
    closed = attrs.evolve(node("d"), spec=type(node("d").spec).from_dict({"unschedulable": True}))
    _, allocator = scene(node("a"), labelled, tainted, closed)
    assert allocator.feasible_nodes(pod=a_pod("p")) == ["a", "b"]
    assert allocator.feasible_nodes(pod=a_pod("p", nodeSelector={"disk": "ssd"})) == ["b"]
    assert allocator.feasible_nodes(pod=a_pod("p", nodeName="a")) == ["a"]
    assert allocator.feasible_nodes(pod=a_pod("p", tolerations=[{"key": "k", "value": "v"}])) == ["a", "b", "c"]
    assert allocator.feasible_nodes(pod=a_pod("p", tolerations=[{"operator": "Exists"}])) == ["a", "b", "c", "d"]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
            }
        }
    }
    assert allocator.feasible_nodes(pod=a_pod("p", affinity=affinity)) == ["b"]
    refused = allocator.refusal(a_pod("p"), "c")
    assert refused is not None
    assert (str(refused), refused.unresolvable) == (
        "the pod does not tolerate the taint k:NoSchedule of the node",
        True,
    )


def test_what_the_node_publishes_must_suffice() -> None:
    cluster, allocator = scene(node("a", {"cpu": "4"}), node("b", {"cpu": "8"}), node("c"))
    pod = a_pod("p", container("x", {"cpu": "3"}), initContainers=[container("i", {"cpu": "5"})])
    assert allocator.feasible_nodes(pod=pod) == ["b", "c"]  # c says nothing of its CPU
    placed(cluster, allocator, pod)
    assert allocator.feasible_nodes(pod=a_pod("q", container("x", {"cpu": "4"}))) == ["a", "c"]
    assert allocator.feasible_nodes(pod=a_pod("q", container("x", {"cpu": "3"}), overhead={"cpu": "1500m"})) == ["c"]


# Claims


def test_a_claim_that_is_allocated_binds_the_pod_to_its_nodes_and_is_shared() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_node("n2"), gpu_class(), pending("c"), template("t"))
    placed(cluster, allocator, a_pod("p", claims={"g": "c"}), node="n2")
    second = placed(cluster, allocator, a_pod("q", claims={"g": "c"}))
    assert (second.node, second.allocated) == ("n2", ())
    assert reserved(cluster.get("ResourceClaim", "default/c")) == ["p", "q"]
    # Beside another claim it leaves no node, as the device there is taken.
    assert allocator.allocate_pod(a_pod("r", claims={"g": "c"}, templates={"own": "t"})) is None


def test_one_claim_under_two_names_is_allocated_once() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("c"))
    plan = placed(cluster, allocator, a_pod("p", claims={"a": "c", "b": "c"}))
    assert [claim.metadata.name for claim in plan.claims] == ["c"]
    assert reserved(cluster.get("ResourceClaim", "default/c")) == ["p"]


def test_the_257th_pod_finds_no_place_in_a_claim() -> None:
    entries = tuple(
        ResourceClaimConsumerReference(resource="pods", name=f"p{index}", uid=f"u{index}") for index in range(256)
    )
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("c"))
    plan = allocator.allocate_pod(a_pod("p", claims={"g": "c"}))
    assert plan is not None
    held = plan.claims[0].status
    assert held is not None
    status = attrs.evolve(held, reserved_for=entries)
    cluster.upsert(attrs.evolve(plan.claims[0], status=status))
    refused = allocator.refusal(a_pod("q", claims={"g": "c"}), "n1")
    assert refused is not None
    assert str(refused) == "claim default/c is reserved for 256 consumers, the most it can have"
    assert allocator.feasible_nodes(pod=a_pod("q", claims={"g": "c"})) == []
    again = attrs.evolve(a_pod("p7", claims={"g": "c"}), metadata=attrs.evolve(a_pod("p7").metadata, uid="u7"))
    assert allocator.feasible_nodes(pod=again) == ["n1"]


def test_a_claim_that_is_being_deleted() -> None:
    leaving = pending("c", deletionTimestamp="2026-01-01T00:00:00Z")
    _, allocator = scene(gpu_node("n1"), gpu_class(), leaving)
    pod = a_pod("p", claims={"g": "c"})
    assert allocator.allocate_pod(pod) is None
    assert str(allocator.refusal(pod, "n1")) == "claim default/c is being deleted"


def test_a_claim_made_before_its_name_was_recorded_is_used() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), template("t"))
    pod = a_pod("p", templates={"g": "t"})
    plan = allocator.allocate_pod(pod)
    assert plan is not None
    made = attrs.evolve(plan.claims[0], status=None)
    cluster.upsert(made)
    again = allocator.allocate_pod(pod)
    assert again is not None
    assert (again.created, again.allocated) == ((), (made.metadata.key,))
    assert again.pod.status == plan.pod.status


def test_an_entry_that_needs_no_claim_is_passed_over() -> None:
    _, allocator = scene(gpu_node("n1"))
    status = PodStatus(resource_claim_statuses=(PodResourceClaimStatus(name="g"),))
    plan = allocator.allocate_pod(attrs.evolve(a_pod("p", templates={"g": "gone"}), status=status))
    assert plan is not None
    assert plan.claims == ()


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (a_pod("p", claims={"g": "gone"}), "spec.resourceClaims[0]: there is no ResourceClaim default/gone"),
        (a_pod("p", templates={"g": "gone"}), "spec.resourceClaims[0]: there is no ResourceClaimTemplate default/gone"),
        (a_pod("p", resourceClaims=[{"name": "g"}]), "spec.resourceClaims[0]: it names no claim"),
        (
            a_pod("p", templates={"g": "t"}, group="gone"),
            "spec.schedulingGroup.podGroupName: there is no PodGroup 'gone' in the namespace",
        ),
        (
            attrs.evolve(
                a_pod("p", templates={"g": "t"}),
                status=PodStatus(
                    resource_claim_statuses=(PodResourceClaimStatus(name="g", resource_claim_name="foreign"),)
                ),
            ),
            "spec.resourceClaims[0]: ResourceClaim default/foreign was not made for the pod",
        ),
    ],
)
def test_what_is_not_there_is_named_with_its_path(pod: Pod, message: str) -> None:
    _, allocator = scene(gpu_node("n1"), gpu_class(), template("t"), pending("foreign"))
    with pytest.raises(dra.ValidationError) as caught:
        allocator.allocate_pod(pod)
    assert f"Pod default/p: {message}" in str(caught.value)


def test_names_of_claims_are_cut_in_proportion() -> None:
    assert generated_name("pod", "claim", "abcde") == "pod-claim-abcde"
    assert generated_name("p" * 40, "c" * 15, "abcde") == f"{'p' * 40}-{'c' * 15}-abcde"
    long = generated_name("p" * 80, "c" * 40, "abcde")
    assert long == f"{'p' * 37}-{'c' * 18}abcde"
    assert len(long) <= 63
    suffix = random_suffix()
    assert len(suffix) == 5
    assert not set(suffix) & set("aeiou013")


def test_pods_that_no_api_server_has_seen_are_told_apart() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("c"))
    bare = [
        attrs.evolve(a_pod(name, claims={"g": "c"}), metadata=attrs.evolve(a_pod(name).metadata, uid=None))
        for name in "ab"
    ]
    for pod in bare:
        placed(cluster, allocator, pod)
    claim = cluster.get("ResourceClaim", "default/c")
    assert claim is not None
    assert claim.status is not None
    assert len({entry.uid for entry in claim.status.reserved_for}) == 2
    assert all(entry.uid for entry in claim.status.reserved_for)
    cluster.release(bare[0])
    assert reserved(cluster.get("ResourceClaim", "default/c")) == ["b"]


# Binding conditions (KEP-5007)


def test_a_pod_waits_for_the_binding_conditions_of_its_devices_and_is_tried_again() -> None:
    attached = Device(name="gpu-0", binding_conditions=("ready",), binding_failure_conditions=("broken",))
    clock = [at(0)]
    cluster, allocator = scene(
        node("n1"), slice_of(attached, pool="n1", node="n1"), gpu_class(), pending("c"), clock=lambda: clock[0]
    )
    pod = a_pod("p", claims={"g": "c"})
    plan = placed(cluster, allocator, pod)
    assert plan.readiness(at(1)).state is BindingState.PENDING
    assert plan.readiness(at(601)).state is BindingState.TIMED_OUT
    assert plan.readiness(at(31), timedelta(seconds=30)).state is BindingState.TIMED_OUT
    second = a_pod("q", claims={"g": "c"})
    assert allocator.feasible_nodes(pod=second) == ["n1"]

    failed = Condition(type="broken", status="True", reason="NoLink", last_transition_time=at(1))
    (result,) = plan.allocations[0].devices.results
    report = AllocatedDeviceStatus(driver=result.driver, pool=result.pool, device=result.device, conditions=(failed,))
    claim = put_device_status(plan.claims[0], report)
    cluster.upsert(claim)
    refused = allocator.refusal(second, "n1")
    assert refused is not None
    assert "has failure condition broken" in str(refused)
    cluster.release("default/c")
    cluster.delete("Pod", "default/p")
    assert allocator.allocate_pod(second) is not None


def test_an_allocated_device_that_skips_operations_needs_a_node_that_knows_of_it() -> None:
    everywhere = slice_of("gpu-0", pool="p", node=None, all_nodes=True, skip_node_operations=("*",))
    knowing = node("b")
    status = NodeStatus(declared_features=("DRAOptionalNodeOperations",))
    cluster, allocator = scene(node("a"), attrs.evolve(knowing, status=status), everywhere, gpu_class(), pending("c"))
    first = placed(cluster, allocator, a_pod("p", claims={"g": "c"}))
    assert (first.node, first.drivers) == ("b", ())
    second = a_pod("q", claims={"g": "c"})
    assert allocator.feasible_nodes(pod=second) == ["b"]
    refused = allocator.refusal(second, "a")
    assert refused is not None
    assert "does not declare DRAOptionalNodeOperations" in str(refused)


# Commit


def planned() -> tuple[dra.Cluster, dra.Allocator, Any]:
    cluster, allocator = scene(
        gpu_node("n1"), gpu_node("n2"), gpu_class(), template("t"), pending("c"), a_pod("p", claims={"g": "c"})
    )
    return cluster, allocator, allocator.allocate_pod("default/p")


def conflict(cluster: dra.Cluster, plan: Any, words: str) -> None:
    before = [*cluster]
    version = cluster.version
    with pytest.raises(dra.Conflict) as caught:
        cluster.commit(plan)
    assert words in str(caught.value)
    assert [*cluster] == before
    assert cluster.version == version


def test_a_plan_that_no_longer_holds_changes_nothing() -> None:
    cluster, _, plan = planned()
    cluster.delete("Pod", "default/p")
    conflict(cluster, plan, "pod default/p is gone")

    cluster, _, plan = planned()
    cluster.upsert(attrs.evolve(plan.pod, spec=attrs.evolve(plan.pod.spec, node_name="n2")))
    conflict(cluster, plan, "pod default/p is bound to node n2 meanwhile")

    cluster, _, plan = planned()
    cluster.upsert(attrs.evolve(plan.pod, metadata=attrs.evolve(plan.pod.metadata, uid="another")))
    conflict(cluster, plan, "pod default/p has been replaced by another one of its name")

    cluster, _, plan = planned()
    cluster.delete("Node", "n1")
    conflict(cluster, plan, "node n1 is gone")

    cluster, _, plan = planned()
    cluster.delete("ResourceClaim", "default/c")
    conflict(cluster, plan, "claim default/c is gone")

    cluster, _, plan = planned()
    cluster.upsert(pending("c", deletionTimestamp="2026-01-01T00:00:00Z"))
    conflict(cluster, plan, "claim default/c is being deleted")

    cluster, allocator, plan = planned()
    placed(cluster, allocator, a_pod("faster", templates={"g": "t"}), node="n1")
    conflict(cluster, plan, "is held by claim default/faster-g-00001")


def test_an_allocation_that_was_counted_on_must_still_be_there() -> None:
    cluster, allocator, plan = planned()
    cluster.commit(plan)
    second = allocator.allocate_pod(a_pod("q", claims={"g": "c"}))
    cluster.release("default/c")
    conflict(cluster, second, "claim default/c has lost or changed its allocation")


def test_a_claim_that_was_to_be_made_and_is_there() -> None:
    cluster, allocator, _ = planned()
    plan = allocator.allocate_pod(a_pod("q", templates={"g": "t"}))
    assert plan is not None
    cluster.upsert(attrs.evolve(pending("x"), metadata=plan.claims[0].metadata, spec=pending("y", asking(2)).spec))
    conflict(cluster, plan, "which is to be made, exists meanwhile")


def test_what_others_wrote_meanwhile_stays() -> None:
    cluster, _, plan = planned()
    pod = cluster.get("Pod", "default/p")
    assert pod is not None
    cluster.upsert(
        attrs.evolve(pod, status=PodStatus(phase="Pending"), metadata=attrs.evolve(pod.metadata, labels={"a": "b"}))
    )
    cluster.commit(plan)
    written = cluster.get("Pod", "default/p")
    assert written is not None
    assert (written.status.phase, written.metadata.labels, written.spec.node_name) == ("Pending", {"a": "b"}, "n1")


def test_a_commit_can_be_taken_back() -> None:
    cluster, allocator, plan = planned()
    before, version = [*cluster], cluster.version
    cluster.commit(plan)
    assert allocator.feasible_nodes(pod=a_pod("q", templates={"g": "t"})) == ["n2"]
    cluster.revert(version)
    assert [*cluster] == before
    assert allocator.feasible_nodes(pod=a_pod("q", templates={"g": "t"})) == ["n1", "n2"]


# The end


def test_the_last_pod_of_a_claim_deallocates_it() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("c"))
    first, second = (a_pod(name, claims={"g": "c"}) for name in ("p", "q"))
    placed(cluster, allocator, first)
    placed(cluster, allocator, second)
    cluster.release(first)
    claim = cluster.get("ResourceClaim", "default/c")
    assert reserved(claim) == ["q"]
    assert claim.status.allocation is not None  # type: ignore[union-attr]
    cluster.release(second.to_dict())
    claim = cluster.get("ResourceClaim", "default/c")
    assert claim == attrs.evolve(pending("c"), status=ResourceClaimStatus())
    assert cluster.pods() == []


def test_a_claim_made_for_the_pod_goes_with_it() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), template("t"))
    pod = a_pod("p", templates={"g": "t"})
    placed(cluster, allocator, pod)
    assert allocator.allocate_pod(a_pod("q", templates={"g": "t"})) is None
    cluster.release(pod)
    assert cluster.claims() == []
    assert cluster.pods() == []
    assert allocator.allocate_pod(a_pod("q", templates={"g": "t"})) is not None


def test_a_finished_pod_stays_without_its_claims() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), template("t"), pending("c"))
    plan = placed(cluster, allocator, a_pod("p", claims={"g": "c"}))
    cluster.upsert(attrs.evolve(plan.pod, status=PodStatus(phase="Succeeded")))
    cluster.release(plan.pod)
    assert [pod.metadata.name for pod in cluster.pods()] == ["p"]
    assert reserved(cluster.get("ResourceClaim", "default/c")) == []


def test_a_claim_that_nobody_had_reserved_is_left_alone() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("c"))
    found = allocator.allocate("default/c", node="n1")
    assert found is not None
    cluster.commit("default/c", found[0])
    before = cluster.get("ResourceClaim", "default/c")
    cluster.release(a_pod("p", claims={"g": "c"}))
    assert cluster.get("ResourceClaim", "default/c") == before


def test_groups_off_a_template_that_the_group_has_too_is_refused() -> None:
    group = a_group("g", [{"name": "c", "resourceClaimTemplateName": "t"}])
    _, allocator = scene(gpu_node("n1"), gpu_class(), template("t"), group, features=dra.Features())
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate_pod(a_pod("p", templates={"c": "t"}, group="g"))
    assert caught.value.kind == "unsupported"
    assert "DRAWorkloadResourceClaims" in str(caught.value)
    # A claim that is no template's is the pod's own then.
    own = a_group("h", [{"name": "c", "resourceClaimName": "shared"}])
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("shared"), own, features=dra.Features())
    placed(cluster, allocator, a_pod("p", claims={"c": "shared"}, group="h"))
    assert reserved(cluster.get("ResourceClaim", "default/shared")) == ["p"]


def test_pods_are_planned_from_several_threads() -> None:
    cluster, allocator = scene(
        *(gpu_node(f"n{index}", allocatable={"cpu": "4"}) for index in range(40)), gpu_class(), template("t")
    )
    pods = [
        a_pod(f"p{index}", container("c", {"cpu": 1 + index % 3}), templates={"g": "t"}, nodeSelector=_on(index))
        for index in range(64)
    ]
    alone = [allocator.feasible_nodes(pod=pod) for pod in pods]
    fresh = dra.Allocator(dra.Cluster.from_objects([*cluster]), allocator.features)
    with ThreadPoolExecutor(8) as pool:
        plans = list(pool.map(fresh.allocate_pod, pods))
        assert list(pool.map(lambda pod: fresh.feasible_nodes(pod=pod, parallel=2), pods)) == alone
    assert [plan.node if plan else None for plan in plans] == [nodes[0] if nodes else None for nodes in alone]


def _on(index: int) -> dict[str, str]:
    return {"kubernetes.io/hostname": f"n{index}"} if index % 2 else {}
