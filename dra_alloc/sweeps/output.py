"""Outcomes as files: CSV and Parquet tables, and a plot. Packages of the extra `sweep` are imported when needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from dra_alloc.errors import DraError, MissingExtra
from dra_alloc.sweeps.model import Label, Outcome, table

__all__ = ["plot", "write_table"]

#: Lines may lie on each other; their markers tell them apart.
_MARKERS = "osD^vX"


def write_table(outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> None:
    """Write the table of outcomes as `.csv` or `.parquet`. Raises DraError for another suffix, MissingExtra."""
    file = Path(path)
    found = table(outcomes)
    if file.suffix == ".csv":
        file.write_text(found.to_csv(), encoding="utf-8", newline="")
    elif file.suffix == ".parquet":
        polars = _library("polars", "Parquet")
        types = {name: polars.Int64 if name in found.integers else polars.String for name in found.columns}
        frame = polars.DataFrame(dict(zip(found.columns, map(list, found.values), strict=True)), schema=types)
        frame.write_parquet(file)
    else:
        raise DraError(f"{file}: a table is written as .csv or .parquet")


def plot(outcomes: Sequence[Outcome], path: str | os.PathLike[str], *, x: str | None = None) -> None:
    """Draw how much of the workload was placed: over the label `x` (default: the first), a line for each setting of
    the others. The suffix of the path says the form: `.svg`, `.png`, `.pdf`.

    Raises DraError for a label that no outcome has, or a form that is not known; MissingExtra.
    """
    labels = list(dict.fromkeys(label for outcome in outcomes for label in outcome.labels))
    if not labels or (x is not None and x not in labels):
        raise DraError(f"there is no label {x!r} to draw over; there are {', '.join(labels) or 'none'}")
    x = labels[0] if x is None else x
    _library("matplotlib", "plots")
    figure_class = import_module("matplotlib.figure").Figure
    lines: dict[tuple[Label | None, ...], dict[Label | None, int]] = {}
    for outcome in outcomes:
        other = tuple(outcome.labels.get(label) for label in labels if label != x)
        lines.setdefault(other, {})[outcome.labels.get(x)] = outcome.placed
    figure = figure_class(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    places = list(dict.fromkeys(place for line in lines.values() for place in line))
    numeric = all(isinstance(place, int | float) for place in places)
    others = [label for label in labels if label != x]
    for number, (other, line) in enumerate(lines.items()):
        name = ", ".join(f"{label}={value}" for label, value in zip(others, other, strict=True))
        points: list[tuple[Any, int]] = [
            (place if numeric else str(place), line[place]) for place in places if place in line
        ]
        if numeric:
            points.sort()
        axes.plot(
            *zip(*points, strict=True), marker=_MARKERS[number % len(_MARKERS)], alpha=0.8, label=name or "placed"
        )
    axes.set_xlabel(x)
    axes.set_ylabel("pods and claims placed")
    axes.set_ylim(bottom=0)
    axes.yaxis.get_major_locator().set_params(integer=True)
    if all(isinstance(place, int) for place in places):
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    if len(lines) > 1:
        axes.legend(fontsize="small")
    known = figure.canvas.get_supported_filetypes()
    if Path(path).suffix.removeprefix(".") not in known:
        raise DraError(f"{path}: a plot is written as {', '.join(sorted(f'.{each}' for each in known))}")
    figure.savefig(path)


def _library(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtra(
            f'{what} need the package {name!r}; install it with: pip install "dra-alloc[sweep]"'
        ) from None
