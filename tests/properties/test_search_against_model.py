"""The search gives the answer of the plain model: results, errors and what they name, on every node."""

from __future__ import annotations

from hypothesis import given, settings

from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import Knobs, clusters
from tests.properties.asking import MODEL_EXAMPLES, compare_with_model

#: Fewer features and more devices: what the search may skip because devices are alike or a state was seen before.
DEEP = Knobs.plain(
    constraints=True, counters=True, capacity=True, first_available=True, allocated=True, max_devices=6, max_nodes=1
)

#: Counts near the most that a claim can have, and selectors that fail on some device: which of the two comes first.
MANY = Knobs.plain(many=True, first_available=True, selectors=True, broken=True, all_mode=True, max_nodes=1)


@settings(max_examples=MODEL_EXAMPLES)
@given(clusters())
def test_every_feature(scenario: Scenario) -> None:
    compare_with_model(scenario)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(gates=True))
def test_with_features_switched_off(scenario: Scenario) -> None:
    compare_with_model(scenario)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(DEEP))
def test_backtracking(scenario: Scenario) -> None:
    compare_with_model(scenario)


@settings(max_examples=MODEL_EXAMPLES // 4)
@given(clusters(MANY))
def test_limit_of_devices(scenario: Scenario) -> None:
    compare_with_model(scenario)
