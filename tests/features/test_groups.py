"""KEP-5729: claims of PodGroups; gangs planned as a unit."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import (
    Node,
    NodeSelector,
    Pod,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    Workload,
)
from dra_alloc.features.groups import GroupPlan, group_retry, make_pod_groups
from dra_alloc.features.pods import resolve_group
from tests.features.building import accepted, slice_of
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

SHARED = {"name": "c", "resourceClaimTemplateName": "t"}


def members(count: int, group: str = "pg", **fields: Any) -> list[Pod]:
    return [a_pod(f"m{index}", group=group, **(fields or {"templates": {"c": "t"}})) for index in range(count)]


def consumers(cluster: dra.Cluster, name: str) -> list[tuple[str | None, str, str]]:
    claim: ResourceClaim | None = cluster.get("ResourceClaim", f"default/{name}")
    assert claim is not None
    return [(each.api_group, each.resource, each.name) for each in claim.status.reserved_for] if claim.status else []


GROUP_ENTRY = ("scheduling.k8s.io", "podgroups", "pg")


def test_worked_example_1() -> None:
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), template("t"), a_group("pg", [SHARED]))
    one, two = a_pod("a", templates={"c": "t"}, group="pg"), a_pod("b", templates={"c": "t"}, group="pg")
    first = allocator.allocate_pod(one)
    assert first is not None
    assert first.created == ("default/pg-c-00001",)
    assert first.group is not None
    cluster.commit(first)
    second = allocator.allocate_pod(two)
    assert second is not None
    assert (second.created, second.allocated, second.group) == ((), (), None)
    cluster.commit(second)

    (claim,) = cluster.claims()
    (owner,) = claim.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("PodGroup", "pg", "uid-pg", True)
    assert owner.api_version.startswith("scheduling.k8s.io/")
    assert claim.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "c"}
    assert claim.status is not None
    assert claim.status.reserved_for == (
        ResourceClaimConsumerReference(api_group="scheduling.k8s.io", resource="podgroups", name="pg", uid="uid-pg"),
    )
    group = cluster.get("PodGroup", "default/pg")
    holders: list[Any] = [group, *cluster.pods()]
    for holder in holders:
        (entry,) = holder.status.resource_claim_statuses
        assert (entry.name, entry.resource_claim_name) == ("c", "pg-c-00001")

    cluster.release(one)
    cluster.release(two)
    assert consumers(cluster, "pg-c-00001") == [GROUP_ENTRY]
    assert cluster.claims()[0].status.allocation is not None  # type: ignore[union-attr]
    cluster.release(group)
    assert (cluster.claims(), cluster.pods(), cluster.pod_groups()) == ([], [], [])


def test_worked_example_2() -> None:
    named = {"name": "c", "resourceClaimName": "m"}
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("m"), a_group("pg", [named]))
    one, two = a_pod("a", claims={"c": "m"}, group="pg"), a_pod("b", claims={"other": "m"}, group="pg")
    for pod in (one, two):
        plan = allocator.allocate_pod(pod)
        assert plan is not None
        cluster.commit(plan)
    assert consumers(cluster, "m") == [GROUP_ENTRY, (None, "pods", "b")]
    cluster.release(one)
    with pytest.raises(dra.Conflict, match=r"PodGroup default/pg still has pods that run \(b\)"):
        cluster.release(cluster.get("PodGroup", "default/pg"))
    running = cluster.get("Pod", "default/b")
    assert running is not None
    # A pod outside of the group that shares the claim keeps it.
    cluster.upsert(attrs.evolve(running, spec=attrs.evolve(running.spec, scheduling_group=None)))
    cluster.release(cluster.get("PodGroup", "default/pg"))
    assert consumers(cluster, "m") == [(None, "pods", "b")]
    claim = cluster.get("ResourceClaim", "default/m")
    assert claim.status.allocation is not None  # type: ignore[union-attr]


def test_the_claims_of_a_group_are_made_as_soon_as_it_exists() -> None:
    named = {"name": "d", "resourceClaimName": "m"}
    group = a_group("pg", [SHARED, named])
    cluster, allocator = scene(gpu_node("n1", "a", "b"), gpu_class(), pending("m"), template("t"), group)
    known, claims = resolve_group(group, cluster, lambda: "abcde")
    assert [(each.name, each.claim.metadata.name, each.made) for each in claims] == [
        ("c", "pg-c-abcde", True),
        ("d", "m", False),
    ]
    assert {(each.consumer.resource, each.consumer.name) for each in claims} == {("podgroups", "pg")}
    cluster.upsert(known, claims[0].claim)
    assert resolve_group(known, cluster, lambda: "other")[0] == known
    # A pod that comes later finds it.
    plan = allocator.allocate_pod(a_pod("p", templates={"c": "t"}, group="pg"))
    assert plan is not None
    assert (plan.created, plan.allocated, plan.group) == ((), ("default/pg-c-abcde",), None)
    for wrong, words in (
        (a_group("x", [{"name": "c"}]), "PodGroup default/x: spec.resourceClaims[0]: it names no claim"),
        (a_group("x", [{"name": "c", "resourceClaimName": "gone"}]), "there is no ResourceClaim default/gone"),
        (a_group("x", [{"name": "c", "resourceClaimTemplateName": "gone"}]), "there is no ResourceClaimTemplate"),
    ):
        with pytest.raises(dra.ValidationError) as caught:
            resolve_group(wrong, cluster, lambda: "abcde")
        assert words in str(caught.value)


def test_a_group_is_known_by_its_name_in_reserved_for() -> None:
    named = {"name": "c", "resourceClaimName": "m"}
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("m"), a_group("pg", [named]))
    first = allocator.allocate_pod(a_pod("a", claims={"c": "m"}, group="pg"))
    assert first is not None
    cluster.commit(first)
    group = cluster.get("PodGroup", "default/pg")
    assert group is not None
    cluster.upsert(attrs.evolve(group, metadata=attrs.evolve(group.metadata, uid="another")))
    second = allocator.allocate_pod(a_pod("b", claims={"c": "m"}, group="pg"))
    assert second is not None
    cluster.commit(second)
    assert consumers(cluster, "m") == [GROUP_ENTRY]


@pytest.mark.parametrize(
    ("group_claim", "pod_claim", "is_the_groups"),
    [
        ({"name": "c", "resourceClaimName": "m"}, {"claims": {"c": "m"}}, True),
        ({"name": "x", "resourceClaimName": "m"}, {"claims": {"c": "m"}}, False),
        ({"name": "c", "resourceClaimName": "n"}, {"claims": {"c": "m"}}, False),
        ({"name": "c", "resourceClaimTemplateName": "t"}, {"claims": {"c": "m"}}, False),
        ({"name": "c", "resourceClaimTemplateName": "t"}, {"templates": {"c": "t"}}, True),
        ({"name": "c", "resourceClaimTemplateName": "u"}, {"templates": {"c": "t"}}, False),
    ],
)
def test_a_claim_is_the_groups_if_name_and_source_are_equal(
    group_claim: dict[str, str], pod_claim: dict[str, Any], is_the_groups: bool
) -> None:
    _, allocator = scene(
        gpu_node("n1"), gpu_class(), pending("m"), template("t"), template("u"), a_group("pg", [group_claim])
    )
    plan = allocator.allocate_pod(a_pod("p", group="pg", **pod_claim))
    assert plan is not None
    ((_, consumer),) = plan.consumers
    assert (consumer.resource == "podgroups") is is_the_groups


def test_a_group_of_a_thousand_pods_shares_one_claim() -> None:
    spread = slice_of("link", pool="fabric", node=None, all_nodes=True)
    cluster, allocator = scene(
        [node(f"n{index}", {"cpu": "110"}) for index in range(10)],
        spread,
        gpu_class(),
        template("t"),
        a_group("pg", [SHARED], min_count=1000),
        members(1000, templates={"c": "t"}),
    )
    cluster.upsert(*(_with_cpu(pod) for pod in cluster.pods()))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert (len(plan.plans), plan.left_out, plan.complete) == (1000, (), True)
    assert len(plan.claims) == len(plan.created) == 1
    version = cluster.version
    cluster.commit(plan)
    assert consumers(cluster, plan.claims[0].metadata.name) == [GROUP_ENTRY]
    by_node = [pod.spec.node_name for pod in cluster.pods()]
    assert {name: by_node.count(name) for name in set(by_node)} == {
        **{f"n{index}": 110 for index in range(9)},
        "n9": 10,
    }
    cluster.revert(version)
    assert cluster.claims() == []


def _with_cpu(pod: Pod) -> Pod:
    return attrs.evolve(
        pod, spec=attrs.evolve(pod.spec, containers=a_pod("x", container("m", {"cpu": 1})).spec.containers)
    )


def test_a_plan_of_a_group_says_all_that_is_to_be_written() -> None:
    cluster, allocator = scene(
        gpu_node("n1", "a", "b"),
        gpu_class(),
        template("t"),
        template("own"),
        a_group("pg", [SHARED]),
        a_pod("p", templates={"c": "t", "mine": "own"}, group="pg"),
        a_pod("q", templates={"c": "t"}, group="pg"),
    )
    plan = allocator.allocate_group(a_group("pg"))
    assert plan is not None
    assert plan.nodes == {"default/p": "n1", "default/q": "n1"}
    kinds = [item.kind for item in plan.status_updates()]
    assert kinds == ["PodGroup", "ResourceClaim", "ResourceClaim", "Pod", "Pod"]
    for item in plan.status_updates()[1:]:
        accepted(item)
    shown = plan.to_dict()
    assert (shown["group"], shown["leftOut"], shown["complete"]) == ("default/pg", [], True)
    cluster.commit(plan)
    assert [*cluster.claims()] == [*plan.claims]


# Gangs


def gpus(*counts: int) -> list[Any]:
    """Nodes with so many GPUs each, and the class and template for one."""
    nodes = [
        gpu_node(f"n{index}", *(f"gpu-{number}" for number in range(count))) if count else [node(f"n{index}")]
        for index, count in enumerate(counts)
    ]
    return [item for pair in nodes for item in pair] + [gpu_class(), template("one"), template("two", asking(2))]


def gang(min_count: int, *sizes: str) -> list[Any]:
    """A gang of pods, each with GPUs of its own by the name of the template."""
    pods = [a_pod(f"m{index}", templates={"gpu": size}, group="pg") for index, size in enumerate(sizes)]
    return [a_group("pg", min_count=min_count), *pods]


def test_all_pods_or_none() -> None:
    _, allocator = scene(gpus(2, 1), gang(3, "one", "one", "one"))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert [*plan.nodes.values()] == ["n0", "n0", "n1"]
    _, allocator = scene(gpus(2, 1), gang(4, "one", "one", "one", "one"))
    assert allocator.allocate_group("default/pg") is None


def test_pods_beyond_the_least_are_left_out_if_there_is_no_room() -> None:
    cluster, allocator = scene(gpus(1, 1), gang(2, "one", "one", "one"))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert (plan.left_out, plan.complete) == (("default/m2",), True)
    cluster.commit(plan)
    assert [pod.spec.node_name for pod in cluster.pods()] == ["n0", "n1", None]
    # Pods that run already count.
    assert allocator.allocate_group("default/pg") == GroupPlan("default/pg", (), ("default/m2",))
    assert allocator.allocate_group("default/pg", min_count=3) is None


def test_nodes_are_tried_until_all_pods_have_one() -> None:
    # One after the other, m0 would take a GPU of n0, and then m1 finds no pair.
    _, allocator = scene(gpus(2, 1), gang(2, "one", "two"))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert plan.nodes == {"default/m0": "n1", "default/m1": "n0"}
    assert plan.tries > 0


def test_as_few_pods_as_possible_are_left_out() -> None:
    # One after the other only two pods would fit: m0 and m1 each break a pair of GPUs.
    _, allocator = scene(gpus(2, 2), gang(1, "one", "one", "two", "two"), features=dra.Features.all())
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert len(plan.plans) == 3
    assert (plan.left_out, plan.complete) == (("default/m3",), True)


def test_that_no_plan_exists_is_certain() -> None:
    _, allocator = scene(gpus(*[2] * 12), gang(13, *["two"] * 12, "one"))
    assert allocator.allocate_group("default/pg", max_tries=500) is None
    # Pods alike, devices of their nodes alone: what comes first is as good as anything.
    _, allocator = scene(gpus(*[1] * 40), gang(41, *["one"] * 41))
    assert allocator.allocate_group("default/pg", max_tries=1) is None


def test_counting_what_is_there_says_that_no_plan_exists() -> None:
    # Thirty devices for 31, 30 of 31 pods at most, and CPU for so many: each more than could be tried.
    sizes = ["two", "one"] * 10
    _, allocator = scene(gpus(*[3] * 10), gang(21, *sizes, "one"))
    assert allocator.allocate_group("default/pg", max_tries=1) is None
    plan = allocator.allocate_group("default/pg", min_count=20, max_tries=1)
    assert plan is not None
    assert (len(plan.plans), plan.complete) == (20, True)
    pods = [a_pod(f"x{index}", container("c", {"cpu": 1 + index % 2})) for index in range(20)]
    _, allocator = scene([node(f"n{index}", {"cpu": "3"}) for index in range(9)], gpu_class())
    assert allocator.allocate_group(pods, max_tries=1) is None


def test_a_pod_that_has_its_devices_already_needs_no_more() -> None:
    cluster, allocator = scene(gpus(1, 1), gang(2, "one", "one"))
    early = allocator.allocate_pod("default/m1", node="n1")
    assert early is not None
    cluster.commit(early)
    unbound = attrs.evolve(early.pod, spec=attrs.evolve(early.pod.spec, node_name=None))
    cluster.upsert(unbound, node("n2"), a_pod("m2", templates={"gpu": "two"}, group="pg"))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert (plan.nodes, plan.left_out) == ({"default/m0": "n0", "default/m1": "n1"}, ("default/m2",))


def test_the_budget_ends_before_it_is_known() -> None:
    _, allocator = scene(gpus(2, 1), gang(2, "one", "two"))
    with pytest.raises(dra.BudgetExceeded, match="whether there is a plan is not known"):
        allocator.allocate_group("default/pg", max_tries=1)
    _, allocator = scene(gpus(2, 1), gang(1, "one", "two"))
    plan = allocator.allocate_group("default/pg", max_tries=1)
    assert plan is not None
    assert (plan.nodes, plan.left_out, plan.complete) == ({"default/m0": "n0"}, ("default/m1",), False)


def in_rack(name: str, rack: str) -> Node:
    return node(name, labels={"rack": rack, "kubernetes.io/hostname": name})


def fabric(rack: str) -> Any:
    """A network-attached device that the nodes of a rack reach."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}]}
    return slice_of(
        "switch",
        pool=f"rack-{rack}",
        node=None,
        driver="net.example.com",
        node_selector=NodeSelector.from_dict(selector),
    )


def racks(*sizes: int) -> list[Any]:
    """Racks of so many nodes with one GPU each, and a switch for each rack."""
    found: list[Any] = [gpu_class(), template("one"), gpu_class("net", driver="net.example.com")]
    found.append(template("t", asking(device_class="net")))
    for rack, size in zip("abc", sizes, strict=False):
        found.append(fabric(rack))
        for index in range(size):
            found += [in_rack(f"{rack}{index}", rack), slice_of("gpu", pool=f"{rack}{index}", node=f"{rack}{index}")]
    return found


def test_a_network_attached_device_draws_its_group_to_nodes_that_reach_it() -> None:
    pods = [a_pod(f"m{index}", templates={"c": "t", "gpu": "one"}, group="pg") for index in range(3)]
    cluster, allocator = scene(racks(2, 3), a_group("pg", [SHARED], min_count=3), pods)
    # One after the other the group would take the switch of rack a, which has two nodes only.
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert [*plan.nodes.values()] == ["b0", "b1", "b2"]
    assert {result.pool for result in plan.claims[0].status.allocation.devices.results} == {"rack-b"}  # type: ignore[union-attr]
    cluster.commit(plan)
    assert [pod.spec.node_name for pod in cluster.pods()] == ["b0", "b1", "b2"]

    _, allocator = scene(racks(2, 2), a_group("pg", [SHARED], min_count=3), pods)
    assert allocator.allocate_group("default/pg") is None


def test_a_group_that_cannot_be_scheduled_gives_up_its_claim_and_is_tried_again() -> None:
    pods = [a_pod(f"m{index}", templates={"c": "t", "gpu": "one"}, group="pg") for index in range(3)]
    cluster, allocator = scene(racks(2, 3), a_group("pg", [SHARED], min_count=3), pods)
    early = allocator.allocate_pod("default/m0")
    assert early is not None
    cluster.commit(early)
    cluster.upsert(pods[0])  # it could not be bound after all
    cluster.release(*(claim for claim in early.claims if claim.metadata.name.startswith("m0")))
    assert allocator.allocate_group("default/pg") is None  # bound to rack a by its claim
    freed = group_retry(cluster, "default/pg")
    assert [(claim.metadata.name, claim.metadata.finalizers) for claim in freed] == [("pg-c-00001", ())]
    assert [claim.status for claim in freed] == [ResourceClaimStatus()]
    cluster.upsert(*freed)
    assert group_retry(cluster, "default/pg") == ()
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert [*plan.nodes.values()] == ["b0", "b1", "b2"]
    cluster.commit(plan)
    assert group_retry(cluster, "default/pg") == ()  # in use


def test_a_claim_that_others_use_too_is_not_given_up() -> None:
    named = {"name": "c", "resourceClaimName": "m"}
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), pending("m"), a_group("pg", [named]))
    for pod in (a_pod("a", claims={"c": "m"}, group="pg"), a_pod("b", claims={"x": "m"})):
        plan = allocator.allocate_pod(pod)
        assert plan is not None
        cluster.commit(plan)
    cluster.delete("Pod", "default/a")
    assert group_retry(cluster, "default/pg") == ()
    with pytest.raises(dra.DraError, match="there is no PodGroup 'default/gone'"):
        group_retry(cluster, "default/gone")


def test_pods_of_a_topology_run_on_nodes_with_one_value_of_its_label() -> None:
    pods = [a_pod(f"m{index}", templates={"gpu": "one"}, group="pg") for index in range(3)]
    together: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    cluster, allocator = scene(racks(2, 3), a_group("pg", min_count=2, **together), pods)
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert [*plan.nodes.values()] == ["b0", "b1", "b2"]
    small = allocator.allocate_group("default/pg", nodes=["a0", "a1", "b0"])
    assert small is not None
    assert ([*small.nodes.values()], small.left_out) == (["a0", "a1"], ("default/m2",))
    # Pods that run already decide.
    cluster.upsert(
        attrs.evolve(a_pod("old", group="pg"), spec=attrs.evolve(a_pod("x", group="pg").spec, node_name="a1"))
    )
    stuck = allocator.allocate_group("default/pg")
    assert stuck is not None
    assert [*stuck.nodes.values()] == ["a0", "a1"]


def test_pods_without_a_group_are_planned_together_too() -> None:
    cluster, allocator = scene(gpus(1, 1), a_pod("x", templates={"gpu": "one"}))
    second = a_pod("y", templates={"gpu": "one"})
    plan = allocator.allocate_group(["default/x", second.to_dict()])
    assert plan is not None
    assert (plan.group, plan.nodes) == ("", {"default/x": "n0", "default/y": "n1"})
    assert [devices(each) for each in plan.plans] == [["gpu-0"], ["gpu-0"]]
    cluster.commit(plan)
    assert allocator.allocate_group([a_pod("z", templates={"gpu": "one"})]) is None
    empty = allocator.allocate_group([])
    assert empty is not None
    assert empty.plans == ()


def test_commit_is_one_step_or_none() -> None:
    cluster, allocator = scene(gpus(1, 1), gang(2, "one", "one"))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    faster = allocator.allocate_pod(a_pod("faster", templates={"gpu": "one"}), node="n1")
    assert faster is not None
    cluster.commit(faster)
    before = [*cluster]
    with pytest.raises(dra.Conflict, match="is held by claim default/faster-gpu"):
        cluster.commit(plan)
    assert [*cluster] == before


def test_two_plans_that_make_the_same_claim_of_a_group_conflict() -> None:
    cluster, allocator = scene(
        gpu_node("n1", "a", "b"), gpu_class(), template("t"), a_group("pg", [SHARED]), members(2)
    )
    plans = [allocator.allocate_pod(f"default/m{index}") for index in range(2)]
    cluster.commit(plans[0])
    with pytest.raises(dra.Conflict, match="PodGroup default/pg has got claim pg-c-00001 for c meanwhile"):
        cluster.commit(plans[1])
    again = allocator.allocate_pod("default/m1")
    cluster.commit(again)
    assert len(cluster.claims()) == 1


def test_finished_pods_and_pods_of_others_are_no_members() -> None:
    done = attrs.evolve(a_pod("done", group="pg"), status=PodStatus(phase="Failed"))
    other = attrs.evolve(a_pod("far", group="pg"), metadata=attrs.evolve(a_pod("far").metadata, namespace="other"))
    _, allocator = scene(gpus(1), done, other, a_pod("alone"), gang(1, "one"))
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert [*plan.nodes] == ["default/m0"]
    assert allocator.allocate_group("default/pg", min_count=2) is None


def test_groups_of_a_workload() -> None:
    workload = Workload.from_dict(
        {
            "metadata": {"name": "train", "namespace": "default", "uid": "uid-train"},
            "spec": {
                "podGroupTemplates": [
                    {
                        "name": "workers",
                        "schedulingPolicy": {"gang": {"minCount": 2}},
                        "resourceClaims": [SHARED],
                    },
                    {"name": "driver", "schedulingPolicy": {"basic": {}}},
                ]
            },
        }
    )
    workers, driver = make_pod_groups(workload)
    assert (workers.metadata.key, driver.metadata.key) == ("default/train-workers", "default/train-driver")
    assert workers.spec.scheduling_policy.gang is not None
    assert workers.spec.workload_ref is not None
    assert workers.spec.workload_ref.to_dict() == {"workloadName": "train", "templateName": "workers"}
    cluster, allocator = scene(gpu_node("n1"), gpu_class(), template("t"), workers, members(2, "train-workers"))
    plan = allocator.allocate_group("default/train-workers")
    assert plan is not None
    assert plan.created == ("default/train-workers-c-00001",)
    cluster.commit(plan)
    twice = attrs.evolve(
        workload, spec=attrs.evolve(workload.spec, pod_group_templates=workload.spec.pod_group_templates * 2)
    )
    with pytest.raises(dra.ValidationError, match="is the name of a template before"):
        make_pod_groups(twice)


def test_bad_questions() -> None:
    cluster, allocator = scene(gpus(1), gang(1, "one"))
    with pytest.raises(dra.DraError, match="there is no PodGroup 'default/gone' in the cluster"):
        allocator.allocate_group("default/gone")
    with pytest.raises(dra.DraError, match="a PodGroup or several pods are needed here, not a Node"):
        allocator.allocate_group({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    with pytest.raises(dra.DraError, match="pod default/m0 is asked for twice"):
        allocator.allocate_group(["default/m0", "default/m0"])
    with pytest.raises(ValueError, match="min_count is 0"):
        allocator.allocate_group("default/pg", min_count=0)
    cluster.upsert(a_group("pg", min_count=0))
    with pytest.raises(dra.ValidationError, match=r"gang\.minCount: 0 is too small"):
        allocator.allocate_group("default/pg")


def test_with_the_gate_off_pods_of_a_gang_have_claims_of_their_own() -> None:
    cluster, allocator = scene(gpus(1, 1), gang(2, "one", "one"), features=dra.Features())
    plan = allocator.allocate_group("default/pg")
    assert plan is not None
    assert plan.created == ("default/m0-gpu-00001", "default/m1-gpu-00002")
    cluster.upsert(a_group("pg", [{"name": "gpu", "resourceClaimTemplateName": "one"}], min_count=2))
    with pytest.raises(dra.AllocationError, match="DRAWorkloadResourceClaims"):
        allocator.allocate_group("default/pg")
