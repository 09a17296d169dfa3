"""`feasible_nodes` says of each node what `allocate` says there, whatever is remembered and however it is asked."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from bench import workloads
from dra_alloc.allocator import NODE_ERRORS
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from tests.properties.asking import MODEL_EXAMPLES, allocator

GPU = workloads.GPU


def one_by_one(alloc: dra.Allocator, scenario: Scenario) -> list[str] | str:
    """What allocating node by node comes to: names, or the kind of the first error that ends the question."""
    found = []
    for name in alloc.cluster.node_names():
        try:
            answer = alloc.allocate(scenario.claims, name)
        except dra.AllocationError as error:
            if error.kind in NODE_ERRORS:
                continue
            return error.kind
        if answer is not None:
            found.append(name)
    return found


def together(alloc: dra.Allocator, scenario: Scenario, parallel: int | None = None) -> list[str] | str:
    try:
        return alloc.feasible_nodes(scenario.claims, parallel=parallel)
    except dra.AllocationError as error:
        return error.kind


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(), st.data())
def test_the_same_as_node_by_node_before_and_after_changes(scenario: Scenario, data: st.DataObject) -> None:
    alloc = allocator(scenario)
    assert together(alloc, scenario) == one_by_one(alloc, scenario)
    for _ in range(3):
        items = [item for item in alloc.cluster if item.kind != "Node" or len(alloc.cluster.nodes()) > 1]
        item = data.draw(st.sampled_from(items))
        alloc.cluster.delete(item)
        if data.draw(st.booleans()):
            together(alloc, scenario)
        if data.draw(st.booleans()):
            alloc.cluster.upsert(item)
        expected = one_by_one(dra.Allocator(dra.Cluster.from_objects(list(alloc.cluster)), scenario.features), scenario)
        assert together(alloc, scenario) == expected


@settings(max_examples=MODEL_EXAMPLES // 8)
@given(clusters())
def test_threads_change_nothing(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    expected = together(allocator(scenario), scenario)
    assert together(alloc, scenario, parallel=3) == expected


@pytest.fixture
def alloc() -> dra.Allocator:
    return dra.Allocator(dra.Cluster.from_objects(workloads.fleet(12).objects))


CLAIMS = workloads.fleet(1).claims


def test_limit_takes_the_first(alloc: dra.Allocator) -> None:
    everything = alloc.feasible_nodes(CLAIMS)
    assert len(everything) > 4
    other = dra.Allocator(dra.Cluster.from_objects(workloads.fleet(12).objects))
    assert other.feasible_nodes(CLAIMS, limit=3) == everything[:3]
    assert other.feasible_nodes(CLAIMS, limit=1000) == everything
    assert other.feasible_nodes(CLAIMS, limit=0) == []


def test_nodes_choose_and_order(alloc: dra.Allocator) -> None:
    everything = alloc.feasible_nodes(CLAIMS)
    some = [everything[3], everything[0]]
    assert alloc.feasible_nodes(CLAIMS, nodes=some) == some
    with pytest.raises(dra.DraError, match="there is no Node 'nowhere'"):
        alloc.feasible_nodes(CLAIMS, nodes=["nowhere"])


def test_a_claim_that_is_allocated_binds_to_its_nodes(alloc: dra.Allocator) -> None:
    name = alloc.feasible_nodes(CLAIMS)[2]
    found = alloc.allocate(CLAIMS, name)
    assert found is not None
    alloc.cluster.commit(CLAIMS[0], found[0])
    other = attrs.evolve(CLAIMS[0], metadata=attrs.evolve(CLAIMS[0].metadata, name="second", uid="uid-second"))
    assert alloc.feasible_nodes("default/train") == [name]
    again = alloc.feasible_nodes(["default/train", other])
    assert again in ([], [name])
    assert alloc.allocate("default/train", name) == found


def test_nodes_with_a_faulty_pool_do_not_stop_the_others() -> None:
    work = workloads.fleet(3)
    cluster = dra.Cluster.from_objects(work.objects)
    broken = cluster.get("ResourceSlice", f"node-00001-{GPU}")
    pool = attrs.evolve(broken.spec.pool, resource_slice_count=2)
    cluster.upsert(attrs.evolve(broken, spec=attrs.evolve(broken.spec, pool=pool)))
    everything = workloads.claim("all", [workloads.request("gpu", "gpu")])
    exactly = attrs.evolve(everything.spec.devices.requests[0].exactly, allocation_mode="All", count=None)
    request = attrs.evolve(everything.spec.devices.requests[0], exactly=exactly)
    spec = attrs.evolve(everything.spec, devices=attrs.evolve(everything.spec.devices, requests=(request,)))
    claim = attrs.evolve(everything, spec=spec)
    for item in cluster.claims():
        cluster.delete(item)
    alloc = dra.Allocator(cluster)
    assert alloc.feasible_nodes(claim) == ["node-00000", "node-00002"]
    with pytest.raises(dra.AllocationError, match="has 1 of 2 slices") as caught:
        alloc.allocate(claim, "node-00001")
    assert (caught.value.kind, caught.value.node) == ("pool-all", "node-00001")


def test_a_faulty_pool_hides_errors_only_of_the_devices_behind_it() -> None:
    """What node-0 and node-1 have looks the same but for the place of the faulty pool among the others."""

    def pool(name: str, node: str, slices: int = 1) -> dict[str, object]:
        place = {"driver": GPU, "pool": {"name": name, "generation": 1, "resourceSliceCount": slices}, "nodeName": node}
        spec = {**place, "devices": [{"name": "a"}]}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}

    objects = [
        *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in ("node-0", "node-1")),
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        *(pool("a-faulty", "node-0", slices=2), pool("m-sound-0", "node-0")),
        *(pool("m-sound-1", "node-1"), pool("z-faulty", "node-1", slices=2)),
    ]
    failing = {"cel": {"expression": f'device.attributes["{GPU}"].nope'}}
    exactly = {"deviceClassName": "gpu", "allocationMode": "All", "selectors": [failing]}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }
    alloc = dra.Allocator(dra.Cluster.from_objects(dra.load(*objects)))
    assert alloc.feasible_nodes(claim, ["node-0"]) == []
    with pytest.raises(dra.AllocationError) as caught:
        alloc.feasible_nodes(claim, ["node-0", "node-1"])
    assert (caught.value.kind, caught.value.device) == ("cel", f"{GPU}/m-sound-1/a")


def test_a_refusal_is_forgotten_when_something_changes() -> None:
    work = workloads.full(2)
    cluster = dra.Cluster.from_objects(work.objects)
    alloc = dra.Allocator(cluster)
    assert alloc.allocate(work.claims, "node-00000") is None
    assert alloc.allocate(work.claims, "node-00000") is None
    with cluster.fork() as trial:
        trial.release("default/held-0")
        assert dra.Allocator(trial).allocate(work.claims, "node-00000") is not None
        assert alloc.allocate(work.claims, "node-00000") is None
    cluster.release("default/held-0")
    assert alloc.allocate(work.claims, "node-00000") is not None


def test_claims_that_ask_for_the_same_are_named_each_by_its_own_name(alloc: dra.Allocator) -> None:
    wanted = [workloads.claim(name, [workloads.request("gpu", "gpu", 9)]) for name in ("first", "second")]
    for claim in wanted:
        text = alloc.explain(claim, "node-00000").text()
        assert f"default/{claim.metadata.name}" in text
    assert "default/first" not in alloc.explain(wanted[1], "node-00000").text()
