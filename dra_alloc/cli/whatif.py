"""`dra-alloc whatif`: what would make pods and claims fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import allocator_of, cluster_of, features_options, input_options
from dra_alloc.cli._output import console, emit, emit_csv, output_forms, progress
from dra_alloc.cli._questions import Question, selection_options
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.whatif import WhatIf

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc whatif -f cluster.yaml --pod default/trainer-0
  dra-alloc whatif -f cluster.yaml --claim default/gpus --node node-1 -o json
  dra-alloc whatif -f dump.json --pod default/trainer-0 --preempt
"""


@click.command("whatif", epilog=_EXAMPLES)
@input_options
@selection_options
@click.option("--preempt", is_flag=True, help="Only say which pods of lower priority would have to go for the pod.")
@click.option("--trials", type=click.IntRange(1), default=1000, show_default=True, help="Combinations to try at most.")
@click.option("--changes", type=click.IntRange(1, 8), default=3, show_default=True, help="Changes together at most.")
@click.option("--remedies", type=click.IntRange(1), default=5, show_default=True, help="Remedies to show at most.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=10.0, show_default=True, help="Seconds a question."
)
@features_options
@output_forms("table", "json", "yaml", "csv")
def command(
    objects: list[Any],
    asked: list[Question],
    node: str | None,
    preempt: bool,
    trials: int,
    changes: int,
    remedies: int,
    timeout: float,
    features: Features,
    output: str,
) -> int:
    """Say which least changes would make a pod or claims fit: each tried in a copy of the cluster.

    Changes are: fewer devices, a term of a selector less, a toleration more, a constraint less, a smaller amount,
    claims or pods of lower priority that give way, devices or a node more. Those that cost least come first. With
    --preempt: the pods that would have to go, as the scheduler of Kubernetes chooses victims (it also looks at
    disruption budgets, which are not read here).

    Without --pod or --claim: each pod that waits for a node, and each claim that is not allocated. Ends with 0 if all
    fit as they are, with 1 if changes are needed, with 2 if an error would stay.
    """
    from dra_alloc.whatif import WhatIfBudget
    from dra_alloc.whatif import preempt as victims

    if preempt and output == "csv":
        raise click.UsageError("--preempt has no form csv; there are table, json, yaml")
    allocator = allocator_of(cluster_of(objects, node), features)
    if preempt:
        pods = [question for question in asked if question.pod is not None]
        if asked and not pods:
            raise click.UsageError("--preempt is about pods, and only claims are asked for; give --pod")
        nodes = None if node is None else [node]
        chosen = [victims(allocator, question.pod, nodes=nodes) for question in progress(pods, len(pods), "trying")]
        if output == "table":
            for question, found in zip(pods, chosen, strict=True):
                console().print(found.text() if found else f"{question.title}: preemption would not help")
        else:
            emit({"preemptions": [found.to_dict() if found else None for found in chosen]}, output)
        return 0 if all(found is not None and not found.victims for found in chosen) else 1
    budget = WhatIfBudget(trials=trials, changes=changes, remedies=remedies, timeout=timeout)
    answers = [
        allocator.whatif(**question.subject, node=node, budget=budget)
        for question in progress(asked, len(asked), "trying")
    ]
    if output == "table":
        out = console()
        for answer in answers:
            out.print(answer.text(out.width), soft_wrap=True)
        if not answers:
            out.print("nothing waits for devices")
    elif output == "csv":
        emit_csv(answer.table() for answer in answers)
    else:
        emit({"answers": [answer.to_dict() for answer in answers]}, output)
    return max((_status(answer) for answer in answers), default=0)


def _status(answer: WhatIf) -> int:
    if answer.failure is not None and not answer.remedies:
        return 2
    return 0 if answer.fits else 1
