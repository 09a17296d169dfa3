"""The search gives the answer of the plain model: results, errors and what they name, on every node."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import event, given, settings

from dra_alloc.errors import BudgetExceeded
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import Knobs, clusters
from tests.properties.asking import MODEL_EXAMPLES, MODEL_STEPS, allocator, ask

#: Fewer features and more devices: what the search may skip because devices are alike or a state was seen before.
DEEP = Knobs.plain(
    constraints=True, counters=True, capacity=True, first_available=True, allocated=True, max_devices=6, max_nodes=1
)

#: Counts near the most that a claim can have, and selectors that fail on some device: which of the two comes first.
MANY = Knobs.plain(many=True, first_available=True, selectors=True, broken=True, all_mode=True, max_nodes=1)


@settings(max_examples=MODEL_EXAMPLES)
@given(clusters())
def test_every_feature(scenario: Scenario) -> None:
    compare(scenario)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(gates=True))
def test_with_features_switched_off(scenario: Scenario) -> None:
    compare(scenario)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(DEEP))
def test_backtracking(scenario: Scenario) -> None:
    compare(scenario)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(MANY))
def test_limit_of_devices(scenario: Scenario) -> None:
    compare(scenario)


def compare(scenario: Scenario) -> None:
    """Ask both on every node; a difference shows the scenario with that node, and the two answers."""
    alloc = allocator(scenario)
    for node in scenario.nodes:
        try:
            expected = Outcome.of(lambda node=node: scenario.plain_allocate(node, max_steps=MODEL_STEPS))
        except BudgetExceeded:
            event("too hard for the model")
            continue
        event(expected.verdict)
        difference = expected.difference(ask(alloc, scenario, node.metadata.name), ("model", "search"))
        if difference:
            case = attrs.evolve(scenario, nodes=(node,)).to_yaml()
            pytest.fail(f"on node {node.metadata.name}:\n{case}\n{difference}", pytrace=False)
