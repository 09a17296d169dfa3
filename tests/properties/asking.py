"""Asking the search for a scenario."""

from __future__ import annotations

from hypothesis import settings

import dra_alloc as dra
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
