"""References to requests and subrequests of a claim, as constraints, configuration and results have them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from dra_alloc.api import DeviceClaim
from dra_alloc.codec.validation._problems import Problem, invalid, keyed

__all__ = ["request_names", "request_reference", "request_references"]

REFERENCES_MAX = 32


def request_names(claim: DeviceClaim) -> Mapping[str, frozenset[str]]:
    """The subrequests of each request, by name."""
    return {request.name: frozenset(item.name for item in request.first_available) for request in claim.requests}


def request_reference(name: str, names: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    """A reference `request` or `request/subrequest`, which must exist."""
    request, slash, alternative = name.partition("/")
    if request in names and (not slash or alternative in names[request]):
        return
    known = [*names, *(f"{parent}/{child}" for parent, children in names.items() for child in sorted(children))]
    near = difflib.get_close_matches(name[:128], known[:64], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known[:16])}" if known else "no requests"
    yield invalid(name, "is no request of the claim", hint)


def request_references(references: Sequence[str], names: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    """The field `requests` of a constraint or configuration."""
    yield from keyed(references, REFERENCES_MAX, lambda name: request_reference(name, names), str, "requests")
