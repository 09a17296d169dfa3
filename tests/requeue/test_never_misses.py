"""Whatever happens: a pod that can be allocated after an event and could not before is among those to wake."""

from __future__ import annotations

from hypothesis import event as tell
from hypothesis import given, note
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.testing.strategies import Knobs
from tests.requeue.worlds import World, change, make, worlds

#: Errors of single devices, which a scheduler knows of when they end its attempt.
SOUND = Knobs(broken=False)

#: Events of one life.
EVENTS = 12


@given(worlds(), st.data())
def test_with_errors_told(world: World, data: st.DataObject) -> None:
    """An attempt that ended with an error is given as the reason."""
    live(world, data, tell_errors=True)


@given(worlds(SOUND), st.data())
def test_without_reasons(world: World, data: st.DataObject) -> None:
    live(world, data, tell_errors=False)


def live(world: World, data: st.DataObject, *, tell_errors: bool) -> None:
    """Let some events happen; the index sees each of them before or after the cluster does."""
    index = dra.RequeueIndex(world.cluster, world.features)
    before = {}
    for pod in world.pods:
        before[pod.metadata.key] = world.outcome(pod)
        index.add(pod, before[pod.metadata.key][1] if tell_errors else None)
    for _ in range(EVENTS):
        event = change(data.draw, world)
        if event is None:
            continue
        note(f"{event.action} {event.kind} {event.key}")
        early = data.draw(st.booleans())
        if early:
            affected = index.affected(event)
        make(world, event)
        if not early:
            affected = index.affected(event)
        for pod in world.pods:
            key = pod.metadata.key
            fits, error = world.outcome(pod)
            if fits and not before[key][0]:
                tell(f"{event.kind} {event.action} helped")
                assert key in affected, f"{event.action} {event.kind} {event.key} helps {key}: {before[key][1]}"
            if tell_errors and error is not before[key][1]:
                index.add(pod, error)
            before[key] = fits, error
