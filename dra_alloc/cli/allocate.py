"""`dra-alloc allocate`: what each claim gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.padding import Padding

from dra_alloc import api
from dra_alloc.cli._devices import Devices
from dra_alloc.cli._input import cluster_of, features_options, input_options, selection_options
from dra_alloc.cli._output import console, emit, new_table, output_option, progress
from dra_alloc.cli._questions import Question, questions
from dra_alloc.errors import DraError
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc allocate -f cluster.yaml -f workloads.yaml
  dra-alloc allocate -f cluster.yaml --pod default/trainer-0 --node node-1
  kubectl get -A -o json nodes,pods,deviceclasses,resourceslices,resourceclaims | dra-alloc allocate -f -
"""


@dataclass(frozen=True)
class Answer:
    """What came of a question: the node and the allocations of its claims; both None: it does not fit."""

    question: Question
    node: str | None = None
    allocations: tuple[api.AllocationResult, ...] | None = None
    error: DraError | None = None

    @property
    def status(self) -> int:
        """The exit status that this answer alone leads to."""
        if self.error is not None:
            return 2
        return 1 if self.allocations is None else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys: pod, node, fits, claims (each with its allocation), error."""
        names = self.question.names
        claims: list[dict[str, Any]] = [{"claim": key} for key in names["claims"]]
        for entry, allocation in zip(claims, self.allocations or (), strict=False):
            entry["allocation"] = allocation.to_dict()
        error = None if self.error is None else {"kind": self.error.kind, "message": str(self.error)}
        return {"pod": names["pod"], "node": self.node, "fits": self.status == 0, "claims": claims, "error": error}


@click.command("allocate", epilog=_EXAMPLES)
@input_options
@selection_options
@click.option("--separately", is_flag=True, help="Ask each question as if it were the only one; nothing is taken up.")
@features_options
@output_option
def command(
    objects: list[Any],
    claim_names: Sequence[str],
    pod_name: str | None,
    node: str | None,
    separately: bool,
    features: Features,
    output: str,
) -> int:
    """Say which devices each claim gets, and on which node.

    Without --pod or --claim: the claims of every pod that waits for a node, then every other claim that is not
    allocated, one after the other in the order of the input, each on the first node where all its devices can be had.
    What one gets is taken for those after it, as when a scheduler works through its queue; not so with --separately.
    """
    from dra_alloc.allocator import Allocator

    cluster = cluster_of(objects)
    allocator = Allocator(cluster, features=features)
    asked = questions(objects, claim_names=claim_names, pod_name=pod_name)
    answers: list[Answer] = []
    for question in progress(asked, len(asked), "allocating"):
        answer = _ask(allocator, question, node or question.node)
        if answer.allocations is not None and not separately:
            for claim, allocation in zip(question.claims, answer.allocations, strict=True):
                cluster.commit(claim, allocation)
        answers.append(answer)
    if output == "table":
        _print(answers, Devices(objects), len(cluster.node_names()), node)
    else:
        emit({"answers": [answer.to_dict() for answer in answers]}, output)
    return max((answer.status for answer in answers), default=0)


def _ask(allocator: Allocator, question: Question, node: str | None) -> Answer:
    # A claim that it shares with an earlier pod has got its devices meanwhile.
    known = allocator.cluster
    claims = [known.get("ResourceClaim", claim.metadata.key) or claim for claim in question.claims]
    try:
        fitting = [node] if node else allocator.feasible_nodes(claims, limit=1)
        if fitting:
            found = allocator.allocate(claims, node=fitting[0])
            if found is not None:
                return Answer(question, fitting[0], tuple(found))
    except DraError as error:
        return Answer(question, node, error=error)
    return Answer(question)


def _print(answers: Sequence[Answer], devices: Devices, nodes: int, node: str | None) -> None:
    out = console()
    for answer in answers:
        title = answer.question.title
        if answer.error is not None:
            out.print(f"{title}: error", style="bold red")
            out.print(Padding(str(answer.error), (0, 0, 0, 2)))
        elif answer.allocations is None:
            where = f"does not fit on node {node}" if node else f"fits on none of {nodes} node{'s' * (nodes != 1)}"
            out.print(f"{title}: {where}", style="bold yellow")
        else:
            out.print(f"{title}: fits on node {answer.node}", style="bold green")
            table = new_table("claim", "request", "device", "details")
            for claim, allocation in zip(answer.question.claims, answer.allocations, strict=True):
                for result in allocation.devices.results:
                    device = f"{result.driver}/{result.pool}/{result.device}"
                    table.add_row(claim.metadata.name, result.request, device, devices.details(result))
            out.print(Padding(table, (0, 0, 0, 2)))
    fitting = sum(answer.status == 0 for answer in answers)
    out.print(f"{fitting} of {len(answers)} fit" if answers else "nothing waits for devices")
