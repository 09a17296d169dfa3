"""KEP-5677: the answer to a ResourcePoolStatusRequest."""

from __future__ import annotations

from typing import Any

import pytest

from dra_alloc.api import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ObjectMeta,
    PartitionTypeStatus,
    PoolStatus,
    Quantity,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourceSlice,
    ShareableCapacityStatus,
    ShareableSummaryStatus,
)
from dra_alloc.errors import AllocationError, ValidationError
from dra_alloc.features.poolstatus import answer, answer_request, expired, failed, pool_status
from dra_alloc.gates import Features
from tests.features.building import Objects, accepted, at, claim, result, rule, slice_of, taint

ON = Features(DRAResourcePoolStatus=True, DRAPartitionableDevicesType=True)
PROFILE = "gpu.example.com/profile"


def request(**spec: Any) -> ResourcePoolStatusRequest:
    return ResourcePoolStatusRequest(
        metadata=ObjectMeta(name="ask", creation_timestamp=at(0)),
        spec=ResourcePoolStatusRequestSpec(**{"driver": "gpu.example.com", **spec}),
    )


def partition(name: str, memory: str, profile: str | None, **fields: Any) -> Device:
    return Device(
        name=name,
        attributes={} if profile is None else {"profile": DeviceAttribute(string=profile)},
        consumes_counters=(
            DeviceCounterConsumption(counter_set="card", counters={"memory": Counter(value=Quantity.parse(memory))}),
        ),
        **fields,
    )


def counters(memory: str = "80Gi", **spec: Any) -> ResourceSlice:
    """The slice with the counter set of a card."""
    card = CounterSet(name="card", counters={"memory": Counter(value=Quantity.parse(memory))})
    return slice_of(name="counters", count=2, shared_counters=(card,), **spec)


def partitions(*devices: Device, **spec: Any) -> list[ResourceSlice]:
    return [counters(), slice_of(*devices, name="partitions", count=2, **spec)]


CARD = (
    partition("full", "80Gi", "Full"),
    partition("half-1", "40Gi", "Half"),
    partition("half-2", "40Gi", "Half"),
)


def one(slices: list[ResourceSlice], *claims: Any, features: Features = ON, **options: Any) -> PoolStatus:
    (status,) = pool_status(slices, claims, features=features, **options)
    return status


def test_worked_example_1() -> None:
    gpus = slice_of("gpu-0", "gpu-1", "gpu-2", Device(name="gpu-3", taints=(taint("bad:NoSchedule"),)))
    claims = [
        claim("a", result("gpu-0")),
        claim("b", result("gpu-0")),
        claim("c", result("gpu-1", admin_access=True)),
    ]
    answered = answer(request(), [gpus], claims, now=at(5.5), features=ON)
    status = answered.status
    assert status is not None
    assert status.pools == (
        PoolStatus(
            driver="gpu.example.com",
            pool_name="node-1",
            generation=1,
            node_name="node-1",
            resource_slice_count=1,
            total_devices=4,
            allocated_devices=1,
            available_devices=2,
            unavailable_devices=1,
        ),
    )
    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Complete", "True", "CalculationComplete")
    assert (condition.message, condition.last_transition_time) == ("Calculated status for 1 pools", at(5))
    accepted(answered)


def test_worked_example_2() -> None:
    slices = partitions(*CARD, partition_type_attribute=PROFILE)
    answered = answer(request(), slices, [claim("a", result("half-1"))], now=at(0), features=ON)
    status = answered.status
    assert status is not None
    (pool,) = status.pools
    assert (pool.total_devices, pool.allocated_devices, pool.available_devices) == (3, 1, 2)
    assert pool.partition_summary == (
        PartitionTypeStatus(attribute=PROFILE, type="Full", total=1, allocatable=0),
        PartitionTypeStatus(attribute=PROFILE, type="Half", total=2, allocatable=1),
    )
    assert pool.resource_slice_count == 2
    accepted(answered)


def shareable(name: str) -> Device:
    memory = DeviceCapacity(value=Quantity.parse("80Gi"))
    return Device(name=name, allow_multiple_allocations=True, capacity={"memory": memory})


def share(device: str, memory: str, **fields: Any) -> Any:
    return result(device, consumed_capacity={"memory": Quantity.parse(memory)}, **fields)


def test_the_worked_example_of_shares() -> None:
    slices = [slice_of(shareable("nic-0"), shareable("nic-1"), shareable("nic-2"))]
    claims = [
        claim("a", share("nic-0", "30Gi")),
        claim("b", share("nic-1", "20Gi"), share("nic-1", "40Gi")),
        claim("watch", share("nic-2", "80Gi", admin_access=True)),
    ]
    answered = answer(request(), slices, claims, now=at(0), features=ON)
    status = answered.status
    assert status is not None
    assert status.pools[0].shareable_summary == ShareableSummaryStatus(
        fully_available_devices=1,
        partially_available_devices=2,
        capacity=(
            ShareableCapacityStatus(
                name="memory",
                total=Quantity.parse("240Gi"),
                consumed=Quantity.parse("90Gi"),
                available=Quantity.parse("150Gi"),
            ),
        ),
    )
    form = accepted(answered)
    assert form["status"]["pools"][0]["shareableSummary"]["capacity"] == [
        {"name": "memory", "total": "240Gi", "consumed": "90Gi", "available": "150Gi"}
    ]


def test_consumption_beyond_the_total_leaves_nothing() -> None:
    pool = one([slice_of(shareable("nic-0"))], claim("a", share("nic-0", "100Gi")))
    assert pool.shareable_summary is not None
    assert str(pool.shareable_summary.capacity[0].available) == "0"


def test_a_tainted_device_that_is_allocated_counts_as_allocated_so_that_the_numbers_add_up() -> None:
    gpus = slice_of("gpu-0", "gpu-1", "gpu-2")
    rules = [
        rule("all", taint("a:NoExecute"), {"pool": "node-1"}),
        rule("nothing", taint("b:NoExecute"), None),
        rule("told", taint("c:None"), {}),
    ]
    held = [claim("a", result("gpu-0")), claim("gone", result("gpu-9"))]
    pool = one([gpus], *held, rules=rules)
    counts = (pool.allocated_devices, pool.unavailable_devices, pool.available_devices, pool.total_devices)
    assert counts == (1, 2, 0, 3)
    without_rules = one([gpus], *held, rules=rules, features=ON.replace(DRADeviceTaintRules=False))
    assert without_rules.unavailable_devices == 0


def test_only_the_newest_generation_counts_and_an_incomplete_pool_has_no_counts() -> None:
    slices = [slice_of("gpu-0"), slice_of("gpu-0", "gpu-1", generation=2, count=3)]
    answered = answer(request(), slices, [], now=at(0), features=ON)
    status = answered.status
    assert status is not None
    assert status.pools == (
        PoolStatus(
            driver="gpu.example.com",
            pool_name="node-1",
            generation=2,
            node_name="node-1",
            validation_error="PoolIncomplete: pool gpu.example.com/node-1 is incomplete: "
            "observed 1/3 slices at generation 2",
        ),
    )
    assert status.conditions[0].message == "Calculated status for 1 pools (1 incomplete)"
    accepted(answered)


def test_a_pool_over_several_nodes_names_none() -> None:
    slices = [slice_of("a", name="s1", count=2), slice_of("b", name="s2", node="node-2", count=2)]
    assert one(slices).node_name is None


def test_errors_are_cut_to_256_bytes() -> None:
    name = "/".join(["a" * 63] * 3)
    error = one([slice_of("gpu-0", pool=name, count=2, driver="d" * 60)]).validation_error
    assert error is not None
    assert len(error) == 256
    assert error.startswith("PoolIncomplete: pool ddd")


def test_pools_are_filtered_sorted_counted_and_limited() -> None:
    slices = [slice_of("gpu-0", pool=f"node-{index:03}") for index in reversed(range(150))]
    slices.append(slice_of("nic-0", driver="nic.example.com"))

    def pools(**spec: Any) -> tuple[int, list[str]]:
        status = answer(request(**spec), slices, [], now=at(0), features=ON).status
        assert status is not None
        return status.pool_count, [pool.pool_name for pool in status.pools]

    count, names = pools()
    assert (count, len(names), names[0], names[-1]) == (150, 100, "node-000", "node-099")
    assert pools(limit=1) == (150, ["node-000"])
    assert pools(limit=1000)[0] == len(pools(limit=1000)[1])
    assert pools(pool_name="node-007") == (1, ["node-007"])
    assert pools(driver="nobody.example.com") == (0, [])
    empty = answer(request(driver="nobody.example.com"), slices, [], now=at(0), features=ON)
    assert "pools" not in accepted(empty)["status"]


def test_each_slice_names_its_own_attribute_and_the_default_serves_the_rest() -> None:
    other = Device(
        name="slow",
        attributes={"vendor.example.com/kind": DeviceAttribute(string="Slow"), PROFILE: DeviceAttribute(string="x")},
        consumes_counters=CARD[0].consumes_counters,
    )
    slices = [
        counters(),
        slice_of(*CARD, name="partitions", count=3, partition_type_attribute=PROFILE),
        slice_of(other, Device(name="whole"), name="others", count=3),
    ]
    slices[0] = slice_of(name="counters", count=3, shared_counters=slices[0].spec.shared_counters)
    pool = one(slices, default_partition_type="vendor.example.com/kind")
    assert [(item.attribute, item.type, item.total) for item in pool.partition_summary] == [
        (PROFILE, "Full", 1),
        (PROFILE, "Half", 2),
        ("vendor.example.com/kind", "Slow", 1),
    ]
    assert [item.type for item in one(slices).partition_summary] == ["Full", "Half"]
    assert one(partitions(*CARD)).partition_summary == ()
    assert one(partitions(*CARD)).validation_error is None


def test_the_qualified_name_wins_over_the_bare_one() -> None:
    both = Device(
        name="d",
        attributes={"profile": DeviceAttribute(string="bare"), PROFILE: DeviceAttribute(string="full")},
        consumes_counters=CARD[0].consumes_counters,
    )
    (entry,) = one(partitions(both), default_partition_type=PROFILE).partition_summary
    assert entry.type == "full"


@pytest.mark.parametrize(
    ("slices", "error"),
    [
        (
            partitions(partition("p", "1Gi", None), partition_type_attribute=PROFILE),
            'PartitionTypeMissing: device "p" in pool gpu.example.com/node-1 '
            'does not carry partition type attribute "gpu.example.com/profile"',
        ),
        (
            partitions(
                Device(
                    name="p",
                    attributes={"profile": DeviceAttribute(int=7)},
                    consumes_counters=CARD[0].consumes_counters,
                ),
                partition_type_attribute=PROFILE,
            ),
            'PartitionTypeMissing: device "p" in pool gpu.example.com/node-1 '
            'does not carry partition type attribute "gpu.example.com/profile"',
        ),
        (
            [slice_of(*CARD, partition_type_attribute=PROFILE)],
            "PartitionTypeMissing: pool gpu.example.com/node-1 declares partitionTypeAttribute "
            "but publishes no sharedCounters",
        ),
        (
            partitions(CARD[0], partition("p", "79Gi", "Full"), partition_type_attribute=PROFILE),
            'PartitionCostMismatch: devices of partition type "Full" in pool gpu.example.com/node-1 '
            "consume different counters",
        ),
        (
            partitions(
                *(partition(f"p-{index}", "1Gi", f"T{index}") for index in range(33)),
                partition_type_attribute=PROFILE,
            ),
            "PartitionSummaryOverCap: pool gpu.example.com/node-1 has 33 partition types, exceeding the maximum of 32",
        ),
    ],
)
def test_a_partition_error_drops_the_summary_and_keeps_the_counts(slices: list[ResourceSlice], error: str) -> None:
    pool = one([*slices])
    assert (pool.validation_error, pool.partition_summary) == (error, ())
    assert pool.total_devices == sum(len(item.spec.devices) for item in slices)


def test_too_many_shared_capacities_leave_out_that_summary() -> None:
    many = Device(
        name="d",
        allow_multiple_allocations=True,
        capacity={f"c{index}": DeviceCapacity(value=Quantity.parse("1")) for index in range(33)},
    )
    pool = one([slice_of(many)])
    assert pool.shareable_summary is None
    assert pool.validation_error == (
        "ShareableSummaryOverCap: pool gpu.example.com/node-1 has 33 shareable capacity keys, "
        "exceeding the maximum of 32"
    )
    assert pool.total_devices == 1


def test_a_partition_error_keeps_a_good_summary_of_shares() -> None:
    pool = one(partitions(partition("p", "1Gi", None), shareable("nic"), partition_type_attribute=PROFILE))
    assert pool.validation_error is not None
    assert pool.shareable_summary is not None


def test_headroom_that_is_overdrawn_or_lacks_a_counter_allows_nothing() -> None:
    odd = Device(
        name="odd",
        attributes={"profile": DeviceAttribute(string="Odd")},
        consumes_counters=(
            DeviceCounterConsumption(counter_set="card", counters={"engines": Counter(value=Quantity.parse("1"))}),
        ),
    )
    slices = partitions(*CARD, odd, partition_type_attribute=PROFILE)
    pool = one(slices, claim("a", result("full"), result("half-1")))
    assert [(item.type, item.allocatable) for item in pool.partition_summary] == [
        ("Full", 0),
        ("Half", 0),
        ("Odd", 0),
    ]


def test_without_the_type_gate_there_is_no_partition_summary() -> None:
    plain = Features(DRAResourcePoolStatus=True)
    slices = partitions(*CARD, partition_type_attribute=PROFILE)
    assert one(slices, features=plain).partition_summary == ()
    with pytest.raises(AllocationError, match=r"grouping by .* needs the feature gate DRAPartitionableDevicesType"):
        one(slices, features=plain, default_partition_type=PROFILE)
    with pytest.raises(ValidationError, match="defaultPartitionTypeAttribute"):
        answer(request(default_partition_type_attribute=PROFILE), slices, [], now=at(0), features=plain)


def test_with_the_gate_off_a_request_is_not_answered() -> None:
    with pytest.raises(AllocationError, match="ask needs the feature gate DRAResourcePoolStatus") as error:
        answer(request(), [], [], now=at(0))
    assert error.value.kind == "unsupported"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"driver": ""}, "spec.driver"),
        ({"driver": "No Driver"}, "spec.driver"),
        ({"limit": 0}, "spec.limit"),
        ({"limit": 1001}, "spec.limit"),
        ({"pool_name": "Bad Pool"}, "spec.poolName"),
        ({"default_partition_type_attribute": "profile"}, "spec.defaultPartitionTypeAttribute"),
    ],
)
def test_requests_that_the_api_refuses(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(ValidationError) as error:
        answer(request(**spec), [], [], now=at(0), features=ON)
    assert [problem.path for problem in error.value.problems] == [path]


def test_a_calculation_that_failed_is_told_once() -> None:
    told = failed(request(), "Failed to list ResourceSlices: timeout", now=at(3))
    assert accepted(told)["status"] == {
        "poolCount": 0,
        "conditions": [
            {
                "type": "Failed",
                "status": "True",
                "reason": "CalculationFailed",
                "message": "Failed to list ResourceSlices: timeout",
                "lastTransitionTime": "2026-09-01T12:00:03Z",
            }
        ],
    }
    assert failed(told, "again", now=at(9)) is told
    assert expired(told, at(3604))


def test_an_answered_request_stays_and_ends_after_an_hour() -> None:
    first = answer_request(request(), Objects(slices=[slice_of("gpu-0")]), now=at(10), features=ON)
    assert answer_request(first, Objects(), now=at(99), features=ON) is first
    assert not expired(first, at(3610))
    assert expired(first, at(3611))
    assert not expired(request(), at(24 * 3600))
    assert expired(request(), at(24 * 3600 + 1))
    assert not expired(ResourcePoolStatusRequest(), at(10**6))
