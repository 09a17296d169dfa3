"""What is known of why a pod did not fit narrows what wakes it, until it is woken."""

from __future__ import annotations

import pytest

import dra_alloc as dra
from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.requeue import Blocking
from tests.requeue.objects import (
    CLASSES,
    NIC,
    claim,
    device,
    holding,
    node,
    pod,
    request,
    slice_of,
)

KEY = "default/a"


@pytest.fixture
def index() -> dra.RequeueIndex:
    """A pod wants a GPU and a NIC. All are in use."""
    wanted = claim("x", request("gpu", name="gpu"), request("nic", name="nic"))
    return dra.RequeueIndex(
        dra.Cluster.from_objects(
            [
                *CLASSES,
                node("node-1"),
                slice_of(device("g"), name="gpus"),
                slice_of(device("n"), driver=NIC, name="nics"),
                holding(claim("gpu-user"), "g"),
                holding(claim("nic-user"), "n", driver=NIC),
                wanted,
            ]
        )
    )


GPU_FREED = dra.Event("deleted", holding(claim("gpu-user"), "g"))
NIC_FREED = dra.Event("deleted", holding(claim("nic-user"), "n", driver=NIC))
UNRELATED = dra.Event("added", holding(claim("unrelated"), "z"))


class Told:
    def blocking(self) -> Blocking:
        return {"default/x": ["nic"]}


@pytest.mark.parametrize("reason", [{"default/x": ["nic"]}, {"default/x": {"nic/sub"}}, Told()])
def test_only_the_requests_that_block_count(index: dra.RequeueIndex, reason: object) -> None:
    index.add(pod("a", "x"), reason)
    assert index.affected(GPU_FREED) == []
    assert index.affected(NIC_FREED) == [KEY]
    # It may have the NIC now, so that from here on the GPU may be what it lacks.
    assert index.affected(GPU_FREED) == [KEY]


def test_a_new_reason_counts_from_then_on(index: dra.RequeueIndex) -> None:
    index.add(pod("a", "x"), {"default/x": ["nic"]})
    index.add(pod("a", "x"), {"default/x": ["gpu"]})
    assert index.affected(NIC_FREED) == []
    index.add(pod("a", "x"), {})
    assert index.affected(NIC_FREED) == [KEY]


def test_a_reason_about_something_else_narrows_nothing(index: dra.RequeueIndex) -> None:
    index.add(pod("a", "x"), {"default/other": ["nic"]})
    assert index.affected(GPU_FREED) == [KEY]


def test_an_explanation_tells_which_requests_block(index: dra.RequeueIndex) -> None:
    index.cluster.delete("ResourceClaim", "default/gpu-user")
    explanation = dra.Allocator(index.cluster).explain("default/x")
    index.add(pod("a", "x"), explanation)
    assert index.affected(GPU_FREED) == []
    assert index.affected(NIC_FREED) == [KEY]


def test_an_explanation_of_one_node_tells_nothing_of_others(index: dra.RequeueIndex) -> None:
    index.cluster.delete("ResourceClaim", "default/gpu-user")
    index.add(pod("a", "x"), dra.Allocator(index.cluster).explain("default/x", node="node-1"))
    assert index.affected(GPU_FREED) == [KEY]


@pytest.mark.parametrize("error", [AllocationError("cel", "no such key"), BudgetExceeded("out of steps")])
def test_after_an_error_every_change_counts(index: dra.RequeueIndex, error: Exception) -> None:
    index.add(pod("a", "x"), error)
    assert index.affected(UNRELATED) == [KEY]
    index.add(pod("a", "x"), AllocationError("class-not-found", "there is no DeviceClass"))
    assert index.affected(UNRELATED) == []


def test_a_device_that_is_an_error_is_out_of_the_way_once_it_is_taken() -> None:
    wanted = claim("x", request("gpu", 'device.attributes["gpu.example.com"].missing == "a"'))
    index = dra.RequeueIndex(dra.Cluster.from_objects([*CLASSES, slice_of(device("d")), wanted]))
    index.add(pod("a", "x"))
    assert index.affected(dra.Event("added", holding(claim("other"), "d"))) == [KEY]


@pytest.mark.parametrize("reason", ["no devices", 7, {"default/x": "nic"}])
def test_other_reasons_are_refused(index: dra.RequeueIndex, reason: object) -> None:
    with pytest.raises(TypeError, match="reason: "):
        index.add(pod("a", "x"), reason)
