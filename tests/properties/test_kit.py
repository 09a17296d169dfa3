"""The testing kit itself: strategies reach every answer and shrink, scenarios print whole, invariants notice faults."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import Phase, find, given, settings

import dra_alloc as dra
from dra_alloc.api import AllocationResult, DeviceRequestAllocationResult, Quantity
from dra_alloc.errors import BudgetExceeded
from dra_alloc.testing.invariants import check_allocation, violations
from dra_alloc.testing.model import plain_allocate
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import Knobs, clusters

ANSWERS = (
    "fits",
    "does-not-fit",
    "all-violates-constraint",
    "capacity",
    "cel",
    "class-not-found",
    "invalid-pool",
    "pool-all",
)


def answer(scenario: Scenario) -> Outcome:
    """The model's answer for the first node."""
    return Outcome.of(lambda: scenario.plain_allocate(scenario.nodes[0], max_steps=2000))


def example(wanted: Callable[[Scenario], bool], knobs: Knobs | None = None, *, smallest: bool = False) -> Scenario:
    """A scenario that does what is wanted, the first or the smallest."""

    def holds(scenario: Scenario) -> bool:
        try:
            return wanted(scenario)
        except BudgetExceeded:
            return False

    phases = [Phase.generate, Phase.shrink] if smallest else [Phase.generate]
    return find(
        clusters(knobs), holds, settings=settings(max_examples=5000, derandomize=True, database=None, phases=phases)
    )


def asked(scenario: Scenario) -> str:
    """The verdict of the model, empty where it takes too long."""
    try:
        return answer(scenario).verdict
    except BudgetExceeded:
        return ""


def test_clusters_give_every_answer_in_fair_shares() -> None:
    shares: Counter[str] = Counter()

    @settings(max_examples=500, derandomize=True, database=None)
    @given(clusters())
    def collect(scenario: Scenario) -> None:
        with suppress(BudgetExceeded):
            shares[answer(scenario).verdict] += 1

    collect()
    for kind in set(ANSWERS) - set(shares):  # rare ones
        find(clusters(), lambda scenario, kind=kind: asked(scenario) == kind, settings=settings(max_examples=5000))
    assert shares["fits"] > 0.2 * shares.total()
    assert shares["does-not-fit"] > 0.2 * shares.total()
    assert shares.total() - shares["fits"] - shares["does-not-fit"] > 0.05 * shares.total()


def test_clusters_shrink_to_what_a_person_can_read() -> None:
    scenario = example(lambda scenario: answer(scenario).verdict == "fits", smallest=True)
    assert [len(scenario.nodes), len(scenario.slices), len(scenario.claims)] == [1, 1, 1]
    assert not scenario.allocated_claims
    assert not scenario.taint_rules
    (device,) = scenario.slices[0].spec.devices
    assert attrs.evolve(device, name="") == type(device)()


def test_restricted_knobs_leave_features_out() -> None:
    @settings(max_examples=50)
    @given(clusters(Knobs.plain(counters=True)))
    def check(scenario: Scenario) -> None:
        devices = [device for item in scenario.slices for device in item.spec.devices]
        assert not any(device.capacity or device.taints or device.binding_conditions for device in devices)
        assert not any(claim.spec.devices.constraints for claim in scenario.claims)

    check()


def test_clusters_have_as_many_nodes_as_is_asked_for() -> None:
    assert len(example(lambda scenario: len(scenario.nodes) > 7, Knobs.plain(max_nodes=8)).nodes) == 8
    for wrong in (0, 9):
        with pytest.raises(ValueError, match="max_nodes"):
            Knobs(max_nodes=wrong)


@settings(max_examples=50)
@given(clusters())
def test_yaml_holds_the_whole_scenario(scenario: Scenario) -> None:
    loaded = list(dra.load(io.StringIO(scenario.to_yaml()), strict=True))
    assert loaded == [*scenario.cluster_objects(), *scenario.claims]


def test_yaml_names_features_that_are_off() -> None:
    scenario = Scenario(features=dra.Features.all().replace(DRAAdminAccess=False))
    assert scenario.to_yaml().startswith("# features off: DRAAdminAccess\n")


# Invariants


def spoiled(result: DeviceRequestAllocationResult) -> Iterator[DeviceRequestAllocationResult]:
    """The result with one thing wrong."""
    yield attrs.evolve(result, device="unknown")
    yield attrs.evolve(result, request="unknown")
    yield attrs.evolve(result, share_id=None if result.share_id else "00000000-0000-4000-8000-000000000000")


@given(clusters(Knobs(broken=False, max_nodes=1)))
def test_invariants_notice_what_is_wrong(scenario: Scenario) -> None:
    outcome = answer(scenario)
    if outcome.results is None or not outcome.results[0].devices.results:
        return
    check_allocation(scenario, scenario.nodes[0], outcome.results)
    first, *others = outcome.results
    device, *more = first.devices.results
    for wrong in spoiled(device):
        results = [with_devices(first, wrong, *more), *others]
        assert list(violations(scenario, scenario.nodes[0], results))
    twice = [with_devices(first, device, device, *more), *others]
    assert list(violations(scenario, scenario.nodes[0], twice))
    if device.request.partition("/")[0] not in {other.request.partition("/")[0] for other in more}:
        missing = [with_devices(first, *more), *others]
        assert list(violations(scenario, scenario.nodes[0], missing))


def with_devices(result: AllocationResult, *devices: DeviceRequestAllocationResult) -> AllocationResult:
    return attrs.evolve(result, devices=attrs.evolve(result.devices, results=devices))


def test_invariants_notice_overdrawn_capacity() -> None:
    scenario, results = sharing()
    wanted = results[0].devices.results[0]
    name = next(iter(wanted.consumed_capacity))
    wrong = attrs.evolve(wanted, consumed_capacity={name: Quantity.parse("1000")})
    problems = list(violations(scenario, scenario.nodes[0], [with_devices(results[0], wrong)]))
    assert any("overdrawn" in problem for problem in problems)


def sharing() -> tuple[Scenario, tuple[AllocationResult, ...]]:
    """A scenario that is answered with one share."""

    def shares(scenario: Scenario) -> bool:
        results = answer(scenario).results
        return bool(results and len(results) == 1 and results[0].devices.results[0].consumed_capacity)

    scenario = example(shares, Knobs.plain(capacity=True))
    results = answer(scenario).results
    assert results is not None
    return scenario, results


# The model's own options


def test_model_takes_share_ids_and_time_from_its_sources() -> None:
    scenario, _ = sharing()
    results = plain_allocate(
        scenario.claims,
        scenario.nodes[0],
        scenario.slices,
        scenario.classes,
        share_ids=lambda: "share",
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert results is not None
    assert {device.share_id for device in results[0].devices.results if device.consumed_capacity} == {"share"}
    assert results[0].allocation_timestamp is None


def test_model_stamps_allocations_with_binding_conditions() -> None:
    def waits(scenario: Scenario) -> bool:
        results = answer(scenario).results
        return bool(results and results[0].devices.results[0].binding_conditions)

    scenario = example(waits, Knobs.plain(binding=True))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    results = plain_allocate(scenario.claims, scenario.nodes[0], scenario.slices, scenario.classes, clock=lambda: now)
    assert results is not None
    assert results[0].allocation_timestamp == now


def test_model_stops_at_its_budget() -> None:
    scenario = example(lambda scenario: answer(scenario).verdict == "fits")
    with pytest.raises(BudgetExceeded):
        scenario.plain_allocate(scenario.nodes[0], max_steps=0)
