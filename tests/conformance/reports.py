"""Reports of faults in other allocators, each with the right outcome in a document of kind `Expect`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import yaml

import dra_alloc as dra
from dra_alloc.api import DeviceRequestAllocationResult, ResourceClaim

DATA = Path(__file__).parent.parent / "data" / "bugs"


@attrs.frozen(slots=False)
class Report:
    """One report: its objects, and what is expected of them."""

    path: Path

    def __str__(self) -> str:
        return self.path.stem

    def objects(self) -> list[Any]:
        return list(dra.load(self.path))

    def expect(self) -> dict[str, Any]:
        documents = yaml.safe_load_all(self.path.read_text(encoding="utf-8"))
        found: dict[str, Any] = next(document for document in documents if document["kind"] == "Expect")
        return found

    def cluster(self) -> dra.Cluster:
        return dra.Cluster.from_objects(self.objects())

    def nodes(self) -> list[str]:
        """The nodes that may be chosen: by the document, else all."""
        expect = self.expect()
        if "node" in expect:
            return [expect["node"]]
        return list(expect.get("nodeAnyOf", self.cluster().node_names()))

    def pending(self, cluster: dra.Cluster) -> list[ResourceClaim]:
        """The claims that are not allocated."""
        return [claim for claim in cluster.claims() if not (claim.status and claim.status.allocation)]


def read_reports() -> list[Report]:
    return [Report(path) for path in sorted(DATA.glob("*.yaml"))]


def mismatches(expected: list[dict[str, Any]], actual: tuple[DeviceRequestAllocationResult, ...]) -> Iterator[str]:
    """Where the devices of a claim are not those of the document. `count` stands for so many of one request."""
    if "count" in expected[0]:
        wanted = {entry["request"]: entry["count"] for entry in expected}
        found = {name: sum(device.request == name for device in actual) for name in wanted}
        if wanted != found or sum(wanted.values()) != len(actual):
            yield f"devices by request: expected {wanted}, got {found} of {len(actual)}"
        return
    if len(expected) != len(actual):
        yield f"expected {len(expected)} devices, got {len(actual)}"
    for entry, device in zip(expected, actual, strict=False):
        yield from _mismatches(entry, device)


def _mismatches(entry: dict[str, Any], device: DeviceRequestAllocationResult) -> Iterator[str]:
    shown = device.to_dict()
    for field, wanted in entry.items():
        if field == "poolAnyOf":
            if device.pool not in wanted:
                yield f"pool {device.pool} is none of {wanted}"
        elif wanted == "any":
            if not shown.get(field):
                yield f"{field} is not set"
        elif shown.get(field) != wanted:
            yield f"{field}: expected {wanted}, got {shown.get(field)}"
