"""The file in which a sweep remembers what it has done, so that it goes on after a crash.

JSON Lines: a line that says what the sweep is, then one for each outcome with the fingerprint of its scenario. A line
that was cut off by a crash is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import attrs

from dra_alloc.errors import DraError
from dra_alloc.sweeps.model import Outcome, Scenario

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.sweeps.playing import Rules

__all__ = ["Record", "fingerprint"]

_FORMAT = "dra-alloc sweep 1"


class Record:
    """The outcomes in a file, and the way to add more. Raises DraError for the file of another sweep."""

    def __init__(self, path: str | os.PathLike[str], cluster: Cluster, rules: Rules) -> None:
        self._path = Path(path)
        self._header = {"format": _FORMAT, "cluster": _cluster_print(cluster), "rules": _rules_print(rules)}
        self._known: dict[str, Outcome] = {}
        end = self._read() if self._path.exists() else 0
        self._file: IO[bytes] = self._path.open("r+b" if end else "wb")
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self._write(self._header)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def find(self, mark: str) -> Outcome | None:
        """What came of the scenario with this fingerprint in an earlier run, or None."""
        return self._known.get(mark)

    def add(self, mark: str, outcome: Outcome) -> None:
        """Remember an outcome; it is in the file when this returns."""
        self._write({"scenario": mark, **outcome.to_dict()})

    def _write(self, data: dict[str, Any]) -> None:
        self._file.write(json.dumps(data, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def _read(self) -> int:
        """Read what is there; gives where the last whole line ends."""
        content = self._path.read_bytes()
        end = content.rfind(b"\n") + 1
        lines = content[:end].splitlines()
        if not lines:
            return 0
        try:
            header, *entries = [json.loads(line) for line in lines]
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise DraError(f"{self._path} is no file of a sweep; name a new file, or one that `sweep` has written")
            for part, what in (("cluster", "another cluster"), ("rules", "other features, budget or `explain`")):
                if header.get(part) != self._header[part]:
                    raise DraError(f"{self._path} belongs to a sweep over {what}; remove it, or name another file")
            self._known = {entry["scenario"]: Outcome.from_dict(entry) for entry in entries}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DraError(f"{self._path} is damaged, not just cut off; remove it, or name another file") from None
        return end


def fingerprint(scenario: Scenario) -> str:
    """The same for scenarios that say the same, in every process."""
    from dra_alloc.codec import encode

    return _hash(
        {
            "name": scenario.name,
            "labels": dict(scenario.labels),
            "workload": [encode(item) for item in scenario.workload],
            "upsert": [encode(item) for item in scenario.upsert],
            "delete": scenario.delete,
            "features": None if scenario.features is None else attrs.asdict(scenario.features),
        }
    )


def _cluster_print(cluster: Cluster) -> str:
    from dra_alloc.codec import encode

    return _hash([encode(item) for item in cluster])


def _rules_print(rules: Rules) -> str:
    return _hash(attrs.asdict(rules))


def _hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()
