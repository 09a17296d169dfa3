"""What is taken of a node is kept up to date, through changes, forks, and their reversal."""

from __future__ import annotations

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import Pod, PodStatus
from dra_alloc.features.noderesources import requested_on
from tests.features.scenes import a_pod, container, node

NODES = ("n1", "n2")


def changed(name: str, where: str | None, cpu: int, claims: int, phase: str | None) -> Pod:
    pod = a_pod(name, container("c", {"cpu": cpu}))
    status = PodStatus.from_dict(
        {
            "phase": phase,
            "nodeAllocatableResourceClaimStatuses": [
                {"resourceClaimName": "x", "mapping": [{"name": "memory", "quantity": str(claims)}]}
            ]
            if claims
            else [],
        }
    )
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, node_name=where), status=status)


PODS = st.builds(
    changed,
    st.sampled_from("abc"),
    st.sampled_from([*NODES, None]),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["Running", "Failed", None]),
)


def agree(cluster: dra.Cluster) -> None:
    fresh = dra.Cluster.from_objects([*cluster])
    for name in NODES:
        assert [pod.metadata.key for pod in cluster.pods_on(name)] == [
            pod.metadata.key for pod in sorted(fresh.pods_on(name), key=[*cluster.pods_on(name)].index)
        ]
        for with_claims in (False, True):
            kept = requested_on(cluster, name, with_claims=with_claims)
            anew = requested_on(fresh, name, with_claims=with_claims)
            assert {key: nano for key, nano in kept.items() if nano} == {
                key: nano for key, nano in anew.items() if nano
            }


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(PODS, st.sampled_from(["delete", "fork", "revert", "look"])), max_size=14))
def test_use_of_nodes_is_kept_up_to_date(steps: list[Pod | str]) -> None:
    cluster = dra.Cluster.from_objects([node(name) for name in NODES])
    others: list[dra.Cluster] = []
    version = cluster.version
    for step in steps:
        if isinstance(step, Pod):
            cluster.upsert(step)
        elif step == "delete" and cluster.pods():
            cluster.delete(cluster.pods()[0])
        elif step == "fork":
            others.append(cluster)
            cluster = cluster.fork()
            version = cluster.version
        elif step == "revert":
            cluster.revert(version)
        elif step == "look":
            agree(cluster)
    for each in (cluster, *others):
        agree(each)
