"""Validation of ResourceSlices: every rule from both sides."""

from __future__ import annotations

from typing import Any

import pytest

from dra_alloc import Features
from tests.codec.validation_objects import device, problems, resource_slice

LONG_LABEL = "a" * 63
LONG_SUBDOMAIN = ".".join(["a" * 62] * 4)  # 251 bytes
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def consumption(name: str = "set", counters: int = 1, **fields: Any) -> dict[str, Any]:
    return {"counterSet": name, "counters": {f"c{index}": {"value": "1"} for index in range(counters)}, **fields}


def counter_set(name: str = "set", counters: int = 1) -> dict[str, Any]:
    return {"name": name, "counters": {f"c{index}": {"value": "1"} for index in range(counters)}}


def attributes(**values: Any) -> dict[str, Any]:
    return resource_slice(device(attributes=values))


def pool(**fields: Any) -> dict[str, Any]:
    return resource_slice(pool={"name": "pool", "generation": 1, "resourceSliceCount": 1, **fields})


def numbered(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [device(f"d{index}", **fields) for index in range(count)]


VALID = {
    "no devices": resource_slice(),
    "driver of 63 bytes": resource_slice(driver=LONG_LABEL),
    "driver in upper case": resource_slice(driver="GPU.example.com"),
    "pool of several parts": pool(name="rack-1/node.a"),
    "pool of 253 bytes": pool(name=f"{LONG_SUBDOMAIN}/a"),
    "generation 0": pool(generation=0),
    "node selector of one term": resource_slice(nodeSelector={"nodeSelectorTerms": [TERM]}),
    "all nodes": resource_slice(allNodes=True),
    "128 devices": resource_slice(*numbered(128)),
    "64 devices with a taint": resource_slice(*numbered(63), device("x", taints=[TAINT])),
    "64 devices with counters": resource_slice(*numbered(63), device("x", consumesCounters=[consumption()])),
    "64 devices with a list": resource_slice(*numbered(63), device("x", attributes={"a": {"ints": [1]}})),
    "device name of 63 bytes": resource_slice(device(LONG_LABEL)),
    "8 counter sets": resource_slice(sharedCounters=[counter_set(f"s{index}") for index in range(8)]),
    "32 counters": resource_slice(sharedCounters=[counter_set(counters=32)]),
    "negative counter": resource_slice(sharedCounters=[{"name": "set", "counters": {"c": {"value": "-1"}}}]),
    "2 consumptions": resource_slice(device(consumesCounters=[consumption("a"), consumption("b", 32)])),
    "2 groups": resource_slice(device(consumesCounters=[consumption(compatibilityGroups=["a", "b"])])),
    "32 attributes and capacities": resource_slice(
        device(
            attributes={f"a{index}": {"int": index} for index in range(16)},
            capacity={f"c{index}": {"value": "1"} for index in range(16)},
        )
    ),
    "48 values": attributes(a={"ints": list(range(47))}, b={"bool": False}),
    "every type of attribute": attributes(
        int={"int": 0},
        bool={"bool": False},
        string={"string": "x" * 64},
        version={"version": "1.2.3-rc.1+build.5"},
        ints={"ints": [1, 1]},
        bools={"bools": [True]},
        strings={"strings": [""]},
        versions={"versions": ["0.0.0"]},
    ),
    "qualified names": attributes(**{"gpu.example.com/x": {"int": 1}, "_" + "a" * 31: {"int": 1}}),
    "16 taints": resource_slice(device(taints=[TAINT] * 16)),
    "all effects": resource_slice(
        device(taints=[{"key": "k", "value": "v_1", "effect": e} for e in ("None", "NoSchedule", "NoExecute")])
    ),
    "4 binding conditions": resource_slice(
        device(bindingConditions=["a", "b", "c", "example.com/d"], bindingFailureConditions=["w", "x", "y", "z"])
    ),
    "per-device nodes": resource_slice(
        device("a", nodeName="n"),
        device("b", allNodes=True),
        device("c", nodeSelector={"nodeSelectorTerms": [TERM, TERM]}),
        perDeviceNodeSelection=True,
    ),
    "node resources": resource_slice(
        device(
            capacity={"cores": {"value": "64"}},
            nodeAllocatableResources={
                "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}},
                "memory": {"mapping": {"deviceMultiplier": "1Gi"}, "overhead": {"perPod": "0"}},
                "hugepages-2Mi": {"overhead": {"perContainer": "2Mi"}},
                "ephemeral-storage": {"overhead": {"perPod": "1", "perContainer": "1"}},
            },
        )
    ),
    "partition type in the driver's domain": resource_slice(
        device(consumesCounters=[consumption()], attributes={"profile": {"string": "full"}}),
        device("whole"),
        partitionTypeAttribute="gpu.example.com/profile",
    ),
    "skip unprepare": resource_slice(skipNodeOperations=["NodeUnprepareResources"]),
    "skip both": resource_slice(skipNodeOperations=["NodePrepareResources", "NodeUnprepareResources"]),
    "skip all": resource_slice(skipNodeOperations=["NodePrepareResources", "*"]),
}


@pytest.mark.parametrize("obj", VALID.values(), ids=VALID)
def test_valid_slices_have_no_problems(obj: dict[str, Any]) -> None:
    assert problems(obj) == []


DEVICE = "spec.devices[0]"
NODES = "nodeName, nodeSelector, allNodes, perDeviceNodeSelection"

INVALID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "name": (
        {**resource_slice(), "metadata": {"name": "Slice"}},
        ["metadata.name: 'Slice' is no DNS subdomain"],
    ),
    "no name": ({**resource_slice(), "metadata": {}}, ["metadata.name: is required"]),
    "namespace": (
        {**resource_slice(), "metadata": {"name": "s", "namespace": "x"}},
        ["metadata.namespace: must not be set"],
    ),
    "no driver": (resource_slice(driver=""), ["spec.driver: is required"]),
    "driver of 64 bytes": (resource_slice(driver="a" * 64), ["spec.driver: is 64 bytes long"]),
    "driver with underscore": (resource_slice(driver="a_b"), ["spec.driver: 'a_b' is no driver name"]),
    "empty part of a pool": (pool(name="a//b"), ["spec.pool.name: 'a//b' is no pool name"]),
    "pool in upper case": (pool(name="A"), ["spec.pool.name: 'A' is no pool name"]),
    "pool of 254 bytes": (pool(name=f"{LONG_SUBDOMAIN}/aa"), ["spec.pool.name: is 254 bytes long"]),
    "slice count 0": (
        pool(resourceSliceCount=0),
        ["spec.pool.resourceSliceCount: 0 is not greater than zero"],
    ),
    "generation -1": (pool(generation=-1), ["spec.pool.generation: -1 is negative"]),
    "no nodes": (
        resource_slice(nodeName=None),
        ["spec: does not say which nodes reach the devices"],
    ),
    "two ways to nodes": (
        resource_slice(nodeName="n", allNodes=True),
        ["spec: sets nodeName and allNodes"],
    ),
    "empty node name": (
        resource_slice(nodeName="", allNodes=True),
        ["spec.nodeName: is required"],
    ),
    "all nodes false": (
        resource_slice(nodeName="n", allNodes=False, perDeviceNodeSelection=False),
        ["spec.allNodes: 'false' says nothing", "spec.perDeviceNodeSelection: 'false' says nothing"],
    ),
    "two terms": (
        resource_slice(nodeSelector={"nodeSelectorTerms": [TERM, TERM]}),
        ["spec.nodeSelector.nodeSelectorTerms: has 2 terms"],
    ),
    "no terms": (
        resource_slice(nodeSelector={"nodeSelectorTerms": []}),
        ["spec.nodeSelector.nodeSelectorTerms: is required"],
    ),
    "devices with counters": (
        resource_slice(device(), sharedCounters=[counter_set()]),
        ["spec: has both devices and sharedCounters"],
    ),
    "129 devices": (resource_slice(*numbered(129)), ["spec.devices: has 129 entries, too many"]),
    "65 devices with a taint": (
        resource_slice(*numbered(64), device("x", taints=[TAINT])),
        ["spec.devices: has 65 entries, too many"],
    ),
    "65 devices with counters": (
        resource_slice(*numbered(64), device("x", consumesCounters=[consumption()])),
        ["spec.devices: has 65 entries, too many"],
    ),
    "65 devices with a list": (
        resource_slice(*numbered(64), device("x", attributes={"a": {"ints": [1]}})),
        ["spec.devices: has 65 entries, too many"],
    ),
    "device name twice": (
        resource_slice(device(), device()),
        ["spec.devices[1]: 'gpu-0' is there already"],
    ),
    "device name": (resource_slice(device("Gpu")), [f"{DEVICE}.name: 'Gpu' is no DNS label"]),
    "9 counter sets": (
        resource_slice(sharedCounters=[counter_set(f"s{index}") for index in range(9)]),
        ["spec.sharedCounters: has 9 entries, too many"],
    ),
    "counter set twice": (
        resource_slice(sharedCounters=[counter_set(), counter_set()]),
        ["spec.sharedCounters[1]: 'set' is there already"],
    ),
    "counter set without name": (
        resource_slice(sharedCounters=[counter_set("")]),
        ["spec.sharedCounters[0].name: is required"],
    ),
    "no counters": (
        resource_slice(sharedCounters=[counter_set(counters=0)]),
        ["spec.sharedCounters[0].counters: is required"],
    ),
    "33 counters": (
        resource_slice(sharedCounters=[counter_set(counters=33)]),
        ["spec.sharedCounters[0].counters: has 33 entries, too many"],
    ),
    "counter name": (
        resource_slice(sharedCounters=[{"name": "set", "counters": {"A": {"value": "1"}}}]),
        ["spec.sharedCounters[0].counters: 'A' is no DNS label"],
    ),
    "3 consumptions": (
        resource_slice(device(consumesCounters=[consumption(name) for name in "abc"])),
        [f"{DEVICE}.consumesCounters: has 3 entries, too many"],
    ),
    "counter set consumed twice": (
        resource_slice(device(consumesCounters=[consumption(), consumption()])),
        [f"{DEVICE}.consumesCounters[1]: 'set' is there already"],
    ),
    "consumption of nothing": (
        resource_slice(device(consumesCounters=[consumption("", 0)])),
        [
            f"{DEVICE}.consumesCounters[0].counterSet: is required",
            f"{DEVICE}.consumesCounters[0].counters: is required",
        ],
    ),
    "33 counters consumed": (
        resource_slice(device(consumesCounters=[consumption(counters=33)])),
        [f"{DEVICE}.consumesCounters[0].counters: has 33 entries, too many"],
    ),
    "3 groups": (
        resource_slice(device(consumesCounters=[consumption(compatibilityGroups=["a", "b", "c"])])),
        [f"{DEVICE}.consumesCounters[0].compatibilityGroups: has 3 entries, too many"],
    ),
    "group twice": (
        resource_slice(device(consumesCounters=[consumption(compatibilityGroups=["a", "a"])])),
        [f"{DEVICE}.consumesCounters[0].compatibilityGroups[1]: 'a' is there already"],
    ),
    "33 attributes and capacities": (
        resource_slice(
            device(
                attributes={f"a{index}": {"int": index} for index in range(17)},
                capacity={f"c{index}": {"value": "1"} for index in range(16)},
            )
        ),
        [f"{DEVICE}: has 33 attributes and capacities together"],
    ),
    "49 values": (
        attributes(a={"ints": list(range(48))}, b={"bool": False}),
        [f"{DEVICE}: has 49 attribute values"],
    ),
    "no value": (attributes(a={}), [f"{DEVICE}.attributes[a]: has no value"]),
    "two values": (attributes(a={"int": 1, "string": "x"}), [f"{DEVICE}.attributes[a]: has 2 values"]),
    "value and list": (attributes(a={"int": 1, "ints": [1]}), [f"{DEVICE}.attributes[a]: has 2 values"]),
    "empty list": (attributes(a={"ints": []}), [f"{DEVICE}.attributes[a].ints: is empty"]),
    "65 bytes": (attributes(a={"string": "x" * 63 + "é"}), [f"{DEVICE}.attributes[a].string: is 65 bytes long"]),
    "long item": (attributes(a={"strings": ["", "x" * 65]}), [f"{DEVICE}.attributes[a].strings[1]: is 65 bytes long"]),
    **{
        f"version {text}": (
            attributes(a={"version": text}),
            [f"{DEVICE}.attributes[a].version: {text!r} is no semantic version"],
        )
        for text in ("1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3.4", "1.2.3\n")
    },
    "version in a list": (
        attributes(a={"versions": ["1.2.3", "1"]}),
        [f"{DEVICE}.attributes[a].versions[1]: '1' is no semantic version"],
    ),
    "two slashes": (
        attributes(**{"a/b/c": {"int": 1}}),
        [f"{DEVICE}.attributes: 'a/b/c' has more than one '/'"],
    ),
    "no identifier": (attributes(**{"a-b": {"int": 1}}), [f"{DEVICE}.attributes: 'a-b' is no qualified name"]),
    "identifier of 33 bytes": (
        attributes(**{"a" * 33: {"int": 1}}),
        [f"{DEVICE}.attributes: {'a' * 33!r} has a name of 33 bytes"],
    ),
    "no domain": (attributes(**{"/a": {"int": 1}}), [f"{DEVICE}.attributes: '/a' has the domain '', which is none"]),
    "capacity name": (
        resource_slice(device(capacity={"a.b": {"value": "1"}})),
        [f"{DEVICE}.capacity: 'a.b' is no qualified name"],
    ),
    "17 taints": (resource_slice(device(taints=[TAINT] * 17)), [f"{DEVICE}.taints: has 17 entries, too many"]),
    "taint": (
        resource_slice(device(taints=[{"key": "", "value": "a b", "effect": "PreferNoSchedule"}])),
        [
            f"{DEVICE}.taints[0].key: is required",
            f"{DEVICE}.taints[0].value: 'a b' is no label value",
            f"{DEVICE}.taints[0].effect: 'PreferNoSchedule' is not supported",
        ],
    ),
    "taint without effect": (
        resource_slice(device(taints=[{"key": "k"}])),
        [f"{DEVICE}.taints[0].effect: is required"],
    ),
    "5 binding conditions": (
        resource_slice(device(bindingConditions=list("abcde"), bindingFailureConditions=["x"])),
        [f"{DEVICE}.bindingConditions: has 5 entries, too many"],
    ),
    "binding condition alone": (
        resource_slice(device(bindingConditions=["a"])),
        [f"{DEVICE}.bindingFailureConditions: is required"],
    ),
    "binding failure alone": (
        resource_slice(device(bindingFailureConditions=["a"])),
        [f"{DEVICE}.bindingConditions: is required"],
    ),
    "binding conditions overlap": (
        resource_slice(device(bindingConditions=["a", "a"], bindingFailureConditions=["x", "a"])),
        [
            f"{DEVICE}.bindingConditions[1]: 'a' is there already",
            f"{DEVICE}.bindingFailureConditions[1]: 'a' is a binding condition as well",
        ],
    ),
    "node of a device": (
        resource_slice(device(nodeName="n")),
        [f"{DEVICE}: has its own nodeName, nodeSelector or allNodes"],
    ),
    "device without nodes": (
        resource_slice(device(), perDeviceNodeSelection=True),
        [f"{DEVICE}: does not say which nodes reach the devices"],
    ),
    "device with two": (
        resource_slice(device(nodeName="n", allNodes=True), perDeviceNodeSelection=True),
        [f"{DEVICE}: sets nodeName and allNodes"],
    ),
    "node resource of no node": (
        resource_slice(device(nodeAllocatableResources={"example.com/x": {"overhead": {"perPod": "1"}}})),
        [
            f"{DEVICE}.nodeAllocatableResources[example.com/x]: "
            "'example.com/x' is no resource that nodes have by themselves"
        ],
    ),
    "node resource without anything": (
        resource_slice(device(nodeAllocatableResources={"cpu": {}})),
        [f"{DEVICE}.nodeAllocatableResources[cpu]: is required"],
    ),
    "mapping of an unknown capacity": (
        resource_slice(
            device(nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "x", "capacityMultiplier": "0"}}})
        ),
        [
            f"{DEVICE}.nodeAllocatableResources[cpu].mapping.capacityKey: 'x' is no capacity of the device",
            f"{DEVICE}.nodeAllocatableResources[cpu].mapping.capacityMultiplier: 0 is not greater than zero",
        ],
    ),
    "mapping without multiplier": (
        resource_slice(
            device(capacity={"x": {"value": "1"}}, nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "x"}}})
        ),
        [f"{DEVICE}.nodeAllocatableResources[cpu].mapping.capacityMultiplier: is required"],
    ),
    "mapping without key": (
        resource_slice(device(nodeAllocatableResources={"cpu": {"mapping": {"capacityMultiplier": "1"}}})),
        [
            f"{DEVICE}.nodeAllocatableResources[cpu].mapping.capacityKey: is required",
            f"{DEVICE}.nodeAllocatableResources[cpu].mapping: sets neither of capacityKey and deviceMultiplier",
        ],
    ),
    "mapping both ways": (
        resource_slice(
            device(
                capacity={"x": {"value": "1"}},
                nodeAllocatableResources={
                    "cpu": {"mapping": {"capacityKey": "x", "capacityMultiplier": "1", "deviceMultiplier": "-1"}}
                },
            )
        ),
        [
            f"{DEVICE}.nodeAllocatableResources[cpu].mapping.deviceMultiplier: -1 is not greater than zero",
            f"{DEVICE}.nodeAllocatableResources[cpu].mapping: sets both of capacityKey and deviceMultiplier",
        ],
    ),
    "empty overhead": (
        resource_slice(device(nodeAllocatableResources={"cpu": {"overhead": {}}})),
        [f"{DEVICE}.nodeAllocatableResources[cpu].overhead: is required"],
    ),
    "negative overhead": (
        resource_slice(device(nodeAllocatableResources={"cpu": {"overhead": {"perPod": "-1m"}}})),
        [f"{DEVICE}.nodeAllocatableResources[cpu].overhead.perPod: -1m is negative"],
    ),
    "bare partition type": (
        resource_slice(device(consumesCounters=[consumption()]), partitionTypeAttribute="profile"),
        ["spec.partitionTypeAttribute: 'profile' has no domain"],
    ),
    "partition type without partitions": (
        resource_slice(device(), partitionTypeAttribute="a/profile"),
        ["spec.partitionTypeAttribute: 'a/profile' says how partitions are called where there are none"],
    ),
    "partition without type": (
        resource_slice(
            device("a", consumesCounters=[consumption()]),
            device("b", consumesCounters=[consumption()], attributes={"x/profile": {"int": 1}}),
            partitionTypeAttribute="x/profile",
        ),
        ["spec.devices[0].attributes[x/profile]: is required", "spec.devices[1].attributes[x/profile]: is no string"],
    ),
    "skip prepare alone": (
        resource_slice(skipNodeOperations=["NodePrepareResources"]),
        ["spec.skipNodeOperations: skips NodePrepareResources alone"],
    ),
    "skip something else": (
        resource_slice(skipNodeOperations=["*", "*", "All"]),
        ["spec.skipNodeOperations[2]: 'All' is not supported", "spec.skipNodeOperations[1]: '*' is there already"],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), INVALID.values(), ids=INVALID)
def test_each_broken_rule_is_told_where_it_is_broken(obj: dict[str, Any], expected: list[str]) -> None:
    assert problems(obj) == expected


def test_all_problems_come_at_once() -> None:
    obj = resource_slice(device("A", attributes={"x": {}}), device("B"), driver="", nodeName=None)
    assert problems(obj) == [
        "spec.driver: is required",
        "spec: does not say which nodes reach the devices",
        "spec.devices[0].name: 'A' is no DNS label",
        "spec.devices[0].attributes[x]: has no value",
        "spec.devices[1].name: 'B' is no DNS label",
    ]


# Request policies


def shared(value: str, **policy: Any) -> dict[str, Any]:
    capacity = {"memory": {"value": value, "requestPolicy": policy}}
    return resource_slice(device(allowMultipleAllocations=True, capacity=capacity))


POLICIES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "default alone": (shared("10", default="99"), []),
    "10 values": (shared("10", default="3", validValues=[str(n) for n in range(1, 11)]), []),
    "11 values": (
        shared("11", default="3", validValues=[str(n) for n in range(1, 12)]),
        ["validValues: has 11 entries, too many"],
    ),
    "values out of order": (
        shared("10", default="1", validValues=["2", "1"]),
        ["validValues[1]: 1 is less than the one before"],
    ),
    "value twice": (shared("10", default="1", validValues=["1", "1000m"]), ["validValues[1]: '1' is there already"]),
    "value too large": (
        shared("10", default="1", validValues=["1", "10001m"]),
        ["validValues[1]: 10001m is more than the capacity, 10"],
    ),
    "default not among the values": (
        shared("10", default="3", validValues=["1"]),
        ["validValues: 3 is the default and not among the values"],
    ),
    "values without default": (shared("10", validValues=["1"]), ["default: is required"]),
    "range without default": (shared("10", validRange={"min": "1"}), ["default: is required"]),
    "both": (
        shared("10", default="1", validValues=["1"], validRange={"min": "1"}),
        ["has both validValues and validRange"],
    ),
    "min alone": (shared("10", default="10", validRange={"min": "10"}), []),
    "min too large": (
        shared("10", default="11", validRange={"min": "11"}),
        ["validRange.min: 11 is more than the capacity, 10"],
    ),
    "default below min": (
        shared("10", default="1", validRange={"min": "2"}),
        ["validRange.default: 1 is less than min, 2"],
    ),
    "max": (shared("10", default="2", validRange={"min": "2", "max": "10"}), []),
    "max below min, default above": (
        shared("10", default="5", validRange={"min": "5", "max": "4"}),
        ["validRange.max: 4 is less than min, 5", "validRange.default: 5 is more than max, 4"],
    ),
    "max too large": (
        shared("10", default="5", validRange={"min": "1", "max": "11"}),
        ["validRange.max: 11 is more than the capacity, 10"],
    ),
    "example B": (
        shared("10", default="4", validRange={"min": "1", "max": "9", "step": "3"}),
        ["validRange.step: 9 is max and no whole number of steps of 3 above min, 1"],
    ),
    "example B, max 7": (shared("10", default="4", validRange={"min": "1", "max": "7", "step": "3"}), []),
    "default off the steps": (
        shared("10", default="5", validRange={"min": "1", "step": "3"}),
        ["validRange.step: 5 is default and no whole number of steps of 3 above min, 1"],
    ),
    "step 0": (
        shared("10", default="1", validRange={"min": "1", "step": "0"}),
        ["validRange.step: 0 is not greater than zero"],
    ),
    "one step fits": (shared("10", default="4", validRange={"min": "4", "step": "6"}), []),
    "one step is too large": (
        shared("10", default="4", validRange={"min": "4", "step": "7"}),
        ["validRange.step: 7 leads from min, 4, beyond the capacity, 10"],
    ),
    "fractions": (shared("10", default="1500m", validRange={"min": "500m", "max": "2500m", "step": "500m"}), []),
    "fractions off the steps": (
        shared("10", default="600m", validRange={"min": "500m", "step": "200m"}),
        ["validRange.step: 600m is default and no whole number of steps of 200m above min, 500m"],
    ),
    "finer than a milli": (
        shared("10", default="1", validRange={"min": "1", "step": "1u"}),
        ["validRange.step: 1u is finer than a milli"],
    ),
    "too large for milli": (
        shared("1e19", default="10e15", validRange={"min": "500m", "max": "10e15"}),
        [
            "validRange.default: 10e15 has no place in a range with fractions",
            "validRange.max: 10e15 has no place in a range with fractions",
        ],
    ),
    "too large for int64": (
        shared("1e20", default="1", validRange={"min": "1", "max": "1e19", "step": "1"}),
        ["validRange.max: 10e18 is too large"],
    ),
    "negative with steps": (
        shared("10", default="1", validRange={"min": "-1", "step": "1"}),
        ["validRange.min: -1 is negative"],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), POLICIES.values(), ids=POLICIES)
def test_request_policies_are_consistent(obj: dict[str, Any], expected: list[str]) -> None:
    prefix = f"{DEVICE}.capacity[memory].requestPolicy"
    assert problems(obj) == [
        f"{prefix}: {text}" if text.startswith("has both") else f"{prefix}.{text}" for text in expected
    ]


def test_without_fractions_amounts_are_rounded_up_before_steps_are_counted() -> None:
    obj = shared("10", default="1500m", validRange={"min": "500m", "step": "1"})
    assert problems(obj, features=Features.all().replace(DRAFractionalCapacityRange=False)) == []
    assert problems(shared("10", default="2", validRange={"min": "500m", "step": "1"})) == [
        f"{DEVICE}.capacity[memory].requestPolicy.validRange.step: "
        "2 is default and no whole number of steps of 1 above min, 500m"
    ]


def test_policies_are_for_shareable_devices() -> None:
    obj = resource_slice(device(capacity={"memory": {"value": "1", "requestPolicy": {"default": "1"}}}))
    assert problems(obj) == [f"{DEVICE}.capacity[memory].requestPolicy: is set on a device that serves one request"]


# Updates


def test_driver_pool_and_node_name_are_immutable() -> None:
    old = resource_slice()
    new = resource_slice(driver="x", nodeName="n2", pool={"name": "q", "generation": 2, "resourceSliceCount": 1})
    assert problems(new, old) == [
        "spec.pool.name: is immutable",
        "spec.driver: is immutable",
        "spec.nodeName: is immutable",
    ]
    assert (
        problems(resource_slice(device(), pool={"name": "pool", "generation": 2, "resourceSliceCount": 2}), old) == []
    )


def test_unchanged_taints_and_capacities_are_not_checked_again() -> None:
    broken = device(taints=[{"key": "k", "effect": "New"}], capacity={"a-b": {"value": "1", "requestPolicy": {}}})
    assert len(problems(resource_slice(broken))) == 3
    old = resource_slice(broken)
    assert problems(resource_slice(broken, device("gpu-1")), old) == []
    assert problems(resource_slice(device("other", taints=broken["taints"])), old) == [
        f"{DEVICE}.taints[0].effect: 'New' is not supported"
    ]
