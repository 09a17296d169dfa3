"""`dra-alloc explain`: why pods and claims fit, or do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from dra_alloc.cli._input import allocator_of, cluster_of, features_options, input_options
from dra_alloc.cli._output import console, emit, emit_csv, output_forms, progress
from dra_alloc.cli._questions import Question, selection_options
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.explain import Explanation

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc explain -f cluster.yaml --pod default/trainer-0
  dra-alloc explain -f cluster.yaml --pod default/trainer-0 --node node-1
  dra-alloc explain -f dump.json --claim default/gpus -o json
  kubectl get -A -o json nodes,pods,deviceclasses,resourceslices,resourceclaims | dra-alloc explain -f -
"""

_STYLES = {"good": "bold green", "bad": "bold yellow", "head": "bold", "dim": "dim", "": ""}


@click.command("explain", epilog=_EXAMPLES)
@input_options
@selection_options
@features_options
@output_forms("table", "json", "yaml", "csv")
def command(
    objects: list[Any],
    asked: list[Question],
    node: str | None,
    features: Features,
    output: str,
) -> int:
    """Say why a pod or claims fit, or do not: which rule takes how many devices away, and who holds them.

    Over all nodes, these are grouped by reason, with one of each group in full; with --node, that node alone. Without
    --pod or --claim: each pod that waits for a node, and each claim that is not allocated, as if it were the only one.
    What the codes in brackets mean is in the documentation, page "Reasons".
    """
    allocator = allocator_of(cluster_of(objects, node), features)
    found = [allocator.explain(**question.subject, node=node) for question in progress(asked, len(asked), "explaining")]
    if output == "table":
        _print(found)
    elif output == "csv":
        emit_csv(each.table() for each in found)
    else:
        emit({"explanations": [each.to_dict() for each in found]}, output)
    return max((_status(each) for each in found), default=0)


def _status(found: Explanation) -> int:
    if found.failure is not None:
        return 2
    return 0 if found.fits else 1


def _print(found: Sequence[Explanation]) -> None:
    out = console()
    for number, each in enumerate(found):
        if number:
            out.print()
        for line in each.lines():
            for piece in line.folded(out.width):
                out.print(Text(piece, style=_STYLES[line.style]), soft_wrap=True)
    if not found:
        out.print("nothing waits for devices")
