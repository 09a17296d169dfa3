"""KEP-5055: what taints a device has, who tolerates them, and how the API server keeps their times."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest

from dra_alloc.api import Device, DeviceTaint, DeviceTaintRuleStatus, DeviceTaintSelector, DeviceToleration
from dra_alloc.errors import ValidationError
from dra_alloc.features.taints import (
    DeviceId,
    DeviceTaints,
    create_rule,
    default_time_added,
    describe,
    keep_time_added,
    selects,
    tolerates,
    untolerated,
    update_rule,
)
from dra_alloc.gates import Features
from tests.features.building import accepted, at, rule, slice_of, taint, tolerate

GPU_0 = DeviceId("gpu.example.com", "node-1", "gpu-0")
GPU_1 = DeviceId("gpu.example.com", "node-1", "gpu-1")


@pytest.mark.parametrize(
    ("toleration", "text", "expected"),
    [
        (DeviceToleration(operator="Exists"), "a=b:NoSchedule", True),
        (DeviceToleration(key="a", value="b"), "a=b:NoSchedule", True),
        (DeviceToleration(key="a", operator="", value="b"), "a=b:NoSchedule", True),
        (DeviceToleration(key="a", operator="Equal", value="c"), "a=b:NoSchedule", False),
        (DeviceToleration(key="a", operator="Equal"), "a:NoSchedule", True),
        (DeviceToleration(key="a", operator="Exists"), "a=b:NoExecute", True),
        (DeviceToleration(key="b", operator="Exists"), "a=b:NoExecute", False),
        (DeviceToleration(key="a", operator="Exists", effect="NoExecute"), "a=b:NoSchedule", False),
        (DeviceToleration(key="a", operator="Exists", effect="NoSchedule"), "a=b:NoExecute", False),
        (DeviceToleration(value="b"), "anything=b:NoSchedule", True),
        (DeviceToleration(key="a", operator="Like", value="b"), "a=b:NoSchedule", False),
    ],
)
def test_a_toleration_matches_by_effect_key_and_operator(
    toleration: DeviceToleration, text: str, expected: bool
) -> None:
    assert tolerates(toleration, taint(text)) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        (DeviceTaintSelector(), True),
        (DeviceTaintSelector(driver="gpu.example.com", pool="node-1", device="gpu-0"), True),
        (DeviceTaintSelector(pool="node-1"), True),
        (DeviceTaintSelector(pool="node-1", device="gpu-1"), False),
        (DeviceTaintSelector(driver=""), False),
    ],
)
def test_a_rule_selects_by_all_given_fields(selector: DeviceTaintSelector | None, expected: bool) -> None:
    assert selects(selector, GPU_0) is expected


def tainted_device() -> Device:
    return Device(name="gpu-0", taints=(taint("a=b:NoExecute", 100), taint("c:None")))


def test_taints_of_the_slice_come_first_then_one_of_each_rule() -> None:
    taints = DeviceTaints(
        [slice_of(tainted_device(), "gpu-1")],
        [
            rule("r2", taint("d:NoSchedule"), {}),
            rule("nothing", taint("e:NoExecute"), None),
            rule("r1", taint("a=b:NoExecute"), {"device": "gpu-0"}),
        ],
    )
    assert [str(item) for item in taints.of(GPU_0)] == [
        "a=b:NoExecute on gpu.example.com/node-1/gpu-0 (slice, taint 0)",
        "c:None on gpu.example.com/node-1/gpu-0 (slice, taint 1)",
        "d:NoSchedule on gpu.example.com/node-1/gpu-0 (DeviceTaintRule r2)",
        "a=b:NoExecute on gpu.example.com/node-1/gpu-0 (DeviceTaintRule r1)",
    ]
    assert [device for device, _ in taints] == [GPU_0, GPU_1]
    assert taints.published(DeviceTaintSelector(device="gpu-1")) == (GPU_1,)


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_of(tainted_device()), slice_of("gpu-0", generation=2)
    for slices in ([old, new], [new, old]):
        assert DeviceTaints(slices).of(GPU_0) == ()
    assert [describe(item.taint) for item in DeviceTaints([old]).of(GPU_0)] == ["a=b:NoExecute", "c:None"]


def test_a_rule_taints_devices_that_no_slice_publishes() -> None:
    found = DeviceTaints([], [rule("r", taint("a:NoExecute"), {"device": "gpu-0"})]).of(GPU_0)
    assert [item.rule for item in found] == ["r"]


def test_every_single_blocking_taint_must_be_tolerated() -> None:
    device = Device(name="gpu-0", taints=(taint("a=1:NoSchedule"), taint("a=2:NoSchedule"), taint("a=3:None")))
    taints = DeviceTaints([slice_of(device)]).of(GPU_0)
    assert untolerated(taints, [tolerate("a")]) == ()
    assert untolerated(taints, [DeviceToleration(key="a", value="1")]) == (taints[1],)
    assert untolerated(taints, []) == taints[:2]
    # How long a taint is tolerated does not matter to allocation.
    assert untolerated(taints, [tolerate("a", seconds=0)]) == ()


def test_unknown_effects_block_nothing() -> None:
    taints = DeviceTaints([slice_of(Device(name="gpu-0", taints=(taint("a:NoMore"),)))]).of(GPU_0)
    assert untolerated(taints, []) == ()


def test_gates_off() -> None:
    slices, rules = [slice_of(tainted_device())], [rule("r", taint("d:NoSchedule"), {})]
    without_rules = DeviceTaints(slices, rules, Features(DRADeviceTaintRules=False))
    assert [item.rule for item in without_rules.of(GPU_0)] == ["", ""]
    assert DeviceTaints(slices, rules, Features(DRADeviceTaints=False)).of(GPU_0) == ()


def test_an_absent_time_becomes_now_in_whole_seconds() -> None:
    stored = default_time_added(slice_of(tainted_device()), at(500.9))
    assert [item.time_added for item in stored.spec.devices[0].taints] == [at(100), at(500)]
    accepted(stored)


def test_a_new_rule_begins_with_generation_1_and_no_status() -> None:
    given = attrs.evolve(rule("r", taint("a:NoExecute"), {}, generation=7), status=DeviceTaintRuleStatus())
    stored = create_rule(given, at(10.5))
    assert (stored.metadata.generation, stored.status, stored.spec.taint.time_added) == (1, None, at(10))
    accepted(stored)


def test_a_changed_effect_starts_the_clock_anew() -> None:
    old = create_rule(rule("r", taint("a:None"), {}), at(10))
    changed = attrs.evolve(old, spec=attrs.evolve(old.spec, taint=taint("a:NoExecute", 10)))
    assert update_rule(old, changed, at(500)).spec.taint.time_added == at(500)
    # A time that was changed together with the effect is kept.
    chosen = attrs.evolve(old, spec=attrs.evolve(old.spec, taint=taint("a:NoExecute", 20)))
    assert update_rule(old, chosen, at(500)).spec.taint.time_added == at(20)
    # Another key or value goes on with the clock of before.
    renamed = attrs.evolve(old, spec=attrs.evolve(old.spec, taint=taint("b=c:None", 10)))
    assert update_rule(old, renamed, at(500)).spec.taint.time_added == at(10)
    # A time left out is filled in.
    without = attrs.evolve(old, spec=attrs.evolve(old.spec, taint=taint("b=c:None")))
    assert update_rule(old, without, at(500)).spec.taint.time_added == at(500)


def test_only_a_changed_specification_raises_the_generation() -> None:
    old = attrs.evolve(create_rule(rule("r", taint("a:None"), {}), at(10)), status=DeviceTaintRuleStatus())
    assert update_rule(old, attrs.evolve(old, status=None), at(20)) == old
    changed = attrs.evolve(old, spec=attrs.evolve(old.spec, taint=taint("b:None", 10)))
    stored = update_rule(old, changed, at(20))
    assert (stored.metadata.generation, stored.status) == (2, DeviceTaintRuleStatus())


def test_a_driver_keeps_the_times_of_taints_it_publishes_again() -> None:
    published = slice_of(Device(name="gpu-0", taints=(taint("a=b:NoExecute", 100), taint("c:NoSchedule", 50))))
    again = slice_of(
        Device(name="gpu-0", taints=(taint("a=b:NoExecute"), taint("c:NoExecute"), taint("d:None", 7.6))),
        Device(name="gpu-1", taints=(taint("a=b:NoExecute"),)),
        generation=2,
    )
    kept = keep_time_added(published, again)
    times = [[item.time_added for item in device.taints] for device in kept.spec.devices]
    assert times == [[at(100), None, at(8)], [None]]


def test_the_last_second_of_all_is_not_rounded_up() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    late = slice_of(Device(name="gpu-0", taints=(DeviceTaint(key="a", effect="None", time_added=last),)))
    assert keep_time_added(slice_of(), late).spec.devices[0].taints[0].time_added == last.replace(microsecond=0)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="now: the time 2026-09-01T12:00:00 has no time zone"):
        create_rule(rule("r", taint("a:None"), {}), at(0).replace(tzinfo=None))
