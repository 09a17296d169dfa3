"""Options that all commands share: what to read, which claims or pod, which node, which features."""

from __future__ import annotations

import functools
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dra_alloc import api
from dra_alloc.cli._output import note
from dra_alloc.cli._questions import missing
from dra_alloc.errors import DraError
from dra_alloc.features._naming import named
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.cluster import Cluster
    from dra_alloc.codec import Loaded

__all__ = [
    "allocator_of",
    "cluster_of",
    "features_options",
    "input_options",
    "node_resources_option",
    "raw_input_options",
    "read",
]

Function = TypeVar("Function", bound=Callable[..., Any])

#: What counts as a manifest in a folder.
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})

#: The letters of names that Kubernetes generates.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def input_options(function: Function) -> Function:
    """The options for what to read, passed as `objects`: all objects that were read, in order (a `Loaded`).

    They are `-f`, `-R`, `--strict`, and `--live` with `--context`; objects of files come after those of the cluster and
    count instead of them. Warnings go to standard error. A name that the API server would make (`generateName`) ends in
    a number here. Raises DraError for an object without a name.
    """

    @raw_input_options
    @functools.wraps(function)
    def wrapper(*, objects: Loaded, **rest: Any) -> Any:
        for warning in objects.warnings:
            note(f"warning: {warning}")
        objects[:] = named(objects, lambda place: objects.origins[place].where)
        return function(objects=objects, **rest)

    return wrapper  # type: ignore[return-value]


def raw_input_options(function: Function) -> Function:
    """The same, with the objects as they were written, for a command that tells of the warnings itself."""

    @click.option(
        "-f",
        "--file",
        "files",
        metavar="FILE",
        multiple=True,
        type=click.Path(exists=True, allow_dash=True, path_type=Path),
        help="Manifests or dumps, YAML or JSON; a folder stands for the files in it, - for standard input. Repeatable.",
    )
    @click.option("-R", "--recursive", is_flag=True, help="Also read the folders inside of folders.")
    @click.option("--strict", is_flag=True, help="Refuse fields that the API does not know, instead of warning.")
    @click.option("--live", is_flag=True, help="Read the cluster of the current context of kubectl (lists only).")
    @click.option("--context", metavar="CONTEXT", help="With --live: another context of the kubeconfig.")
    @functools.wraps(function)
    def wrapper(
        *, files: tuple[Path, ...], recursive: bool, strict: bool, live: bool, context: str | None, **rest: Any
    ) -> Any:
        if context is not None and not live:
            raise click.UsageError("--context is for --live")
        if not files and not live:
            raise click.UsageError("Missing option '-f' / '--file', or --live for the current context of kubectl.")
        cluster = read_live(context, strict=strict) if live else []
        return function(objects=read(files, cluster, recursive=recursive, strict=strict), **rest)

    return wrapper  # type: ignore[return-value]


def read_live(context: str | None, *, strict: bool = False) -> list[Any]:
    """The objects of a running cluster. Warnings go to standard error. Raises DraError."""
    from dra_alloc.live import fetch

    loaded = fetch(context, strict=strict)
    for warning in loaded.warnings:
        note(f"warning: {warning}")
    return loaded


def read(files: Iterable[Path], before: Iterable[Any] = (), *, recursive: bool = False, strict: bool = False) -> Loaded:
    """The objects given before, then those of files and folders, in order.

    Says on standard error if nothing of it matters. Raises DecodeError, and DraError if there is no object at all.
    """
    from dra_alloc.codec import load

    sources = [source for path in files for source in _expand(path, recursive)]
    loaded = load(*before, *sources, strict=strict)
    if not loaded and not loaded.skipped:
        raise DraError("there is no object in the input")
    if not loaded:
        skipped = ", ".join(f"{count} {kind}" for kind, count in sorted(loaded.skipped.items()))
        note(f"warning: no object of Dynamic Resource Allocation in the input; skipped: {skipped}")
    return loaded


def cluster_of(objects: Sequence[Any], node: str | None = None) -> Cluster:
    """The cluster of the objects. If they hold no node at all, it has the nodes that slices name, without labels.

    node: of the user's choice; raises UsageError if the cluster has none of this name.
    """
    from dra_alloc.cluster import Cluster

    cluster = Cluster.from_objects(objects)
    if not cluster.node_names():
        named = {name: None for found in cluster.slices() for name in _node_names(found) if name}
        if named:
            note("warning: no Node in the input; taking the nodes that ResourceSlices name, which have no labels here")
            cluster.upsert(*(api.Node(metadata=api.ObjectMeta(name=name)) for name in named))
    if node is not None and node not in cluster.node_names():
        raise missing("Node", node, cluster.node_names())
    return cluster


def allocator_of(cluster: Cluster, features: Features) -> Allocator:
    """An allocator whose answers depend on the input alone: what is random in Kubernetes is drawn in a fixed order.

    IDs of shares and endings of generated names are none that the cluster has already.
    """
    from dra_alloc.allocator import Allocator

    draw = random.Random(0)
    shares = {result.share_id for claim in cluster.claims() for result in _results(claim)}
    endings = {claim.metadata.name.rpartition("-")[2] for claim in cluster.claims()}
    return Allocator(
        cluster,
        features=features,
        share_ids=_fresh(lambda: str(uuid.UUID(int=draw.getrandbits(128), version=4)), shares),
        suffixes=_fresh(lambda: "".join(draw.choices(_LETTERS, k=5)), endings),
    )


def _fresh(draw: Callable[[], str], used: set[str | None] | set[str]) -> Callable[[], str]:
    known: set[str | None] = {*used}

    def fresh() -> str:
        value = draw()
        while value in known:
            value = draw()
        known.add(value)
        return value

    return fresh


def _results(claim: api.ResourceClaim) -> tuple[api.DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation if claim.status is not None else None
    return allocation.devices.results if allocation is not None else ()


def _node_names(found: api.ResourceSlice) -> Iterator[str | None]:
    yield found.spec.node_name
    for device in found.spec.devices:
        yield device.node_name


def _expand(path: Path, recursive: bool) -> list[str]:
    if str(path) == "-" or not path.is_dir():
        return [str(path)]
    found = sorted(path.rglob("*") if recursive else path.iterdir())
    manifests = [str(file) for file in found if file.suffix in _SUFFIXES and file.is_file()]
    if not manifests:
        raise click.BadParameter(f"no .yaml, .yml or .json file in the folder {path}", param_hint="-f")
    return manifests


def node_resources_option(function: Function) -> Function:
    """The option `--node-resources`, passed as `node_resources`."""
    return click.option(
        "--node-resources",
        type=click.Choice(["check", "search"]),
        default="check",
        show_default=True,
        help="Where devices take CPU, memory or the like of the node (KEP-5517): check the first answer, as Kubernetes "
        "does, or search on for one that the node has enough for.",
    )(function)


def features_options(function: Function) -> Function:
    """The options `--kubernetes-version`, `--features`, passed as `features`."""

    @click.option(
        "--kubernetes-version",
        "version",
        metavar="VERSION",
        default="1.37",
        show_default=True,
        help="Feature gates as this version has them by default.",
    )
    @click.option(
        "--features",
        "switches",
        metavar="GATE[=true|false],…",
        multiple=True,
        help="Feature gates that differ from that: names, or `all` or `none`. Repeatable; later ones win.",
    )
    @functools.wraps(function)
    def wrapper(*, version: str, switches: tuple[str, ...], **rest: Any) -> Any:
        return function(features=_features(version, ",".join(switches)), **rest)

    return wrapper  # type: ignore[return-value]


def _features(version: str, switches: str) -> Features:
    try:
        features = Features.for_version(version)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kubernetes-version") from None
    for switch in filter(None, (part.strip() for part in switches.split(","))):
        gate, _, value = switch.partition("=")
        if value.lower() not in {"", "true", "false"}:
            raise click.BadParameter(f"{switch!r}: a gate is true or false", param_hint="--features")
        on = value.lower() != "false"
        if gate in {"all", "none"} and value:
            raise click.BadParameter(f"{switch!r}: {gate} takes no value", param_hint="--features")
        if gate == "all":
            features = Features.all()
        elif gate == "none":
            features = Features.none()
        else:
            _check_gate(gate)
            features = features.replace(**{gate: on})
    return features


def _check_gate(gate: str) -> None:
    try:
        Features.for_version("1.37", enable=[gate])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--features") from None
