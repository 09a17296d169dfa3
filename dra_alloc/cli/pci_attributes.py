"""`dra-alloc pci-attributes`: the standard attributes of PCI devices of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from dra_alloc.cli._output import console, emit, new_table, output_option

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc pci-attributes 0000:3b:00.0
  dra-alloc pci-attributes 3b:00.0 5e:00.0 --lists -o yaml
"""


@click.command("pci-attributes", epilog=_EXAMPLES)
@click.argument("addresses", metavar="ADDRESS…", nargs=-1, required=True)
@click.option(
    "--sysfs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("/sys"),
    show_default=True,
    help="The root of sysfs, or of a copy.",
)
@click.option("--lists", is_flag=True, help="numaNode as a list, with the nodes that are as near.")
@output_option
def command(addresses: tuple[str, ...], sysfs: Path, lists: bool, output: str) -> int:
    """Print pciBusID, pcieRoot and numaNode of PCI devices, as drivers publish them in a ResourceSlice.

    What the machine does not tell is left out.
    """
    from dra_alloc.features.standard import pci_attributes

    found = {address: pci_attributes(address, sysfs, lists=lists) for address in addresses}
    if output == "table":
        table = new_table("address", "attribute", "value")
        for address, attributes in found.items():
            for name, attribute in attributes.items():
                (value,) = attribute.to_dict().values()
                table.add_row(address, name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        console().print(table)
    else:
        forms = {
            address: {name: attribute.to_dict() for name, attribute in attributes.items()}
            for address, attributes in found.items()
        }
        emit({"devices": forms}, output)
    return 0
