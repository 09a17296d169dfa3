"""`dra-alloc quota`: what a ResourceQuota counts of devices."""

from __future__ import annotations

from typing import Any

import click

from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, note, output_option
from dra_alloc.gates import Features

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc quota -f dump.json
  dra-alloc quota -f dump.json --namespace team-a -o json
"""


@click.command("quota", epilog=_EXAMPLES)
@input_options
@click.option("-n", "--namespace", default="default", show_default=True, metavar="NAME", help="Whose use is counted.")
@features_options
@output_option
def command(objects: list[Any], namespace: str, features: Features, output: str) -> int:
    """Count what the pods and claims of a namespace use of the names that a ResourceQuota can limit."""
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.quota import quota_usage

    cluster = Cluster.from_objects(objects)
    usage = quota_usage(cluster.pods(), cluster.claims(), cluster.classes(), namespace=namespace, features=features)
    others = {item.metadata.namespace or "default" for item in (*cluster.pods(), *cluster.claims())}
    if others and namespace not in others:
        note(f"warning: no pod or claim in the namespace {namespace}; there are some in {', '.join(sorted(others))}")
    if output != "table":
        emit({"namespace": namespace, "used": usage}, output)
    else:
        table = new_table("resource", "used")
        for name, count in usage.items():
            table.add_row(name, str(count))
        console().print(table)
    return 0
