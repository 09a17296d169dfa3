"""Comparing two answers to one question: results, "does not fit", and errors alike."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from dra_alloc.api import AllocationResult
from dra_alloc.errors import AllocationError
from dra_alloc.testing.scenario import dump_yaml

__all__ = ["Outcome"]


@attrs.frozen
class Outcome:
    """What an allocation came to: `results`, None for "does not fit", or the `error` that it ended with."""

    results: tuple[AllocationResult, ...] | None = None
    error: AllocationError | None = None

    @classmethod
    def of(cls, attempt: Callable[[], Sequence[AllocationResult] | None]) -> Outcome:
        """Run an attempt. Errors other than AllocationError pass through."""
        try:
            results = attempt()
        except AllocationError as error:
            return cls(error=error)
        return cls(results=None if results is None else tuple(results))

    @property
    def verdict(self) -> str:
        """`fits`, `does-not-fit`, or the kind of the error."""
        if self.error is not None:
            return self.error.kind
        return "does-not-fit" if self.results is None else "fits"

    def to_dict(self) -> dict[str, Any]:
        """What is compared: everything but the values of share IDs and of the allocation time.

        Amounts are written in base units, so that the spelling of a quantity makes no difference.
        """
        shown: dict[str, Any] = {"verdict": self.verdict}
        if self.error is not None:
            for field in ("claim", "request", "device"):
                shown[field] = getattr(self.error, field)
        if self.results is not None:
            shown["results"] = [_comparable(result) for result in self.results]
        return shown

    def difference(self, other: Outcome, names: tuple[str, str] = ("expected", "actual")) -> str:
        """A diff of the two in YAML; empty if they are the same answer."""
        ours, theirs = self.to_dict(), other.to_dict()
        if ours == theirs:
            return ""
        before, after = (dump_yaml(shown).splitlines(keepends=True) for shown in (ours, theirs))
        return "".join(difflib.unified_diff(before, after, *names, n=5)) or "the two differ in types only\n"


def _comparable(result: AllocationResult) -> dict[str, Any]:
    shown = result.to_dict()
    if "allocationTimestamp" in shown:
        shown["allocationTimestamp"] = "set"
    for device, given in zip(shown.get("devices", {}).get("results", ()), result.devices.results, strict=True):
        if given.share_id is not None:
            device["shareID"] = "set"
        if given.consumed_capacity:
            device["consumedCapacity"] = {
                name: f"{amount.nano}n" for name, amount in sorted(given.consumed_capacity.items())
            }
    return shown
