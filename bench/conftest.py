"""What the benchmarks share: sizes, the plain cost that something replaces, and the table at the end.

Each benchmark of a size sets `benchmark.extra_info["n"]`; growth over sizes is fitted where there are three or more.
`plain` measures, once and in the same run, what the thing replaces, and keeps the ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console
from rich.table import Table

from bench.report import COLUMNS, Row, rows_of

Measure = Callable[..., Any]


@pytest.fixture
def measure(benchmark: BenchmarkFixture) -> Iterator[Measure]:
    """Run a function under the benchmark: `measure(run, n=…, plain=…, plain_units=…, units=…, what="…")`.

    n: size. units: things that one run handles (nodes, claims, pods), for the cost of one. plain: what is replaced, of
    which one run handles `plain_units`. family: name in the table, for growth over sizes. Gives the answer of `run`.
    """
    plainly: list[tuple[Callable[[], Any], float, str]] = []

    def call(
        run: Callable[[], Any],
        *,
        n: int | None = None,
        units: float = 1,
        plain: Callable[[], Any] | None = None,
        plain_units: float = 1,
        what: str = "",
        setup: Callable[[], Any] | None = None,
        rounds: int = 20,
        family: str = "",
    ) -> Any:
        if n is not None:
            benchmark.extra_info["n"] = n
        benchmark.extra_info["units"] = units
        if family:
            benchmark.extra_info["family"] = family
        if plain is not None:
            plainly.append((plain, plain_units, what))
        if setup is not None:
            return benchmark.pedantic(run, setup=setup, rounds=rounds)
        return benchmark(run)

    yield call
    for plain, plain_units, what in plainly:
        start = time.perf_counter()
        plain()
        seconds = (time.perf_counter() - start) / plain_units
        units = benchmark.extra_info["units"]
        benchmark.extra_info["plain"] = what
        benchmark.extra_info["ratio"] = seconds / (benchmark.stats.stats.median / units)


def pytest_benchmark_group_stats(config: pytest.Config, benchmarks: list[Any], group_by: str) -> list[tuple[str, Any]]:
    """Keep the order of definition: one group for all, the table below says the rest."""
    return [("all", benchmarks)] if benchmarks else []


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of all benchmarks: cost of a unit, ratio to the plain cost, growth over sizes."""
    session = getattr(config, "_benchmarksession", None)
    found = [bench for bench in getattr(session, "benchmarks", ()) if bench.stats.rounds]
    if not found:
        return
    table = Table(title="Benchmarks", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("benchmark", "as") else "right")
    for cells in rows_of(Row(bench.name, bench.stats.median, bench.extra_info) for bench in found):
        table.add_row(*cells)
    Console(width=140).print(table)
