"""`dra-alloc nodes`: on which nodes claims fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import (
    allocator_of,
    cluster_of,
    features_options,
    input_options,
    node_resources_option,
)
from dra_alloc.cli._output import console, emit, error_form, new_table, output_option, progress
from dra_alloc.cli._questions import Question, selection_options
from dra_alloc.errors import DraError
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.features.pods.planner import NodeResources

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc nodes -f cluster.yaml -f workloads.yaml --pod default/trainer-0
  dra-alloc nodes -f dump.json --claim default/gpus --claim default/nics -o json
"""

#: Node names shown in a row of the table.
_SHOWN = 20


@click.command("nodes", epilog=_EXAMPLES)
@input_options
@selection_options
@node_resources_option
@features_options
@output_option
def command(
    objects: list[Any],
    asked: list[Question],
    node: str | None,
    node_resources: NodeResources,
    features: Features,
    output: str,
) -> int:
    """List the nodes on which all devices of a pod, or of claims, can be had.

    Without --pod or --claim: for every pod that waits for a node and needs devices, and every claim that is not
    allocated and belongs to no pod; each as if it were the only one.
    """
    cluster = cluster_of(objects, node)
    allocator = allocator_of(cluster, features)
    wanted = [node] if node is not None else None
    answers: list[dict[str, Any]] = []
    status = 0
    for question in progress(asked, len(asked), "searching"):
        answer: dict[str, Any] = {**question.to_dict(), "nodes": [], "error": None}
        try:
            answer["nodes"] = allocator.feasible_nodes(**question.subject, nodes=wanted, node_resources=node_resources)
            status = max(status, 0 if answer["nodes"] else 1)
        except DraError as error:
            answer["error"] = error_form(error)
            status = 2
        answers.append(answer)
    if output == "table":
        table = new_table("for", "fit", "nodes")
        for question, answer in zip(asked, answers, strict=True):
            names: list[str] = answer["nodes"]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            shown = f"error: {answer['error']['message']}" if answer["error"] else ", ".join(names[:_SHOWN]) + more
            table.add_row(question.title, f"{len(names)}/{len(cluster.node_names())}", shown or "none")
        console().print(table)
    else:
        emit({"answers": answers}, output)
    return status
