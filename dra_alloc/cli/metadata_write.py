"""`dra-alloc metadata-write`: the metadata files of allocated claims and their CDI specifications, without a driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from dra_alloc.cli._input import input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.errors import ValidationError
from dra_alloc.features._objects import key_of

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc metadata-write -f dump.json --root node-1
  dra-alloc metadata-write -f dump.json --claim default/trainer-0-devices --root node-1 -o json
"""


@click.command("metadata-write", epilog=_EXAMPLES)
@input_options
@click.option("--claim", "claim_name", metavar="NS/NAME", help="Only this claim (default: all that are allocated).")
@click.option(
    "--root",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write: metadata files in plugins/DRIVER, CDI specifications in cdi.",
)
@output_option
def command(objects: list[Any], claim_name: str | None, root: Path, output: str) -> int:
    """Write the metadata files of allocated claims, and the CDI specifications that mount them.

    The files have the attributes that ResourceSlices publish, in all versions of DeviceMetadata. This is what a driver
    does on its node; use it to try software that reads the files in a container.
    """
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.metadata import VERSIONS, MetadataWriter, published_devices

    cluster = Cluster.from_objects(objects)
    wanted = claim_name if claim_name is None or "/" in claim_name else f"default/{claim_name}"
    allocated = [
        claim for claim in cluster.claims() if claim.status is not None and claim.status.allocation is not None
    ]
    claims = [claim for claim in allocated if wanted in (None, key_of(claim.metadata))]
    if wanted is not None and not claims:
        raise click.BadParameter(f"there is no allocated ResourceClaim {wanted} in the input", param_hint="--claim")
    written = []
    for claim in claims:
        key = key_of(claim.metadata)
        named = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, namespace=key.partition("/")[0]))
        for driver, devices in published_devices(claim, cluster.slices()).items():
            try:
                writer = MetadataWriter(driver, root / "plugins" / driver, VERSIONS, cdi_dir=root / "cdi")
                ids = writer.prepare(named, devices)
            except ValidationError as error:
                raise click.ClickException(f"ResourceClaim {key}: {error}") from None
            for request, cdi_id in ids.items():
                file = writer.host_path(named.metadata.namespace, named.metadata.name, request)
                names = {"claim": key, "request": request, "driver": driver}
                written.append({**names, "cdiDeviceID": cdi_id, "file": str(file.relative_to(root.absolute()))})
    if output != "table":
        emit({"files": written}, output)
    elif written:
        table = new_table("claim", "request", "driver", "file")
        for item in written:
            table.add_row(item["claim"], item["request"], item["driver"], item["file"])
        console().print(table)
    else:
        click.echo("No claim is allocated.")
    return 0
