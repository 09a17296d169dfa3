"""What an explanation is made of: plain frozen values, each with `to_dict`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.errors import located
from dra_alloc.explain.reasons import REASONS

if TYPE_CHECKING:
    from dra_alloc.api import AllocationResult, ResourceClaim
    from dra_alloc.explain._text import Line
    from dra_alloc.tables import Table

__all__ = [
    "Blocker",
    "Chosen",
    "Conflict",
    "Explanation",
    "Failure",
    "NearMiss",
    "NodeExplanation",
    "NodeGroup",
    "RequestExplanation",
    "RuledOut",
    "ValueSplit",
]


@attrs.frozen
class Blocker:
    """A rule that rules out one device for one request.

    code: the reason. what: the rule, in words that are the same for every device that it rules out in this way.
    detail: what is particular to this device (who holds it, how much is missing); may be empty.
    """

    code: str
    what: str = ""
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {"code": self.code, "what": self.what, "detail": self.detail}


@attrs.frozen
class RuledOut:
    """Devices that one rule rules out, for a request; each device is counted at the first rule that it fails.

    devices: (`driver/pool/device`, detail) of the first of them.
    """

    code: str
    what: str
    count: int
    devices: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        devices = [{"device": name, "detail": detail} for name, detail in self.devices]
        return {"code": self.code, "what": self.what, "count": self.count, "devices": devices}


@attrs.frozen
class NearMiss:
    """A device (`driver/pool/device`) that a single rule rules out: without it, it could be had."""

    device: str
    blocker: Blocker

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {"device": self.device, **self.blocker.to_dict()}


@attrs.frozen(kw_only=True)
class RequestExplanation:
    """What a node has for one request, or for one alternative of `firstAvailable`, taken by itself.

    claim: "namespace/name". request: `req` or `req/sub`. wanted: number of devices, or None for allocationMode All,
    which wants every device that matches. matching: devices that pass all but what use, taints and counters decide.
    candidates: devices that could be had (`driver/pool/device`), in search order.
    """

    claim: str
    request: str
    device_class: str
    wanted: int | None
    matching: int
    candidates: tuple[str, ...]
    ruled_out: tuple[RuledOut, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether there are as many candidates as the request wants. Then only other requests can be in the way."""
        if self.wanted is None:
            return self.matching > 0 and len(self.candidates) == self.matching
        return len(self.candidates) >= self.wanted

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "claim": self.claim,
            "request": self.request,
            "deviceClass": self.device_class,
            "wanted": "all" if self.wanted is None else self.wanted,
            "enough": self.enough,
            "matching": self.matching,
            "candidates": list(self.candidates),
            "ruledOut": [entry.to_dict() for entry in self.ruled_out],
            "nearMisses": [entry.to_dict() for entry in self.near_misses],
        }


@attrs.frozen
class Chosen:
    """A device that a request gets: in an answer, or in the best part of one."""

    claim: str
    request: str
    device: str

    @classmethod
    def of(cls, claims: Iterable[ResourceClaim], allocations: Iterable[AllocationResult]) -> tuple[Chosen, ...]:
        """The devices of claims and their allocations, which are as many, in the order of the results."""
        return tuple(
            cls(claim.metadata.key, each.request, f"{each.driver}/{each.pool}/{each.device}")
            for claim, allocation in zip(claims, allocations, strict=True)
            for each in allocation.devices.results
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {"claim": self.claim, "request": self.request, "device": self.device}


@attrs.frozen
class ValueSplit:
    """How the values of a constraint's attribute divide devices.

    constraint: matchAttribute or distinctAttribute. attribute: its name. chosen: values of the devices in the best
    partial set with the number of devices. others: the same for the candidates that are left.
    """

    constraint: str
    attribute: str
    chosen: tuple[tuple[str, int], ...]
    others: tuple[tuple[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "constraint": self.constraint,
            "attribute": self.attribute,
            "chosen": dict(self.chosen),
            "others": dict(self.others),
        }


@attrs.frozen(kw_only=True)
class Conflict:
    """Why requests cannot be had together that each could be had alone.

    requests: a least set of requests (`namespace/name/request`): without any one of them the others fit. constraints:
    those constraints without which they would fit; empty if it is for the devices alone. partial: the best set of
    devices that does fit, when `request` gets only `got` of the `wanted` devices. splits: what the values of the
    constraints' attributes are. rest: what rules out the other devices for `request` once the partial set is taken.
    """

    code: str
    requests: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    request: str = ""
    wanted: int = 0
    got: int = 0
    partial: tuple[Chosen, ...] = ()
    splits: tuple[ValueSplit, ...] = ()
    rest: tuple[RuledOut, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "code": self.code,
            "requests": list(self.requests),
            "constraints": list(self.constraints),
            "request": self.request,
            "wanted": self.wanted,
            "got": self.got,
            "partial": [entry.to_dict() for entry in self.partial],
            "splits": [entry.to_dict() for entry in self.splits],
            "rest": [entry.to_dict() for entry in self.rest],
        }


@attrs.frozen(kw_only=True)
class Failure:
    """An error that ended the attempt. code: its kind (docs/errors.md); message: with the caret of a CEL error."""

    code: str
    message: str
    claim: str = ""
    request: str = ""
    device: str = ""
    node: str = ""

    def __str__(self) -> str:
        where = located(self.message, claim=self.claim, request=self.request, device=self.device, node=self.node)
        return f"[{self.code}] {where}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "code": self.code,
            "message": self.message,
            "claim": self.claim,
            "request": self.request,
            "device": self.device,
            "node": self.node,
        }


@attrs.frozen(kw_only=True)
class NodeExplanation:
    """One node. code: the reason why not, empty where the claims fit. summary: the same in a line.

    chosen: what the claims get where they fit. requests: each request by itself. conflict: what keeps requests from
    being had together. failure: the error that the attempt ends with. notes: pools that offer nothing, and the like.
    """

    node: str
    fits: bool
    code: str = ""
    summary: str = ""
    chosen: tuple[Chosen, ...] = ()
    requests: tuple[RequestExplanation, ...] = ()
    conflict: Conflict | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "node": self.node,
            "fits": self.fits,
            "code": self.code or None,
            "summary": self.summary,
            "chosen": [entry.to_dict() for entry in self.chosen],
            "requests": [entry.to_dict() for entry in self.requests],
            "conflict": None if self.conflict is None else self.conflict.to_dict(),
            "failure": None if self.failure is None else self.failure.to_dict(),
            "notes": list(self.notes),
        }


@attrs.frozen(kw_only=True)
class NodeGroup:
    """Nodes that the same reason speaks against. example: the first of them in full."""

    code: str
    summary: str
    nodes: tuple[str, ...]
    example: NodeExplanation

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "code": self.code,
            "summary": self.summary,
            "count": len(self.nodes),
            "nodes": list(self.nodes),
            "example": self.example.to_dict(),
        }


@attrs.frozen(kw_only=True)
class Explanation:
    """Why claims fit, or do not, on one node or on many.

    subject: what was asked for, in words. fits: exactly when `allocate` gives an answer: on the node that was asked
    for, or on one of the nodes. nodes: number of nodes asked for. fitting: those on which the claims fit. groups: the
    others by reason, the largest first. failure: the error that ends the question for all nodes.

    Shows itself in notebooks. Everything in it is data: print `text()`, keep `to_dict()`, compute with `table()`.
    """

    subject: str
    claims: tuple[str, ...]
    pod: str | None = None
    nodes: int = 0
    fitting: tuple[str, ...] = ()
    only: NodeExplanation | None = None
    groups: tuple[NodeGroup, ...] = ()
    failure: Failure | None = None

    @property
    def fits(self) -> bool:
        """Whether there is an answer. An error, or a search out of budget, is none."""
        return bool(self.fitting)

    @property
    def code(self) -> str:
        """The reason code of the error, of the node, or of the largest group; empty if the claims fit."""
        if self.failure is not None:
            return self.failure.code
        if self.fits:
            return ""
        if self.only is not None:
            return self.only.code
        return self.groups[0].code if self.groups else "no-devices"

    def explained(self) -> Iterator[NodeExplanation]:
        """The nodes that are explained in full: the one asked for, or an example of each group."""
        if self.only is not None:
            yield self.only
        for group in self.groups:
            yield group.example

    def text(self, width: int = 100) -> str:
        """The explanation for people, folded to `width` columns, without colour, and without an end of line."""
        from dra_alloc.explain._text import render

        return render(self, width)

    def lines(self) -> Iterator[Line]:
        """The lines of the text before they are folded, each with its indent and style."""
        from dra_alloc.explain._text import lines

        return lines(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys; lists of nodes are complete."""
        return {
            "subject": self.subject,
            "pod": self.pod,
            "claims": list(self.claims),
            "fits": self.fits,
            "code": self.code or None,
            "nodes": self.nodes,
            "fitting": list(self.fitting),
            "node": None if self.only is None else self.only.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "failure": None if self.failure is None else self.failure.to_dict(),
        }

    def table(self) -> Table:
        """One row for each reason and node or group of nodes: for pandas, polars and CSV."""
        from dra_alloc.tables import Table

        rows = [
            (
                self.subject,
                found.node,
                len(group.nodes) if group is not None else 1,
                entry.claim,
                entry.request,
                "all" if entry.wanted is None else str(entry.wanted),
                len(entry.candidates),
                out.code,
                out.what,
                out.count,
            )
            for group, found in [(None, self.only), *((group, group.example) for group in self.groups)]
            if found is not None
            for entry in found.requests
            for out in entry.ruled_out
        ]
        columns = ("subject", "node", "nodes", "claim", "request", "wanted", "candidates", "code", "what", "devices")
        return Table.of(columns, rows, integers=("nodes", "candidates", "devices"))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from dra_alloc.explain._html import render

        return render(self)


def title(code: str) -> str:
    """The words for a code in a summary."""
    return REASONS[code].title
