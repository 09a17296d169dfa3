"""The score of a node for a pod with prioritized lists (KEP-4816): earlier alternatives rank a node higher.

Gate DRAPrioritizedList. Kubernetes weights the normalised score with 2 among those of its other plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.api import AllocationResult, ResourceClaim

__all__ = ["BEST", "WEIGHT", "normalize", "score_allocations"]

#: What the first alternative of a list is worth: the most alternatives that a list can have.
BEST = 8
#: Weight of the plugin's normalised score in the default configuration of the scheduler.
WEIGHT = 2


def score_allocations(pairs: Iterable[tuple[ResourceClaim, AllocationResult]], features: Features | None = None) -> int:
    """The raw score of a node: for each request with `firstAvailable`, 8 less the index of the alternative it got.

    pairs: each claim of the pod with what it has, or would have, on the node. A request counts once, however many
    devices it has; requests with `exactly` count nothing, and with the gate off nothing counts.
    """
    if not (features or Features()).DRAPrioritizedList:
        return 0
    total = 0
    for claim, allocation in pairs:
        served = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for position, alternative in enumerate(request.first_available):
                if f"{request.name}/{alternative.name}" in served:
                    total += BEST - position
    return total


def normalize(scores: Mapping[str, int]) -> dict[str, int]:
    """Scores of 0 to 100 from raw ones: 100 × score / highest score, rounded down.

    That is what the scheduler's code does; the text of the KEP would also subtract the lowest score.
    """
    highest = max(scores.values(), default=0)
    return {node: 100 * score // highest if highest else 0 for node, score in scores.items()}
