"""Whatever happens: a pod that can be allocated after an event and could not before is among those to wake."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from hypothesis import event as tell
from hypothesis import given, note
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import Pod, ResourceClaim
from dra_alloc.errors import AllocationError
from dra_alloc.testing.strategies import Knobs
from tests.requeue.worlds import World, change, make, worlds

#: Without what makes an attempt end with an error.
SOUND = Knobs(broken=False)

#: Events of one life.
EVENTS = 12


@given(worlds(), st.data())
def test_with_errors_told(world: World, data: st.DataObject) -> None:
    """An attempt that ended with an error is given as the reason."""
    live(world, data, lambda pod: world.outcome(pod)[1])


@given(worlds(SOUND), st.data())
def test_without_reasons(world: World, data: st.DataObject) -> None:
    live(world, data, lambda pod: None)


@given(worlds(gates=True), st.data())
def test_with_features_switched_off(world: World, data: st.DataObject) -> None:
    live(world, data, lambda pod: world.outcome(pod)[1])


@given(worlds(SOUND), st.data())
def test_with_a_request_that_blocks(world: World, data: st.DataObject) -> None:
    """A request that no node serves by itself is given as the reason: other devices need not wake the pod."""
    live(world, data, lambda pod: blocking(world, pod))


def live(world: World, data: st.DataObject, reason: Callable[[Pod], object]) -> None:
    """Let some events happen. The index sees each of them before or after the cluster does.

    A pod that is woken is tried, and comes back with a new reason if it does not fit.
    """
    index = dra.RequeueIndex(world.cluster, world.features)
    fitted = {}
    for pod in world.pods:
        fitted[pod.metadata.key] = world.outcome(pod)[0]
        index.add(pod, reason(pod))
    for _ in range(EVENTS):
        event = change(data.draw, world)
        if event is None:
            continue
        note(f"{event.action} {event.kind} {event.key}")
        early = data.draw(st.booleans())
        affected = index.affected(event) if early else []
        make(world, event)
        affected = affected if early else index.affected(event)
        for pod in world.pods:
            key = pod.metadata.key
            fits, error = world.outcome(pod)
            if fits and not fitted[key]:
                tell(f"{event.kind} {event.action} helped")
                assert key in affected, f"{event.action} {event.kind} {event.key} helps {key}"
            if key in affected or error is not None:
                index.add(pod, reason(pod))
            fitted[key] = fits


def blocking(world: World, pod: Pod) -> dict[str, list[str]] | None:
    """The first request of a pod that no node serves, even if it is all that is asked for."""
    allocator = dra.Allocator(world.cluster, features=world.features)
    for key in world.claims_of[pod.metadata.key]:
        claim: ResourceClaim | None = world.cluster.get("ResourceClaim", key)
        if claim is None or claim.status is not None:
            continue
        for request in claim.spec.devices.requests:
            devices = attrs.evolve(claim.spec.devices, requests=(request,), constraints=(), config=())
            try:
                nodes = allocator.feasible_nodes(attrs.evolve(claim, spec=attrs.evolve(claim.spec, devices=devices)))
            except AllocationError:
                return None
            if not nodes:
                return {key: [request.name]}
    return None
