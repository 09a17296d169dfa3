"""Why claims fit, or do not, on one node or on many: the reasons, by code, with the devices and who holds them.

`Allocator.explain` is the way in. The search knows nothing of this: explanations are made from outside, by looking at
each device with all rules and by asking the allocator for parts of the question.
"""

from __future__ import annotations

from dra_alloc.explain._explain import explain, explain_pod
from dra_alloc.explain.model import (
    Blocker,
    Chosen,
    Conflict,
    Explanation,
    Failure,
    NearMiss,
    NodeExplanation,
    NodeGroup,
    RequestExplanation,
    RuledOut,
    ValueSplit,
)
from dra_alloc.explain.reasons import REASONS, Reason

__all__ = [
    "REASONS",
    "Blocker",
    "Chosen",
    "Conflict",
    "Explanation",
    "Failure",
    "NearMiss",
    "NodeExplanation",
    "NodeGroup",
    "Reason",
    "RequestExplanation",
    "RuledOut",
    "ValueSplit",
    "explain",
    "explain_pod",
]
