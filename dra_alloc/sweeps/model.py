"""What a scenario says, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.tables import Table

__all__ = ["Label", "Outcome", "Placement", "Scenario", "table"]

#: What a scenario is told apart by: a setting of one of the things that vary.
Label = str | int | float | bool


def _models(objects: Iterable[Any]) -> tuple[Any, ...]:
    from dra_alloc.codec import decode

    return tuple(decode(item) for item in objects)


def _pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((kind, key) for kind, key in pairs)


def _labels(labels: Mapping[str, Label]) -> dict[str, Label]:
    return dict(labels)


@attrs.frozen(kw_only=True)
class Scenario:
    """One what-if: changes of the cluster, then a workload that is placed in it.

    name: tells the scenario apart in what is reported. labels: the same as settings by name, the columns of tables.
    delete: (kind, `namespace/name` or name) of objects that are not there. upsert: objects that are there besides or
    instead. workload: objects that come then: pods that wait for a node, and claims that no pod of the workload names,
    are placed one by one in their order, on the first node that has room; what is not to be placed (templates,
    classes, claims that pods name) is just added. features: gates of this scenario; None: those of the sweep.

    Objects are api models, dicts, or objects of a Kubernetes client. Raises DecodeError for what is none of them.
    """

    name: str
    workload: tuple[Any, ...] = attrs.field(default=(), converter=_models)
    upsert: tuple[Any, ...] = attrs.field(default=(), converter=_models)
    delete: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=_pairs)
    features: Features | None = None
    labels: Mapping[str, Label] = attrs.field(factory=dict, converter=_labels)


@attrs.frozen
class Placement:
    """What became of one pod or claim of the workload (`subject`: "pod ns/name" or "claim ns/name").

    node: where it was placed, or None. reason: why not: the kind of an error, otherwise `does-not-fit`, or with
    `explain` the reason code of docs/reasons.md. devices: how many it got.
    """

    subject: str
    node: str | None = None
    reason: str = ""
    devices: int = 0


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of one scenario. error: why it could not be played at all, empty otherwise.

    placements: by pod and claim, in the order of the workload. devices: how many devices of each driver they hold.
    """

    name: str
    labels: Mapping[str, Label] = attrs.field(factory=dict)
    placements: tuple[Placement, ...] = ()
    devices: Mapping[str, int] = attrs.field(factory=dict)
    error: str = ""

    @property
    def placed(self) -> int:
        """How many pods and claims were placed."""
        return sum(placement.node is not None for placement in self.placements)

    @property
    def unplaced(self) -> int:
        """How many were not."""
        return len(self.placements) - self.placed

    @property
    def fits(self) -> bool:
        """Whether the whole workload was placed."""
        return not self.error and not self.unplaced

    @property
    def nodes(self) -> int:
        """On how many nodes something was placed."""
        return len({placement.node for placement in self.placements} - {None})

    @property
    def reason(self) -> str:
        """Why the first that was not placed was not; empty if all were."""
        return next((placement.reason for placement in self.placements if placement.node is None), "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "name": self.name,
            "labels": dict(self.labels),
            "fits": self.fits,
            "placed": self.placed,
            "unplaced": self.unplaced,
            "placements": [attrs.asdict(placement) for placement in self.placements],
            "devices": dict(self.devices),
            "error": self.error,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        """What `to_dict` wrote. Raises KeyError or TypeError for anything else."""
        return cls(
            name=data["name"],
            labels=dict(data["labels"]),
            placements=tuple(Placement(**placement) for placement in data["placements"]),
            devices=dict(data["devices"]),
            error=data["error"],
        )


def table(outcomes: Iterable[Outcome]) -> Table:
    """One row for each scenario: its name, its labels, and what came of it. For CSV, pandas, polars.

    A label with the name of another column has `label_` before it.
    """
    from dra_alloc.tables import Table

    found = list(outcomes)
    labels = list(dict.fromkeys(label for outcome in found for label in outcome.labels))
    numbers = [
        label for label in labels if all(type(outcome.labels.get(label)) in (int, type(None)) for outcome in found)
    ]
    counts = ("placed", "unplaced", "nodes_used", "devices_used")
    rows = [
        (
            outcome.name,
            *(_cell(outcome.labels.get(label), label in numbers) for label in labels),
            outcome.placed,
            outcome.unplaced,
            outcome.nodes,
            sum(outcome.devices.values()),
            outcome.reason,
            outcome.error,
        )
        for outcome in found
    ]
    taken = {"name", *counts, "reason", "error"}
    columns = {label: f"label_{label}" if label in taken else label for label in labels}
    return Table.of(
        ("name", *columns.values(), *counts, "reason", "error"),
        rows,
        integers=(*(columns[label] for label in numbers), *counts),
    )


def _cell(value: Label | None, number: bool) -> object:
    return value if number or value is None else str(value)
