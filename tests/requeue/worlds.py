"""Random clusters with pending pods, and random changes of them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import (
    CELDeviceSelector,
    Device,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    DeviceTaint,
    Node,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    PodSpec,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from dra_alloc.errors import AllocationError
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import (
    Knobs,
    allocated_claims,
    claims,
    clusters,
    devices,
    nodes,
    pools,
    taint_rules,
    taints,
)

#: Claims that compete for what one claim of a pod asks for.
_RIVALS = 6


@attrs.define
class World:
    """A cluster with pods that use claims of it; `claims_of` by key of the pod."""

    cluster: dra.Cluster
    pods: list[Pod]
    claims_of: dict[str, list[str]]
    features: dra.Features
    knobs: Knobs
    next_number: int = 10
    done: list[dra.Event] = attrs.field(factory=list)

    def claim_names(self) -> list[str]:
        """Of all claims that the pods use."""
        return sorted({key for keys in self.claims_of.values() for key in keys})

    def outcome(self, pod: Pod) -> tuple[bool, AllocationError | None]:
        """Whether the pod's claims can be had on some node, and the error if the attempt ends with one."""
        keys = self.claims_of[pod.metadata.key]
        if any(self.cluster.get("ResourceClaim", key) is None for key in keys):
            return False, None
        try:
            return bool(dra.Allocator(self.cluster, features=self.features).feasible_nodes(keys)), None
        except AllocationError as error:
            return False, error


def pod_of(name: str, *claim_names: str) -> Pod:
    """A pod with claims of its namespace."""
    entries = tuple(
        PodResourceClaim(name=f"c{place}", resource_claim_name=claim) for place, claim in enumerate(claim_names)
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"), spec=PodSpec(resource_claims=entries)
    )


@st.composite
def worlds(draw: st.DrawFn, knobs: Knobs | None = None, *, gates: bool = False) -> World:
    """A cluster with two to four pods of one or two claims each, of which one may be shared.

    gates: switch some feature gates off.
    """
    use = knobs or Knobs()
    scenario: Scenario = draw(clusters(use, gates=gates))
    made = [draw(claims(f"claim-{number}", use)) for number in range(draw(st.integers(2, 4)))]
    pods = []
    for number in range(draw(st.integers(2, 4))):
        used = draw(st.lists(st.integers(0, len(made) - 1), min_size=1, max_size=2, unique=True))
        pods.append(pod_of(f"pod-{number}", *(made[place].metadata.name for place in used)))
    cluster = dra.Cluster.from_objects([*scenario.cluster_objects(), *made])
    used_by = {
        pod.metadata.key: [f"default/{entry.resource_claim_name}" for entry in pod.spec.resource_claims] for pod in pods
    }
    world = World(cluster, pods, used_by, scenario.features, use)
    if draw(st.integers(0, 3)):
        _fill(world)
    return world


def _fill(world: World) -> None:
    """Let rivals have what the pods want until nothing of it is left."""
    for key in world.claim_names():
        for _ in range(_RIVALS):
            event = _rival(world, world.cluster.get("ResourceClaim", key))
            if event is None:
                break
            make(world, event)


def change(draw: st.DrawFn, world: World) -> dra.Event | None:
    """A random change, not yet made; None if there is nothing to change in the way that was drawn.

    Every other one takes back one of the last, so that what made a pod not fit any more is undone.
    """
    if world.done and draw(st.booleans()):
        return _undone(world, world.done.pop(-1 - draw(st.integers(0, min(2, len(world.done) - 1)))))
    return draw(st.sampled_from(_CHANGES))(draw, world)


def make(world: World, event: dra.Event) -> None:
    """Make a change."""
    if event.action == "deleted":
        world.cluster.delete(event.object)
    else:
        world.cluster.upsert(event.object)
    world.done.append(event)


def _undone(world: World, event: dra.Event) -> dra.Event | None:
    now = world.cluster.get(event.kind, event.key)
    then = event.object if event.action == "deleted" else event.old
    if now is None:
        return None if then is None else dra.Event("added", then)
    return dra.Event("deleted", now) if then is None else dra.Event("updated", then, old=now)


def _slice_added(draw: st.DrawFn, world: World) -> dra.Event | None:
    world.next_number += 1
    number = world.next_number
    found: ResourceSlice = draw(st.sampled_from(draw(pools(draw(st.integers(0, 3)), 2, world.knobs))))
    return dra.Event("added", attrs.evolve(found, metadata=ObjectMeta(name=f"slice-{number}")))


def _slice_deleted(draw: st.DrawFn, world: World) -> dra.Event | None:
    found = world.cluster.slices()
    return dra.Event("deleted", draw(st.sampled_from(found))) if found else None


def _slice_updated(draw: st.DrawFn, world: World) -> dra.Event | None:
    found = world.cluster.slices()
    if not found:
        return None
    old: ResourceSlice = draw(st.sampled_from(found))
    spec = old.spec
    match draw(st.integers(0, 6)):
        case 0:
            spec = attrs.evolve(spec, pool=attrs.evolve(spec.pool, generation=draw(st.integers(1, 3))))
        case 1:
            spec = attrs.evolve(spec, pool=attrs.evolve(spec.pool, resource_slice_count=draw(st.integers(1, 2))))
        case 2:
            spec = attrs.evolve(
                spec, node_name=None, node_selector=None, per_device_node_selection=None, all_nodes=True
            )
        case 3 if spec.shared_counters:
            other = draw(pools(0, 2, world.knobs))
            spec = attrs.evolve(spec, shared_counters=other[-1].spec.shared_counters or spec.shared_counters)
        case 4 if spec.devices:
            spec = attrs.evolve(spec, devices=spec.devices[1:])
        case 5 if not spec.shared_counters:
            extra: Device = draw(devices(f"dev-{draw(st.integers(0, 5))}", spec.driver, world.knobs))
            if not spec.per_device_node_selection:
                spec = attrs.evolve(spec, devices=(*spec.devices, extra))
        case _ if spec.devices:
            place = draw(st.integers(0, len(spec.devices) - 1))
            changed = _changed_device(draw, spec.devices[place], spec.driver, world.knobs)
            spec = attrs.evolve(spec, devices=(*spec.devices[:place], changed, *spec.devices[place + 1 :]))
    return dra.Event("updated", attrs.evolve(old, spec=spec), old=old)


def _changed_device(draw: st.DrawFn, device: Device, driver: str, knobs: Knobs) -> Device:
    if draw(st.booleans()):
        fresh: tuple[DeviceTaint, ...] = tuple(draw(st.lists(taints(), max_size=2))) if knobs.taints else ()
        return attrs.evolve(device, taints=() if device.taints else fresh)
    other: Device = draw(devices(device.name, driver, knobs))
    place = {"node_name": device.node_name, "node_selector": device.node_selector, "all_nodes": device.all_nodes}
    return attrs.evolve(other, **place)


def _claim_changed(draw: st.DrawFn, world: World) -> dra.Event | None:
    """Released or deleted if it is allocated; else allocated where it fits, deleted, or labelled."""
    found = world.cluster.claims()
    if not found:
        return None
    old: ResourceClaim = draw(st.sampled_from(found))
    if draw(st.integers(0, 5)) == 0:
        return dra.Event("deleted", old)
    if old.status is not None and old.status.allocation is not None:
        return dra.Event("updated", attrs.evolve(old, status=None), old=old)
    allocator = dra.Allocator(world.cluster, features=world.features)
    for node in world.cluster.node_names():
        try:
            results = allocator.allocate(old, node)
        except AllocationError:
            continue
        if results is not None:
            return dra.Event("updated", attrs.evolve(old, status=ResourceClaimStatus(allocation=results[0])), old=old)
    return dra.Event("updated", attrs.evolve(old, metadata=attrs.evolve(old.metadata, labels={"a": "b"})), old=old)


def _claim_added(draw: st.DrawFn, world: World) -> dra.Event | None:
    """A claim that pods wait for, or one that holds devices already."""
    missing = [key for key in world.claim_names() if world.cluster.get("ResourceClaim", key) is None]
    if missing:
        return dra.Event("added", draw(claims(draw(st.sampled_from(missing)).partition("/")[2], world.knobs)))
    if not world.knobs.allocated:
        return None
    world.next_number += 1
    number = world.next_number
    held: ResourceClaim = draw(allocated_claims(world.cluster.slices(), "holder-9", world.knobs))
    if world.cluster.get("ResourceClaim", f"default/holder-{number}") is not None:
        return None
    return dra.Event("added", attrs.evolve(held, metadata=ObjectMeta(name=f"holder-{number}", namespace="default")))


def _claim_competes(draw: st.DrawFn, world: World) -> dra.Event | None:
    """A claim takes what one of the pods could have."""
    return _rival(world, world.cluster.get("ResourceClaim", draw(st.sampled_from(world.claim_names()))))


def _rival(world: World, asked: ResourceClaim | None) -> dra.Event | None:
    """A claim that asks for the same, and has it."""
    if asked is None or asked.status is not None:
        return None
    world.next_number += 1
    rival = attrs.evolve(asked, metadata=ObjectMeta(name=f"rival-{world.next_number}", namespace="default"))
    allocator = dra.Allocator(world.cluster, features=world.features)
    try:
        node = next(iter(allocator.feasible_nodes(rival)), None)
    except AllocationError:
        return None
    found = None if node is None else allocator.allocate(rival, node)
    return found and dra.Event("added", attrs.evolve(rival, status=ResourceClaimStatus(allocation=found[0])))


def _rule_changed(draw: st.DrawFn, world: World) -> dra.Event | None:
    if not world.knobs.taint_rules:
        return None
    name = draw(st.sampled_from(("rule-0", "rule-1")))
    old = world.cluster.get("DeviceTaintRule", name)
    if old is None:
        return dra.Event("added", draw(taint_rules(name)))
    if draw(st.booleans()):
        return dra.Event("deleted", old)
    return dra.Event("updated", draw(taint_rules(name)), old=old)


def _class_changed(draw: st.DrawFn, world: World) -> dra.Event | None:
    name = draw(st.sampled_from(sorted({item.metadata.name for item in world.cluster.classes()} | {"missing"})))
    old = world.cluster.get("DeviceClass", name)
    if old is not None and draw(st.booleans()):
        return dra.Event("deleted", old)
    text = draw(st.sampled_from(("true", 'device.driver == "nic.example.org"')))
    selectors = (DeviceSelector(cel=CELDeviceSelector(expression=text)),) if draw(st.booleans()) else ()
    new = DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(selectors=selectors))
    return dra.Event("added", new) if old is None else dra.Event("updated", new, old=old)


def _node_changed(draw: st.DrawFn, world: World) -> dra.Event | None:
    name = draw(st.sampled_from(("node-0", "node-1", "node-2")))
    old: Node | None = world.cluster.get("Node", name)
    if old is None:
        return dra.Event("added", draw(nodes(name)))
    if draw(st.integers(0, 3)) == 0:
        return dra.Event("deleted", old)
    return dra.Event("updated", draw(nodes(name)), old=old)


_CHANGES: tuple[Callable[[st.DrawFn, World], dra.Event | None], ...] = (
    _claim_competes,
    _claim_competes,
    _slice_updated,
    _slice_updated,
    _claim_changed,
    _claim_changed,
    _slice_added,
    _slice_deleted,
    _claim_added,
    _rule_changed,
    _class_changed,
    _node_changed,
)
