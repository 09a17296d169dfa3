"""Every vector of every family, asked of the plain model and of the search."""

from __future__ import annotations

import difflib
from collections import Counter
from fractions import Fraction
from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import Node
from dra_alloc.errors import AllocationError
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import dump_yaml
from tests.conformance.vectors import Vector, read_vectors

VECTORS = read_vectors()

#: These concern one node; any other error ends the question for all nodes.
NODE_ERRORS = ("pool-all", "invalid-pool")

every_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)


def test_all_families_are_there() -> None:
    families = Counter(vector.id.rpartition("-")[0] for vector in VECTORS)
    assert families == {
        "base": 198,
        "capacity": 198,
        "counters": 198,
        "derived": 200,
        "edges": 300,
        "fractional": 198,
        "groups": 199,
        "lists": 199,
        "mixed": 200,
        "selection": 200,
        "taints": 198,
    }


@every_vector
def test_model(vector: Vector) -> None:
    for node in vector.scenario.nodes:
        check(vector, node, Outcome.of(lambda node=node: vector.scenario.plain_allocate(node)))


@every_vector
def test_search(vector: Vector) -> None:
    alloc = allocator(vector)
    for node in vector.scenario.nodes:
        name = node.metadata.name
        check(vector, node, Outcome.of(lambda name=name: alloc.allocate(vector.scenario.claims, node=name)))


@every_vector
def test_feasible_nodes(vector: Vector) -> None:
    alloc = allocator(vector)
    errors = {answer["error"] for answer in vector.expected.values() if "error" in answer}
    if errors <= set(NODE_ERRORS):
        fits = [name for name, answer in vector.expected.items() if answer.get("allocations") is not None]
        assert list(alloc.feasible_nodes(vector.scenario.claims)) == fits
        return
    with pytest.raises(AllocationError) as caught:
        alloc.feasible_nodes(vector.scenario.claims)
    assert caught.value.kind in errors.difference(NODE_ERRORS)


def allocator(vector: Vector) -> dra.Allocator:
    cluster = dra.Cluster.from_objects(vector.scenario.cluster_objects())
    return dra.Allocator(cluster, features=vector.scenario.features)


def check(vector: Vector, node: Node, outcome: Outcome) -> None:
    """Compare an answer with the known one; a failure shows the case and the difference."""
    name = node.metadata.name
    expected, actual = vector.expected[name], brief(outcome)
    shown = {key: expected[key] for key in ("allocations", "error") if key in expected}
    if exact(shown) != exact(actual):
        fail(vector, node, "\n".join(difflib.ndiff(*(dump_yaml(side).splitlines() for side in (shown, actual)))))
    full = vector.full_results(name)
    if full is not None:
        difference = Outcome(results=full).difference(untimed(outcome))
        if difference:
            fail(vector, node, difference)


def fail(vector: Vector, node: Node, difference: str) -> None:
    case = attrs.evolve(vector.scenario, nodes=(node,)).to_yaml()
    pytest.fail(f"{vector.id} on {node.metadata.name}\n{case}\n{difference}", pytrace=False)


def brief(outcome: Outcome) -> dict[str, Any]:
    """An answer in the form of the vectors."""
    if outcome.error is not None:
        return {"error": outcome.error.kind}
    if outcome.results is None:
        return {"allocations": None}
    allocations = []
    for result in outcome.results:
        devices = []
        for device in result.devices.results:
            entry: dict[str, Any] = {
                "request": device.request,
                "driver": device.driver,
                "pool": device.pool,
                "device": device.device,
            }
            if device.admin_access:
                entry["adminAccess"] = True
            if device.consumed_capacity:
                entry["consumedCapacity"] = {
                    capacity: str(Fraction(amount.nano, 10**9)) for capacity, amount in device.consumed_capacity.items()
                }
            devices.append(entry)
        allocations.append(devices)
    return {"allocations": allocations}


def exact(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with its amounts as numbers."""
    if not answer.get("allocations"):
        return answer
    return {
        "allocations": [
            [
                entry | {"consumedCapacity": {name: Fraction(text) for name, text in entry["consumedCapacity"].items()}}
                if "consumedCapacity" in entry
                else entry
                for entry in devices
            ]
            for devices in answer["allocations"]
        ]
    }


def untimed(outcome: Outcome) -> Outcome:
    """The answer without allocation times: the vectors hold what the search gives, before it is stored."""
    if outcome.results is None:
        return outcome
    return Outcome(results=tuple(attrs.evolve(result, allocation_timestamp=None) for result in outcome.results))
