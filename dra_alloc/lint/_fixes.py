"""Repairing what is certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dra_alloc.api import KubernetesObject
from dra_alloc.lint._findings import Finding

__all__ = ["Fixed", "apply_fixes"]


@attrs.frozen
class Fixed:
    """objects: all of them, repaired. replaced: what stands for each object that changed, by position in the input.
    applied: the findings that are repaired."""

    objects: tuple[KubernetesObject, ...]
    replaced: Mapping[int, tuple[KubernetesObject, ...]]
    applied: tuple[Finding, ...]


def apply_fixes(objects: Iterable[KubernetesObject], findings: Iterable[Finding]) -> Fixed:
    """Apply the fixes of findings to the objects that they were found in. Nothing else is changed.

    objects: the same, in the same order, as `check` was given.
    """
    current: list[tuple[KubernetesObject, ...]] = [(obj,) for obj in objects]
    replaced: dict[int, tuple[KubernetesObject, ...]] = {}
    applied = []
    # What makes two objects out of one comes last, when there is nothing more to repair in the one.
    for finding in sorted(findings, key=lambda item: item.code == "counters-with-devices"):
        if finding.fix is not None and len(current[finding.index]) == 1:
            current[finding.index] = replaced[finding.index] = finding.fix.apply(current[finding.index][0])
            applied.append(finding)
    return Fixed(tuple(obj for group in current for obj in group), replaced, tuple(applied))
