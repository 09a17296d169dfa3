"""Findings as SARIF 2.1.0, which CI systems show beside the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dra_alloc
from dra_alloc.lint._findings import RULES, Finding, Severity

__all__ = ["split_origin", "to_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ITEM = re.compile(r"(?P<file>.*?)(?:\[(?P<document>[0-9]+)\])?(?:\[[0-9]+\])?(?: items\[[0-9]+\])*", re.DOTALL)


def to_sarif(findings: Iterable[Finding], *, lines: Mapping[str, Iterable[int]] | None = None) -> dict[str, Any]:
    """A SARIF log with one run.

    lines: by file, the first line (from 1) of each of its documents; then results point to the document.
    """
    starts = {file: tuple(numbers) for file, numbers in (lines or {}).items()}
    rules = list(RULES.values())
    position = {rule.code: index for index, rule in enumerate(rules)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "dra-alloc",
                        "version": dra_alloc.__version__,
                        "rules": [
                            {
                                "id": rule.code,
                                "shortDescription": {"text": rule.title},
                                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
                            }
                            for rule in rules
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, position[finding.code], starts) for finding in findings],
            }
        ],
    }


def split_origin(where: str) -> tuple[str, int]:
    """The file and the number of the document (from 1) that an origin names; an empty file if it names none."""
    found = _ITEM.fullmatch(where)
    if found is None:
        return where, 1
    return found["file"], int(found["document"] or 1)


def _result(finding: Finding, rule: int, lines: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    text = f"{finding.path}: {finding.message}" if finding.path else finding.message
    name = f"{finding.object}: {finding.path}" if finding.path else finding.object
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "object"}]}
    file, document = split_origin(finding.where)
    if file:
        starts = lines.get(file, ())
        line = starts[document - 1] if document <= len(starts) else 1
        location["physicalLocation"] = {
            "artifactLocation": {"uri": Path(file).as_posix()},
            "region": {"startLine": line},
        }
    hint = f" ({finding.hint})" if finding.hint else ""
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.object}: {text}{hint}"},
        "locations": [location],
    }
