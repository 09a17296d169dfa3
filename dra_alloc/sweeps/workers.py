"""Where scenarios are played: here, in threads, in processes, on Dask. The cluster travels to each worker once.

A task names its cluster by a token. A worker that does not know the token yet reads the pickled cluster: from memory it
shares (threads), from a file (processes), or from what Dask keeps on each worker; and keeps it for the tasks to come.
Processes that are forked for a sweep have it from their birth.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import attrs

from dra_alloc.cel import compile_selector
from dra_alloc.sweeps.model import Outcome, Scenario
from dra_alloc.sweeps.playing import Rules, play, warm

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster

__all__ = ["Crew", "hire"]


class Promise(Protocol):
    """A future of `concurrent.futures` or of Dask, as far as it is needed."""

    def result(self) -> list[Outcome]: ...
    def cancel(self) -> object: ...


@attrs.frozen(eq=False)
class Crew:
    """submit: have some scenarios played. size: how many at a time, None for here and now."""

    submit: Callable[[Sequence[Scenario]], Promise]
    size: int


@attrs.frozen(eq=False)
class _Snapshot:
    """A cluster as a worker finds it: pickled, in the file or in memory."""

    token: str
    rules: Rules
    path: str = ""

    def load(self, pickled: bytes | None) -> Cluster:
        if pickled is None:
            with open(self.path, "rb") as file:
                pickled = file.read()
        cluster: Cluster = pickle.loads(pickled)
        warm(cluster, self.rules)
        return cluster


#: The cluster that this process has played on last; one at a time, so that memory is bounded.
_kept: tuple[str, Cluster] | None = None
_lock = threading.Lock()


def _work(snapshot: _Snapshot, pickled: bytes | None, scenarios: Sequence[Scenario]) -> list[Outcome]:
    """A task in a worker of another process."""
    global _kept
    with _lock:  # Dask runs several tasks of a process in threads; one of them loads
        if _kept is None or _kept[0] != snapshot.token:
            _kept = snapshot.token, snapshot.load(pickled)
        cluster = _kept[1].fork()
    return [play(cluster, scenario, snapshot.rules) for scenario in scenarios]


@attrs.frozen
class _Done:
    """A promise that was kept at once."""

    outcomes: list[Outcome]

    def result(self) -> list[Outcome]:
        return self.outcomes

    def cancel(self) -> object:
        return False


@contextmanager
def hire(executor: Any, cluster: Cluster, rules: Rules) -> Iterator[Crew]:
    """A crew for an executor: None for this process, a number of processes, a `concurrent.futures.Executor`, or a
    client of Dask. What is made for it is gone at the end; an executor that was given goes on living.

    Raises TypeError for anything else, ValueError for a number below 1.
    """
    if executor is None:
        warm(cluster, rules)
        yield Crew(lambda scenarios: _Done([play(cluster, each, rules) for each in scenarios]), 1)
    elif isinstance(executor, int):
        if executor < 1:
            raise ValueError(f"executor: at least one process is needed, not {executor}")
        with (_forked if _may_fork() else _spawned)(executor, cluster, rules) as crew:
            yield crew
    elif type(executor) is ThreadPoolExecutor:
        yield _threads(executor, cluster, rules)
    elif _is_dask(executor):
        yield _dask(executor, cluster, rules)
    elif isinstance(executor, Executor):
        size = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        with _processes(executor, size, cluster, rules) as crew:
            yield crew
    else:
        raise TypeError(
            "executor is None, a number of processes, a concurrent.futures.Executor or a distributed.Client, "
            f"not {executor!r}"
        )


def _may_fork() -> bool:
    """A fork of a process with threads may hang, and outside of Linux one of any process that uses the system."""
    return sys.platform == "linux" and threading.active_count() == 1


@contextmanager
def _forked(size: int, cluster: Cluster, rules: Rules) -> Iterator[Crew]:
    """Processes that have all of this one from their birth: the library, and the cluster, compiled."""
    warm(cluster, rules)
    compile_selector("true")  # builds the parser
    snapshot = _Snapshot(uuid4().hex, rules)
    context, born_with = get_context("fork"), (snapshot.token, cluster)
    with ProcessPoolExecutor(size, mp_context=context, initializer=_keep, initargs=born_with) as pool:
        yield Crew(lambda scenarios: pool.submit(_work, snapshot, None, scenarios), size)


def _keep(token: str, cluster: Cluster) -> None:
    global _kept
    _kept = token, cluster


@contextmanager
def _spawned(size: int, cluster: Cluster, rules: Rules) -> Iterator[Crew]:
    with (
        ProcessPoolExecutor(size, mp_context=get_context("spawn")) as pool,
        _processes(pool, size, cluster, rules) as crew,
    ):
        yield crew


@contextmanager
def _processes(executor: Executor, size: int, cluster: Cluster, rules: Rules) -> Iterator[Crew]:
    for _ in range(size):
        executor.submit(_get_ready)  # the workers start while the cluster is pickled here
    with _in_file(cluster, rules) as snapshot:
        yield Crew(lambda scenarios: executor.submit(_work, snapshot, None, scenarios), size)


def _get_ready() -> None:
    """The first task of a worker: the library is imported to run it, and the parser of selectors is built by it."""
    compile_selector("true")


@contextmanager
def _in_file(cluster: Cluster, rules: Rules) -> Iterator[_Snapshot]:
    """The cluster pickled into a file that only this user can read; removed at the end."""
    handle, path = tempfile.mkstemp(prefix="dra-alloc-sweep-", suffix=".pickle")
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(cluster, file, pickle.HIGHEST_PROTOCOL)
        yield _Snapshot(uuid4().hex, rules, path)
    finally:
        with suppress(FileNotFoundError):
            os.remove(path)


def _threads(executor: ThreadPoolExecutor, cluster: Cluster, rules: Rules) -> Crew:
    warm(cluster, rules)
    lock = threading.Lock()

    def work(scenarios: Sequence[Scenario]) -> list[Outcome]:
        # Each task has a fork of its own: what a fork remembers is not shared, but where it was forked.
        with lock:
            mine = cluster.fork()
        return [play(mine, scenario, rules) for scenario in scenarios]

    return Crew(lambda scenarios: executor.submit(work, scenarios), executor._max_workers)


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.partition(".")[0] == "distributed"


def _dask(executor: Any, cluster: Cluster, rules: Rules) -> Crew:
    client = executor if hasattr(executor, "scatter") else executor._client  # `client.get_executor()`
    snapshot = _Snapshot(uuid4().hex, rules)
    pickled = client.scatter(pickle.dumps(cluster, pickle.HIGHEST_PROTOCOL), broadcast=True, hash=False)
    size = sum(client.ncores().values()) or 1
    # Scenarios are played anew even if Dask has seen the same ones: a sweep may be over another cluster.
    return Crew(lambda scenarios: client.submit(_work, snapshot, pickled, scenarios, pure=False), size)
