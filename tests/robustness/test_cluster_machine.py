"""A cluster that lives: any order of changes, forks and questions, against a dict of objects and the plain model."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import dra_alloc as dra
from dra_alloc.api import ResourceClaim, ResourceClaimStatus
from dra_alloc.errors import BudgetExceeded, Conflict
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters, features

Objects = dict[tuple[str, str], Any]

#: Enough for nearly every question to the plain model.
MODEL_STEPS = 5_000


def key(item: Any) -> tuple[str, str]:
    """A claim without a namespace is the one of that name in `default`."""
    if item.kind == "ResourceClaim":
        return item.kind, f"{item.metadata.namespace or 'default'}/{item.metadata.name}"
    return item.kind, item.metadata.key


def bare(claim: ResourceClaim) -> ResourceClaim:
    """A claim as manifests have it."""
    return attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, namespace=""))


@attrs.define(eq=False)
class World:
    """A cluster beside what it should hold, and what it held at each version of its own life."""

    cluster: dra.Cluster
    objects: Objects
    past: dict[int, Objects] = attrs.field(factory=dict)

    def remember(self) -> None:
        self.past[self.cluster.version] = dict(self.objects)

    def scenario(self, claims: tuple[ResourceClaim, ...], gates: dra.Features) -> Scenario:
        """What the plain model is asked."""
        found: dict[str, list[Any]] = {}
        for item in self.objects.values():
            found.setdefault(item.kind, []).append(item)
        asked = {key(claim) for claim in claims}
        return Scenario(
            nodes=tuple(found.get("Node", ())),
            slices=tuple(found.get("ResourceSlice", ())),
            classes=tuple(found.get("DeviceClass", ())),
            taint_rules=tuple(found.get("DeviceTaintRule", ())),
            allocated_claims=tuple(
                claim
                for claim in found.get("ResourceClaim", ())
                if claim.status and claim.status.allocation and key(claim) not in asked
            ),
            claims=claims,
            features=gates,
        )


class ClusterMachine(RuleBasedStateMachine):
    """`worlds` are the cluster and its forks; each rule changes or asks one of them."""

    @initialize(first=clusters(), second=clusters(), data=st.data())
    def begin(self, first: Scenario, second: Scenario, data: st.DataObject) -> None:
        # Both use the same names, so that objects of the second replace and disturb those of the first.
        self.supply: list[Any] = [
            *first.cluster_objects(),
            *second.cluster_objects(),
            *first.claims,
            *(attrs.evolve(claim, status=None) for claim in second.claims),
            *(bare(item) for item in second.cluster_objects() if item.kind == "ResourceClaim"),
            *(bare(claim) for claim in first.claims),
        ]
        self.claims = [*first.claims, *second.claims]
        self.gates = first.features
        # Few questions, asked again and again: what is remembered of them must not go stale.
        self.questions = [tuple(first.claims), tuple(second.claims[:1]), (first.claims[0],)]
        world = World(dra.Cluster.from_objects(first.cluster_objects()), {})
        world.objects = {key(item): item for item in first.cluster_objects()}
        world.remember()
        self.worlds = [world]
        self.allocators: dict[tuple[int, dra.Features], dra.Allocator] = {}

    def pick(self, data: st.DataObject) -> World:
        return self.worlds[data.draw(st.integers(0, len(self.worlds) - 1), "world")]

    def allocator(self, world: World) -> dra.Allocator:
        """One allocator for each cluster and set of features, kept, so that stale memories show."""
        place = id(world), self.gates
        if place not in self.allocators:
            self.allocators[place] = dra.Allocator(world.cluster, features=self.gates)
        return self.allocators[place]

    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        world = self.pick(data)
        chosen = data.draw(st.lists(st.sampled_from(self.supply), min_size=1, max_size=3), "objects")
        world.cluster.upsert(*chosen)
        for item in chosen:
            world.objects[key(item)] = item
        world.remember()

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        world = self.pick(data)
        kind, name = key(data.draw(st.sampled_from(self.supply), "object"))
        if (kind, name) in world.objects:
            world.cluster.delete(kind, name)
            del world.objects[kind, name]
        else:
            with pytest.raises(KeyError, match="there is no"):
                world.cluster.delete(kind, name)
        world.remember()

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """What was found in one world is committed in another, where it may hold or not."""
        world, other = self.pick(data), self.pick(data)
        claim = data.draw(st.sampled_from(self.claims), "claim")
        nodes = other.cluster.node_names()
        if not nodes:
            return
        outcome = Outcome.of(lambda: self.allocator(other).allocate(claim, node=data.draw(st.sampled_from(nodes))))
        if not outcome.results:
            return
        known = world.objects.get(key(claim), claim)
        before = world.cluster.version
        try:
            world.cluster.commit(claim, outcome.results[0])
        except Conflict:
            assert world.cluster.version == before, "a conflict changes nothing"
            return
        status = attrs.evolve(known.status or ResourceClaimStatus(), allocation=outcome.results[0])
        world.objects[key(claim)] = attrs.evolve(known, status=status)
        world.remember()

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        world = self.pick(data)
        held = [item for item in world.objects.values() if item.kind == "ResourceClaim" and item.status]
        if held:
            claim = data.draw(st.sampled_from(held), "claim")
            world.cluster.release(claim.metadata.key)
            world.objects[key(claim)] = attrs.evolve(claim, status=ResourceClaimStatus())
            world.remember()

    @precondition(lambda self: len(self.worlds) < 4)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        world = self.pick(data)
        other = World(world.cluster.fork(), dict(world.objects))
        other.remember()
        self.worlds.append(other)

    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        world = self.pick(data)
        version = data.draw(st.sampled_from(sorted(world.past)), "version")
        world.cluster.revert(version)
        world.objects = dict(world.past[version])
        world.past = {number: objects for number, objects in world.past.items() if number <= version}

    @rule(gates=features())
    def switch(self, gates: dra.Features) -> None:
        self.gates = gates

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        self.compare(self.pick(data), data.draw(st.sampled_from(self.questions), "claims"))

    @rule(data=st.data())
    def turn_back(self, data: st.DataObject) -> None:
        """Another change in the place of one that was asked about: the version is the same, the state is not."""
        world = self.pick(data)
        question = data.draw(st.sampled_from(self.questions), "claims")
        version = world.cluster.version
        # What a question is compiled from counts twice: classes are few among the objects.
        classes = [item for item in self.supply if item.kind == "DeviceClass"]
        changes = st.lists(st.sampled_from(classes) | st.sampled_from(self.supply), min_size=2, max_size=4)
        for item in data.draw(changes, "changes"):
            kept = dict(world.objects)
            world.cluster.upsert(item)
            world.objects[key(item)] = item
            self.compare(world, question)
            world.cluster.revert(version)
            world.objects = kept

    def compare(self, world: World, asked: tuple[ResourceClaim, ...]) -> None:
        """Ask this cluster, a fresh one, and the model."""
        # Claims that the cluster knows count as they are there.
        claims = tuple(world.objects.get(key(claim), claim) for claim in asked)
        scenario = world.scenario(claims, self.gates)
        fresh = dra.Allocator(dra.Cluster.from_objects(world.objects.values()), features=self.gates)
        mine = self.allocator(world)
        for node in scenario.nodes:
            name = node.metadata.name
            actual = Outcome.of(lambda name=name: mine.allocate(claims, node=name))
            again = Outcome.of(lambda name=name: fresh.allocate(claims, node=name))
            assert not again.difference(actual, ("fresh cluster", "this cluster")), scenario.to_yaml()
            try:
                model = Outcome.of(lambda node=node: scenario.plain_allocate(node, max_steps=MODEL_STEPS))
            except BudgetExceeded:
                continue
            assert not model.difference(actual, ("model", "this cluster")), scenario.to_yaml()
        many, fresh_many = (self.feasible(alloc, claims) for alloc in (mine, fresh))
        assert many == fresh_many

    @staticmethod
    def feasible(alloc: dra.Allocator, claims: tuple[ResourceClaim, ...]) -> set[str] | str:
        try:
            return set(alloc.feasible_nodes(claims))
        except dra.AllocationError as error:
            return error.kind

    @invariant()
    def the_objects_are_those_that_were_put_in(self) -> None:
        for world in getattr(self, "worlds", ()):
            assert {key(item): item for item in world.cluster} == world.objects
            assert len(world.cluster) == len(world.objects)

    @invariant()
    def devices_are_held_by_the_claims_that_say_so(self) -> None:
        for world in getattr(self, "worlds", ()):
            held: dict[tuple[str, str], dict[str, list[str]]] = {}
            for item in world.objects.values():
                if item.kind == "ResourceClaim" and item.status and item.status.allocation:
                    for result in item.status.allocation.devices.results:
                        if not result.admin_access:
                            pool = held.setdefault((result.driver, result.pool), {})
                            pool.setdefault(result.device, []).append(item.metadata.key)
            for pool_key in {*held, *(item_pool(item) for item in self.supply if item.kind == "ResourceSlice")}:
                actual = {name: sorted(each.claims()) for name, each in world.cluster.holdings(pool_key).items()}
                assert actual == {name: sorted(set(keys)) for name, keys in held.get(pool_key, {}).items()}


def item_pool(item: Any) -> tuple[str, str]:
    return item.spec.driver, item.spec.pool.name


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(
    settings.default or settings(),
    max_examples=max(1, (settings.default or settings()).max_examples // 2),
    stateful_step_count=30,
)
