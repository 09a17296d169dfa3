"""KEP-5517: devices that are, or need, CPU, memory and the like of their node."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import Device, Pod, PodStatus, Quantity
from dra_alloc.features.noderesources import footprint, requested_on
from tests.features.building import accepted, slice_of
from tests.features.scenes import a_group, a_pod, asking, container, devices, gpu_class, node, pending, scene, template


def device(name: str, shared: bool = False, capacity: dict[str, str] | None = None, **resources: Any) -> Device:
    """A device; resources by name, with `_` for what Python cannot spell."""
    return Device.from_dict(
        {
            "name": name,
            "capacity": {key: {"value": value} for key, value in (capacity or {}).items()},
            "nodeAllocatableResources": {key.replace("_", "-"): value for key, value in resources.items()},
            **({"allowMultipleAllocations": True} if shared else {}),
        }
    )


SOCKET = device(
    "socket0",
    shared=True,
    capacity={"cores": "64", "memory": "256Gi"},
    cpu={"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}},
)
CARD = device("gpu-0", memory={"overhead": {"perPod": "1Gi", "perContainer": "500Mi"}})


def cores(name: str, amount: int = 2) -> Any:
    return pending(name, asking(capacity={"requests": {"cores": str(amount), "memory": "0"}}))


def running(name: str, **requests: str) -> Pod:
    return a_pod(name, container("c", requests), nodeName="n1")


def world(*published: Device, more: tuple[Any, ...] = (), **allocatable: str) -> tuple[dra.Cluster, dra.Allocator]:
    return scene(node("n1", allocatable), slice_of(*published, pool="n1", node="n1"), gpu_class(), *more)


def mib(plan_or_pod: Any) -> dict[str, int]:
    found = footprint(plan_or_pod, plan_or_pod.status.node_allocatable_resource_claim_statuses)
    return {name: nano // 10**9 // 2**20 for name, nano in found.items()}


def test_worked_example_1() -> None:
    pod = a_pod("p", container("c", {"cpu": 1}, "cpus"), claims={"cpus": "cores"})
    others = running("other", cpu="11")
    cluster, allocator = world(SOCKET, more=(cores("cores"), others), cpu="16")
    plan = allocator.allocate_pod(pod)
    assert plan is not None
    assert plan.resources == {"cpu": 5 * 10**9}
    assert plan.pod.status is not None
    (entry,) = plan.pod.status.node_allocatable_resource_claim_statuses
    assert entry.to_dict() == {
        "resourceClaimName": "cores",
        "containers": ["c"],
        "mapping": [{"name": "cpu", "quantity": "4"}],
    }
    accepted(plan.pod)

    cluster.upsert(running("one-more", cpu="1"))
    refused = allocator.refusal(pod, "n1")
    assert refused is not None
    assert (str(refused), refused.unresolvable) == ("cpu: the pod takes 5, 4 of 16 are left", False)
    assert allocator.feasible_nodes(pod=pod) == []
    with pytest.raises(dra.Conflict, match="node n1 is too full for pod default/p: cpu"):
        cluster.commit(plan)

    cluster.upsert(node("n1", {"cpu": "4"}))
    cluster.delete("Pod", "default/other")
    refused = allocator.refusal(pod, "n1")
    assert refused is not None
    assert (str(refused), refused.unresolvable) == ("cpu: the pod takes 5, the node has 4", True)


def two_containers(**spec: Any) -> Pod:
    requests = {"memory": "2Gi"}
    return a_pod("p", container("a", requests, "gpu"), container("b", requests, "gpu"), claims={"gpu": "gpu"}, **spec)


def test_worked_example_2() -> None:
    _, allocator = world(CARD, more=(pending("gpu"),), memory="64Gi")
    plan = allocator.allocate_pod(two_containers())
    assert plan is not None
    assert plan.pod.status is not None
    (entry,) = plan.pod.status.node_allocatable_resource_claim_statuses
    assert entry.to_dict() == {
        "resourceClaimName": "gpu",
        "containers": ["a", "b"],
        "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "500Mi"}],
    }
    assert mib(plan.pod) == {"memory": 6120}

    enough = allocator.allocate_pod(two_containers(resources={"requests": {"memory": "6Gi"}}))
    assert enough is not None
    assert mib(enough.pod) == {"memory": 6144}

    refused = allocator.refusal(two_containers(resources={"requests": {"memory": "5Gi"}}), "n1")
    assert refused is not None
    assert (str(refused), refused.unresolvable) == (
        "spec.resources.requests[memory] is 5Gi, less than the 6120Mi of containers and claims",
        True,
    )


def test_what_a_committed_pod_has_through_claims_is_requested_of_the_node() -> None:
    cluster, allocator = world(SOCKET, more=(cores("one"), cores("two")), cpu="10")
    for name in ("one", "two"):
        plan = allocator.allocate_pod(a_pod(name, container("c", {"cpu": 1}, "cpus"), claims={"cpus": name}))
        assert plan is not None
        cluster.commit(plan)
        cluster.commit(plan)  # a plan that is written already changes nothing
    assert requested_on(cluster, "n1", with_claims=True) == {"cpu": 10 * 10**9}
    assert requested_on(cluster, "n1", with_claims=False) == {"cpu": 2 * 10**9}
    assert allocator.feasible_nodes(pod=running("three", cpu="1")) == []
    cluster.release(cluster.get("Pod", "default/one"))
    assert requested_on(cluster, "n1", with_claims=True) == {"cpu": 5 * 10**9}
    # A pod that has finished uses nothing any more.
    two = cluster.get("Pod", "default/two")
    assert two is not None
    cluster.upsert(attrs.evolve(two, status=attrs.evolve(two.status, phase="Failed")))
    assert requested_on(cluster, "n1", with_claims=True) == {"cpu": 0}


def test_amounts_per_device_count_each_device_and_containers_share_a_claim() -> None:
    ways = [device(f"gpu-{index}", cpu={"mapping": {"deviceMultiplier": "4"}}) for index in range(2)]
    _, allocator = world(*ways, more=(pending("gpus", asking(2)),), cpu="16")
    pod = a_pod("p", container("a", {}, "g"), container("b", {"cpu": "500m"}, "g"), claims={"g": "gpus"})
    plan = allocator.allocate_pod(pod)
    assert plan is not None
    assert plan.resources == {"cpu": 8_500_000_000}


def test_mapping_and_overhead_and_a_capacity_that_is_not_whole() -> None:
    both = device(
        "socket",
        shared=True,
        capacity={"gpu.example.com/cores": "8"},
        cpu={
            "mapping": {"capacityKey": "cores", "capacityMultiplier": "1500m"},
            "overhead": {"perPod": "100m", "perContainer": "10m"},
        },
        hugepages_2Mi={"overhead": {"perPod": "2Mi"}},
    )
    claim = pending("c", asking(capacity={"requests": {"cores": "1500m"}}))
    _, allocator = world(both, more=(claim,), cpu="16", **{"hugepages-2Mi": "4Mi"})
    pod = a_pod("p", container("c", {}, "x"), initContainers=[container("i", {"cpu": "5"}, "x")], claims={"x": "c"})
    plan = allocator.allocate_pod(pod)
    assert plan is not None
    # The init container's 5 are the peak of the containers; the claim is added to it whole, as Kubernetes does.
    assert plan.resources == {
        "cpu": 5_000_000_000 + 2_250_000_000 + 100_000_000 + 20_000_000,
        "hugepages-2Mi": 2**21 * 10**9,
    }
    assert plan.pod.status is not None
    (entry,) = plan.pod.status.node_allocatable_resource_claim_statuses
    assert entry.containers == ("i", "c")
    assert [str(each.quantity) for each in entry.mapping] == ["2250m"]


def test_a_claim_that_no_container_uses_pays_overhead_per_pod_alone() -> None:
    _, allocator = world(CARD, more=(pending("gpu"),), memory="2Gi")
    plan = allocator.allocate_pod(a_pod("p", claims={"gpu": "gpu"}))
    assert plan is not None
    assert mib(plan.pod) == {"memory": 1024}


def test_extended_resources_have_overhead_too_under_the_real_name_of_their_claim() -> None:
    _, allocator = scene(
        node("n1", {"memory": "2Gi"}), slice_of(CARD, pool="n1", node="n1"), gpu_class(resource="example.com/gpu")
    )
    plan = allocator.allocate_pod(a_pod("p", container("c", {"example.com/gpu": 1})))
    assert plan is not None
    assert plan.pod.status is not None
    (entry,) = plan.pod.status.node_allocatable_resource_claim_statuses
    assert (entry.resource_claim_name, entry.containers) == ("p-extended-resources-00001", ())
    assert mib(plan.pod)["memory"] == 1024


def test_a_mapped_claim_serves_one_pod_and_overhead_many() -> None:
    cluster, allocator = world(SOCKET, CARD, more=(cores("cores"), pending("gpu")), cpu="64", memory="64Gi")
    first = allocator.allocate_pod(a_pod("p", claims={"c": "cores"}))
    late = allocator.allocate_pod(a_pod("q", claims={"c": "cores"}))
    assert first is not None
    assert late is not None
    cluster.commit(first)
    refused = allocator.refusal(a_pod("r", claims={"c": "cores"}), "n1")
    assert refused is not None
    assert str(refused) == (
        "claim default/cores stands for resources of the node, so that one pod alone may use it, and pod p does"
    )
    with pytest.raises(dra.Conflict):
        cluster.commit(late)

    overhead = world(CARD, more=(pending("gpu"),), memory="64Gi")
    for name in ("a", "b"):
        plan = overhead[1].allocate_pod(a_pod(name, container("c", {}, "g"), claims={"g": "gpu"}))
        assert plan is not None
        overhead[0].commit(plan)
    assert requested_on(overhead[0], "n1", with_claims=True)["memory"] == 2 * (1024 + 500) * 2**20 * 10**9


def test_a_mapped_claim_of_a_group_serves_one_pod_of_it() -> None:
    shared = {"name": "c", "resourceClaimName": "cores"}
    cluster, allocator = world(SOCKET, more=(cores("cores"), a_group("g", [shared])), cpu="64")
    one, two = (a_pod(name, claims={"c": "cores"}, group="g") for name in ("one", "two"))
    assert allocator.allocate_group([one, two]) is None
    plan = allocator.allocate_pod(one)
    assert plan is not None
    cluster.commit(plan)
    refused = allocator.refusal(two, "n1")
    assert refused is not None
    assert str(refused).endswith("and pod one does")


def sockets() -> list[Device]:
    """One socket that takes more CPU than the node has left, and two that it has enough for."""
    return [
        device(name, cpu={"mapping": {"deviceMultiplier": cpu}}) for name, cpu in (("a", "12"), ("b", "4"), ("c", "4"))
    ]


def test_kubernetes_looks_at_the_first_answer_only_and_searching_on_finds_more() -> None:
    _, allocator = world(*sockets(), more=(pending("one"), pending("two", asking(2))), cpu="8")
    pod = a_pod("p", claims={"c": "one"})
    assert allocator.allocate_pod(pod) is None
    assert allocator.feasible_nodes(pod=pod) == []
    plan = allocator.allocate_pod(pod, node_resources="search")
    assert plan is not None
    assert devices(plan) == ["b"]
    assert allocator.feasible_nodes(pod=pod, node_resources="search") == ["n1"]
    pair = allocator.allocate_pod(a_pod("p", claims={"c": "two"}), node_resources="search")
    assert pair is not None
    assert devices(pair) == ["b", "c"]


def test_searching_on_gives_the_first_answer_that_suffices_and_says_why_none_does() -> None:
    # Each of the pairs with `a` is too much, b and c are not; d would be too, but comes later.
    mixed = [
        device(name, cpu={"mapping": {"deviceMultiplier": cpu}})
        for name, cpu in (("a", "5"), ("b", "4"), ("c", "4"), ("d", "2"))
    ]
    _, allocator = world(*mixed, more=(pending("two", asking(2)), pending("three", asking(3))), cpu="8")
    plan = allocator.allocate_pod(a_pod("p", claims={"c": "two"}), node_resources="search")
    assert plan is not None
    assert devices(plan) == ["a", "d"]
    refused = allocator.refusal(a_pod("p", claims={"c": "three"}), "n1", node_resources="search")
    assert refused is not None
    assert str(refused) == "cpu: the pod takes 13, the node has 8"


def test_searching_on_is_fast_where_even_the_least_is_too_much() -> None:
    many = [device(f"d{index}", cpu={"mapping": {"deviceMultiplier": "2"}}) for index in range(64)]
    _, allocator = world(*many, more=(pending("many", asking(16)),), cpu="31")
    assert allocator.allocate_pod(a_pod("p", claims={"c": "many"}), node_resources="search") is None


def test_searching_on_ends_with_its_budget() -> None:
    one = {"mapping": {"deviceMultiplier": "1"}}
    # Half of the devices take something of two resources, so that no single bound tells that none suffices.
    many = [device(f"d{index}", cpu=one) if index % 2 else device(f"d{index}", memory=one) for index in range(20)]
    _, allocator = world(*many, more=(pending("many", asking(10)),), cpu="4", memory="4")
    small = dra.Allocator(allocator.cluster, allocator.features, budget=dra.Budget(max_steps=50_000))
    with pytest.raises(dra.BudgetExceeded, match="50 answers of the search have been looked at"):
        small.allocate_pod(a_pod("p", claims={"c": "many"}), node="n1", node_resources="search")


def test_all_devices_means_all_of_them_however_much_they_take() -> None:
    claim = pending(
        "all",
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]}},
    )
    _, allocator = world(*sockets(), more=(claim,), cpu="8")
    assert allocator.allocate_pod(a_pod("p", claims={"c": "all"}), node_resources="search") is None


def test_a_mapping_by_capacity_needs_consumed_capacity() -> None:
    whole = device("s", capacity={"cores": "4"}, cpu={"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}})
    _, allocator = world(whole, more=(pending("c"),), cpu="8")
    pod = a_pod("p", claims={"c": "c"})
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate_pod(pod, node="n1")
    assert (caught.value.kind, caught.value.device) == ("node-resources", "gpu.example.com/n1/s")
    assert "allowMultipleAllocations, or a deviceMultiplier" in str(caught.value)
    assert allocator.allocate_pod(pod) is None  # over many nodes the others go on


def test_a_device_that_is_gone() -> None:
    plain = device("plain")
    cluster, allocator = world(CARD, plain, more=(pending("both", asking(2)),), memory="8Gi")
    plan = allocator.allocate_pod(a_pod("p", claims={"g": "both"}))
    assert plan is not None
    cluster.commit(plan)
    other = a_pod("q", claims={"g": "both"})
    cluster.upsert(slice_of(CARD, attrs.evolve(plain, name="other"), pool="n1", node="n1"))
    with pytest.raises(dra.AllocationError, match="in none of the slices of the node"):
        allocator.allocate_pod(other, node="n1")
    # Where nothing of a claim is known to mean something for its node, the scheduler does not mind what is gone.
    cluster.upsert(slice_of(plain, attrs.evolve(CARD, name="another"), pool="n1", node="n1"))
    assert allocator.allocate_pod(other, node="n1") is not None


def test_limits_of_the_pod() -> None:
    _, allocator = world(CARD, more=(pending("gpu"),), memory="64Gi")
    limited = container("a", {"memory": "1Gi"}, "g")
    limited["resources"]["limits"] = {"memory": "2Gi"}
    pod = a_pod("p", limited, claims={"g": "gpu"}, resources={"limits": {"memory": "3Gi"}})
    refused = allocator.refusal(pod, "n1")
    assert refused is not None
    assert str(refused).startswith("spec.resources.limits[memory] (container a) is 3Gi, less than the")
    roomy = attrs.evolve(pod, spec=attrs.evolve(pod.spec, resources=None))
    assert allocator.refusal(roomy, "n1") is None

    huge = device("h", hugepages_2Mi={"mapping": {"deviceMultiplier": "4Mi"}})
    _, allocator = world(huge, more=(pending("h"),), **{"hugepages-2Mi": "64Mi"})
    pod = a_pod("p", claims={"h": "h"}, resources={"limits": {"hugepages-2Mi": "2Mi"}})
    refused = allocator.refusal(pod, "n1")
    assert refused is not None
    assert str(refused).startswith("spec.resources.limits[hugepages-2Mi] is")


def test_a_node_without_such_a_resource_has_none_of_it() -> None:
    _, allocator = world(CARD, more=(pending("gpu"),))
    refused = allocator.refusal(a_pod("p", claims={"g": "gpu"}), "n1")
    assert refused is not None
    assert str(refused) == "memory: the pod takes 1Gi, the node has 0"


def test_only_nodes_that_declare_the_feature_if_asked() -> None:
    cluster, allocator = world(CARD, more=(pending("gpu"),), memory="8Gi")
    pod = a_pod("p", claims={"g": "gpu"})
    assert allocator.allocate_pod(pod, declared=True) is None
    ready = cluster.get("Node", "n1")
    assert ready is not None
    status = attrs.evolve(ready.status, declared_features=("DRANodeAllocatableResources",))
    cluster.upsert(attrs.evolve(ready, status=status))
    assert allocator.allocate_pod(pod, declared=True) is not None


def test_with_the_gate_off_nothing_is_counted() -> None:
    off = dra.Features()
    cluster, _ = world(*sockets(), more=(pending("one"),), cpu="8")
    allocator = dra.Allocator(cluster, off)
    plan = allocator.allocate_pod(a_pod("p", claims={"c": "one"}), node_resources="search")
    assert plan is not None
    assert devices(plan) == ["a"]
    assert plan.pod.status is None or plan.pod.status == PodStatus()
    with pytest.raises(ValueError, match="node_resources is 'check' or 'search', not 'guess'"):
        allocator.allocate_pod(a_pod("p"), node_resources="guess")  # type: ignore[arg-type]


def test_every_pod_pays_for_the_claim_of_its_template() -> None:
    cluster, allocator = world(
        *[attrs.evolve(CARD, name=f"gpu-{index}") for index in range(4)], more=(template("t"),), memory="3Gi"
    )
    placed = 0
    for name in ("a", "b", "c", "d"):
        plan = allocator.allocate_pod(a_pod(name, templates={"g": "t"}))
        if plan is not None:
            cluster.commit(plan)
            placed += 1
    assert placed == 3
    assert requested_on(cluster, "n1", with_claims=True)["memory"] == Quantity.parse("3Gi").nano
