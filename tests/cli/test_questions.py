"""Which claims are asked for together."""

from __future__ import annotations

import click
import pytest

from dra_alloc import api
from dra_alloc.cli._questions import Question, questions
from dra_alloc.errors import DecodeError

GPU = api.ResourceClaimSpec(
    devices=api.DeviceClaim(
        requests=(api.DeviceRequest(name="gpu", exactly=api.ExactDeviceRequest(device_class_name="gpu")),)
    )
)


def claim(name: str, *, namespace: str = "default", allocated: bool = False) -> api.ResourceClaim:
    status = api.ResourceClaimStatus(allocation=api.AllocationResult()) if allocated else None
    return api.ResourceClaim(metadata=api.ObjectMeta(name=name, namespace=namespace), spec=GPU, status=status)


def template(name: str) -> api.ResourceClaimTemplate:
    inner = api.ResourceClaimTemplateSpec(metadata=api.ObjectMeta(labels={"team": "a"}), spec=GPU)
    return api.ResourceClaimTemplate(metadata=api.ObjectMeta(name=name, namespace="default"), spec=inner)


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
        Question((b,), first),
        Question((a,), second),
        Question((lone,)),
    ]


@pytest.mark.parametrize(
    "settled",
    [
        pod("p", direct("a"), node="node-1"),
        pod("p", direct("a"), phase="Succeeded"),
        pod("p", direct("a"), phase="Failed"),
    ],
)
def test_a_pod_that_is_placed_or_finished_does_not_wait_nor_do_its_claims(settled: api.Pod) -> None:
    assert questions([claim("a"), settled]) == []


def test_a_pod_without_claims_does_not_wait() -> None:
    assert questions([pod("p")]) == []


def test_a_placed_pod_can_be_asked_for_by_name_and_keeps_its_node() -> None:
    a, placed = claim("a"), pod("p", direct("a"), node="node-1")
    assert questions([a, placed], pod_name="default/p") == [Question((a,), placed, "node-1")]


def test_named_claims_are_asked_together_in_the_order_of_their_names() -> None:
    a, b = claim("a"), claim("b", namespace="other")
    assert questions([a, b], claim_names=["other/b", "default/a"]) == [Question((b, a))]


def test_a_claim_is_made_from_a_template_as_the_controller_makes_it() -> None:
    waiting = pod("p", from_template("t"))
    ((made,),) = [question.claims for question in questions([template("t"), waiting])]
    assert made.metadata == api.ObjectMeta(
        name="p-dev",
        namespace="default",
        labels={"team": "a"},
        annotations={"resource.kubernetes.io/pod-claim-name": "dev"},
        owner_references=(api.OwnerReference(api_version="v1", kind="Pod", name="p", uid="uid-of-p", controller=True),),
    )
    assert made.spec == GPU


def test_a_claim_that_exists_already_for_a_template_is_used() -> None:
    existing = claim("p-dev-x7k2p")
    waiting = pod(
        "p", from_template("t"), made=(api.PodResourceClaimStatus(name="dev", resource_claim_name="p-dev-x7k2p"),)
    )
    assert questions([template("t"), existing, waiting]) == [Question((existing,), waiting)]


def test_an_entry_that_needs_no_claim_is_passed_over() -> None:
    a = claim("a")
    waiting = pod("p", from_template("t"), direct("a"), made=(api.PodResourceClaimStatus(name="dev"),))
    assert questions([a, waiting]) == [Question((a,), waiting)]


def test_objects_without_a_namespace_are_in_default() -> None:
    a = claim("a", namespace="")
    assert questions([a], claim_names=["default/a"]) == [Question((a,))]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (direct("gone"), r"Pod default/p: spec\.resourceClaims\[0\]: ResourceClaim default/gone is not in the input"),
        (from_template("gone"), r"ResourceClaimTemplate default/gone is not in the input"),
        (api.PodResourceClaim(name="dev"), r"resourceClaimName or resourceClaimTemplateName"),
    ],
)
def test_what_a_waiting_pod_lacks_is_named(entry: api.PodResourceClaim, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        questions([pod("p", entry)])


def test_what_a_placed_pod_lacks_hinders_nobody() -> None:
    a, waiting = claim("a"), pod("q", direct("a"))
    assert questions([pod("p", direct("gone"), node="node-1"), a, waiting]) == [Question((a,), waiting)]


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ({"claim_names": ["default/gpux"]}, "no ResourceClaim default/gpux in the input; did you mean default/gpu"),
        ({"pod_name": "default/p"}, "no Pod default/p in the input; there is none at all"),
        ({"claim_names": ["zzz/q"]}, "no ResourceClaim zzz/q in the input; there are 1"),
    ],
)
def test_an_unknown_name_is_met_with_a_hint(names: dict[str, object], hint: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        questions([claim("gpu")], **names)  # type: ignore[arg-type]
    assert hint in caught.value.format_message()


def test_titles_name_the_pod_or_the_claims() -> None:
    assert [
        Question((claim("a"),), pod("p")).title,
        Question((claim("a"),)).title,
        Question((claim("a"), claim("b", namespace="x"))).title,
    ] == ["pod default/p", "claim default/a", "claims default/a, x/b"]
