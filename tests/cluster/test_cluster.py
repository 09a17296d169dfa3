"""`Cluster`: objects, forks, commits, reverts, events, pickling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import dra_alloc as dra
from bench import workloads
from dra_alloc import api

GPU = workloads.GPU


def gpus(*names: str) -> api.ResourceSlice:
    return workloads.pool_slice(GPU, "pool", [api.Device(name=name) for name in names], on="node-0")


ONE = workloads.claim("one", [workloads.request("gpu", "gpu")])
OTHER = workloads.claim("other", [workloads.request("gpu", "gpu")])


@pytest.fixture
def cluster() -> dra.Cluster:
    return dra.Cluster.from_objects([*workloads.CLASSES, workloads.node("node-0"), gpus("gpu-0", "gpu-1"), ONE, OTHER])


def devices(cluster: dra.Cluster, claim: str = "default/one") -> list[str] | None:
    found = dra.Allocator(cluster).allocate(claim, "node-0")
    return None if found is None else [each.device for each in found[0].devices.results]


def commit(cluster: dra.Cluster, claim: str) -> None:
    found = dra.Allocator(cluster).allocate(claim, "node-0")
    assert found is not None
    cluster.commit(claim, found[0])


# Objects


def test_objects_by_kind_and_key(cluster: dra.Cluster) -> None:
    assert cluster.get("ResourceClaim", "default/one") == ONE
    assert cluster.get("ResourceClaim", "default/none") is None
    assert [item.metadata.name for item in cluster.claims()] == ["one", "other"]
    assert cluster.node_names() == ("node-0",)
    assert len(cluster) == 6
    assert len(list(cluster)) == 6


def test_dicts_are_objects_too(cluster: dra.Cluster) -> None:
    cluster.upsert({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    assert cluster.node_names() == ("node-0", "node-1")
    cluster.delete("Node", "node-1")
    assert cluster.node_names() == ("node-0",)


def test_an_object_without_namespace_is_in_default(cluster: dra.Cluster) -> None:
    bare = attrs.evolve(ONE, metadata=api.ObjectMeta(name="bare"))
    cluster.upsert(bare)
    assert cluster.get("ResourceClaim", "bare") == cluster.get("ResourceClaim", "default/bare") == bare
    assert cluster.get("ResourceClaim", "elsewhere/bare") is None
    assert cluster.get("ResourceClaim", "one") == ONE
    assert devices(cluster, "default/bare") == devices(cluster, "bare") == ["gpu-0"]
    cluster.delete("ResourceClaim", "default/bare")
    assert cluster.get("ResourceClaim", "bare") is None


def test_with_and_without_its_namespace_it_is_one_object(cluster: dra.Cluster) -> None:
    """A claim from a manifest, allocated, then the same from a watch: it must not hold its devices beside itself."""
    bare = attrs.evolve(ONE, metadata=api.ObjectMeta(name="one"))
    found = dra.Allocator(cluster).allocate(bare, "node-0")
    assert found is not None
    kept = list(cluster.claims())
    before = cluster.version
    seen: list[str] = []
    cluster.subscribe(lambda event: seen.append(f"{event.action} {event.object.metadata.key}"))
    cluster.upsert(attrs.evolve(bare, status=api.ResourceClaimStatus(allocation=found[0])))
    assert seen == ["deleted default/one", "added one"]
    assert len(cluster.claims()) == len(kept)
    (pool,) = {(each.driver, each.pool) for each in found[0].devices.results}
    assert [claim for each in cluster.holdings(pool).values() for claim in each.claims()] == ["one"]
    cluster.upsert(ONE)
    assert cluster.holdings(pool) == {}
    cluster.revert(before)
    assert sorted(cluster.claims(), key=str) == sorted(kept, key=str)
    both = dra.Cluster.from_objects([bare, ONE])
    assert both.claims() == [ONE]


def test_generated_names_are_made_of_prefix_and_number() -> None:
    prefix = attrs.evolve(ONE, metadata=api.ObjectMeta(generate_name="one-", namespace="default"))
    taken = attrs.evolve(ONE, metadata=api.ObjectMeta(name="one-1"))
    cluster = dra.Cluster.from_objects([prefix, taken, prefix])
    assert [claim.metadata.key for claim in cluster.claims()] == ["default/one-2", "one-1", "default/one-3"]


def test_nothing_without_a_name_is_kept(cluster: dra.Cluster) -> None:
    before = list(cluster)
    nameless = attrs.evolve(ONE, metadata=api.ObjectMeta())
    with pytest.raises(dra.DraError, match=r"^objects\[1\] ResourceClaim: metadata\.name is missing: .*, or gen"):
        dra.Cluster.from_objects([ONE, nameless])
    prefix = attrs.evolve(ONE, metadata=api.ObjectMeta(generate_name="one-"))
    for wrong in (nameless, prefix):
        with pytest.raises(dra.DraError, match=r"^objects\[1\] ResourceClaim: metadata\.name is missing: give a name$"):
            cluster.upsert(gpus("gpu-7"), wrong)
        found = dra.Allocator(cluster).allocate(wrong, "node-0")
        assert found is not None
        with pytest.raises(dra.DraError, match=r"metadata\.name is missing"):
            cluster.commit(wrong, found[0])
    assert list(cluster) == before


def test_of_two_objects_with_one_key_the_later_counts() -> None:
    cluster = dra.Cluster.from_objects([gpus("gpu-0"), gpus("gpu-1")])
    assert [device.name for item in cluster.slices() for device in item.spec.devices] == ["gpu-1"]


def test_deleting_what_is_not_there(cluster: dra.Cluster) -> None:
    with pytest.raises(KeyError, match="there is no Node node-9"):
        cluster.delete("Node", "node-9")


def test_upsert_puts_in_all_or_nothing(cluster: dra.Cluster) -> None:
    version = cluster.version
    with pytest.raises(dra.DecodeError):
        cluster.upsert(workloads.node("node-1"), {"kind": "Nonsense"})
    assert cluster.version == version
    assert cluster.node_names() == ("node-0",)


@pytest.mark.parametrize("given", ["dump.yaml", Path("dump.yaml"), b"kind: Pod", {"kind": "Node"}, api.Node(), None])
def test_a_cluster_is_made_of_a_list(given: Any) -> None:
    with pytest.raises(dra.DraError, match=r"from_objects takes a list of objects, not .*; dra_alloc\.load reads"):
        dra.Cluster.from_objects(given)


def test_a_name_is_no_list_of_names(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster)
    claims, pod = api.ResourceClaim(), api.Pod()
    asked: list[Callable[[Any], object]] = [
        lambda nodes: alloc.feasible_nodes(claims, nodes),
        lambda nodes: alloc.allocate_pod(pod, nodes=nodes),
        lambda nodes: alloc.allocate_group([pod], nodes=nodes),
        lambda nodes: alloc.score(claims, nodes),
        lambda nodes: alloc.explain(claims, nodes=nodes),
        lambda nodes: alloc.whatif(claims, nodes=nodes),
        lambda nodes: alloc.preempt(pod, nodes=nodes),
    ]
    for ask in asked:
        for nodes in ("node-1", api.Node(metadata=api.ObjectMeta(name="node-1"))):
            with pytest.raises(dra.DraError, match=r"nodes is a list of names: \['node-1'\], not 'node-1'"):
                ask(nodes)


def test_an_allocator_asks_a_cluster() -> None:
    with pytest.raises(TypeError, match=r"Allocator takes a Cluster, not list; Cluster.from_objects makes one"):
        dra.Allocator([])  # type: ignore[arg-type]


def test_an_allocator_takes_features_and_a_budget(cluster: dra.Cluster) -> None:
    with pytest.raises(TypeError, match=r"features are Features\(…\), .*, not 'all'"):
        dra.Allocator(cluster, features="all")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"budget is a Budget\(…\), not 3"):
        dra.Allocator(cluster, budget=3)  # type: ignore[arg-type]


def test_a_misspelt_kind_is_not_one_without_objects(cluster: dra.Cluster) -> None:
    assert cluster.get("PodGroup", "default/none") is None
    assert cluster.objects("Workload") == []
    for ask in (
        lambda: cluster.get("pod", "default/one"),
        lambda: cluster.objects("Pods"),
        lambda: cluster.delete("resourceslices", "node-0"),
    ):
        with pytest.raises(ValueError, match=r"holds no objects of kind .*; kinds are DeviceClass, .*, Workload"):
            ask()


def test_a_slice_that_moves_to_another_pool_leaves_the_old_one(cluster: dra.Cluster) -> None:
    old = gpus("gpu-0", "gpu-1")
    pool = attrs.evolve(old.spec.pool, name="moved")
    cluster.upsert(attrs.evolve(old, spec=attrs.evolve(old.spec, pool=pool)))
    found = dra.Allocator(cluster).allocate("default/one", "node-0")
    assert found is not None
    assert [each.pool for each in found[0].devices.results] == ["moved"]


# Changes and what they do to answers


def test_answers_follow_changes(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster)
    assert alloc.feasible_nodes("default/one") == ["node-0"]
    cluster.delete("ResourceSlice", f"pool-{GPU}")
    assert alloc.feasible_nodes("default/one") == []
    cluster.upsert(gpus("gpu-7"))
    assert alloc.feasible_nodes("default/one") == ["node-0"]
    assert devices(cluster) == ["gpu-7"]
    rule = api.DeviceTaintRule(
        metadata=api.ObjectMeta(name="maintenance"),
        spec=api.DeviceTaintRuleSpec(
            device_selector=api.DeviceTaintSelector(pool="pool"), taint=api.DeviceTaint(key="x", effect="NoSchedule")
        ),
    )
    cluster.upsert(rule)
    assert alloc.feasible_nodes("default/one") == []
    cluster.delete(rule)
    assert alloc.feasible_nodes("default/one") == ["node-0"]
    cluster.upsert(workloads.device_class("gpu", "nobody.example.com"))
    assert alloc.feasible_nodes("default/one") == []


def test_nodes_come_and_go(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster)
    shared = attrs.evolve(gpus("gpu-0"), spec=attrs.evolve(gpus("gpu-0").spec, node_name=None, all_nodes=True))
    cluster.upsert(shared)
    assert alloc.feasible_nodes("default/one") == ["node-0"]
    cluster.upsert(workloads.node("node-1"))
    assert alloc.feasible_nodes("default/one") == ["node-0", "node-1"]
    cluster.delete("Node", "node-0")
    assert alloc.feasible_nodes("default/one") == ["node-1"]


# Commit and release


def test_commit_holds_and_release_gives_back(cluster: dra.Cluster) -> None:
    commit(cluster, "default/one")
    assert devices(cluster, "default/other") == ["gpu-1"]
    commit(cluster, "default/other")
    third = workloads.claim("third", [workloads.request("gpu", "gpu")])
    assert dra.Allocator(cluster).allocate(third, "node-0") is None
    cluster.release("default/one")
    assert cluster.get("ResourceClaim", "default/one").status.allocation is None
    found = dra.Allocator(cluster).allocate(third, "node-0")
    assert found is not None
    assert found[0].devices.results[0].device == "gpu-0"


@pytest.mark.parametrize(
    "arguments", [(), ("default/one",), (ONE,), (ONE.to_dict(),), (ONE, None, None), ([ONE],), (3,)]
)
def test_commit_refuses_other_arguments(cluster: dra.Cluster, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match="commit takes a plan, a claim and its result, or a list of such pairs"):
        cluster.commit(*arguments)


def test_commit_says_what_it_takes_instead_of_an_answer_as_a_whole(cluster: dra.Cluster) -> None:
    found = dra.Allocator(cluster).allocate("default/one", "node-0")
    assert found is not None
    with pytest.raises(TypeError, match=r"not the list of all: commit\(claim, found\[0\]\), or"):
        cluster.commit("default/one", found)
    with pytest.raises(TypeError, match="None is no answer: it did not fit"):
        cluster.commit(None)
    with pytest.raises(TypeError, match="None is no result: it did not fit"):
        cluster.commit("default/one", None)
    cluster.commit(zip(["default/one"], found, strict=True))
    assert cluster.get("ResourceClaim", "default/one").status.allocation == found[0]


def test_a_device_taken_meanwhile_is_a_conflict(cluster: dra.Cluster) -> None:
    alloc = dra.Allocator(cluster)
    one = alloc.allocate("default/one", "node-0")
    other = alloc.allocate("default/other", "node-0")
    assert one is not None
    assert other is not None
    cluster.commit("default/one", one[0])
    before = cluster.version
    with pytest.raises(dra.Conflict, match=r"device gpu\.example\.com/pool/gpu-0 is held by claim default/one"):
        cluster.commit("default/other", other[0])
    assert cluster.version == before


def test_many_claims_commit_together_or_not_at_all(cluster: dra.Cluster) -> None:
    one = dra.Allocator(cluster).allocate("default/one", "node-0")
    assert one is not None
    with pytest.raises(dra.Conflict):
        cluster.commit([("default/one", one[0]), ("default/other", one[0])])
    assert devices(cluster) == ["gpu-0"]
    both = dra.Allocator(cluster).allocate(["default/one", "default/other"], "node-0")
    assert both is not None
    cluster.commit([("default/one", both[0]), ("default/other", both[1])])
    assert sorted(cluster.holdings((GPU, "pool"))) == ["gpu-0", "gpu-1"]


def test_a_slice_that_is_gone_is_a_conflict(cluster: dra.Cluster) -> None:
    one = dra.Allocator(cluster).allocate("default/one", "node-0")
    assert one is not None
    cluster.upsert(gpus("gpu-1"))
    with pytest.raises(dra.Conflict, match="gpu-0 is not in the slices of its pool any more"):
        cluster.commit("default/one", one[0])
    cluster.delete("ResourceSlice", f"pool-{GPU}")
    with pytest.raises(dra.Conflict, match=r"there is no pool gpu\.example\.com/pool"):
        cluster.commit("default/one", one[0])


def test_committing_twice_changes_nothing(cluster: dra.Cluster) -> None:
    one = dra.Allocator(cluster).allocate("default/one", "node-0")
    assert one is not None
    cluster.commit("default/one", one[0])
    version = cluster.version
    cluster.commit("default/one", one[0])
    assert cluster.version == version


def test_counters_that_ran_out_meanwhile_are_a_conflict() -> None:
    work = workloads.mig(1, free=2)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    wanted = {
        name: workloads.claim(
            name,
            [workloads.request("gpu", "gpu", 1, f'device.attributes["{GPU}"].profile == "{profile}"')],
        )
        for name, profile in (("small", "1g"), ("large", "2g"))
    }
    answers = {name: alloc.allocate(claim, work.node) for name, claim in wanted.items()}
    assert answers["large"] is not None
    assert answers["small"] is not None
    cluster.commit(wanted["large"], answers["large"][0])
    with pytest.raises(dra.Conflict, match="too little is left of counter card-0/"):
        cluster.commit(wanted["small"], answers["small"][0])


def test_capacity_that_ran_out_meanwhile_is_a_conflict() -> None:
    work = workloads.shares(1, 1)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    claims = [
        workloads.claim(name, [workloads.request("nic", "nic", 1, capacity={"bandwidth": "25G"})]) for name in "ab"
    ]
    answers = [alloc.allocate(claim, work.node) for claim in claims]
    assert answers[0] is not None
    assert answers[1] is not None
    cluster.commit(claims[0], answers[0][0])
    with pytest.raises(dra.Conflict, match="too little is left of capacity bandwidth"):
        cluster.commit(claims[1], answers[1][0])


# Forks


def test_of_a_capacity_published_under_both_spellings_the_qualified_one_counts() -> None:
    sizes = {"memory": "1", f"{GPU}/memory": "2"}
    capacity = {name: api.DeviceCapacity(value=api.Quantity.parse(size)) for name, size in sizes.items()}
    device = api.Device(name="gpu-0", capacity=capacity, allow_multiple_allocations=True)
    cluster = dra.Cluster.from_objects(
        [*workloads.CLASSES, workloads.node("node-0"), workloads.pool_slice(GPU, "pool", [device], on="node-0"), ONE]
    )
    found = dra.Allocator(cluster, dra.Features.all()).allocate("default/one", "node-0")
    assert found is not None
    assert found[0].devices.results[0].consumed_capacity == {f"{GPU}/memory": api.Quantity.parse("2")}
    cluster.commit("default/one", found[0])
    assert cluster.holdings((GPU, "pool"))["gpu-0"].claims() == ("default/one",)


def test_forks_are_isolated_both_ways(cluster: dra.Cluster) -> None:
    with cluster.fork() as trial:
        commit(trial, "default/one")
        assert devices(trial, "default/other") == ["gpu-1"]
        assert devices(cluster, "default/other") == ["gpu-0"]
        commit(cluster, "default/other")
        assert devices(trial, "default/other") == ["gpu-1"]
        with trial.fork() as deeper:
            deeper.release("default/one")
            deeper.upsert(workloads.node("node-1"))
            assert devices(deeper, "default/other") == ["gpu-0"]
            assert devices(trial, "default/other") == ["gpu-1"]
        assert trial.node_names() == ("node-0",)


def test_forks_share_answers_until_they_differ() -> None:
    work = workloads.fleet(20)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    before = alloc.feasible_nodes(work.claims)
    fork = cluster.fork()
    fork.delete("ResourceSlice", f"{before[0]}-{GPU}")
    assert dra.Allocator(fork).feasible_nodes(work.claims) == before[1:]
    assert alloc.feasible_nodes(work.claims) == before
    cluster.delete("ResourceSlice", f"{before[1]}-{GPU}")
    assert alloc.feasible_nodes(work.claims) == [before[0], *before[2:]]
    assert dra.Allocator(fork).feasible_nodes(work.claims) == before[1:]


def test_a_fork_after_a_long_log_still_answers_right() -> None:
    work = workloads.fleet(3)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    names = alloc.feasible_nodes(work.claims)
    gone = cluster.get("ResourceSlice", f"{names[0]}-{GPU}")
    for _ in range(3000):
        cluster.delete(gone)
        cluster.upsert(gone)
    cluster.delete(gone)
    assert dra.Allocator(cluster.fork()).feasible_nodes(work.claims) == names[1:]
    assert alloc.feasible_nodes(work.claims) == names[1:]


# Revert


def test_revert_takes_changes_back(cluster: dra.Cluster) -> None:
    version = cluster.version
    before = list(cluster)
    commit(cluster, "default/one")
    cluster.upsert(workloads.node("node-1"))
    cluster.delete("ResourceClaim", "default/other")
    cluster.delete("ResourceSlice", f"pool-{GPU}")
    cluster.revert(version)
    assert cluster.version == version
    assert sorted(map(repr, cluster)) == sorted(map(repr, before))
    assert devices(cluster) == ["gpu-0"]
    with pytest.raises(ValueError, match="not within reach"):
        cluster.revert(version + 1)
    with pytest.raises(ValueError, match="not within reach"):
        cluster.revert(version - 1)


# Events, pickles


def test_events_are_of_three_kinds() -> None:
    assert (dra.Event("added", ONE.to_dict()).kind, dra.Event("deleted", ONE).key) == ("ResourceClaim", "default/one")
    with pytest.raises(ValueError, match=r"one of added, updated, deleted, not 'moved'$"):
        dra.Event("moved", ONE)


def test_listeners_hear_of_each_change(cluster: dra.Cluster) -> None:
    heard: list[tuple[str, str, str]] = []
    stop = cluster.subscribe(lambda event: heard.append((event.action, event.kind, event.key)))
    commit(cluster, "default/one")
    cluster.upsert(workloads.node("node-1"))
    cluster.delete("Node", "node-1")
    with cluster.fork() as trial:
        trial.upsert(workloads.node("node-2"))
    stop()
    cluster.upsert(workloads.node("node-3"))
    assert heard == [
        ("updated", "ResourceClaim", "default/one"),
        ("added", "Node", "node-1"),
        ("deleted", "Node", "node-1"),
    ]


def test_pickles_and_copies_answer_alike(cluster: dra.Cluster) -> None:
    commit(cluster, "default/one")
    for other in (pickle.loads(pickle.dumps(cluster)), copy.copy(cluster), copy.deepcopy(cluster)):
        assert other.version == cluster.version
        assert devices(other, "default/other") == ["gpu-1"]
        commit(other, "default/other")
    assert devices(cluster, "default/other") == ["gpu-1"]
