"""`sweep`: playing many scenarios, in order, wherever they are played."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import attrs

from dra_alloc.allocator import Budget
from dra_alloc.cluster import Cluster
from dra_alloc.errors import DraError
from dra_alloc.gates import Features
from dra_alloc.sweeps.model import Outcome, Scenario
from dra_alloc.sweeps.playing import Rules
from dra_alloc.sweeps.record import Record, fingerprint
from dra_alloc.sweeps.workers import Crew, Promise, hire

__all__ = ["sweep"]

#: Scenarios in one task: enough that sending it costs little beside the work.
_CHUNK = 16

#: Tasks that wait for each worker, so that none is ever idle and memory stays bounded.
_AHEAD = 3


def sweep(
    scenarios: Iterable[Scenario],
    executor: Any = None,
    *,
    cluster: Cluster | None = None,
    features: Features | None = None,
    budget: Budget | None = None,
    explain: bool = False,
    resume: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    chunk: int = _CHUNK,
) -> Iterator[Outcome]:
    """Play scenarios, each on a fork of the cluster; yields their outcomes in their order, as soon as they are known.

    The outcomes do not depend on the executor or its number of workers.

    scenarios: a `Plan`, or any iterable of scenarios; it is read as the work goes on and may be endless.
    executor: None plays them here; a number starts so many processes; a `concurrent.futures.Executor` (threads,
    processes, …) or a client of Dask (`distributed.Client`, extra `sweep`) is used and left alive. The cluster is sent
    to each worker once; workers that are processes read it from a temporary file of this machine. The processes of a
    number are forked with it where that is safe (Linux, no other threads), which saves their start.
    cluster: where all scenarios start from; default is that of the plan, else an empty one. It must not be changed
    while the sweep goes on. features: gates (default: of the plan, else `Features()`).
    budget: bounds of each search; what exceeds it is not placed, for the reason `budget-exceeded`. Without `timeout`
    outcomes are the same everywhere.
    explain: find out reasons for what does not fit, at a cost.
    resume: a file that remembers outcomes. What is in it already is not played again, so a sweep that was broken off
    goes on; it must be of the same cluster, features and budget, otherwise DraError is raised.
    progress: called after each outcome with the number of outcomes so far, and of scenarios if that is known.
    chunk: scenarios sent to a worker at a time.

    A scenario that cannot be played is an outcome with `error`. Raises DraError for what is no scenario, when it is
    reached. Errors of the executor itself (a worker that died) are raised as they are.
    """
    if chunk < 1:
        raise ValueError(f"chunk is at least 1, not {chunk}")
    if not isinstance(scenarios, Iterable):
        raise DraError(f"scenarios: a Plan or an iterable of Scenario is needed, not {type(scenarios).__name__}")
    if cluster is None:
        cluster = getattr(scenarios, "cluster", None) or Cluster()
    if features is None:
        features = getattr(scenarios, "features", None) or Features()
    rules = Rules(features, budget or Budget(), explain)
    total = len(scenarios) if isinstance(scenarios, Sequence) else None
    return _run(scenarios, executor, cluster, rules, resume, progress, total, chunk)


@attrs.define(eq=False)
class _Batch:
    """Scenarios in order: what is known of them, and their fingerprints if there is a record; the rest is promised."""

    marks: list[str]
    known: list[Outcome | None]
    promise: Promise | None

    def outcomes(self, record: Record | None) -> Iterator[Outcome]:
        played = iter(self.promise.result() if self.promise is not None else ())
        for mark, known in zip(self.marks, self.known, strict=True):
            outcome = known if known is not None else next(played)
            if record is not None and known is None:
                record.add(mark, outcome)
            yield outcome


def _run(
    scenarios: Iterable[Scenario],
    executor: Any,
    cluster: Cluster,
    rules: Rules,
    resume: str | os.PathLike[str] | None,
    progress: Callable[[int, int | None], object] | None,
    total: int | None,
    chunk: int,
) -> Iterator[Outcome]:
    with ExitStack() as stack:
        record = stack.enter_context(Record(resume, cluster, rules)) if resume is not None else None
        crew = stack.enter_context(hire(executor, cluster, rules))
        # In this process a task is done when it is submitted: then one scenario at a time streams best.
        ahead, size = (1, 1) if executor is None else (_AHEAD * crew.size, chunk)
        left = _checked(scenarios)
        waiting: deque[_Batch] = deque()
        done = 0
        try:
            while True:
                while len(waiting) < ahead and (batch := _submit(crew, list(itertools.islice(left, size)), record)):
                    waiting.append(batch)
                if not waiting:
                    return
                for outcome in waiting.popleft().outcomes(record):
                    done += 1
                    if progress is not None:
                        progress(done, total)
                    yield outcome
        finally:
            for batch in waiting:
                if batch.promise is not None:
                    batch.promise.cancel()


def _checked(scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
    """The scenarios, one by one, as long as they are some."""
    for number, scenario in enumerate(scenarios):
        if not isinstance(scenario, Scenario):
            raise DraError(
                f"scenarios[{number}]: a Scenario is needed, such as Scenario(name='two', workload=pods),"
                f" not {type(scenario).__name__}"
            )
        yield scenario


def _submit(crew: Crew, scenarios: list[Scenario], record: Record | None) -> _Batch | None:
    if not scenarios:
        return None
    marks = [fingerprint(scenario) if record is not None else "" for scenario in scenarios]
    known = [record.find(mark) if record is not None else None for mark in marks]
    new = [scenario for scenario, outcome in zip(scenarios, known, strict=True) if outcome is None]
    return _Batch(marks, known, crew.submit(new) if new else None)
