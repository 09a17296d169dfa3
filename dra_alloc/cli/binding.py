"""`dra-alloc binding`: whether pods may be bound, as the binding conditions of their devices have it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.cli._time import now_option, shown
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.api import ResourceClaim
    from dra_alloc.features.binding import Readiness

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc binding -f dump.json
  dra-alloc binding -f dump.json --timeout 60 --now 2026-09-01T12:00:00Z -o json
"""


@click.command("binding", epilog=_EXAMPLES)
@input_options
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long the scheduler waits (its bindingTimeout).",
)
@now_option
@features_options
@output_option
def command(objects: list[Any], timeout: int, now: datetime, features: Features, output: str) -> int:
    """Say of each claim whose devices have binding conditions whether it is ready, and until when it is waited for.

    Exit status 1: a claim has failed or timed out.
    """
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.binding import BindingState, claim_readiness

    limit = timedelta(seconds=timeout)
    states = [
        (claim, claim_readiness(claim, now=now, timeout=limit, features=features))
        for claim in Cluster.from_objects(objects).claims()
        if _has_conditions(claim)
    ]
    if output != "table":
        emit({"now": shown(now), "claims": [_form(claim, found) for claim, found in states]}, output)
    elif states:
        table = new_table("claim", "state", "device", "condition", "until")
        for claim, found in states:
            until = shown(found.deadline) if found.deadline else ""
            device = str(found.device) if found.device else ""
            table.add_row(claim.metadata.key, found.state.value, device, found.condition, until)
        console().print(table)
    else:
        click.echo("No claim has a device with binding conditions.")
    return int(any(found.state in (BindingState.FAILED, BindingState.TIMED_OUT) for _, found in states))


def _has_conditions(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation if claim.status else None
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def _form(claim: ResourceClaim, found: Readiness) -> dict[str, Any]:
    return {
        "claim": claim.metadata.key,
        "state": found.state.value,
        "device": str(found.device) if found.device else None,
        "condition": found.condition or None,
        "until": shown(found.deadline) if found.deadline else None,
    }
