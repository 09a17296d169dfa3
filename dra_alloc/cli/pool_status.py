"""`dra-alloc pool-status`: how much of the pools is in use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.cli._time import now_option
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.api import PoolStatus, ResourcePoolStatusRequest
    from dra_alloc.cluster import Cluster

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc pool-status -f dump.json
  dra-alloc pool-status -f dump.json --driver gpu.example.com --pool node-1
  dra-alloc pool-status -f dump.json --partition-type gpu.example.com/profile \\
    --features DRAPartitionableDevicesType
  dra-alloc pool-status -f dump.json -f request.yaml --answer --features DRAResourcePoolStatus -o yaml
"""


@click.command("pool-status", epilog=_EXAMPLES)
@input_options
@click.option("--driver", metavar="DRIVER", help="Only pools of this driver.")
@click.option("--pool", "pool_name", metavar="POOL", help="Only pools of this name.")
@click.option(
    "--partition-type",
    metavar="ATTRIBUTE",
    help="The qualified attribute that names partition types where slices declare none.",
)
@click.option(
    "--answer",
    "by_request",
    is_flag=True,
    help="Answer the ResourcePoolStatusRequests in the input, as the controller would.",
)
@now_option
@features_options
@output_option
def command(
    objects: list[Any],
    driver: str | None,
    pool_name: str | None,
    partition_type: str | None,
    by_request: bool,
    now: datetime,
    features: Features,
    output: str,
) -> int:
    """Count the devices of each pool: allocated, available, unavailable because of taints.

    Partition types are told apart with the feature DRAPartitionableDevicesType.
    """
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.poolstatus import pool_status

    if by_request:
        if driver or pool_name or partition_type:
            raise click.UsageError("with --answer the requests say which pools they ask for")
        return _answer(objects, now, features, output)
    cluster = Cluster.from_objects(objects)
    wanted = [
        item
        for item in cluster.slices()
        if driver in (None, item.spec.driver) and pool_name in (None, item.spec.pool.name)
    ]
    pools = pool_status(
        wanted, cluster.claims(), cluster.rules(), default_partition_type=partition_type, features=features
    )
    if output == "table":
        _print(pools)
    else:
        emit({"pools": [pool.to_dict() for pool in pools]}, output)
    return 0


def _answer(objects: Sequence[Any], now: datetime, features: Features, output: str) -> int:
    from dra_alloc.api import ResourcePoolStatusRequest
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.poolstatus import answer_request

    requests = [item for item in objects if isinstance(item, ResourcePoolStatusRequest)]
    if not requests:
        raise click.UsageError("there is no ResourcePoolStatusRequest in the input")
    cluster: Cluster = Cluster.from_objects(item for item in objects if not isinstance(item, ResourcePoolStatusRequest))
    answered: list[ResourcePoolStatusRequest] = [
        answer_request(request, cluster, now=now, features=features) for request in requests
    ]
    if output == "table":
        for request in answered:
            assert request.status is not None
            conditions = "; ".join(condition.message for condition in request.status.conditions)
            click.echo(f"{request.metadata.name}: {conditions}")
            _print(request.status.pools)
    else:
        emit([request.to_dict() for request in answered], output)
    return 0


def _print(pools: Iterable[PoolStatus]) -> None:
    rows = list(pools)
    if not rows:
        click.echo("No pool matches.")
        return
    table = new_table("driver", "pool", "node", "devices", "allocated", "available", "unavailable")
    for pool in rows:
        counts = (pool.total_devices, pool.allocated_devices, pool.available_devices, pool.unavailable_devices)
        numbers = ("-" if count is None else str(count) for count in counts)
        table.add_row(pool.driver, pool.pool_name, pool.node_name or "", *numbers)
    console().print(table)
    for pool in rows:
        for remark in _remarks(pool):
            click.echo(f"{pool.driver}/{pool.pool_name}: {remark}")


def _remarks(pool: PoolStatus) -> Iterable[str]:
    if pool.validation_error:
        yield pool.validation_error
    for entry in pool.partition_summary:
        yield f"{entry.allocatable} of {entry.total} more of type {entry.type} can be allocated"
    if pool.shareable_summary is not None:
        for capacity in pool.shareable_summary.capacity:
            yield f"{capacity.available} of {capacity.total} {capacity.name} left"
