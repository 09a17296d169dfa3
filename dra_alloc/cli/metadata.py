"""`dra-alloc metadata`: reading the metadata files of devices in a container."""

from __future__ import annotations

from pathlib import Path

import click

from dra_alloc.cli._output import console, emit, new_table, note, output_option

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc metadata /var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/*-metadata.json
  dra-alloc metadata gpu.example.com-metadata.json -o json
"""


@click.command("metadata", epilog=_EXAMPLES)
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option
def command(files: tuple[Path, ...], output: str) -> int:
    """Show the devices in metadata files (DeviceMetadata), those of one request merged.

    Exit status 1: what the files say breaks rules of the API; the rules are told on standard error.
    """
    from dra_alloc.features.metadata import merge, metadata_problems, read_file

    found = merge(read_file(path) for path in files)
    problems = metadata_problems(found)
    for problem in problems:
        note(f"warning: {problem}")
    if output == "table":
        table = new_table("request", "driver", "pool", "device", "attributes", "addresses")
        for request in found.requests:
            for device in request.devices:
                attributes = (
                    f"{name}={value}" for name, form in device.attributes.items() for value in form.to_dict().values()
                )
                addresses = device.network_data.ips if device.network_data else ()
                names = (request.name, device.driver, device.pool, device.name)
                table.add_row(*names, "\n".join(attributes), "\n".join(addresses))
        console().print(table)
    else:
        emit(found.to_dict(), output)
    return int(bool(problems))
