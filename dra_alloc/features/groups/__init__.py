"""Groups of pods (KEP-5729, KEP-4671): claims that they share, and plans for all their pods at once.

Gate DRAWorkloadResourceClaims for the claims; planning a group as a unit needs no gate.
"""

from __future__ import annotations

from dra_alloc.features.groups.plan import GroupPlan
from dra_alloc.features.groups.planning import plan_group
from dra_alloc.features.groups.retrying import group_retry
from dra_alloc.features.groups.workloads import make_pod_groups

__all__ = ["GroupPlan", "group_retry", "make_pod_groups", "plan_group"]
