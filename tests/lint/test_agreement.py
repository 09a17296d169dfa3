"""The linter agrees with the allocator: what it says can never be had is never had."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from dra_alloc import Features
from dra_alloc.api import Namespace, Node
from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.lint import RULES, check
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from tests.codec.test_validation_robust import KINDS, anything
from tests.properties.asking import allocator

#: Rules which say that a request, and so its claim, cannot be served on any node.
NEVER = {
    "class-not-found",
    "selector-never-matches",
    "attribute-not-published",
    "match-never-holds",
    "distinct-too-few-values",
    "too-many-devices",
    "too-few-devices",
    "missing-toleration",
    "capacity-unknown",
    "capacity-spelled-twice",
    "capacity-too-large",
}


def fits_somewhere(scenario: Scenario) -> bool:
    alloc = allocator(scenario)
    for node in scenario.nodes:
        try:
            if alloc.allocate(scenario.claims, node=node.metadata.name) is not None:
                return True
        except (AllocationError, BudgetExceeded):
            continue
    return False


def impossible(scenario: Scenario) -> list[str]:
    """Findings about the claims that leave no way out; one about an alternative leaves the others."""
    objects = [*scenario.cluster_objects(), *scenario.claims]
    first = len(objects) - len(scenario.claims)
    has_alternatives = {
        first + index
        for index, claim in enumerate(scenario.claims)
        if any(request.first_available for request in claim.spec.devices.requests)
    }
    return [
        str(finding)
        for finding in check(objects, features=scenario.features, codes=NEVER)
        if finding.index >= first and (finding.index not in has_alternatives or finding.code == "too-many-devices")
    ]


@settings(max_examples=4 * (settings.default.max_examples if settings.default else 100))
@given(clusters(gates=True))
def test_what_can_never_be_had_is_never_had(scenario: Scenario) -> None:
    said = impossible(scenario)
    event("impossible" if said else "nothing said")
    if said and fits_somewhere(scenario):
        pytest.fail("\n".join([*said, scenario.to_yaml()]), pytrace=False)


@given(clusters(gates=True))
def test_any_cluster_can_be_linted(scenario: Scenario) -> None:
    findings = check([*scenario.cluster_objects(), *scenario.claims], features=scenario.features)
    assert all(finding.message and finding.object for finding in findings)
    event("findings" if findings else "none")


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(data=st.data(), features=st.sampled_from([Features.all(), Features.none(), Features()]))
def test_objects_with_anything_in_their_fields_can_be_linted(data: st.DataObject, features: Features) -> None:
    kinds = data.draw(st.lists(st.sampled_from([*KINDS, Node, Namespace]), min_size=1, max_size=5))
    findings = check([data.draw(anything(kind, 6)) for kind in kinds], features=features)
    assert all(finding.message and finding.code in RULES for finding in findings)
    assert [finding.index for finding in findings] == sorted(finding.index for finding in findings)
