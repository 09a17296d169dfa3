"""Which pods the device taint eviction controller deletes, when, and why (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import attrs

from dra_alloc.api import (
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    DeviceToleration,
    Pod,
    PodCondition,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.features._consumers import pod_claims, reserved_for
from dra_alloc.features._objects import ClusterObjects, DeviceId, aware, key_of
from dra_alloc.features.taints.effective import DeviceTaints, EffectiveTaint, tolerates
from dra_alloc.gates import Features

__all__ = ["EvictionPlan", "PodEviction", "eviction_plan", "plan_evictions"]

_FOREVER = datetime.max.replace(tzinfo=UTC)


@attrs.frozen
class PodEviction:
    """A pod that goes at `when` (UTC), unless the reasons vanish before.

    pod: `namespace/name`. claims: those that make it go, as `namespace/name`. reasons: the taints that are not
    tolerated, or not for ever, rules by name first; `when` is the earliest time that one of them gives.
    """

    pod: str
    uid: str
    node: str
    when: datetime
    claims: tuple[str, ...]
    reasons: tuple[EffectiveTaint, ...]

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]

    def condition(self, now: datetime) -> PodCondition:
        """The condition that the controller sets in the pod's status before it deletes the pod."""
        return PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByDeviceTaintManager",
            message="Device Taint manager: deleting due to NoExecute taint",
            last_transition_time=aware(now).replace(microsecond=0),
        )


@attrs.frozen
class EvictionPlan:
    """All pods that must go, the earliest first, pods of one time by `namespace/name`."""

    evictions: tuple[PodEviction, ...] = ()

    def __iter__(self) -> Iterator[PodEviction]:
        return iter(self.evictions)

    def __len__(self) -> int:
        return len(self.evictions)

    def due(self, now: datetime) -> tuple[PodEviction, ...]:
        """The pods whose time has come."""
        moment = aware(now)
        return tuple(item for item in self.evictions if item.when <= moment)

    def pending(self, now: datetime) -> tuple[PodEviction, ...]:
        """The pods whose time is still to come."""
        moment = aware(now)
        return tuple(item for item in self.evictions if item.when > moment)

    def of_rule(self, name: str) -> EvictionPlan:
        """The part of the plan in which the DeviceTaintRule is among the reasons."""
        return EvictionPlan(
            tuple(item for item in self.evictions if any(reason.rule == name for reason in item.reasons))
        )

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the pods, sorted."""
        return tuple(sorted({item.namespace for item in self.evictions}))


def plan_evictions(
    cluster: ClusterObjects,
    *,
    now: datetime,
    features: Features | None = None,
    strict: bool = False,
    extended_resources: bool = False,
) -> EvictionPlan:
    """`eviction_plan` for the objects of a cluster."""
    return eviction_plan(
        cluster.slices(),
        cluster.claims(),
        cluster.pods(),
        cluster.rules(),
        now=now,
        features=features,
        strict=strict,
        extended_resources=extended_resources,
    )


def eviction_plan(
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    pods: Iterable[Pod],
    rules: Iterable[DeviceTaintRule] = (),
    *,
    now: datetime,
    features: Features | None = None,
    strict: bool = False,
    extended_resources: bool = False,
) -> EvictionPlan:
    """Which pods go because of NoExecute taints on devices of claims that are reserved for them (KEP-5055).

    A pod goes when the first of its taints runs out of toleration: `timeAdded` plus the least `tolerationSeconds` of
    the tolerations in `status.allocation.devices.results[]` that match (negative ones count as 0, none matching is 0);
    a matching toleration without seconds takes the taint out of account. Pods without node and pods that are
    being deleted are left out.

    now: an aware time; what a taint without `timeAdded` counts as added at, as the API server would fill it in.
    strict: only tolerations with the effect NoExecute count, as in the controller of 1.37; otherwise those
    without effect do too, as the API documents.
    extended_resources: also pods whose claim stands for extended resources, which the controller of 1.37 forgets.
    """
    features = features or Features()
    moment = aware(now).replace(microsecond=0)
    if not features.DRADeviceTaints:
        return EvictionPlan()
    taints = DeviceTaints(slices, rules, features)
    allocated = {key_of(claim.metadata): claim for claim in claims if claim.status and claim.status.allocation}
    hit = {
        key: eviction
        for key, claim in allocated.items()
        if (eviction := _claim_eviction(claim, taints, moment, strict)) is not None
    }
    found: list[PodEviction] = []
    for pod in pods:
        if not pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
            continue
        keys = dict.fromkeys(
            key_of(claim.metadata)
            for _, claim in pod_claims(pod, allocated, features, extended=extended_resources)
            if key_of(claim.metadata) in hit and reserved_for(claim, pod, features)
        )
        if keys:
            found.append(_pod_eviction(pod, {key: hit[key] for key in keys}))
    return EvictionPlan(tuple(sorted(found, key=lambda item: (item.when, item.pod))))


_Eviction = tuple[datetime, tuple[EffectiveTaint, ...]]


def _pod_eviction(pod: Pod, claims: dict[str, _Eviction]) -> PodEviction:
    reasons = {reason.order: reason for _, found in claims.values() for reason in found}
    return PodEviction(
        pod=key_of(pod.metadata),
        uid=pod.metadata.uid or "",
        node=pod.spec.node_name or "",
        when=min(when for when, _ in claims.values()),
        claims=tuple(claims),
        reasons=tuple(reasons[order] for order in sorted(reasons)),
    )


def _claim_eviction(claim: ResourceClaim, taints: DeviceTaints, now: datetime, strict: bool) -> _Eviction | None:
    assert claim.status is not None
    assert claim.status.allocation is not None
    limits = [
        (limit, taint)
        for result in claim.status.allocation.devices.results
        for taint in taints.of(DeviceId(result.driver, result.pool, result.device))
        if taint.taint.effect == "NoExecute" and (limit := _limit(result, taint, now, strict)) is not None
    ]
    if not limits:
        return None
    return min(limit for limit, _ in limits), tuple(taint for _, taint in limits)


def _limit(
    result: DeviceRequestAllocationResult, taint: EffectiveTaint, now: datetime, strict: bool
) -> datetime | None:
    """Until when the taint is tolerated; None is for ever."""
    matching = [item for item in result.tolerations if _counts(item, strict) and tolerates(item, taint.taint)]
    seconds = [item.toleration_seconds for item in matching]
    if None in seconds:
        return None
    added = taint.taint.time_added or now
    try:
        return added + timedelta(seconds=min((max(0, value) for value in seconds if value is not None), default=0))
    except OverflowError:
        return _FOREVER


def _counts(toleration: DeviceToleration, strict: bool) -> bool:
    return toleration.effect == "NoExecute" or (not strict and not toleration.effect)
