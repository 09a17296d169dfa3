"""The queue: who is tried next, who waits for what, and for how long. Time is what the test says."""

from __future__ import annotations

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import Pod
from tests.requeue.objects import CLASSES, claim, device, holding, node, pod, request, slice_of


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> dra.PendingQueue:
    """A queue over a cluster with one GPU in use, which the claim `x` wants."""
    cluster = dra.Cluster.from_objects(
        [*CLASSES, node("node-1"), slice_of(device("d")), holding(claim("other"), "d"), claim("x")]
    )
    made = dra.PendingQueue(dra.RequeueIndex(cluster), clock=clock)
    cluster.subscribe(made)
    return made


FREED = dra.Event("updated", claim("other"), old=holding(claim("other"), "d"))


def tried(queue: dra.PendingQueue) -> str | None:
    """The name of the next pod to try."""
    found = queue.pop()
    return None if found is None else found.metadata.name


def test_tries_by_priority_then_in_order(queue: dra.PendingQueue) -> None:
    low, high = pod("low"), pod("high")
    queue.add(low)
    queue.add(pod("later"))
    queue.add(attrs.evolve(high, spec=attrs.evolve(high.spec, priority=5)))
    queue.add(pod("highest"), priority=9)
    assert queue.active() == ["default/highest", "default/high", "default/low", "default/later"]
    assert [tried(queue) for _ in range(5)] == ["highest", "high", "low", "later", None]
    assert len(queue) == 4


def test_takes_dicts_and_replaces_where_it_is(queue: dra.PendingQueue) -> None:
    queue.add(pod("a").to_dict())
    queue.add(pod("b"))
    queue.add(pod("b"), priority=1)
    assert queue.active() == ["default/b", "default/a"]
    queue.add(pod("a", "x"))
    assert tried(queue) == "b"
    found = queue.pop()
    assert found is not None
    assert found.spec.resource_claims
    with pytest.raises(dra.DraError, match="a Pod is needed here"):
        queue.add(node("n"))


def test_what_did_not_fit_waits_for_an_event_and_its_backoff(queue: dra.PendingQueue, clock: Clock) -> None:
    queue.add(pod("a", "x"))
    queue.pop()
    assert queue.next_time() is None
    queue.failed("default/a")
    assert queue.unschedulable() == ["default/a"]
    queue.notify(dra.Event("added", node("node-9", unrelated="yes")))
    queue.notify(dra.Event("deleted", claim("unrelated")))
    clock.now += 0.25
    queue.notify(FREED)
    assert (queue.unschedulable(), queue.backoff(), queue.active()) == ([], ["default/a"], [])
    assert queue.next_time() == 101.0
    assert tried(queue) is None
    clock.now = 101.0
    assert queue.next_time() == 101.0
    assert tried(queue) == "a"
    assert queue.attempts("default/a") == 2


def test_backoff_doubles_up_to_its_most(queue: dra.PendingQueue, clock: Clock) -> None:
    queue.add(pod("a", "x"))
    waits = []
    for _ in range(6):
        queue.pop()
        queue.failed("default/a")
        queue.notify(FREED)
        ready = queue.next_time()
        assert ready is not None
        waits.append(ready - clock.now)
        clock.now = ready
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_pod_whose_backoff_is_over_is_active_at_once(queue: dra.PendingQueue, clock: Clock) -> None:
    queue.add(pod("a", "x"))
    queue.pop()
    queue.failed("default/a")
    clock.now += 5
    queue.notify(FREED)
    assert queue.active() == ["default/a"]


def test_an_event_during_the_attempt_is_not_lost(queue: dra.PendingQueue, clock: Clock) -> None:
    queue.add(pod("a", "x"))
    queue.pop()
    queue.notify(FREED)
    queue.failed("default/a")
    assert queue.backoff() == ["default/a"]
    clock.now += 1
    assert tried(queue) == "a"
    queue.failed("default/a")
    assert queue.unschedulable() == ["default/a"]


def test_who_waits_for_too_long_is_tried_without_an_event(queue: dra.PendingQueue, clock: Clock) -> None:
    for name in ("a", "b"):
        queue.add(pod(name, "x"))
        queue.pop()
        queue.failed(f"default/{name}")
        clock.now += 10
    assert queue.next_time() == 400.0
    clock.now = 399.0
    assert queue.active() == []
    clock.now = 405.0
    assert queue.active() == ["default/a"]
    assert queue.unschedulable() == ["default/b"]


def test_the_reason_narrows_the_events(queue: dra.PendingQueue) -> None:
    both = claim("both", request("gpu", name="gpu"), request("nic", name="nic"))
    queue._index.cluster.upsert(both)  # type: ignore[attr-defined]
    for name, missing in (("a", "nic"), ("b", "gpu")):
        queue.add(pod(name, "both"))
        queue.pop()
        queue.failed(f"default/{name}", {"default/both": [missing]})
    queue.notify(FREED)
    assert queue.unschedulable() == ["default/a"]
    assert queue.backoff() == ["default/b"]


def test_done_and_gone(queue: dra.PendingQueue) -> None:
    queue.add(pod("a", "x"))
    with pytest.raises(KeyError, match="default/a is not being tried"):
        queue.done("default/a")
    with pytest.raises(KeyError, match="default/a is not being tried"):
        queue.failed("default/a")
    queue.pop()
    queue.done("default/a")
    assert "default/a" not in queue
    with pytest.raises(KeyError, match="not in the queue"):
        queue.remove("default/a")
    queue.add(pod("b", "x"))
    queue.pop()
    queue.failed(pod("b", "x"))
    queue.remove(pod("b", "x"))
    assert len(queue) == 0
    assert queue.next_time() is None


def test_a_pod_that_leaves_while_it_is_tried_did_not_fail(queue: dra.PendingQueue) -> None:
    for number, end in enumerate(("deleted", "bound")):
        item = pod(f"p{number}", "x")
        queue.add(item)
        popped = queue.pop()
        assert popped is not None
        placed = attrs.evolve(popped, spec=attrs.evolve(popped.spec, node_name="node-1"))
        queue.notify(dra.Event("deleted", popped) if end == "deleted" else dra.Event("updated", placed, old=popped))
        queue.failed(popped)
        queue.done(popped)
        assert len(queue) == 0
        assert queue.unschedulable() == queue.backoff() == []


def test_a_pod_of_the_same_name_is_another_one(queue: dra.PendingQueue) -> None:
    old, new = (
        attrs.evolve(item, metadata=attrs.evolve(item.metadata, uid=uid))
        for item, uid in ((pod("a", "x"), "1"), (pod("a", "x"), "2"))
    )
    queue.add(old)
    queue.pop()
    queue.notify(dra.Event("deleted", old))
    queue.add(new)
    queue.failed(old)
    queue.done(old)
    assert queue.active() == ["default/a"]
    assert queue.pop() == new


def test_follows_what_becomes_of_its_pods(queue: dra.PendingQueue) -> None:
    def bound(item: Pod) -> Pod:
        return attrs.evolve(item, spec=attrs.evolve(item.spec, node_name="node-1"))

    for name in ("a", "b", "c"):
        queue.add(pod(name, "x"))
    queue.notify(dra.Event("deleted", pod("c", "x")))
    queue.pop()
    queue.notify(dra.Event("updated", bound(pod("a", "x")), old=pod("a", "x")))
    queue.done("default/a")
    queue.notify(dra.Event("updated", pod("b", "y"), old=pod("b", "x")))
    found = queue.pop()
    assert found == pod("b", "y")
    assert len(queue) == 1


def test_a_cluster_drives_it(queue: dra.PendingQueue, clock: Clock) -> None:
    cluster = queue._index.cluster  # type: ignore[attr-defined]
    queue.add(pod("a", "x"))
    queue.pop()
    queue.failed("default/a")
    clock.now += 2
    cluster.release("default/other")
    assert tried(queue) == "a"
    allocator = dra.Allocator(cluster)
    results = allocator.allocate("default/x", "node-1")
    assert results is not None
    cluster.commit("default/x", results[0])
    queue.done("default/a")
    assert len(queue) == 0


@pytest.mark.parametrize(
    "options", [{"initial_backoff": -1}, {"initial_backoff": 11}, {"flush_after": 0}, {"max_backoff": 0.5}]
)
def test_refuses_times_that_make_no_sense(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"backoff|flush_after"):
        dra.PendingQueue(dra.RequeueIndex(dra.Cluster()), **options)
