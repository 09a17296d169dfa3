"""`dra-alloc report`: the cluster as one HTML file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from dra_alloc.cli._input import allocator_of, cluster_of, features_options, input_options
from dra_alloc.cli._output import note, progress
from dra_alloc.cli._questions import questions
from dra_alloc.cli._time import now_option
from dra_alloc.gates import Features

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc report -f dump.json --to report.html
  kubectl get -A -o json nodes,pods,deviceclasses,resourceslices,resourceclaims | dra-alloc report -f - --to report.html
"""


@click.command("report", epilog=_EXAMPLES)
@input_options
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="The HTML file to write, - for standard output.",
)
@click.option("--title", default="Devices of the cluster", show_default=True, help="Title of the page.")
@click.option(
    "--partition-attribute",
    metavar="DOMAIN/NAME",
    help="The attribute that tells partition types apart in slices that declare none.",
)
@now_option
@features_options
def command(
    objects: list[Any],
    target: Path,
    title: str,
    partition_attribute: str | None,
    now: datetime,
    features: Features,
) -> int:
    """Write a map of nodes and devices, and why each pending pod and claim fits or does not, as one HTML file.

    The file needs nothing else, no network either. Nodes can be searched and filtered.
    """
    from dra_alloc.report import render_report

    allocator = allocator_of(cluster_of(objects), features)
    asked = questions(objects)
    explained = [allocator.explain(**question.subject) for question in progress(asked, len(asked), "explaining")]
    page = render_report(allocator, explained, title=title, now=now, partition_attribute=partition_attribute)
    if str(target) == "-":
        click.echo(page, nl=False)
    else:
        target.write_text(page, encoding="utf-8")
        note(f"wrote {target}")
    return 0
