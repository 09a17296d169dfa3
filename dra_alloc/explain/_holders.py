"""Who holds a device: claims, and the pods that they are reserved for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.pools import PoolKey

__all__ = ["Holders"]

#: How many claims and consumers are named before "and n more".
_SHOWN = 3


class Holders:
    """Names holders. `own`: keys of the claims that are asked for, whose devices the question itself has taken."""

    def __init__(self, cluster: Cluster, own: frozenset[str]) -> None:
        self._cluster = cluster
        self._own = own

    def of(self, pool: PoolKey, device: str) -> str:
        """Words for who holds a device; empty if nobody does."""
        return self.of_many(pool, (device,))

    def of_many(self, pool: PoolKey, devices: Iterable[str]) -> str:
        """Words for who holds any of these devices of a pool."""
        holdings = self._cluster.holdings(pool)
        claims = [claim for device in devices if device in holdings for claim in holdings[device].claims()]
        return _listed([self._claim(claim) for claim in dict.fromkeys(claims)], "held by ")

    def _claim(self, key: str) -> str:
        if key in self._own:
            return f"the other requests (claim {key})"
        claim = self._cluster.get("ResourceClaim", key)
        consumers = claim.status.reserved_for if claim is not None and claim.status is not None else ()
        names = [
            f"{'pod' if consumer.resource == 'pods' else consumer.resource} {consumer.name}" for consumer in consumers
        ]
        return f"claim {key}{' (' + _listed(names) + ')' if names else ''}"


def _listed(names: list[str], before: str = "") -> str:
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return before + ", ".join(names[:_SHOWN]) + more
