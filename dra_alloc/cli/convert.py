"""`dra-alloc convert`: objects in another version of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dra_alloc.cli._input import raw_input_options
from dra_alloc.cli._output import emit, note, output_forms

if TYPE_CHECKING:
    from dra_alloc.codec import Loaded

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc convert -f old-slices.yaml > slices.yaml
  dra-alloc convert -f claims.yaml --to v1beta1 -o json
"""


@click.command("convert", epilog=_EXAMPLES)
@raw_input_options
@click.option(
    "--to",
    "version",
    metavar="VERSION",
    help="Version of resource.k8s.io, such as v1beta1 (default: the newest); other groups stay as they are.",
)
@output_forms("yaml", "json")
def command(objects: Loaded, version: str | None, output: str) -> None:
    """Write the objects in another version of the API.

    YAML comes as one document an object, JSON as a List. What the version cannot hold is an error that names the field;
    nothing is dropped in silence. Kinds that Dynamic Resource Allocation does not concern are not written.
    """
    from dra_alloc.codec import encode

    for warning in objects.warnings:
        note(f"warning: {warning}")
    written = [
        encode(found, version if found.api_version.startswith("resource.k8s.io/") else None) for found in objects
    ]
    if output == "json":
        emit({"apiVersion": "v1", "kind": "List", "items": written}, output)
        return
    for position, document in enumerate(written):
        if position:
            click.echo("---")
        emit(document, output)
