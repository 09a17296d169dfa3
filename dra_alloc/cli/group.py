"""`dra-alloc group`: where all pods of a group go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._devices import Devices
from dra_alloc.cli._input import allocator_of, cluster_of, features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.cli._questions import qualified
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.features.groups import GroupPlan

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc group default/training -f cluster.yaml -f workloads.yaml --features DRAWorkloadResourceClaims
  dra-alloc group default/training -f dump.json --min-count 8 -o json
"""


@click.command("group", epilog=_EXAMPLES)
@click.argument("group", metavar="NAMESPACE/NAME")
@input_options
@click.option("--min-count", type=click.IntRange(min=1), metavar="N", help="Fewest pods; else the group's minCount.")
@click.option(
    "--max-tries",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Pods placed at most while nodes are tried.",
)
@features_options
@output_option
def command(
    group: str, objects: list[Any], min_count: int | None, max_tries: int, features: Features, output: str
) -> int:
    """Plan the pods of a PodGroup as a unit: all of them, or as many as can be had, or none.

    The pods are those of the input that name the group in spec.schedulingGroup and have no node yet.
    """
    allocator = allocator_of(cluster_of(objects), features)
    group = qualified(group)
    plan = allocator.allocate_group(group, min_count=min_count, max_tries=max_tries)
    reason = None if plan is not None else _why(allocator, group, min_count)
    if output != "table":
        form = None if plan is None else plan.to_dict()
        emit({"group": group, "fits": plan is not None, "plan": form, "reason": reason}, output)
    else:
        _print(group, plan, reason, Devices(objects))
    return int(plan is None)


def _why(allocator: Allocator, group: str, min_count: int | None) -> str:
    """Where to look first if there is no plan: at the number of pods, at one that fits nowhere, or at all together."""
    from dra_alloc.features.groups.members import fewest_of, members_of

    members = members_of(allocator, group)
    running, waiting = len(members.running), len(members.waiting)
    fewest = fewest_of(members, min_count)
    if running + waiting < fewest:
        return f"{fewest} pods must run, and the input has {running + waiting} of the group"
    alone = [pod.metadata.key for pod in members.waiting if not allocator.feasible_nodes(pod=pod, limit=1)]
    if alone:
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        return f"no node fits even alone: {', '.join(alone[:3])}{more}; dra-alloc explain --pod {alone[0]} says why"
    return f"each of the {waiting} pods that wait fits alone, but not {fewest - running} of them together"


def _print(group: str, plan: GroupPlan | None, reason: str | None, devices: Devices) -> None:
    out = console()
    if plan is None:
        out.print(f"group {group}: does not fit", style="bold yellow")
        out.print(f"  {reason}", highlight=False, soft_wrap=True)
        return
    out.print(f"group {group}: {len(plan.plans)} pods have a node", style="bold green")
    table = new_table("pod", "node", "claim", "request", "device", "details")
    for each in plan.plans:
        for row in devices.rows(zip(each.claims, each.allocations, strict=True)):
            table.add_row(each.pod.metadata.name, each.node, *row)
    out.print(table)
    if plan.left_out:
        more = "" if plan.complete else "; a plan with more of them is not ruled out"
        out.print(f"left out: {', '.join(plan.left_out)}{more}", style="bold yellow")
