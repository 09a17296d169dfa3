"""What holds of every answer of the search, whatever the answer is."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceSelector,
    KubernetesObject,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.testing.invariants import check_allocation
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import Knobs, claims, clusters
from tests.properties.asking import MODEL_STEPS, allocator, ask

#: Errors of one node; any other ends the question for all nodes.
NODE_ERRORS = ("pool-all", "invalid-pool")

MARK = "unrelated.example.org/mark"


@given(clusters())
def test_answers_keep_the_rules(scenario: Scenario) -> None:
    note(scenario.to_yaml())
    alloc = allocator(scenario)
    for node in scenario.nodes:
        outcome = ask(alloc, scenario, node.metadata.name)
        if outcome.results is not None:
            check_allocation(scenario, node, outcome.results)


@given(clusters())
def test_feasible_nodes_are_those_that_each_answer_says(scenario: Scenario) -> None:
    note(scenario.to_yaml())
    alloc = allocator(scenario)
    names = [node.metadata.name for node in scenario.nodes]
    outcomes = {name: ask(alloc, scenario, name) for name in names}
    fatal = {outcome.verdict for outcome in outcomes.values() if outcome.error} - set(NODE_ERRORS)
    if fatal:
        with pytest.raises(AllocationError) as caught:
            alloc.feasible_nodes(scenario.claims)
        assert caught.value.kind in fatal
    else:
        fits = [name for name in names if outcomes[name].verdict == "fits"]
        assert alloc.feasible_nodes(scenario.claims) == fits


@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(scenario: Scenario, random: st.Random) -> None:
    note(scenario.to_yaml())
    slices, classes, holders = (list(kind) for kind in (scenario.slices, scenario.classes, scenario.allocated_claims))
    for kind in (slices, classes, holders):
        random.shuffle(kind)
    shuffled = attrs.evolve(scenario, slices=tuple(slices), classes=tuple(classes), allocated_claims=tuple(holders))
    assert_same_answers(scenario, shuffled)


@given(clusters())
def test_an_unrelated_device_changes_nothing(scenario: Scenario) -> None:
    """It stands at the end of a slice, and no class lets it through."""
    scenario = unmarked(scenario)
    note(scenario.to_yaml())
    slices = tuple(item if item.spec.shared_counters else with_unrelated(item) for item in scenario.slices)
    assert_same_answers(scenario, attrs.evolve(scenario, slices=slices))


@given(clusters(), st.sampled_from(("aaa.example.org", "zzz.example.org")))
def test_an_unrelated_pool_changes_nothing(scenario: Scenario, driver: str) -> None:
    """Before or after the others in search order, on every node; no class lets its device through."""
    scenario = unmarked(scenario)
    note(scenario.to_yaml())
    pool = ResourceSlice(
        metadata=ObjectMeta(name="unrelated"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name="pool", generation=1, resource_slice_count=1),
            all_nodes=True,
        ),
    )
    assert_same_answers(scenario, attrs.evolve(scenario, slices=(*scenario.slices, with_unrelated(pool))))


@given(clusters())
def test_a_broken_pool_of_another_node_changes_nothing(scenario: Scenario) -> None:
    note(scenario.to_yaml())
    device = Device(name="twice")
    pool = ResourceSlice(
        metadata=ObjectMeta(name="elsewhere"),
        spec=ResourceSliceSpec(
            driver="aaa.example.org",
            pool=ResourcePool(name="pool", generation=1, resource_slice_count=1),
            node_name="elsewhere",
            devices=(device, device),
        ),
    )
    assert_same_answers(scenario, attrs.evolve(scenario, slices=(*scenario.slices, pool)))


@given(clusters())
def test_commit_then_release_restores_the_state(scenario: Scenario) -> None:
    note(scenario.to_yaml())
    cluster = dra.Cluster.from_objects(scenario.cluster_objects())
    alloc = dra.Allocator(cluster, features=scenario.features)
    for node in scenario.nodes:
        name = node.metadata.name
        before = ask(alloc, scenario, name)
        if before.results is None:
            continue
        kept = cluster.claims()
        cluster.commit(list(zip(scenario.claims, before.results, strict=True)))
        cluster.release(*(claim.metadata.key for claim in scenario.claims))
        for claim in scenario.claims:
            cluster.delete("ResourceClaim", claim.metadata.key)
        assert cluster.claims() == kept
        assert not before.difference(ask(alloc, scenario, name))


@given(clusters(Knobs(broken=False)), claims("claim-9"))
def test_what_is_committed_is_held(scenario: Scenario, later: ResourceClaim) -> None:
    """A claim after a commit gets what it would get had the committed claims been allocated all along."""
    note(scenario.to_yaml())
    cluster = dra.Cluster.from_objects(scenario.cluster_objects())
    alloc = dra.Allocator(cluster, features=scenario.features)
    for node in scenario.nodes:
        first = ask(alloc, scenario, node.metadata.name)
        if first.results is None:
            continue
        holders = tuple(
            attrs.evolve(claim, status=ResourceClaimStatus(allocation=result))
            for claim, result in zip(scenario.claims, first.results, strict=True)
        )
        then = attrs.evolve(scenario, allocated_claims=(*scenario.allocated_claims, *holders), claims=(later,))
        with cluster.fork() as trial:
            trial.commit(list(zip(scenario.claims, first.results, strict=True)))
            actual = ask(dra.Allocator(trial, features=scenario.features), then, node.metadata.name)
        expected = model_answer(then, node.metadata.name)
        assert not expected.difference(actual, ("model", "search"))
        assert not first.difference(ask(alloc, scenario, node.metadata.name)), "the fork changed its original"


@given(clusters(), clusters())
def test_a_cluster_that_was_changed_answers_as_a_new_one(before: Scenario, after: Scenario) -> None:
    """Whatever was remembered from earlier questions."""
    note(before.to_yaml())
    note(after.to_yaml())
    cluster = dra.Cluster.from_objects(before.cluster_objects())
    alloc = dra.Allocator(cluster, features=after.features)
    for scenario in (before, after):
        for node in before.nodes:
            ask(alloc, scenario, node.metadata.name)
    cluster.upsert(*after.cluster_objects())
    kept = {identity(item) for item in after.cluster_objects()}
    for item in before.cluster_objects():
        if identity(item) not in kept:
            cluster.delete(item)
    fresh = allocator(after)
    for node in after.nodes:
        name = node.metadata.name
        assert not ask(fresh, after, name).difference(ask(alloc, after, name), ("new", "changed"))


@given(clusters())
def test_claims_that_are_allocated_already_stay_as_they_are(scenario: Scenario) -> None:
    assume(scenario.allocated_claims)
    held, *others = scenario.allocated_claims
    scenario = attrs.evolve(scenario, allocated_claims=tuple(others), claims=(*scenario.claims, held))
    note(scenario.to_yaml())
    alloc = allocator(scenario)
    for node in scenario.nodes:
        name = node.metadata.name
        assert not model_answer(scenario, name).difference(ask(alloc, scenario, name), ("model", "search"))


def identity(item: KubernetesObject) -> tuple[str, str]:
    return item.kind, item.metadata.key


def model_answer(scenario: Scenario, name: str) -> Outcome:
    node = next(node for node in scenario.nodes if node.metadata.name == name)
    try:
        return Outcome.of(lambda: scenario.plain_allocate(node, max_steps=MODEL_STEPS))
    except BudgetExceeded:
        assume(False)
        raise


def assert_same_answers(one: Scenario, other: Scenario) -> None:
    alloc, changed = allocator(one), allocator(other)
    for node in one.nodes:
        name = node.metadata.name
        difference = ask(alloc, one, name).difference(ask(changed, other, name), ("before", "after"))
        assert not difference, difference


def unmarked(scenario: Scenario) -> Scenario:
    """The scenario with classes that let no marked device through."""
    domain, _, name = MARK.partition("/")
    selector = DeviceSelector(cel=CELDeviceSelector(expression=f'!("{name}" in device.attributes["{domain}"])'))

    def guarded(item: DeviceClass) -> DeviceClass:
        return attrs.evolve(item, spec=attrs.evolve(item.spec, selectors=(selector, *item.spec.selectors)))

    return attrs.evolve(scenario, classes=tuple(map(guarded, scenario.classes)))


def with_unrelated(item: ResourceSlice) -> ResourceSlice:
    """The slice with a marked device at its end."""
    device = Device(name=f"unrelated-{item.metadata.name}", attributes={MARK: DeviceAttribute(bool=True)})
    return attrs.evolve(item, spec=attrs.evolve(item.spec, devices=(*item.spec.devices, device)))
