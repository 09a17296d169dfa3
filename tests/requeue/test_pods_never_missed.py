"""The same promise for whole pods: node selectors, taints and resources of nodes, templates, groups, namespaces."""

from __future__ import annotations

import attrs
from hypothesis import event as tell
from hypothesis import given, note
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import (
    Container,
    Device,
    Namespace,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupSpec,
    Quantity,
    ResourceRequirements,
    Taint,
)
from dra_alloc.errors import DraError
from tests.requeue.objects import (
    GPU,
    NIC,
    claim,
    device,
    device_class,
    model,
    node,
    pod,
    request,
    slice_of,
    template,
)

RESOURCE = "example.com/gpu"
MODELS = ("a", "b")


def greedy(name: str) -> Device:
    """A device that needs CPU of its node besides."""
    overhead = NodeAllocatableOverhead(per_pod=Quantity.parse("2"))
    return device(name, node_allocatable_resources={"cpu": NodeAllocatableResource(overhead=overhead)})


#: All that may be in the cluster, in several states each. An event puts one in place, or takes it away.
THINGS: tuple[tuple[object, ...], ...] = (
    tuple(
        attrs.evolve(
            node("node-1", **labels),
            spec=NodeSpec(unschedulable=closed or None, taints=taints),
            status=NodeStatus(allocatable={"cpu": Quantity.parse(cpu)} | extended),
        )
        for labels, closed, taints, cpu, extended in (
            ({}, False, (), "1", {}),
            ({"disk": "ssd"}, False, (), "1", {}),
            ({"disk": "ssd"}, False, (), "3", {}),
            ({}, True, (), "3", {}),
            ({}, False, (Taint(key="k", effect="NoSchedule"),), "3", {}),
            ({}, False, (), "1", {RESOURCE: Quantity.parse("2")}),
        )
    ),
    (node("node-2"), node("node-2", disk="ssd")),
    (
        slice_of(device("d1", "a"), device("d2", "b"), on="node-1", name="one", pool="one"),
        slice_of(device("d1", "b"), on="node-1", name="one", pool="one"),
        slice_of(greedy("d1"), device("d2", "a"), on="node-1", name="one", pool="one"),
        slice_of(device("d2", "a"), greedy("d1"), on="node-1", name="one", pool="one"),
    ),
    (slice_of(device("d1", "a"), on="node-2", name="two", pool="two"),),
    (slice_of(device("n"), driver=NIC, name="nic", pool="nic"),),
    (template("t"), template("t", request("gpu", model("b")))),
    (claim("x"), claim("x", request("gpu", model("a")))),
    (claim("admin", request("gpu", admin_access=True)),),
    (
        Namespace(metadata=ObjectMeta(name="default")),
        Namespace(metadata=ObjectMeta(name="default", labels={"resource.kubernetes.io/admin-access": "true"})),
    ),
    tuple(
        attrs.evolve(item, spec=attrs.evolve(item.spec, extended_resource_name=resource))
        for item in (device_class("gpu", GPU), device_class("gpu", NIC))
        for resource in (RESOURCE, None)
    ),
    (
        PodGroup(
            metadata=ObjectMeta(name="g", namespace="default", uid="uid-g"),
            spec=PodGroupSpec(resource_claims=(PodGroupResourceClaim(name="t", resource_claim_template_name="t"),)),
        ),
    ),
)


def with_spec(item: Pod, **fields: object) -> Pod:
    return attrs.evolve(item, spec=attrs.evolve(item.spec, **fields))


def needing(name: str, amount: str) -> tuple[Container, ...]:
    return (Container(name="c", resources=ResourceRequirements(requests={name: Quantity.parse(amount)})),)


PODS = (
    pod("named", "x"),
    pod("templated", templates=["t"]),
    pod("grouped", templates=["t"], group="g"),
    pod("admin", "admin"),
    with_spec(pod("choosy", "x"), node_selector={"disk": "ssd"}),
    with_spec(pod("busy", "x"), containers=needing("cpu", "2")),
    with_spec(pod("extended"), containers=needing(RESOURCE, "1")),
)

#: Pods that take the place of those that wait, and what they take.
RIVALS = (
    with_spec(pod("rival-1", templates=["t"]), containers=needing("cpu", "1")),
    with_spec(pod("rival-2", templates=["t"]), containers=needing("cpu", "2")),
)


def fits(cluster: dra.Cluster, item: Pod) -> bool:
    try:
        return dra.Allocator(cluster, dra.Features.all()).allocate_pod(item) is not None
    except DraError:
        return False


@given(st.data())
def test_pods(data: st.DataObject) -> None:
    start = [data.draw(st.sampled_from(states)) for states in THINGS if data.draw(st.integers(0, 9))]
    cluster = dra.Cluster.from_objects([*start, device_class("nic", NIC)])
    index = dra.RequeueIndex(cluster, dra.Features.all())
    cluster.subscribe(index)
    for item in PODS:
        index.add(item)
    for _ in range(10):
        fitted = {item.metadata.key: fits(cluster, item) for item in PODS}
        index.drain()
        what = happen(data, cluster)
        woken = index.drain()
        for item in PODS:
            key = item.metadata.key
            if not fitted[key] and fits(cluster, item):
                tell(f"{what} helped {key}")
                assert key in woken, f"{what} helps {key}"


def happen(data: st.DataObject, cluster: dra.Cluster) -> str:
    """Change something, or let a rival come or go."""
    rival = data.draw(st.sampled_from([None, None, *RIVALS]))
    if rival is None:
        return change(data, cluster)
    running = cluster.get("Pod", rival.metadata.key)
    if running is not None:
        note(f"{running.metadata.name} ends")
        cluster.release(running)
        return "the end of a pod"
    try:
        plan = dra.Allocator(cluster, dra.Features.all()).allocate_pod(rival)
    except DraError:
        plan = None
    if plan is not None:
        note(f"{rival.metadata.name} starts on {plan.node}")
        cluster.commit(plan)
    return "the start of a pod"


def change(data: st.DataObject, cluster: dra.Cluster) -> str:
    states = data.draw(st.sampled_from(THINGS))
    new = data.draw(st.sampled_from(states))
    there = cluster.get(new.kind, new.metadata.key)  # type: ignore[attr-defined]
    if there is not None and data.draw(st.integers(0, 3)) == 0:
        cluster.delete(there)
        note(f"{new.kind} {there.metadata.name} goes")  # type: ignore[attr-defined]
    else:
        cluster.upsert(new)
        note(f"{new}")
    return str(new.kind)  # type: ignore[attr-defined]
