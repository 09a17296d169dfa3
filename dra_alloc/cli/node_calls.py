"""`dra-alloc node-calls`: which drivers a node calls to prepare and to unprepare pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.features._objects import key_of
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.api import Pod
    from dra_alloc.features.nodeoperations import NodeCalls

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc node-calls -f dump.json --pod default/trainer-0
  dra-alloc node-calls -f dump.json --features DRAOptionalNodeOperations -o json
"""


@click.command("node-calls", epilog=_EXAMPLES)
@input_options
@click.option("--pod", "pod_name", metavar="NS/NAME", help="Only this pod (default: all pods that have a node).")
@features_options
@output_option
def command(objects: list[Any], pod_name: str | None, features: Features, output: str) -> int:
    """List, for each claim of the pods on nodes, the drivers that their kubelet calls."""
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.nodeoperations import pod_node_calls

    cluster = Cluster.from_objects(objects)
    wanted = pod_name if pod_name is None or "/" in pod_name else f"default/{pod_name}"
    pods = [pod for pod in cluster.pods() if (pod.spec.node_name if wanted is None else key_of(pod.metadata) == wanted)]
    if wanted is not None and not pods:
        raise click.BadParameter(f"there is no Pod {wanted} in the input", param_hint="--pod")
    claims = cluster.claims()
    calls = [(pod, item) for pod in pods for item in pod_node_calls(pod, claims, features)]
    if output != "table":
        emit({"calls": [_form(pod, item) for pod, item in calls]}, output)
    elif calls:
        table = new_table("pod", "node", "claim", "prepare", "unprepare")
        for pod, item in calls:
            drivers = (", ".join(names) or "-" for names in (item.prepare, item.unprepare))
            table.add_row(pod.metadata.key, pod.spec.node_name or "", item.claim, *drivers)
        console().print(table)
    else:
        click.echo("No pod on a node has claims.")
    return 0


def _form(pod: Pod, item: NodeCalls) -> dict[str, Any]:
    return {
        "pod": pod.metadata.key,
        "node": pod.spec.node_name,
        "claim": item.claim,
        "prepare": list(item.prepare),
        "unprepare": list(item.unprepare),
    }
