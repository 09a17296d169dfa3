"""What the benchmarks share: sizes, the plain cost that something replaces, and the table at the end.

Each benchmark of a size sets `benchmark.extra_info["n"]`; growth over sizes is fitted where there are three or more.
`plain` measures, once and in the same run, what the thing replaces, and keeps the ratio.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console
from rich.table import Table

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
    for name, justify in (
        ("benchmark", "left"),
        ("n", "right"),
        ("median", "right"),
        ("of one", "right"),
        ("times as fast", "right"),
        ("as", "left"),
        ("growth", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    sizes: dict[str, list[tuple[int, float]]] = {}
    for bench in found:
        if "n" in bench.extra_info:
            sizes.setdefault(_family(bench), []).append((bench.extra_info["n"], bench.stats.median))
    for bench in found:
        info = bench.extra_info
        family = _family(bench)
        points = sizes.get(family, [])
        last = bool(points) and points[-1] == (info.get("n"), bench.stats.median)
        units = info.get("units", 1)
        table.add_row(
            family,
            str(info.get("n", "")),
            _seconds(bench.stats.median),
            _seconds(bench.stats.median / units) if units != 1 else "",
            f"{info['ratio']:,.1f}" if "ratio" in info else "",
            info.get("plain", ""),
            f"n^{_exponent(points):.2f}" if last and len(points) > 2 else "",
        )
    Console(width=140).print(table)


def _family(bench: Any) -> str:
    return str(bench.extra_info.get("family") or bench.name.partition("[")[0].removeprefix("test_"))


def _seconds(value: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:,.2f} {unit}"
    return f"{value * 1e9:,.0f} ns"


def _exponent(points: list[tuple[int, float]]) -> float:
    """Least-squares slope of log time over log size."""
    xs = [math.log(n) for n, _ in points]
    ys = [math.log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
