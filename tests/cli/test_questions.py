"""Which claims are asked for together."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import click
import pytest

from dra_alloc import api
from dra_alloc.cli._questions import Question, questions

GPU = api.ResourceClaimSpec(
    devices=api.DeviceClaim(
        requests=(api.DeviceRequest(name="gpu", exactly=api.ExactDeviceRequest(device_class_name="gpu")),)
    )
)


def claim(name: str, *, namespace: str = "default", allocated: bool = False) -> api.ResourceClaim:
    status = api.ResourceClaimStatus(allocation=api.AllocationResult()) if allocated else None
    return api.ResourceClaim(metadata=api.ObjectMeta(name=name, namespace=namespace), spec=GPU, status=status)


def pod(
    name: str,
    *claims: api.PodResourceClaim,
    node: str | None = None,
    phase: str | None = None,
    made: tuple[api.PodResourceClaimStatus, ...] = (),
) -> api.Pod:
    return api.Pod(
        metadata=api.ObjectMeta(name=name, namespace="default", uid=f"uid-of-{name}"),
        spec=api.PodSpec(resource_claims=claims, node_name=node),
        status=api.PodStatus(phase=phase, resource_claim_statuses=made),
    )


def direct(name: str) -> api.PodResourceClaim:
    return api.PodResourceClaim(name=f"for-{name}", resource_claim_name=name)


def from_template(name: str) -> api.PodResourceClaim:
    return api.PodResourceClaim(name="dev", resource_claim_template_name=name)


def test_all_that_waits_is_asked_pods_before_lone_claims() -> None:
    a, b, lone, done = claim("a"), claim("b"), claim("lone"), claim("done", allocated=True)
    first, second = pod("first", direct("b")), pod("second", direct("a"), phase="Pending")
    assert questions([lone, a, done, first, b, second]) == [
        Question(pod=first),
        Question(pod=second),
        Question(claims=(lone,)),
    ]


def test_pods_that_schedulers_pass_over_are_asked_for_only_by_name() -> None:
    gated, dying = pod("gated", from_template("t")), pod("dying", from_template("t"))
    gates = (api.PodSchedulingGate(name="example.com/quota"),)
    gated = attrs.evolve(gated, spec=attrs.evolve(gated.spec, scheduling_gates=gates))
    end = datetime(2026, 1, 1, tzinfo=UTC)
    dying = attrs.evolve(dying, metadata=attrs.evolve(dying.metadata, deletion_timestamp=end))
    assert questions([gated, dying]) == []
    assert questions([gated, dying], pod_name="default/gated") == [Question(pod=gated)]


@pytest.mark.parametrize(
    "settled",
    [
        pod("p", direct("a"), node="node-1"),
        pod("p", direct("a"), phase="Succeeded"),
        pod("p", direct("a"), phase="Failed"),
        pod("p", from_template("t"), node="n", made=(api.PodResourceClaimStatus(name="dev", resource_claim_name="a"),)),
    ],
)
def test_a_pod_that_is_placed_or_finished_does_not_wait_nor_do_its_claims(settled: api.Pod) -> None:
    assert questions([claim("a"), settled]) == []


def test_a_pod_that_needs_no_devices_does_not_wait() -> None:
    assert questions([pod("p")]) == []


def test_a_pod_that_requests_an_extended_resource_waits() -> None:
    requests = api.ResourceRequirements(requests={"example.com/gpu": api.Quantity.parse("1")})
    waiting = api.Pod(
        metadata=api.ObjectMeta(name="p", namespace="default"),
        spec=api.PodSpec(containers=(api.Container(name="main", resources=requests),)),
    )
    assert questions([waiting]) == [Question(pod=waiting)]


def test_a_claim_that_was_made_for_a_pod_or_group_is_not_alone() -> None:
    owner = api.OwnerReference(api_version="v1", kind="Pod", name="p", uid="u", controller=True)
    made = api.ResourceClaim(metadata=api.ObjectMeta(name="made", owner_references=(owner,)), spec=GPU)
    assert questions([made]) == []


def test_a_placed_pod_can_be_asked_for_by_name() -> None:
    placed = pod("p", direct("a"), node="node-1")
    assert questions([claim("a"), placed], pod_name="default/p") == [Question(pod=placed)]


def test_named_claims_are_asked_together_in_the_order_of_their_names() -> None:
    a, b = claim("a"), claim("b", namespace="other")
    assert questions([a, b], claim_names=["other/b", "default/a"]) == [Question(claims=(b, a))]


def test_objects_without_a_namespace_are_in_default() -> None:
    a = claim("a", namespace="")
    assert questions([a], claim_names=["default/a"]) == [Question(claims=(a,))]


def test_of_two_objects_with_one_name_the_later_counts() -> None:
    early, late = claim("a", allocated=True), claim("a")
    assert questions([early, late]) == [Question(claims=(late,))]


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ({"claim_names": ["default/gpux"]}, "no ResourceClaim default/gpux in the input; did you mean default/gpu"),
        ({"claim_names": ["default/fpga"]}, "no ResourceClaim default/fpga in the input; did you mean team/fpga?"),
        ({"pod_name": "default/p"}, "no Pod default/p in the input; it has none"),
        ({"claim_names": ["zzz/q"]}, "no ResourceClaim zzz/q in the input; it has default/gpu, team/fpga"),
    ],
)
def test_an_unknown_name_is_met_with_a_hint(names: dict[str, object], hint: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        questions([claim("gpu"), claim("fpga", namespace="team")], **names)  # type: ignore[arg-type]
    assert hint in caught.value.format_message()


def test_titles_name_the_pod_or_the_claims() -> None:
    assert [
        Question(pod=pod("p")).title,
        Question(claims=(claim("a"),)).title,
        Question(claims=(claim("a"), claim("b", namespace="x"))).title,
    ] == ["pod default/p", "claim default/a", "claims default/a, x/b"]
