"""DeviceTaintRules: what one would do, its status, and how the API server keeps its times (KEP-5055)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import attrs

from dra_alloc.api import (
    Condition,
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleStatus,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.features._objects import ClusterObjects, DeviceId, aware, gate_off, key_of
from dra_alloc.features.taints.effective import DeviceTaints, selects
from dra_alloc.features.taints.eviction import EvictionPlan, eviction_plan
from dra_alloc.gates import Features

__all__ = [
    "STATUS_PERIOD",
    "RuleImpact",
    "create_rule",
    "default_time_added",
    "keep_time_added",
    "rule_condition",
    "rule_impact",
    "try_rule",
    "update_rule",
    "with_condition",
]

#: How old a condition of the current generation must be before the controller writes the next.
STATUS_PERIOD = timedelta(seconds=10)

_TYPE = "EvictionInProgress"


@attrs.frozen
class RuleImpact:
    """What a rule would hit with the effect NoExecute.

    published: devices in the newest slices. allocated: devices in allocations, once for each result (a shared device
    counts for each claim), as (`namespace/name` of the claim, device). evictions: the pods that would go.
    """

    rule: str
    published: tuple[DeviceId, ...]
    allocated: tuple[tuple[str, DeviceId], ...]
    evictions: EvictionPlan

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims with such a device, in their order."""
        return tuple(dict.fromkeys(claim for claim, _ in self.allocated))

    @property
    def message(self) -> str:
        """The counts in the words of the controller."""
        pods = _count(len(self.evictions), "pod would be evicted", "pods would be evicted")
        return (
            f"{_count(len(self.published), 'published device selected', 'published devices selected')}. "
            f"{_count(len(self.allocated), 'allocated device selected', 'allocated devices selected')}. "
            f"{pods} in {_namespaces(self.evictions)} if the effect was NoExecute."
        )


def try_rule(
    rule: DeviceTaintRule,
    cluster: ClusterObjects,
    *,
    now: datetime,
    features: Features | None = None,
    strict: bool = False,
) -> RuleImpact:
    """`rule_impact` for the objects of a cluster."""
    return rule_impact(
        rule, cluster.slices(), cluster.claims(), cluster.pods(), now=now, features=features, strict=strict
    )


def rule_impact(
    rule: DeviceTaintRule,
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    pods: Iterable[Pod],
    *,
    now: datetime,
    features: Features | None = None,
    strict: bool = False,
) -> RuleImpact:
    """The dry run of a rule: how many devices, claims and pods it would hit if its effect was NoExecute.

    The rule's own effect does not matter, and it need not be among the rules of the cluster. With another effect its
    taint counts as added now, since changing the effect starts the clock anew. `now` and `strict` are those of
    `eviction_plan`. Raises AllocationError (`unsupported`) where a gate of taints or rules is off.
    """
    features = features or Features()
    for gate in ("DRADeviceTaints", "DRADeviceTaintRules"):
        if not getattr(features, gate):
            raise gate_off(f"DeviceTaintRule {rule.metadata.name}", gate)
    slices, claims = tuple(slices), tuple(claims)
    taint = rule.spec.taint
    added = taint.time_added if taint.effect == "NoExecute" else aware(now).replace(microsecond=0)
    simulated = _with_taint(rule, attrs.evolve(taint, effect="NoExecute", time_added=added))
    plan = eviction_plan(slices, claims, pods, [simulated], now=now, features=features, strict=strict)
    return RuleImpact(
        rule=rule.metadata.name,
        published=DeviceTaints(slices).published(rule.spec.device_selector),
        allocated=tuple(
            (key_of(claim.metadata), device)
            for claim in claims
            if claim.status and claim.status.allocation
            for result in claim.status.allocation.devices.results
            if selects(rule.spec.device_selector, device := DeviceId(result.driver, result.pool, result.device))
        ),
        evictions=plan.of_rule(rule.metadata.name),
    )


def rule_condition(
    rule: DeviceTaintRule,
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    pods: Iterable[Pod],
    *,
    now: datetime,
    evicted: int = 0,
    features: Features | None = None,
    strict: bool = False,
) -> Condition:
    """The condition EvictionInProgress that the controller writes into the status of a rule.

    evicted: pods that went because of the rule since the controller started. A condition of the current generation
    comes back as it is while it is younger than `STATUS_PERIOD`, if nothing has changed, and for good if the effect
    is not NoExecute. Raises what `rule_impact` raises.
    """
    moment = aware(now).replace(microsecond=0)
    previous = _condition(rule)
    current = previous is not None and previous.observed_generation == rule.metadata.generation
    since = previous.last_transition_time if previous else None
    if previous is not None and current:
        young = since is not None and moment - since < STATUS_PERIOD
        if young or rule.spec.taint.effect != "NoExecute":
            return previous
    impact = rule_impact(rule, slices, claims, pods, now=now, features=features, strict=strict)
    status, reason, message = _verdict(rule.spec.taint.effect, impact, evicted)
    if evicted:
        message = f"{message} {_count(evicted, 'pod', 'pods')} evicted since starting the controller.".lstrip()
    condition = Condition(
        type=_TYPE,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=rule.metadata.generation,
    )
    return condition if condition == previous else attrs.evolve(condition, last_transition_time=moment)


def _verdict(effect: str, impact: RuleImpact, evicted: int) -> tuple[str, str, str]:
    if effect == "None":
        once = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
        return "False", "NoEffect", f"{impact.message} {once}"
    if effect != "NoExecute":
        return "False", "OtherEffect", "Eviction only happens for the NoExecute effect."
    if impact.evictions:
        pods = _count(len(impact.evictions), "pod needs", "pods need")
        return "True", "PodsPendingEviction", f"{pods} to be evicted in {_namespaces(impact.evictions)}."
    return "False", "Completed" if evicted else "NotStarted", ""


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _namespaces(plan: EvictionPlan) -> str:
    return _count(len(plan.namespaces), "namespace", "different namespaces")


def _condition(rule: DeviceTaintRule) -> Condition | None:
    conditions = rule.status.conditions if rule.status else ()
    return next((condition for condition in conditions if condition.type == _TYPE), None)


def with_condition(rule: DeviceTaintRule, condition: Condition) -> DeviceTaintRule:
    """The rule with this condition in its status, in place of the one of the same type."""
    conditions = rule.status.conditions if rule.status else ()
    if any(known.type == condition.type for known in conditions):
        conditions = tuple(condition if known.type == condition.type else known for known in conditions)
    else:
        conditions = (*conditions, condition)
    return attrs.evolve(rule, status=DeviceTaintRuleStatus(conditions=conditions))


def default_time_added(item: ResourceSlice, now: datetime) -> ResourceSlice:
    """The slice as the API server stores it: taints without `timeAdded` get the time, in whole seconds."""
    moment = aware(now).replace(microsecond=0)
    return _with_device_taints(item, lambda _, taint: _with_default(taint, moment))


def keep_time_added(published: ResourceSlice, item: ResourceSlice) -> ResourceSlice:
    """A new version of a slice, with the times of taints that the published one has already.

    The API server keeps no times of slices: a driver that publishes a taint without `timeAdded` again starts its
    clock anew. A taint without time takes it from one of equal key, value and effect on the device of the same
    name; given times are rounded to seconds.
    """
    known = {
        (device.name, taint.key, taint.value or "", taint.effect): taint.time_added
        for device in reversed(published.spec.devices)
        for taint in reversed(device.taints)
        if taint.time_added
    }

    def kept(device: Device, taint: DeviceTaint) -> DeviceTaint:
        if taint.time_added is None:
            return attrs.evolve(taint, time_added=known.get((device.name, taint.key, taint.value or "", taint.effect)))
        return _added(taint, _rounded(taint.time_added))

    return _with_device_taints(item, kept)


def create_rule(rule: DeviceTaintRule, now: datetime) -> DeviceTaintRule:
    """A new rule as the API server stores it: generation 1, no status, `timeAdded` (whole seconds) filled in."""
    stored = _with_taint(rule, _with_default(rule.spec.taint, aware(now).replace(microsecond=0)))
    return attrs.evolve(stored, metadata=attrs.evolve(rule.metadata, generation=1), status=None)


def update_rule(old: DeviceTaintRule, new: DeviceTaintRule, now: datetime) -> DeviceTaintRule:
    """An update of the specification as the API server stores it.

    An absent `timeAdded` becomes now, and so does one that stayed the same while the effect changed, for a changed
    effect starts a new eviction. A changed specification raises `metadata.generation`. The status stays.
    """
    moment = aware(now).replace(microsecond=0)
    before, taint = old.spec.taint, _with_default(new.spec.taint, moment)
    if taint.effect != before.effect and taint.time_added == before.time_added:
        taint = _added(taint, moment)
    stored = _with_taint(new, taint)
    generation = (old.metadata.generation or 0) + (stored.spec != old.spec)
    return attrs.evolve(stored, metadata=attrs.evolve(new.metadata, generation=generation), status=old.status)


def _rounded(time: datetime) -> datetime:
    whole = time.replace(microsecond=0)
    try:
        return whole + timedelta(seconds=time.microsecond >= 500_000)
    except OverflowError:
        return whole


def _with_default(taint: DeviceTaint, moment: datetime) -> DeviceTaint:
    return taint if taint.time_added else _added(taint, moment)


def _added(taint: DeviceTaint, moment: datetime) -> DeviceTaint:
    return attrs.evolve(taint, time_added=moment)


def _with_taint(rule: DeviceTaintRule, taint: DeviceTaint) -> DeviceTaintRule:
    return attrs.evolve(rule, spec=attrs.evolve(rule.spec, taint=taint))


def _with_device_taints(item: ResourceSlice, change: Callable[[Device, DeviceTaint], DeviceTaint]) -> ResourceSlice:
    devices = tuple(
        attrs.evolve(device, taints=tuple(change(device, taint) for taint in device.taints))
        for device in item.spec.devices
    )
    return attrs.evolve(item, spec=attrs.evolve(item.spec, devices=devices))
