"""`dra-alloc score`: how Kubernetes ranks nodes for prioritized lists."""

from __future__ import annotations

from typing import Any

import click

from dra_alloc.cli._input import allocator_of, cluster_of, features_options, input_options
from dra_alloc.cli._output import console, emit, error_form, new_table, output_option
from dra_alloc.cli._questions import Question, selection_options
from dra_alloc.errors import DraError
from dra_alloc.features.score import normalize
from dra_alloc.gates import Features

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc score -f cluster.yaml -f workloads.yaml --pod default/trainer
  dra-alloc score -f dump.json --claim default/gpus -o json
"""


@click.command("score", epilog=_EXAMPLES)
@input_options
@selection_options
@features_options
@output_option
def command(
    objects: list[Any],
    asked: list[Question],
    node: str | None,
    features: Features,
    output: str,
) -> int:
    """Score the nodes on which a pod, or claims, fit: requests with firstAvailable count more for earlier alternatives.

    Without --pod or --claim: for every pod that waits for a node, and every other claim that is not allocated. Shown
    are the raw score and the normalised one, from 0 to 100. Exit status 1: something fits on no node; 2: an error.
    """
    allocator = allocator_of(cluster_of(objects, node), features)
    nodes = None if node is None else [node]
    answers: list[dict[str, Any]] = []
    status = 0
    for question in asked:
        answer: dict[str, Any] = {**question.to_dict(), "nodes": [], "error": None}
        try:
            scores = allocator.score(**question.subject, nodes=nodes)
            best = normalize(scores)
            answer["nodes"] = [{"node": name, "raw": raw, "score": best[name]} for name, raw in scores.items()]
            status = max(status, 0 if scores else 1)
        except DraError as error:
            answer["error"] = error_form(error)
            status = 2
        answers.append(answer)
    if output != "table":
        emit({"scores": answers}, output)
    else:
        table = new_table("for", "node", "raw", "score")
        for question, answer in zip(asked, answers, strict=True):
            for row in answer["nodes"]:
                table.add_row(question.title, row["node"], str(row["raw"]), str(row["score"]))
        out = console()
        out.print(table)
        for question, answer in zip(asked, answers, strict=True):
            if answer["error"]:
                out.print(f"{question.title}: error: {answer['error']['message']}", soft_wrap=True)
    return status
