"""Device taints (KEP-5055): what taints a device has, who is evicted for them, and what a rule would do.

Gates DRADeviceTaints and DRADeviceTaintRules. The search judges NoSchedule and NoExecute on its own tables; here is
what surrounds it: the work of the eviction controller and of the API server, with the time as a parameter.
"""

from __future__ import annotations

from dra_alloc.features._objects import DeviceId
from dra_alloc.features.taints.effective import (
    BLOCKING_EFFECTS,
    DeviceTaints,
    EffectiveTaint,
    describe,
    selects,
    tolerates,
    untolerated,
)
from dra_alloc.features.taints.eviction import EvictionPlan, PodEviction, eviction_plan, plan_evictions
from dra_alloc.features.taints.rules import (
    STATUS_PERIOD,
    RuleImpact,
    create_rule,
    default_time_added,
    keep_time_added,
    rule_condition,
    rule_impact,
    try_rule,
    update_rule,
    with_condition,
)

__all__ = [
    "BLOCKING_EFFECTS",
    "STATUS_PERIOD",
    "DeviceId",
    "DeviceTaints",
    "EffectiveTaint",
    "EvictionPlan",
    "PodEviction",
    "RuleImpact",
    "create_rule",
    "default_time_added",
    "describe",
    "eviction_plan",
    "keep_time_added",
    "plan_evictions",
    "rule_condition",
    "rule_impact",
    "selects",
    "tolerates",
    "try_rule",
    "untolerated",
    "update_rule",
    "with_condition",
]
