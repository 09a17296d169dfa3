"""The results of `make bench` as a table in Markdown: `python -m bench.report bench/results/<commit>.json [FILE …]`.

With files of benchmarks (`test_search.py` …) only these. Also what `bench/conftest.py` prints at the end of a run.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

__all__ = ["Row", "rows_of"]

COLUMNS = ("benchmark", "n", "median", "of one", "times as fast", "as", "growth")


@attrs.frozen
class Row:
    """One benchmark: name in the table, median in seconds, and what it noted besides."""

    name: str
    seconds: float
    info: dict[str, Any]

    @property
    def family(self) -> str:
        """Benchmarks of one family differ in size."""
        return str(self.info.get("family") or self.name.partition("[")[0].removeprefix("test_"))


def rows_of(results: Iterable[Row]) -> list[tuple[str, ...]]:
    """The cells of the table. Growth is fitted over the sizes of a family, where there are three or more."""
    rows = list(results)
    sizes: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if "n" in row.info:
            sizes.setdefault(row.family, []).append((row.info["n"], row.seconds))
    cells = []
    for row in rows:
        points = sizes.get(row.family, [])
        last = len(points) > 2 and points[-1] == (row.info.get("n"), row.seconds)
        units = row.info.get("units", 1)
        ratio = row.info.get("ratio")
        cells.append(
            (
                row.family,
                str(row.info.get("n", "")),
                duration(row.seconds),
                duration(row.seconds / units) if units != 1 else "",
                f"{ratio:,.0f}" if ratio is not None and ratio >= 10 else f"{ratio:.1f}" if ratio is not None else "",
                str(row.info.get("plain", "")),
                f"n^{exponent(points):.2f}" if last else "",
            )
        )
    return cells


def duration(seconds: float) -> str:
    """A time with three digits or so."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:,.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """Least-squares slope of log time over log size."""
    xs = [math.log(n) for n, _ in points]
    ys = [math.log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main(path: str, *files: str) -> None:
    """Print the table of a result file."""
    results = [
        Row(bench["name"], bench["stats"]["median"], bench["extra_info"])
        for bench in json.loads(Path(path).read_text(encoding="utf-8"))["benchmarks"]
        if not files or Path(bench["fullname"].partition("::")[0]).name in files
    ]
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---|--:|--:|--:|--:|---|--:|")
    for cells in rows_of(results):
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(*sys.argv[1:])
