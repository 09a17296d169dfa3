"""`dra-alloc sweep`: many what-ifs from a plan."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._output import console, emit, emit_csv, new_table, note, output_forms
from dra_alloc.errors import MissingExtra

if TYPE_CHECKING:
    from dra_alloc.sweeps import Outcome
    from dra_alloc.sweeps.plan import Plan

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc sweep -f plan.yaml
  dra-alloc sweep -f plan.yaml --workers 8 --resume sweep.jsonl --write result.parquet
  dra-alloc sweep -f plan.yaml --explain --plot placed.svg --x nodes
"""


@click.command("sweep", epilog=_EXAMPLES)
@click.option(
    "-f",
    "--file",
    "file",
    required=True,
    metavar="PLAN",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The plan: a cluster, a workload, and what varies.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Play scenarios in N processes.")
@click.option("--dask", metavar="ADDRESS", help="Play scenarios on the Dask cluster of this scheduler.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Remember outcomes in this file, and go on with what it has.",
)
@click.option("--explain", is_flag=True, help="Find out the reasons for what does not fit.")
@click.option(
    "--write",
    "written",
    multiple=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the table as .csv or .parquet. Repeatable.",
)
@click.option(
    "--plot",
    "plotted",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Draw how much was placed, as .svg, .png or .pdf.",
)
@click.option("--x", "over", metavar="AXIS", help="The axis that the plot is drawn over (default: the first).")
@output_forms("table", "csv", "json", "yaml")
def command(
    file: Path,
    workers: int | None,
    dask: str | None,
    resume: Path | None,
    explain: bool,
    written: tuple[Path, ...],
    plotted: Path | None,
    over: str | None,
    output: str,
) -> int:
    """Play many what-ifs: all combinations of the settings of a plan, each on a copy of its cluster.

    Exit status: 0 if the whole workload was placed in every scenario, 1 if not, 2 if a scenario could not be played.
    """
    from dra_alloc.sweeps import read_plan, table
    from dra_alloc.sweeps.output import plot, write_table

    if workers is not None and dask is not None:
        raise click.UsageError("--workers and --dask exclude each other")
    plan = read_plan(file)
    _check_outputs(plan, written, plotted, over)
    outcomes = _play(plan, workers, dask, explain, resume)
    for path in written:
        write_table(outcomes, path)
    if plotted is not None:
        plot(outcomes, plotted, x=over)
    if output == "table":
        _show(outcomes)
    elif output == "csv":
        emit_csv([table(outcomes)])
    else:
        emit({"scenarios": [outcome.to_dict() for outcome in outcomes]}, output)
    for outcome in outcomes:
        if outcome.error:
            note(f"error: {outcome.name}: {outcome.error}")
    if any(outcome.error for outcome in outcomes):
        return 2
    return 0 if all(outcome.fits for outcome in outcomes) else 1


def _check_outputs(plan: Plan, written: tuple[Path, ...], plotted: Path | None, over: str | None) -> None:
    """What would only fail after hours is said at once."""
    for path in written:
        if path.suffix not in (".csv", ".parquet"):
            raise click.BadParameter(f"{path}: a table is written as .csv or .parquet", param_hint="--write")
    if plotted is not None and not plan.axes:
        raise click.BadParameter("the plan has no axis to draw over", param_hint="--plot")
    if over is not None and over not in plan.axes:
        raise click.BadParameter(f"no axis {over!r}; there are {', '.join(plan.axes) or 'none'}", param_hint="--x")


def _play(plan: Plan, workers: int | None, dask: str | None, explain: bool, resume: Path | None) -> list[Outcome]:
    from rich.progress import Progress

    from dra_alloc.sweeps import sweep

    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("playing", total=len(plan))
        client: Any = _client(dask) if dask is not None else None
        try:
            found = sweep(
                plan,
                client if client is not None else workers,
                explain=explain,
                resume=resume,
                progress=lambda done, _: bar.update(task, completed=done),
            )
            return list(found)
        finally:
            if client is not None:
                client.close()


def _client(address: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError:
        raise MissingExtra(
            "Dask needs the package 'distributed'; install it with: pip install \"dra-alloc[sweep]\""
        ) from None
    try:
        return distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"no Dask scheduler at {address}: {error}", param_hint="--dask") from None


def _show(outcomes: list[Outcome]) -> None:
    shown = new_table("scenario", "placed", "nodes", "devices", "first reason")
    for outcome in outcomes:
        shown.add_row(
            outcome.name,
            f"{outcome.placed}/{len(outcome.placements)}",
            str(outcome.nodes),
            ", ".join(f"{count} {driver}" for driver, count in outcome.devices.items()),
            outcome.reason or (f"error: {outcome.error}" if outcome.error else ""),
        )
    console().print(shown)
    fitting = sum(outcome.fits for outcome in outcomes)
    console().print(f"{fitting} of {len(outcomes)} scenarios place the whole workload")
