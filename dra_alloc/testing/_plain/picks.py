"""What has been chosen so far: the whole state of the search."""

from __future__ import annotations

import attrs

from dra_alloc.testing._plain.pools import Offer
from dra_alloc.testing._plain.requests import Want


@attrs.frozen(eq=False)
class Pick:
    """A device chosen for a request of the claim number `claim`, and what it consumes: nanos by published name."""

    claim: int
    want: Want
    offer: Offer
    consumed: dict[str, int]


Picks = tuple[Pick, ...]
