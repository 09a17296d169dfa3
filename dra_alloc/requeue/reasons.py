"""What is known of why a pod could not be placed, as far as it narrows what may help."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, runtime_checkable

from dra_alloc.errors import AllocationError

__all__ = ["Blocking", "Reasoned", "is_error", "requests_blocking"]

#: By claim (`namespace/name`), the requests that stand in the way.
Blocking = Mapping[str, Collection[str]]

#: Errors that hold whatever devices there are and whoever uses them: claims, classes or gates must change.
_STANDING = frozenset(
    {
        "class-not-found",
        "forbidden",
        "too-many-devices",
        "unknown-constraint",
        "unknown-mode",
        "unknown-selector",
        "unsupported",
    }
)


@runtime_checkable
class Reasoned(Protocol):
    """An object that knows what stands in the way of a pod."""

    def blocking(self) -> Blocking:
        """Requests, by claim, of which on every node at least one cannot be served even by itself; empty if unknown."""


def is_error(reason: object) -> bool:
    """Whether an attempt ended with an error that any event may change, so that no single one can be waited for."""
    if isinstance(reason, AllocationError):
        return reason.kind not in _STANDING
    if isinstance(reason, BaseException):
        return True
    failure = getattr(reason, "failure", None)
    return failure is not None and failure.code not in _STANDING


def requests_blocking(reason: object, nodes: int) -> Blocking | None:
    """The requests that stand in the way; None if the reason does not tell. nodes: how many the cluster has."""
    if reason is None or isinstance(reason, BaseException):
        return None
    if isinstance(reason, Mapping):
        found: Blocking = reason
    elif isinstance(reason, Reasoned):
        found = reason.blocking()
    else:
        found = _explained(reason, nodes)
    return {claim: frozenset(_names(claim, requests)) for claim, requests in found.items()} or None


def _names(claim: str, requests: Iterable[str]) -> Iterable[str]:
    if isinstance(requests, str):
        raise TypeError(f"reason: the requests of claim {claim} are a collection of names, not the string {requests!r}")
    for request in requests:
        yield request.partition("/")[0]


def _explained(reason: object, nodes: int) -> Blocking:
    """What an Explanation over all nodes says.

    An explanation of some nodes says nothing about the others, and where each request could be had by itself, any of
    them may be what helps. Nodes are grouped by a request that all of them lack, so that the example speaks for them.
    """
    groups = getattr(reason, "groups", None)
    if groups is None:
        raise TypeError(
            "reason: an Explanation, an exception, or a mapping from claims to requests is needed, "
            f"not {type(reason).__name__}"
        )
    found: dict[str, set[str]] = {}
    if sum(len(group.nodes) for group in groups) != nodes:
        return {}
    for group in groups:
        short = _short_of(group.example.requests)
        if not short:
            return {}
        for claim, request in short:
            found.setdefault(claim, set()).add(request)
    return found


def _short_of(requests: Iterable[object]) -> set[tuple[str, str]]:
    """The requests of one node none of whose alternatives has enough devices."""
    enough: dict[tuple[str, str], bool] = {}
    for entry in requests:
        claim, name = entry.claim, entry.request.partition("/")[0]  # type: ignore[attr-defined]
        enough[claim, name] = enough.get((claim, name), False) or entry.enough  # type: ignore[attr-defined]
    return {place for place, has in enough.items() if not has}
