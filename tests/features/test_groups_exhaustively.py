"""Groups against trying every assignment of pods to nodes."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import Pod, ResourceSlice
from tests.features.scenes import a_group, a_pod, asking, container, gpu_class, gpu_node, node, scene, template


def most_placed(cluster: dra.Cluster, allocator: dra.Allocator, pods: list[Pod]) -> int:
    """The most pods that some assignment places, each after those before it; leaving one out is a choice too."""
    best = 0
    for choice in product((None, *cluster.node_names()), repeat=len(pods)):
        trial = cluster.fork()
        there = dra.Allocator(trial, allocator.features)
        placed = 0
        for pod, name in zip(pods, choice, strict=True):
            if name is None:
                continue
            plan = there.allocate_pod(pod, node=name)
            if plan is None:
                break
            trial.commit(plan)
            placed += 1
        else:
            best = max(best, placed)
    return best


sizes = st.sampled_from(["one", "two", "none"])
shared = {"name": "net", "resourceClaimTemplateName": "net"}


@settings(max_examples=40, deadline=None)
@given(
    gpus=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    cpus=st.integers(1, 4),
    kinds=st.lists(st.tuples(sizes, st.integers(0, 2), st.booleans()), min_size=1, max_size=4),
    reach=st.lists(st.sets(st.integers(0, 2), min_size=1), max_size=2),
    data=st.data(),
)
def test_as_many_pods_are_placed_as_can_be(
    gpus: list[int],
    cpus: int,
    kinds: list[tuple[str, int, bool]],
    reach: list[set[int]],
    data: st.DataObject,
) -> None:
    objects: list[object] = [gpu_class(), gpu_class("net", driver="net.example.com")]
    objects += [template("one"), template("two", asking(2)), template("net", asking(device_class="net"))]
    for index, count in enumerate(gpus):
        cpu = {"cpu": str(cpus)}
        names = [f"gpu-{number}" for number in range(count)]
        objects += gpu_node(f"n{index}", *names, allocatable=cpu) if names else [node(f"n{index}", cpu)]
    for index, nodes in enumerate(reach):
        values = [f"n{number}" for number in sorted(nodes)]
        selector = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]}
        objects.append(
            ResourceSlice.from_dict(
                {
                    "metadata": {"name": f"net-{index}"},
                    "spec": {
                        "driver": "net.example.com",
                        "pool": {"name": f"net-{index}", "generation": 1, "resourceSliceCount": 1},
                        "nodeSelector": {"nodeSelectorTerms": [selector]},
                        "devices": [{"name": "link"}],
                    },
                }
            )
        )
    pods = []
    for index, (size, cpu_count, uses_net) in enumerate(kinds):
        templates = {} if size == "none" else {"gpu": size}
        if uses_net:
            templates["net"] = "net"
        pods.append(a_pod(f"p{index}", container("c", {"cpu": cpu_count}), templates=templates, group="pg"))
    least = data.draw(st.integers(1, len(pods)))
    cluster, allocator = scene(objects, pods, a_group("pg", [shared], min_count=least))
    plan = allocator.allocate_group("default/pg")
    most = most_placed(cluster, allocator, pods)
    if most < least:
        assert plan is None
        return
    assert plan is not None
    assert plan.complete
    assert len(plan.plans) == most
    cluster.commit(plan)
    assert {pod.metadata.key: pod.spec.node_name for pod in cluster.pods() if pod.spec.node_name} == plan.nodes
