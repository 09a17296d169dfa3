"""Findings about single objects: rules of the API, gates, versions, names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dra_alloc.api import (
    DeviceClass,
    DeviceTaintRule,
    KubernetesObject,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_alloc.codec.sources import DecodeWarning
from dra_alloc.codec.validation import COUNTERS_WITH_DEVICES, examine
from dra_alloc.codec.validation._warnings import NOT_STORED
from dra_alloc.lint._findings import Finding, Fix
from dra_alloc.lint._world import World, finding

__all__ = ["check_fields", "check_objects"]

#: Kinds that are modelled in full, so that writing one again loses nothing.
REWRITABLE = (ResourceSlice, DeviceClass, ResourceClaim, ResourceClaimTemplate, DeviceTaintRule)


def check_fields(world: World, warnings: Iterable[DecodeWarning]) -> Iterator[Finding]:
    """The fields that reading left out."""
    for warning in warnings:
        if warning.field:
            yield finding(world.items[warning.index], "unknown-field", warning.field, "does not exist", warning.hint)


def check_objects(world: World) -> Iterator[Finding]:
    """What validation and its warnings say, old versions, names that come twice."""
    seen: set[str] = set()
    for item in world.items:
        obj = item.obj
        problems, warnings = examine(obj, world.features)
        for problem in problems:
            # Counters and devices in one slice have a code of their own, with a fix.
            if problem.message != COUNTERS_WITH_DEVICES:
                yield finding(item, "invalid-object", problem.path, problem.message, problem.hint)
        for warning in warnings:
            code = "field-not-stored" if warning.message == NOT_STORED else "questionable-value"
            yield finding(item, code, warning.path, warning.message, warning.hint)
        preferred = obj.api_version
        written = item.origin.api_version
        if written and written != preferred:
            fix = _rewrite(obj, preferred)
            yield finding(item, "deprecated-api-version", "apiVersion", f"{written} is old", f"use {preferred}", fix)
        if obj.metadata.name and item.label in seen:
            message = "replaces the object of this name before it"
            yield finding(item, "duplicate-object", "metadata.name", message, "another name")
        seen.add(item.label)


def _rewrite(obj: KubernetesObject, version: str) -> Fix | None:
    # Objects are always written in the version to use, so that the fix changes nothing else.
    return Fix(f"write it in {version}", lambda current: (current,)) if isinstance(obj, REWRITABLE) else None
