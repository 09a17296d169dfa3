"""KEP-5055: which pods are evicted, when and why, the dry run of a rule, and the rule's status."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest

from dra_alloc.api import (
    Device,
    DeviceTaintRule,
    DeviceTaintRuleStatus,
    OwnerReference,
    Pod,
    PodExtendedResourceClaimStatus,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceSlice,
)
from dra_alloc.errors import AllocationError
from dra_alloc.features.taints import (
    EvictionPlan,
    PodEviction,
    create_rule,
    eviction_plan,
    plan_evictions,
    rule_condition,
    rule_impact,
    try_rule,
    update_rule,
    with_condition,
)
from dra_alloc.gates import Features
from tests.features.building import (
    Objects,
    accepted,
    at,
    claim,
    pod,
    result,
    rule,
    slice_of,
    taint,
    tolerate,
    with_status,
)

TAINTED = slice_of(Device(name="gpu-0", taints=(taint("a:NoExecute", 100),)), "gpu-1", "gpu-2")


def plan_for(
    *tolerations: object, rules: tuple[DeviceTaintRule, ...] = (), strict: bool = False, now: float = 1000
) -> EvictionPlan:
    """The plan for one pod with one claim to gpu-0, which has the tolerations."""
    user = pod("p", "c")
    held = claim("c", result("gpu-0", tolerations=tolerations), reserved_for=[user])
    return eviction_plan([TAINTED], [held], [user], rules, now=at(now), strict=strict)


def whens(plan: EvictionPlan) -> list[tuple[str, datetime]]:
    return [(item.pod, item.when) for item in plan]


def test_worked_example_a() -> None:
    b = rule("r1", taint("b:NoExecute", 130), {"device": "gpu-0"})
    tolerations = [tolerate("a", "NoExecute", 60), tolerate("a", "NoExecute", 20), tolerate("b", "NoExecute", -5)]
    plan = plan_for(*tolerations, rules=(b,))
    assert whens(plan) == [("default/p", at(120))]
    (eviction,) = plan
    assert [(reason.rule, reason.index) for reason in eviction.reasons] == [("r1", 0), ("", 0)]
    assert eviction.claims == ("default/c",)

    forever = plan_for(*tolerations, tolerate("a", "NoExecute"), rules=(b,))
    assert whens(forever) == [("default/p", at(130))]
    assert [reason.rule for reason in forever.evictions[0].reasons] == ["r1"]


def example_b() -> tuple[list[ResourceSlice], list[ResourceClaim], list[Pod]]:
    pods = [pod("p1", "c", namespace="x"), pod("p2", "c", namespace="x")]
    held = claim("c", result("gpu-0"), reserved_for=pods, namespace="x")
    return [slice_of("gpu-0", "gpu-1", "gpu-2")], [held], pods


def test_worked_example_b() -> None:
    slices, claims, pods = example_b()
    dry = create_rule(rule("r", taint("k=v:None"), {"pool": "node-1"}), at(0))
    condition = rule_condition(dry, slices, claims, pods, now=at(5))
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "NoEffect",
        "3 published devices selected. 1 allocated device selected. 2 pods would be evicted in 1 namespace "
        "if the effect was NoExecute. This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update.",
    )
    assert whens(eviction_plan(slices, claims, pods, [dry], now=at(5))) == []

    wet = update_rule(dry, attrs.evolve(dry, spec=attrs.evolve(dry.spec, taint=taint("k=v:NoExecute", 0))), at(500))
    assert (wet.spec.taint.time_added, wet.metadata.generation) == (at(500), 2)
    plan = eviction_plan(slices, claims, pods, [wet], now=at(500))
    assert whens(plan) == [("x/p1", at(500)), ("x/p2", at(500))]
    assert plan.due(at(500)) == plan.evictions
    assert plan.pending(at(499)) == plan.evictions

    wet = with_condition(wet, condition)
    under_way = rule_condition(wet, slices, claims, pods, now=at(500))
    assert (under_way.status, under_way.reason) == ("True", "PodsPendingEviction")
    assert under_way.message == "2 pods need to be evicted in 1 namespace."
    done = rule_condition(with_condition(wet, under_way), slices, claims, [], now=at(510), evicted=2)
    assert (done.status, done.reason, done.message, done.observed_generation) == (
        "False",
        "Completed",
        "2 pods evicted since starting the controller.",
        2,
    )
    accepted(with_condition(wet, done))


def test_a_toleration_without_effect_tolerates_no_execute_unless_strict() -> None:
    assert whens(plan_for(tolerate("a"))) == []
    assert whens(plan_for(tolerate("a"), strict=True)) == [("default/p", at(100))]
    assert whens(plan_for(tolerate("a", "NoExecute"), strict=True)) == []


def test_a_toleration_of_no_schedule_does_not_help() -> None:
    assert whens(plan_for(tolerate("a", "NoSchedule", 1000))) == [("default/p", at(100))]


def test_a_taint_without_time_counts_from_now() -> None:
    fresh = rule("r", taint("b:NoExecute"), {"device": "gpu-0"})
    plan = plan_for(tolerate("a"), tolerate("b", seconds=30), rules=(fresh,), now=700.5)
    assert whens(plan) == [("default/p", at(730))]


def test_a_toleration_beyond_all_times_is_as_good_as_for_ever() -> None:
    (eviction,) = plan_for(tolerate("a", seconds=2**63 - 1))
    assert eviction.when == datetime.max.replace(tzinfo=UTC)


def test_pods_that_do_not_hold_the_claim_stay() -> None:
    holder, waiting, ended = pod("p"), pod("p", "c", node=None), pod("p", "c", deletion_timestamp=at(0))
    held = claim("c", result("gpu-0"), reserved_for=[holder])
    assert whens(eviction_plan([TAINTED], [held], [holder, waiting, ended], now=at(0))) == []
    unreserved = with_status(held, reserved_for=())
    assert whens(eviction_plan([TAINTED], [unreserved], [pod("p", "c")], now=at(0))) == []
    namesake = pod("p", "c", uid="another")
    assert whens(eviction_plan([TAINTED], [held], [namesake], now=at(0))) == []
    pending = claim("c")
    assert whens(eviction_plan([TAINTED], [pending], [pod("p", "c")], now=at(0))) == []


def test_a_claim_from_a_template_must_be_the_pods_own() -> None:
    user = pod("p", templates={"gpu": "p-gpu-x"})
    own = claim("p-gpu-x", result("gpu-0"), reserved_for=[user], owner=user)
    assert whens(eviction_plan([TAINTED], [own], [user], now=at(0))) == [("default/p", at(100))]
    foreign = claim("p-gpu-x", result("gpu-0"), reserved_for=[user], owner=pod("q"))
    assert whens(eviction_plan([TAINTED], [foreign], [user], now=at(0))) == []


def group_member(name: str) -> Pod:
    return pod(name, templates={"gpu": "pg-gpu-x"}, spec={"schedulingGroup": {"podGroupName": "pg"}, "containers": []})


def test_all_pods_of_a_group_go_with_the_groups_claim() -> None:
    owner = OwnerReference(
        api_version="scheduling.k8s.io/v1beta1", kind="PodGroup", name="pg", uid="uid-pg", controller=True
    )
    group = ResourceClaimConsumerReference(api_group="scheduling.k8s.io", resource="podgroups", name="pg", uid="uid-pg")
    held = claim("pg-gpu-x", result("gpu-0"), reserved_for=[group])
    held = attrs.evolve(held, metadata=attrs.evolve(held.metadata, owner_references=(owner,)))
    members = [group_member("a"), group_member("b")]
    on = Features(DRAWorkloadResourceClaims=True)
    plan = eviction_plan([TAINTED], [held], members, now=at(0), features=on)
    assert whens(plan) == [("default/a", at(100)), ("default/b", at(100))]
    assert whens(eviction_plan([TAINTED], [held], members, now=at(0))) == []


def test_extended_resources_are_forgotten_as_in_kubernetes_unless_asked_for() -> None:
    user = attrs.evolve(
        pod("p"),
        status=PodStatus(extended_resource_claim_status=PodExtendedResourceClaimStatus(resource_claim_name="p-ext")),
    )
    held = claim("p-ext", result("gpu-0"), reserved_for=[user], owner=user)
    assert whens(eviction_plan([TAINTED], [held], [user], now=at(0))) == []
    plan = eviction_plan([TAINTED], [held], [user], now=at(0), extended_resources=True)
    assert whens(plan) == [("default/p", at(100))]


def test_a_pod_goes_with_the_first_of_its_claims() -> None:
    user = pod("p", "c", "d")
    first = claim("c", result("gpu-0", tolerations=(tolerate("a", seconds=50),)), reserved_for=[user])
    second = claim("d", result("gpu-1"), reserved_for=[user])
    late = rule("late", taint("b:NoExecute", 140), {"device": "gpu-1"})
    (eviction,) = eviction_plan([TAINTED], [first, second], [user], [late], now=at(0))
    assert eviction == PodEviction(
        pod="default/p",
        uid="uid-p",
        node="node-1",
        when=at(140),
        claims=("default/c", "default/d"),
        reasons=eviction.reasons,
    )
    assert [reason.taint.key for reason in eviction.reasons] == ["b", "a"]


def test_pods_of_manifests_without_uid_are_known_by_name() -> None:
    user = pod("p", "c", uid=None)
    held = claim("c", result("gpu-0"), reserved_for=[user])
    assert whens(eviction_plan([TAINTED], [held], [user], now=at(0))) == [("default/p", at(100))]


def test_the_condition_of_an_evicted_pod() -> None:
    user = pod("p", "c")
    held = claim("c", result("gpu-0"), reserved_for=[user])
    (eviction,) = eviction_plan([TAINTED], [held], [user], now=at(0))
    condition = eviction.condition(at(101.5))
    assert (condition.type, condition.reason) == ("DisruptionTarget", "DeletionByDeviceTaintManager")
    accepted(attrs.evolve(user, status=PodStatus(conditions=(condition,))))


def test_no_one_goes_with_the_gate_off() -> None:
    slices, claims, pods = example_b()
    evil = rule("r", taint("k:NoExecute", 0), {})
    for features in (Features(DRADeviceTaints=False), Features(DRADeviceTaintRules=False)):
        assert len(eviction_plan(slices, claims, pods, [evil], now=at(0), features=features)) == 0
        with pytest.raises(AllocationError, match="DeviceTaintRule r needs the feature gate DRADeviceTaint") as error:
            rule_impact(evil, slices, claims, pods, now=at(0), features=features)
        assert error.value.kind == "unsupported"


def test_the_dry_run_of_a_rule() -> None:
    slices, claims, pods = example_b()
    tolerant = pod("p3", "d", namespace="y")
    claims.append(claim("d", result("gpu-1", tolerations=(tolerate("k"),)), reserved_for=[tolerant], namespace="y"))
    cluster = Objects(slices=slices, claims=claims, pods=[*pods, tolerant])
    impact = try_rule(rule("r", taint("k:NoSchedule", 1), {"pool": "node-1"}), cluster, now=at(7))
    assert impact.message == (
        "3 published devices selected. 2 allocated devices selected. "
        "2 pods would be evicted in 1 namespace if the effect was NoExecute."
    )
    assert impact.claims == ("x/c", "y/d")
    # Changing the effect would start the clock.
    assert {item.when for item in impact.evictions} == {at(7)}
    assert impact.evictions.namespaces == ("x",)


def test_a_rule_without_selector_hits_nothing() -> None:
    slices, claims, pods = example_b()
    impact = rule_impact(rule("r", taint("k:NoExecute"), None), slices, claims, pods, now=at(0))
    assert impact.message == (
        "0 published devices selected. 0 allocated devices selected. "
        "0 pods would be evicted in 0 different namespaces if the effect was NoExecute."
    )


def test_pods_in_two_namespaces() -> None:
    slices, claims, pods = example_b()
    other = pod("p", "c", namespace="y")
    claims.append(claim("c", result("gpu-1"), reserved_for=[other], namespace="y"))
    evil = rule("r", taint("k:NoExecute", 0), {})
    condition = rule_condition(evil, slices, claims, [pods[0], other], now=at(0), evicted=1)
    assert condition.message == (
        "2 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller."
    )
    one = rule_condition(evil, slices, claims, [other], now=at(0))
    assert one.message == "1 pod needs to be evicted in 1 namespace."


def test_other_effects_evict_nobody() -> None:
    slices, claims, pods = example_b()
    condition = rule_condition(rule("r", taint("k:NoSchedule", 0), {}), slices, claims, pods, now=at(0))
    assert (condition.reason, condition.message) == (
        "OtherEffect",
        "Eviction only happens for the NoExecute effect.",
    )
    idle = rule_condition(rule("r", taint("k:NoExecute", 0), {"pool": "other"}), slices, claims, pods, now=at(0))
    assert (idle.status, idle.reason, idle.message) == ("False", "NotStarted", "")


def test_a_condition_is_renewed_after_ten_seconds_and_when_it_says_something_new() -> None:
    slices, claims, pods = example_b()
    evil = create_rule(rule("r", taint("k:NoExecute"), {}), at(0))
    first = rule_condition(evil, slices, claims, pods, now=at(0))
    evil = with_condition(evil, first)
    assert rule_condition(evil, slices, claims, pods[:1], now=at(9)) is first
    assert rule_condition(evil, slices, claims, pods, now=at(10)) == first
    second = rule_condition(evil, slices, claims, pods[:1], now=at(10))
    assert (second.message, second.last_transition_time) == ("1 pod needs to be evicted in 1 namespace.", at(10))
    assert with_condition(evil, second).status == DeviceTaintRuleStatus(conditions=(second,))


def test_a_dry_run_is_not_updated_again() -> None:
    slices, claims, pods = example_b()
    dry = create_rule(rule("r", taint("k:None"), {}), at(0))
    told = rule_condition(dry, slices, claims, pods, now=at(0))
    assert rule_condition(with_condition(dry, told), slices, claims, [], now=at(3600)) is told


def test_the_plan_of_a_cluster_and_its_part_for_one_rule() -> None:
    slices, claims, pods = example_b()
    evil = rule("r", taint("k:NoExecute", 0), {"device": "gpu-0"})
    plan = plan_evictions(Objects(slices=slices, claims=claims, pods=pods, rules=[evil]), now=at(0))
    assert len(plan) == 2
    assert plan.of_rule("r") == plan
    assert len(plan.of_rule("another")) == 0
