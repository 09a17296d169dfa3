"""Asking the search for a scenario, and comparing what it says with the plain model."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import event, settings

import dra_alloc as dra
from dra_alloc.errors import BudgetExceeded
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario

#: Examples of the active profile times this: the comparison of search and model is worth more than other properties.
MODEL_EXAMPLES = 20 * settings.default.max_examples if settings.default else 0

#: Enough for nearly every scenario; those that need more say nothing about the search.
MODEL_STEPS = 20_000


def ask(alloc: dra.Allocator, scenario: Scenario, node: str) -> Outcome:
    """The answer of the search."""
    return Outcome.of(lambda: alloc.allocate(scenario.claims, node=node))


def allocator(scenario: Scenario) -> dra.Allocator:
    """An allocator over a cluster of the scenario's objects."""
    return dra.Allocator(dra.Cluster.from_objects(scenario.cluster_objects()), features=scenario.features)


def compare_with_model(scenario: Scenario, *budgets: dra.Budget) -> None:
    """Ask model and search on every node, the search with each budget (default: the one of an Allocator).

    Each budget has a cluster of its own, for a node remembers what it had no answer to. A difference fails the test and
    shows the scenario with that node, and the two answers.
    """
    allocators = [
        dra.Allocator(dra.Cluster.from_objects(scenario.cluster_objects()), scenario.features, budget=budget)
        for budget in budgets or (dra.Budget(),)
    ]
    for node in scenario.nodes:
        try:
            expected = Outcome.of(lambda node=node: scenario.plain_allocate(node, max_steps=MODEL_STEPS))
        except BudgetExceeded:
            event("too hard for the model")
            continue
        event(expected.verdict)
        for alloc in allocators:
            difference = expected.difference(ask(alloc, scenario, node.metadata.name), ("model", "search"))
            if difference:
                case = attrs.evolve(scenario, nodes=(node,)).to_yaml()
                message = f"on node {node.metadata.name} with {alloc.budget}:\n{case}\n{difference}"
                pytest.fail(message, pytrace=False)
