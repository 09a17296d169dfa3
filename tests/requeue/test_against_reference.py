"""Never more pods than the scheduler's own hints let through, and for slices only those whose selectors say yes."""

from __future__ import annotations

from hypothesis import event as tell
from hypothesis import given, note
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.testing.strategies import Knobs
from tests.requeue.reference import is_deallocated, queues, selects
from tests.requeue.worlds import World, change, make, worlds

#: Without errors, requests for all devices, and claims that hold what no scheduler would have given them: to those the
#: hints are deaf, and pods that could run would not be tried.
SOUND = Knobs(broken=False, all_mode=False, allocated=False, skip_node_operations=False)

EVENTS = 12


@given(worlds(SOUND), st.data())
def test_wakes_no_more_than_the_hints(world: World, data: st.DataObject) -> None:
    index = dra.RequeueIndex(world.cluster, world.features)
    for pod in world.pods:
        index.add(pod)
    for _ in range(EVENTS):
        event = change(data.draw, world)
        if event is None:
            continue
        note(f"{event.action} {event.kind} {event.key}")
        make(world, event)
        affected = set(index.affected(event))
        hinted = {pod.metadata.key for pod in world.pods if queues(event, pod, world.cluster)}
        if event.kind == "ResourceClaim" and not is_deallocated(event):
            assert affected == hinted
        elif event.kind == "ResourceSlice":
            # A slice that goes may complete its pool, which the hints do not look at.
            assert event.action == "deleted" or affected <= hinted
            assert affected <= selecting(world, event)
        else:
            assert affected <= hinted
        if event.kind == "ResourceClaim" and event.action == "updated":
            using = {key for key, claims in world.claims_of.items() if event.key in claims}
            assert hinted & using <= affected
        tell(f"{event.kind}: {'fewer than' if affected < hinted else 'as'} the hints")


def selecting(world: World, event: dra.Event) -> set[str]:
    """The pods one of whose requests admits a device of the pool."""
    pools = {(item.spec.driver, item.spec.pool.name) for item in (event.object, event.old) if item is not None}
    devices = [
        (item.spec.driver, device)
        for item in world.cluster.slices()
        if (item.spec.driver, item.spec.pool.name) in pools
        for device in item.spec.devices
    ]
    return {
        pod.metadata.key
        for pod in world.pods
        if any(selects(pod, driver, device, world.cluster) for driver, device in devices)
    }
