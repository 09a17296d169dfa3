"""The conformance vectors: questions with their known answers, one JSON object a line."""

from __future__ import annotations

import gzip
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from dra_alloc.api import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    Node,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.testing.scenario import Scenario

DATA = Path(__file__).parent.parent / "data" / "conformance"


@attrs.frozen(slots=False)
class Vector:
    """One case, read when it is looked at: collecting tests costs only its id."""

    id: str
    line: bytes = attrs.field(repr=False)

    @cached_property
    def expected(self) -> dict[str, dict[str, Any]]:
        """The known answer by node name."""
        answer: dict[str, dict[str, Any]] = json.loads(self.line)["expected"]
        return answer

    @cached_property
    def scenario(self) -> Scenario:
        case = json.loads(self.line)
        return Scenario(
            nodes=tuple(map(Node.from_dict, case["nodes"])),
            slices=tuple(map(ResourceSlice.from_dict, case["slices"])),
            classes=tuple(map(DeviceClass.from_dict, case["classes"])),
            taint_rules=tuple(map(DeviceTaintRule.from_dict, case.get("taintRules", ()))),
            allocated_claims=tuple(map(ResourceClaim.from_dict, case["allocatedClaims"])),
            claims=tuple(map(ResourceClaim.from_dict, case["claims"])),
        )

    def full_results(self, node: str) -> tuple[AllocationResult, ...] | None:
        """The whole results where the vector has them."""
        full = self.expected[node].get("full")
        return None if full is None else tuple(map(AllocationResult.from_dict, full))


def read_vectors() -> list[Vector]:
    """All vectors of all families."""
    vectors = []
    for path in sorted(DATA.glob("*.jsonl.gz")):
        with gzip.open(path) as lines:
            vectors += [Vector(line[len(b'{"id":"') : line.index(b'",')].decode(), line) for line in lines]
    return vectors
