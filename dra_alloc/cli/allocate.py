"""`dra-alloc allocate`: what each claim gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.padding import Padding

from dra_alloc import api
from dra_alloc.cli._devices import Devices
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
from dra_alloc.features._objects import key_of
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.features.pods.planner import NodeResources

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc allocate -f cluster.yaml -f workloads.yaml
  dra-alloc allocate -f cluster.yaml --pod default/trainer-0 --node node-1
  kubectl get -A -o json nodes,pods,deviceclasses,resourceslices,resourceclaims | dra-alloc allocate -f -
"""


@dataclass(frozen=True)
class Answer:
    """What came of a question: the node, and the claims with what each gets; no node: it does not fit, or an error."""

    question: Question
    claims: tuple[tuple[api.ResourceClaim, api.AllocationResult | None], ...]
    node: str | None = None
    error: DraError | None = None
    reason: str | None = None

    @property
    def status(self) -> int:
        """The exit status that this answer alone leads to."""
        if self.error is not None:
            return 2
        return 1 if self.node is None else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys: pod, node, fits, claims (each with its allocation), reason, error."""
        claims = [
            {"claim": key_of(claim.metadata)} | ({"allocation": allocation.to_dict()} if allocation is not None else {})
            for claim, allocation in self.claims
        ]
        return {
            "pod": key_of(self.question.pod.metadata) if self.question.pod else None,
            "node": self.node,
            "fits": self.status == 0,
            "claims": claims,
            "reason": self.reason,
            "error": None if self.error is None else error_form(self.error),
        }


@click.command("allocate", epilog=_EXAMPLES)
@input_options
@selection_options
@click.option("--separately", is_flag=True, help="Ask each question as if it were the only one; nothing is taken up.")
@node_resources_option
@features_options
@output_option
def command(
    objects: list[Any],
    asked: list[Question],
    node: str | None,
    separately: bool,
    node_resources: NodeResources,
    features: Features,
    output: str,
) -> int:
    """Say which devices each claim gets, and on which node.

    A pod gets the claims that it names, those of its templates, and the one for its extended resources; its node
    selector, affinity, tolerations and requests count too.

    Without --pod or --claim: every pod that waits for a node and needs devices (but for those with scheduling gates and
    those that are being deleted), then every claim that is not allocated and belongs to no pod, one after the other in
    the order of the input, each on the first node that fits. What one gets is taken for those after it, as when a
    scheduler works through its queue; not so with --separately.
    """
    cluster = cluster_of(objects, node)
    allocator = allocator_of(cluster, features)
    answers = [
        _answer(allocator, question, node, node_resources, take=not separately)
        for question in progress(asked, len(asked), "allocating")
    ]
    if output == "table":
        _print(answers, Devices(objects), len(cluster.node_names()), node)
    else:
        emit({"answers": [answer.to_dict() for answer in answers]}, output)
    return max((answer.status for answer in answers), default=0)


def _answer(
    allocator: Allocator, question: Question, node: str | None, node_resources: NodeResources, *, take: bool
) -> Answer:
    """The answer to a question; with `take` the cluster then has what it gives."""
    try:
        if question.pod is not None:
            return _plan(allocator, question, question.pod, node, node_resources, take=take)
        return _allocate(allocator, question, node, take=take)
    except DraError as error:
        return Answer(question, tuple((claim, None) for claim in question.claims), error=error)


def _plan(
    allocator: Allocator,
    question: Question,
    pod: api.Pod,
    node: str | None,
    node_resources: NodeResources,
    *,
    take: bool,
) -> Answer:
    plan = allocator.allocate_pod(pod, node, node_resources=node_resources)
    if plan is None:
        refusal = allocator.refusal(pod, node, node_resources=node_resources) if node is not None else None
        return Answer(question, (), reason=str(refusal) if refusal is not None else None)
    if take:
        allocator.cluster.commit(plan)
    return Answer(question, tuple(zip(plan.claims, plan.allocations, strict=True)), plan.node)


def _allocate(allocator: Allocator, question: Question, node: str | None, *, take: bool) -> Answer:
    fitting = [node] if node is not None else allocator.feasible_nodes(question.claims, limit=1)
    found = allocator.allocate(question.claims, fitting[0]) if fitting else None
    if found is None:
        return Answer(question, tuple((claim, None) for claim in question.claims))
    if take:
        allocator.cluster.commit(list(zip(question.claims, found, strict=True)))
    return Answer(question, tuple(zip(question.claims, found, strict=True)), fitting[0])


def _print(answers: Sequence[Answer], devices: Devices, nodes: int, node: str | None) -> None:
    out = console()
    for answer in answers:
        title = answer.question.title
        if answer.error is not None:
            out.print(f"{title}: error", style="bold red")
            out.print(Padding(str(answer.error), (0, 0, 0, 2), expand=False))
        elif answer.node is None:
            where = f"does not fit on node {node}" if node else f"fits on none of {nodes} node{'s' * (nodes != 1)}"
            out.print(f"{title}: {where}", style="bold yellow")
            if answer.reason is not None:
                out.print(Padding(answer.reason, (0, 0, 0, 2), expand=False))
        else:
            out.print(f"{title}: fits on node {answer.node}", style="bold green")
            table = new_table("claim", "request", "device", "details")
            for row in devices.rows(answer.claims):
                table.add_row(*row)
            if table.row_count:  # a pod may get all that it asks for from its node
                out.print(Padding(table, (0, 0, 0, 2)))
    fitting = sum(answer.status == 0 for answer in answers)
    out.print(f"{fitting} of {len(answers)} fit" if answers else "nothing waits for devices")
