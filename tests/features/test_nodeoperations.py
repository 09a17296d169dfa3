"""KEP-5945: the calls that a node makes to prepare and to unprepare claims."""

from __future__ import annotations

import attrs
import pytest

from dra_alloc.api import Node, NodeStatus, PodExtendedResourceClaimStatus, PodResourceClaimStatus, ResourceClaim
from dra_alloc.errors import AllocationError, ValidationError
from dra_alloc.features.nodeoperations import (
    NodeCalls,
    node_calls,
    node_supports,
    pod_node_calls,
    unprepare_calls,
)
from dra_alloc.gates import Features
from tests.features.building import accepted, claim, pod, result

ON = Features(DRAOptionalNodeOperations=True)
BOTH = ("NodePrepareResources", "NodeUnprepareResources")


def claim_of(*results: tuple[str, tuple[str, ...]], name: str = "c") -> ResourceClaim:
    """A claim with one device for each (driver, what it skips)."""
    return claim(
        name,
        *(
            result(f"d-{index}", driver=driver, skip_node_operations=skips)
            for index, (driver, skips) in enumerate(results)
        ),
    )


def test_worked_example_1() -> None:
    held = claim_of(("a.example.com", ("*",)), ("a.example.com", BOTH), ("b.example.com", ()))
    calls = node_calls(held, ON)
    assert calls == NodeCalls("default/c", prepare=("b.example.com",), unprepare=("b.example.com",))
    accepted(held)


def test_worked_example_2() -> None:
    held = claim_of(("a.example.com", ("*",)), ("a.example.com", ("NodeUnprepareResources",)))
    assert node_calls(held, ON) == NodeCalls("default/c", prepare=("a.example.com",), unprepare=())


def test_unknown_operations_are_ignored() -> None:
    held = claim_of(("a.example.com", ("NodeDance",)))
    assert node_calls(held, ON) == NodeCalls("default/c", ("a.example.com",), ("a.example.com",))


def test_drivers_are_called_once_in_the_order_of_results() -> None:
    held = claim_of(("b.example.com", ()), ("a.example.com", ()), ("b.example.com", ()))
    assert node_calls(held).prepare == ("b.example.com", "a.example.com")


def test_with_the_gate_off_a_claim_that_skips_preparation_is_refused() -> None:
    held = claim_of(("a.example.com", ("*",)), ("b.example.com", ()))
    with pytest.raises(AllocationError, match="needs the feature gate DRAOptionalNodeOperations") as error:
        node_calls(held)
    assert (error.value.kind, error.value.claim) == ("unsupported", "default/c")
    assert error.value.device == "a.example.com/node-1/d-0"
    # What was prepared before can still end.
    assert unprepare_calls(held) == ("b.example.com",)
    only_unprepare = claim_of(("a.example.com", ("NodeUnprepareResources",)))
    assert node_calls(only_unprepare).unprepare == ()


def test_all_claims_of_a_pod() -> None:
    user = pod("p", "c", "c-again", templates={"net": "p-net-x"})
    user = attrs.evolve(
        user,
        spec=attrs.evolve(
            user.spec,
            resource_claims=(
                user.spec.resource_claims[0],
                attrs.evolve(user.spec.resource_claims[1], resource_claim_name="c"),
                user.spec.resource_claims[2],
            ),
        ),
    )
    status = user.status
    assert status is not None
    user = attrs.evolve(
        user,
        status=attrs.evolve(
            status,
            extended_resource_claim_status=PodExtendedResourceClaimStatus(resource_claim_name="p-ext"),
        ),
    )
    claims = [
        claim_of(("a.example.com", ("*",))),
        claim("p-net-x", result("nic-0", driver="nic.example.com"), owner=user),
        claim("p-ext", result("gpu-1", driver="gpu.example.com"), owner=user),
        claim_of(("z.example.com", ()), name="of-another-pod"),
    ]
    assert pod_node_calls(user, claims, ON) == (
        NodeCalls("default/c", (), ()),
        NodeCalls("default/p-net-x", ("nic.example.com",), ("nic.example.com",)),
        NodeCalls("default/p-ext", ("gpu.example.com",), ("gpu.example.com",)),
    )


def test_a_claim_that_the_pod_turned_out_not_to_need_is_no_error() -> None:
    user = pod("p", templates={"net": "unused"})
    status = user.status
    assert status is not None
    without = attrs.evolve(status, resource_claim_statuses=(PodResourceClaimStatus(name="net"),))
    assert pod_node_calls(attrs.evolve(user, status=without), [], ON) == ()


def test_missing_and_unallocated_claims_are_named() -> None:
    with pytest.raises(
        ValidationError, match=r"Pod default/p: spec\.resourceClaims\[0\]: there is no ResourceClaim for 'c'"
    ):
        pod_node_calls(pod("p", "c"), [])
    with pytest.raises(
        ValidationError, match=r"ResourceClaim default/c: status\.allocation: the claim is not allocated"
    ):
        pod_node_calls(pod("p", "c"), [claim("c")])
    foreign = claim("p-net-x", result("nic-0"), owner=pod("q"))
    with pytest.raises(ValidationError, match="there is no ResourceClaim for 'net'"):
        pod_node_calls(pod("p", templates={"net": "p-net-x"}), [foreign])


def test_a_node_must_declare_the_feature_for_devices_that_skip_operations() -> None:
    old, new = Node(), Node(status=NodeStatus(declared_features=("DRAOptionalNodeOperations",)))
    skipping, plain = claim_of(("a.example.com", ("*",))), claim_of(("a.example.com", ()))
    assert [node_supports(node, [skipping, plain]) for node in (old, new)] == [False, True]
    assert node_supports(old, [plain, claim("pending")])
