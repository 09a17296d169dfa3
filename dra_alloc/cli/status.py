"""`dra-alloc status`: what is where."""

from __future__ import annotations

from typing import Any

import click

from dra_alloc.cli._input import cluster_of, features_options, input_options
from dra_alloc.cli._output import console, emit, emit_csv, new_table, output_forms
from dra_alloc.gates import Features

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc status -f dump.json
  dra-alloc status -f dump.json --by driver,type --partition-attribute gpu.example.com/profile
  dra-alloc status -f dump.json --node node-1 -o tree
  dra-alloc status -f dump.json -o csv > devices.csv
"""

_KEYS = ("node", "driver", "pool", "type")


@click.command("status", epilog=_EXAMPLES)
@input_options
@click.option("--node", metavar="NODE", help="Only devices of this node.")
@click.option("--driver", metavar="DRIVER", help="Only devices of this driver.")
@click.option(
    "--by",
    metavar="KEY,…",
    default="node,driver",
    show_default=True,
    help=f"What the table counts devices by: any of {', '.join(_KEYS)}.",
)
@click.option(
    "--partition-attribute",
    metavar="DOMAIN/NAME",
    help="The attribute that tells partition types apart in slices that declare none.",
)
@features_options
@output_forms("table", "tree", "json", "yaml", "csv", text="Form of the output; csv has a line for each device.")
def command(
    objects: list[Any],
    node: str | None,
    driver: str | None,
    by: str,
    partition_attribute: str | None,
    features: Features,
    output: str,
) -> int:
    """Count devices: in use, shared, tainted, blocked by partitions in use, free.

    A device is in the first of these states that holds. Devices that are not of one node count under `*`. Pools that
    offer no devices are named with what is wrong with them.
    """
    from dra_alloc.status import STATES, cluster_status

    keys = tuple(key.strip() for key in by.split(",") if key.strip())
    wrong = [key for key in keys if key not in _KEYS]
    if wrong or not keys:
        raise click.BadParameter(f"{by!r}: choose from {', '.join(_KEYS)}", param_hint="--by")
    status = cluster_status(cluster_of(objects), features, partition_attribute=partition_attribute)
    status = status.select(node=node, driver=driver)
    if output == "table":
        out = console()
        table = new_table(*keys, "devices", *STATES)
        for usage in status.usage(keys):
            table.add_row(*usage.key, str(usage.total), *(str(usage.states[state]) for state in STATES))
        out.print(table)
        for pool in status.pools:
            if pool.fault:
                out.print(f"{pool.fault}; it offers no devices", style="bold yellow")
    elif output == "tree":
        click.echo(status.tree())
    elif output == "csv":
        emit_csv([status.table()])
    else:
        emit(status.to_dict(), output)
    return 0
