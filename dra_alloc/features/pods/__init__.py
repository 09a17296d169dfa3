"""Pods end to end: which claims a pod has, where it fits, what is written for it, what is left when it has ended."""

from __future__ import annotations

from dra_alloc.features.noderesources import Refusal
from dra_alloc.features.pods.claims import PodClaim, ResolvedPod, resolve, resolve_group
from dra_alloc.features.pods.plan import PodPlan
from dra_alloc.features.pods.planner import PodPlanner

__all__ = ["PodClaim", "PodPlan", "PodPlanner", "Refusal", "ResolvedPod", "resolve", "resolve_group"]
