"""`dra-alloc devices-status`: what drivers report about allocated devices, and who has which address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.features.devicestatus import DeviceAddress

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc devices-status -f dump.json
  dra-alloc devices-status -f dump.json --network 10.0.0.0/24
  dra-alloc devices-status -f dump.json --network 10.0.0.5 -o json
"""


@click.command("devices-status", epilog=_EXAMPLES)
@input_options
@click.option("--network", metavar="CIDR", help="Only addresses in this network, or this address.")
@features_options
@output_option
def command(objects: list[Any], network: str | None, features: Features, output: str) -> int:
    """List the network addresses of allocated devices, and the pods that have them.

    Exit status 1: --network was given, and no address lies in it.
    """
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.devicestatus import cluster_addresses, in_network

    found = cluster_addresses(Cluster.from_objects(objects), features)
    if network is not None:
        found = tuple(in_network(found, network))
    if output != "table":
        emit({"addresses": [_form(item) for item in found]}, output)
    elif found:
        table = new_table("address", "pods", "claim", "device", "interface")
        for item in found:
            pods = ", ".join(item.pods) or "-"
            device = f"{item.device.driver}/{item.device.pool}/{item.device.device}"
            table.add_row(item.address, pods, item.claim, device, item.interface)
        console().print(table)
    else:
        click.echo("No address.")
    return int(network is not None and not found)


def _form(item: DeviceAddress) -> dict[str, Any]:
    return {
        "address": item.address,
        "pods": list(item.pods),
        "claim": item.claim,
        "driver": item.device.driver,
        "pool": item.device.pool,
        "device": item.device.device,
        "shareID": item.device.share_id,
        "interfaceName": item.interface,
        "hardwareAddress": item.hardware_address,
    }
