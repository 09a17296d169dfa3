"""What the slices of a driver lead to. `pytest examples/driver-tests` runs it; the slices are in test_slices.yaml."""

from __future__ import annotations

from typing import Any


def claim(name: str, class_name: str, count: int = 1, **devices: Any) -> dict[str, Any]:
    """A claim for a number of devices of a class."""
    request = {"name": "cards", "exactly": {"deviceClassName": class_name, "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request], **devices}},
    }


def test_two_cards_of_one_numa_node(assert_allocates):
    near = [{"matchAttribute": "resource.kubernetes.io/numaNode"}]
    assert_allocates(claim("pair", "card", 2, constraints=near), node="node-1", devices=["card-1", "card-2"])


def test_three_cards_are_not_on_one_numa_node(assert_not_allocates):
    near = [{"matchAttribute": "resource.kubernetes.io/numaNode"}]
    assert_not_allocates(claim("three", "card", 3, constraints=near), node="node-1", reason="constraint")


def test_a_card_is_taken_whole_or_in_halves(dra_cluster, assert_allocates, assert_not_allocates):
    found = assert_allocates(claim("half", "partition"), node="node-2", devices=["half-0"])
    dra_cluster.commit(claim("half", "partition"), found[0])
    assert_allocates(claim("other", "partition"), devices=["node-2/half-1"])
    assert_not_allocates(claim("whole", "card"), node="node-2", reason="counters")
