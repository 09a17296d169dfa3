"""`PendingQueue`: pods in the order in which a scheduler should try them, for those who write one.

It does what the scheduling queue of Kubernetes does: pods are tried by priority, those that did not fit wait until an
event may help them, and none is tried more often than its backoff allows. Which event helps which pod is the matter of
an index, usually `RequeueIndex`.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any, NoReturn, Protocol

import attrs

from dra_alloc.api import Pod
from dra_alloc.events import Event

__all__ = ["PendingQueue", "WakeIndex"]


class WakeIndex(Protocol):
    """What the queue needs to know which pods an event may help. `RequeueIndex` is one."""

    def add(self, pod: Any, reason: Any = None) -> None: ...
    def remove(self, pod: Any) -> None: ...
    def affected(self, event: Event) -> list[str]: ...


#: Where a pod is.
_ACTIVE, _TRIED, _BACKOFF, _UNSCHEDULABLE = "active", "tried", "backoff", "unschedulable"


@attrs.define(eq=False)
class _Entry:
    """A pod of the queue. ticket: the entry of a heap that counts for it. touched: an event came while it was tried."""

    pod: Pod
    priority: int
    place: str = _ACTIVE
    attempts: int = 0
    ticket: int = 0
    ready: float = 0.0  # when its backoff is over
    since: float = 0.0  # when it was last found not to fit
    touched: bool = False


class PendingQueue:
    """Pending pods: active (to be tried), in backoff, and unschedulable (waiting for an event).

    index: tells which pods an event may help; the queue adds and removes pods there. clock: seconds, never running
    backwards. initial_backoff, max_backoff: seconds to wait after a first attempt, doubled with each further one, and
    the most of them. flush_after: seconds after which an unschedulable pod is tried again even without an event.

    The life of a pod is `add`, then `pop`, then either `done`, or `failed` and, after an event and its backoff, `pop`
    again. Events come by `cluster.subscribe(queue)`, or by hand to `notify`. May be used from several threads.
    """

    def __init__(
        self,
        index: WakeIndex,
        *,
        clock: Callable[[], float] = time.monotonic,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        flush_after: float = 300.0,
    ) -> None:
        if not hasattr(index, "affected"):
            raise TypeError(f"PendingQueue takes an index, such as RequeueIndex(cluster), not {type(index).__name__}")
        if not 0 <= initial_backoff <= max_backoff:
            raise ValueError(f"0 ≤ initial_backoff ≤ max_backoff must hold, not 0 ≤ {initial_backoff} ≤ {max_backoff}")
        if flush_after <= 0:
            raise ValueError(f"flush_after is {flush_after}; it must be more than 0 seconds")
        self._index = index
        self._clock = clock
        self._initial = initial_backoff
        self._max = max_backoff
        self._flush_after = flush_after
        self._entries: dict[str, _Entry] = {}
        self._active: list[tuple[int, int, str]] = []  # lowered priority, ticket, key
        self._backoff: list[tuple[float, int, str]] = []  # ready, ticket, key
        self._unschedulable: dict[str, None] = {}  # the longest waiting first
        self._tickets = count(1)
        self._lock = threading.RLock()

    def __reduce__(self) -> NoReturn:
        """A queue is one thing for all who hold it, as its index is: neither `copy` nor `pickle` take it."""
        raise TypeError("a PendingQueue cannot be copied or pickled; make another with an index of its own")

    # Pods

    def add(self, pod: Any, priority: int | None = None) -> None:
        """Take in a new pod, to be tried as soon as its turn comes. One that is there already is replaced where it is.

        pod: model, dict or client object. priority: higher is tried first; default is `spec.priority`, or 0.
        Raises DraError for what is no pod.
        """
        model = _model(pod)
        rank = priority if priority is not None else model.spec.priority or 0
        with self._lock:
            entry = self._entries.get(model.metadata.key)
            if entry is None:
                self._entries[model.metadata.key] = entry = _Entry(model, rank)
                self._activate(entry)
                return
            entry.pod = model
            if entry.priority != rank:
                entry.priority = rank
                if entry.place == _ACTIVE:
                    self._activate(entry)

    def pop(self) -> Pod | None:
        """The next pod to try: of the highest priority, of these the one that has been active for longest.

        None if no pod is to be tried now; `next_time` tells when to look again. From here on the queue notices events
        for the pod, so that none between the attempt and its end is lost.
        """
        with self._lock:
            self._move_due()
            entry = self._first(self._active, _ACTIVE)
            if entry is None:
                return None
            heapq.heappop(self._active)
            entry.place, entry.touched = _TRIED, False
            entry.attempts += 1
            self._index.add(entry.pod)
            return entry.pod

    def failed(self, pod: Any, reason: Any = None) -> None:
        """The pod that was popped did not fit. reason: as `RequeueIndex.add` takes it, such as the Explanation.

        It waits for an event; if one came while it was tried, only for its backoff. Raises KeyError for a pod of the
        queue that is not being tried. A pod that has left the queue, because an event told that it is gone or has a
        node, is no error: it may do so at any time between `pop` and here.
        """
        with self._lock:
            if self._has_left(pod):
                return
            entry = self._tried(pod)
            entry.since = self._clock()
            entry.ready = entry.since + self._backoff_of(entry)
            if entry.touched:
                self._index.remove(entry.pod)
                self._wait(entry)
                return
            entry.place = _UNSCHEDULABLE
            self._unschedulable[entry.pod.metadata.key] = None
            self._index.add(entry.pod, reason)

    def done(self, pod: Any) -> None:
        """The pod that was popped is placed. Raises KeyError for a pod of the queue that is not being tried.

        A pod that has left the queue, because an event told that it is gone or has a node, is no error.
        """
        with self._lock:
            if not self._has_left(pod):
                self._tried(pod)
                self.remove(pod)

    def remove(self, pod: Any) -> None:
        """The pod is gone. Raises KeyError if it is not in the queue."""
        key = _key(pod)
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None:
                raise KeyError(f"pod {key} is not in the queue")
            if entry.place in (_TRIED, _UNSCHEDULABLE):
                self._unschedulable.pop(key, None)
                self._forget(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, pod: object) -> bool:
        return _key(pod) in self._entries

    # Events and time

    def notify(self, event: Event) -> None:
        """Wake the pods that an event may help: to be tried as soon as their backoff is over.

        An event about a pod of the queue updates it here, or removes it when it is deleted or has got a node.
        """
        with self._lock:
            woken = self._index.affected(event)
            if isinstance(event.object, Pod):
                self._follow(event)
            for key in woken:
                entry = self._entries.get(key)
                if entry is None:
                    continue
                if entry.place == _TRIED:
                    entry.touched = True
                elif entry.place == _UNSCHEDULABLE:
                    self._wake(entry)

    def next_time(self) -> float | None:
        """When, by the clock, `pop` will have a pod if no event comes before; None if only an event can help."""
        with self._lock:
            self._move_due()
            if self._first(self._active, _ACTIVE) is not None:
                return self._clock()
            times = []
            waiting = self._first(self._backoff, _BACKOFF)
            if waiting is not None:
                times.append(waiting.ready)
            oldest = next(iter(self._unschedulable), None)
            if oldest is not None:
                entry = self._entries[oldest]
                times.append(max(entry.ready, entry.since + self._flush_after))
            return min(times, default=None)

    # Looking in

    def attempts(self, pod: Any) -> int:
        """How often a pod of the queue was popped. Raises KeyError if it is not in the queue."""
        return self._entries[_key(pod)].attempts

    def active(self) -> list[str]:
        """Keys of the pods to be tried now, in the order in which they would be."""
        with self._lock:
            self._move_due()
            return [key for _, ticket, key in sorted(self._active) if self._counts(key, ticket, _ACTIVE)]

    def backoff(self) -> list[str]:
        """Keys of the pods whose backoff is not over, in the order in which it ends."""
        with self._lock:
            self._move_due()
            return [key for _, ticket, key in sorted(self._backoff) if self._counts(key, ticket, _BACKOFF)]

    def unschedulable(self) -> list[str]:
        """Keys of the pods that wait for an event, the longest waiting first."""
        with self._lock:
            self._move_due()
            return list(self._unschedulable)

    # Inside

    def _activate(self, entry: _Entry) -> None:
        entry.place, entry.ticket = _ACTIVE, next(self._tickets)
        heapq.heappush(self._active, (-entry.priority, entry.ticket, entry.pod.metadata.key))

    def _wait(self, entry: _Entry) -> None:
        """Into backoff, or active if it is over."""
        if entry.ready <= self._clock():
            self._activate(entry)
            return
        entry.place, entry.ticket = _BACKOFF, next(self._tickets)
        heapq.heappush(self._backoff, (entry.ready, entry.ticket, entry.pod.metadata.key))

    def _wake(self, entry: _Entry) -> None:
        del self._unschedulable[entry.pod.metadata.key]
        self._forget(entry)
        self._wait(entry)

    def _forget(self, entry: _Entry) -> None:
        """Out of the index, which an event about the pod itself may have done already."""
        try:
            self._index.remove(entry.pod)
        except KeyError:
            return

    def _backoff_of(self, entry: _Entry) -> float:
        # Doubling beyond the 64th attempt would only overflow.
        return min(self._max, self._initial * 2.0 ** min(entry.attempts - 1, 64))

    def _move_due(self) -> None:
        """Pods whose backoff is over become active; unschedulable ones that have waited for too long are woken."""
        now = self._clock()
        while (entry := self._first(self._backoff, _BACKOFF)) is not None and entry.ready <= now:
            heapq.heappop(self._backoff)
            self._activate(entry)
        while (oldest := next(iter(self._unschedulable), None)) is not None:
            entry = self._entries[oldest]
            if entry.since + self._flush_after > now:
                break
            self._wake(entry)

    def _first(self, heap: list[Any], place: str) -> _Entry | None:
        """The pod at the top of a heap; entries of pods that have moved on are dropped."""
        while heap:
            _, ticket, key = heap[0]
            if self._counts(key, ticket, place):
                return self._entries[key]
            heapq.heappop(heap)
        return None

    def _counts(self, key: str, ticket: int, place: str) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.place == place and entry.ticket == ticket

    def _has_left(self, pod: Any) -> bool:
        """Whether a pod is no longer in the queue, also where another one of its name is."""
        entry = self._entries.get(_key(pod))
        if entry is None:
            return True
        uid = None if isinstance(pod, str) else _model(pod).metadata.uid
        return uid is not None and entry.pod.metadata.uid not in (None, uid)

    def _tried(self, pod: Any) -> _Entry:
        key = _key(pod)
        entry = self._entries[key]
        if entry.place != _TRIED:
            raise KeyError(f"pod {key} is not being tried: pop it first")
        return entry

    def _follow(self, event: Event) -> None:
        pod: Pod = event.object
        entry = self._entries.get(pod.metadata.key)
        if entry is None:
            return
        if event.action == "deleted" or pod.spec.node_name:
            self.remove(pod)
        else:
            entry.pod = pod


def _model(pod: Any) -> Pod:
    if isinstance(pod, Pod):
        return pod
    from dra_alloc.codec import decode_as

    return decode_as(Pod, pod)


def _key(pod: Any) -> str:
    return pod if isinstance(pod, str) else _model(pod).metadata.key
