"""A linter for slices, classes, claims, pods and taint rules: what cannot work, before a pod waits for it.

`check` gives findings, each with a stable code (`RULES`, docs/lint.md); `apply_fixes` the objects with what is certain
repaired; `to_sarif` a report for CI systems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dra_alloc._collector import paused_collector
from dra_alloc.api import KubernetesObject
from dra_alloc.codec.sources import DecodeWarning, Loaded, Origin, load
from dra_alloc.gates import Features
from dra_alloc.lint._claims import check_claims
from dra_alloc.lint._classes import check_classes
from dra_alloc.lint._findings import RULES, Finding, Fix, Rule, Severity
from dra_alloc.lint._fixes import Fixed, apply_fixes
from dra_alloc.lint._objects import check_fields, check_objects
from dra_alloc.lint._pods import check_pods
from dra_alloc.lint._pools import check_pools, check_rules
from dra_alloc.lint._rewrite import Rewritten, Unfixed, first_lines, rewrite_files
from dra_alloc.lint._sarif import split_origin, to_sarif
from dra_alloc.lint._standard import check_standard
from dra_alloc.lint._world import World

__all__ = [
    "RULES",
    "Finding",
    "Fix",
    "Fixed",
    "Rewritten",
    "Rule",
    "Severity",
    "Unfixed",
    "apply_fixes",
    "check",
    "first_lines",
    "rewrite_files",
    "split_origin",
    "to_sarif",
]


def check(objects: object, *, features: Features | None = None, codes: Iterable[str] | None = None) -> list[Finding]:
    """Everything that is wrong with these objects, in their order.

    objects: what `dra_alloc.load` takes, what it gives, or a Cluster. Kinds that are not there at all are taken as not
    given: without slices nothing is said about selectors, without nodes nothing about devices that none reaches.
    features: gates; default: those of Kubernetes 1.37. codes: look for these rules only; ValueError for an unknown one.
    Raises DecodeError for what cannot be read.
    """
    wanted = set(RULES) if codes is None else set(codes)
    unknown = sorted(wanted - set(RULES))
    if unknown:
        raise ValueError(f"unknown lint code {', '.join(unknown)}; known are {', '.join(RULES)}")
    models, origins, warnings = _read(objects)
    with paused_collector():
        world = World(models, origins, Features() if features is None else features)
        found = [finding for finding in _all(world, warnings) if finding.code in wanted]
    return sorted(found, key=lambda finding: finding.index)


def _read(objects: object) -> tuple[Sequence[KubernetesObject], Sequence[Origin], Sequence[DecodeWarning]]:
    from dra_alloc.cluster import Cluster

    source = list(objects) if isinstance(objects, Cluster) else objects
    loaded = source if isinstance(source, Loaded) else load(source)
    return loaded, loaded.origins, loaded.warnings


def _all(world: World, warnings: Sequence[DecodeWarning]) -> Iterator[Finding]:
    yield from check_fields(world, warnings)
    yield from check_objects(world)
    yield from check_pools(world)
    yield from check_standard(world)
    yield from check_classes(world)
    yield from check_rules(world)
    yield from check_claims(world)
    yield from check_pods(world)
