"""KEP-5007: when a pod may be bound, and what is undone when it may not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest

from dra_alloc.api import AllocatedDeviceStatus, Condition, DeviceRequestAllocationResult, Pod, ResourceClaim
from dra_alloc.errors import ValidationError
from dra_alloc.features.binding import (
    POLL_PERIOD,
    BindingState,
    Readiness,
    claim_readiness,
    deallocate,
    pod_readiness,
    retry_plan,
    unreserve,
)
from dra_alloc.gates import Features
from tests.features.building import accepted, at, claim, pod, result, with_status

POD = pod("p", "c")
START = 1000


def attached(device: str = "gpu-0") -> DeviceRequestAllocationResult:
    return result(device, binding_conditions=("a",), binding_failure_conditions=("f",))


def waiting(
    name: str = "c", *results: DeviceRequestAllocationResult, reserved_for: Sequence[Pod] = (POD,)
) -> ResourceClaim:
    """A claim whose devices are ready with `a` and have failed with `f`, allocated at START."""
    return claim(name, *(results or (attached(),)), reserved_for=reserved_for, allocation_timestamp=at(START))


def reporting(held: ResourceClaim, device: str = "gpu-0", **conditions: str) -> ResourceClaim:
    assert held.status is not None
    entry = AllocatedDeviceStatus(
        driver="gpu.example.com",
        pool="node-1",
        device=device,
        conditions=tuple(
            Condition(type=name, status=status, reason="Attached", last_transition_time=at(START))
            for name, status in conditions.items()
        ),
    )
    return attrs.evolve(held, status=attrs.evolve(held.status, devices=(*held.status.devices, entry)))


def state(held: ResourceClaim, seconds: float, **options: Any) -> BindingState:
    return claim_readiness(held, now=at(seconds), **options).state


def test_worked_example_a() -> None:
    assert state(waiting(), 1005) is BindingState.PENDING
    assert state(reporting(waiting(), a="Unknown"), 1010) is BindingState.PENDING
    assert state(reporting(waiting(), a="True"), 1015) is BindingState.READY
    failed = claim_readiness(reporting(waiting(), a="True", f="True"), now=at(1010))
    assert failed.state is BindingState.FAILED
    assert str(failed) == "device gpu.example.com/node-1/gpu-0 of claim default/c has failure condition f"


def test_worked_example_b() -> None:
    second = pod("p2", "c")
    held = reporting(waiting(reserved_for=[POD, second]), a="False")
    polls = [at(1500) + index * POLL_PERIOD for index in range(30)]
    states = [pod_readiness([held], now=now, waiting_since=at(1500)).state for now in polls]
    first = states.index(BindingState.TIMED_OUT)
    assert polls[first] == at(1605)
    assert set(states[:first]) == {BindingState.PENDING}

    plan = retry_plan(second, [held], now=at(1605))
    assert plan.blocked == ("default/c",)
    assert plan.candidates == ()
    (left,) = plan.unreserved
    # Once the first pod has given up too, the claim can be cleared.
    last = retry_plan(POD, [left], now=at(1606))
    assert last.candidates == ("default/c",)
    assert last.deallocated is not None
    assert last.deallocated == with_status(left, allocation=None, reserved_for=(), devices=())
    accepted(last.deallocated)


def test_the_times_out_strictly_after_the_timeout() -> None:
    assert state(waiting(), 1600) is BindingState.PENDING
    assert state(waiting(), 1600.001) is BindingState.TIMED_OUT
    assert state(waiting(), 1031, timeout=timedelta(seconds=30)) is BindingState.TIMED_OUT
    assert claim_readiness(waiting(), now=at(1005)).deadline == at(1600)


def test_a_claim_without_timestamp_never_times_out_by_itself() -> None:
    held = claim("c", attached(), reserved_for=[POD])
    assert state(held, 10**6) is BindingState.PENDING
    found = pod_readiness([held], now=at(10**6), waiting_since=at(10**6 - 600))
    assert (found.state, found.deadline) == (BindingState.TIMED_OUT, at(10**6))


def test_the_first_device_that_is_not_ready_hides_failures_behind_it() -> None:
    held = waiting("c", attached("gpu-0"), attached("gpu-1"))
    failed = reporting(held, "gpu-1", f="True")
    assert claim_readiness(failed, now=at(1001)).device == ("gpu.example.com", "node-1", "gpu-0")
    assert state(failed, 1001) is BindingState.PENDING
    assert state(reporting(failed, "gpu-0", a="True"), 1001) is BindingState.FAILED


def test_only_the_first_entry_of_a_device_counts() -> None:
    held = reporting(reporting(waiting(), a="False"), a="True")
    assert state(held, 1001) is BindingState.PENDING


def test_devices_without_conditions_are_waited_for_by_nobody() -> None:
    assert state(claim("c", result("gpu-0")), 1001) is BindingState.READY
    assert state(reporting(waiting("c", attached(), result("gpu-1")), a="True"), 1001) is BindingState.READY


def test_a_claim_that_is_not_allocated() -> None:
    found = pod_readiness([claim("c")], now=at(0))
    assert found == Readiness(BindingState.UNALLOCATED, "default/c")
    assert str(found) == "claim default/c is not allocated"


def test_the_first_claim_of_a_pod_that_is_not_ready_decides() -> None:
    ready, pending = reporting(waiting("r"), a="True"), waiting("s")
    failed = reporting(waiting("t"), f="True")
    assert pod_readiness([ready, pending, failed], now=at(1001)).claim == "default/s"
    assert pod_readiness([ready, failed, pending], now=at(1001)).state is BindingState.FAILED
    assert str(pod_readiness([ready], now=at(1001))) == "ready to bind"
    assert str(pod_readiness([pending], now=at(1601))) == (
        "device gpu.example.com/node-1/gpu-0 of claim default/s did not reach condition a in time"
    )
    assert str(pod_readiness([pending], now=at(1001))) == (
        "device gpu.example.com/node-1/gpu-0 of claim default/s waits for condition a"
    )


@pytest.mark.parametrize("gate", ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"])
def test_nothing_is_waited_for_with_a_gate_off(gate: str) -> None:
    assert state(waiting(), 5000, features=Features(**{gate: False})) is BindingState.READY


def test_failure_of_a_claim_of_ones_own_frees_it_for_another_try() -> None:
    failed, fine = reporting(waiting("c"), f="True"), reporting(waiting("d"), a="True")
    plan = retry_plan(POD, [fine, failed], now=at(1001))
    assert [item.status.reserved_for for item in plan.unreserved if item.status] == [(), ()]
    assert [item.status.allocation is None for item in plan.unreserved if item.status] == [False, False]
    assert (plan.candidates, plan.blocked) == (("default/c",), ())
    assert plan.deallocated == deallocate(unreserve(failed, POD))


def test_a_claim_that_may_still_become_ready_is_not_given_up() -> None:
    plan = retry_plan(POD, [waiting(), claim("e")], now=at(1599))
    assert (plan.candidates, plan.deallocated) == ((), None)
    assert plan.unreserved[1] == claim("e")


def test_claims_that_were_never_allocated_stay_as_they_are() -> None:
    assert deallocate(claim("e")) == unreserve(claim("e"), POD) == claim("e")


def test_bad_input() -> None:
    with pytest.raises(ValidationError, match=r"bindingTimeout: 0\.5 s is too short \(at least 1 s\)"):
        claim_readiness(waiting(), now=at(0), timeout=timedelta(seconds=0.5))
    with pytest.raises(ValidationError, match="has no time zone"):
        claim_readiness(waiting(), now=at(0).replace(tzinfo=None))
    # A timeout beyond all times means to wait for ever.
    assert state(waiting(), 10**9, timeout=timedelta.max) is BindingState.PENDING
