"""Validation of the other kinds: classes, rules, pool status, pods and groups; gates and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from dra_alloc import DecodeError, Features, Problem, validate, warnings
from dra_alloc.api import ResourceSlice
from tests.codec.validation_objects import (
    ALL,
    Json,
    claim,
    condition,
    device,
    device_class,
    exactly,
    pod,
    pod_group,
    pool_request,
    problems,
    resource_slice,
    rule,
    workload,
)

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "NOT VALID"}}


def opaque(parameters: Any) -> Json:
    return {"opaque": {"driver": "d", "parameters": parameters}}


def by_name(name: str = "c", source: str = "claim") -> Json:
    return {"name": name, "resourceClaimName": source}


def group_template(*claims: Json, name: str = "workers") -> Json:
    return {"name": name, "schedulingPolicy": {"basic": {}}, "resourceClaims": list(claims)}


def uses(*claims: Json, name: str = "main") -> Json:
    return {"name": name, "resources": {"claims": list(claims)}}


VALID: dict[str, Json] = {
    "class": device_class(
        selectors=[{"cel": {"expression": "true"}}] * 32,
        config=[opaque({})] * 32,
        extendedResourceName="example.com/gpu",
    ),
    "rule without selector": rule(),
    "rule": rule(
        {"key": "example.com/k", "value": "v", "effect": "None", "timeAdded": "2026-01-01T00:00:00Z"},
        deviceSelector={"driver": "gpu.example.com", "pool": "a/b", "device": "gpu-0"},
        status={"conditions": [condition(f"C{index}") for index in range(8)]},
    ),
    "rule for all": rule(deviceSelector={}),
    "pool status": pool_request(poolName="a/b", limit=1000, defaultPartitionTypeAttribute="example.com/profile"),
    "pod": pod(
        by_name(),
        {"name": "t", "resourceClaimTemplateName": "template"},
        containers=[uses({"name": "c"}, {"name": "t", "request": "gpu"}, {"name": "t", "request": "nic"})],
    ),
    "group": pod_group(*(by_name(f"c{index}") for index in range(4))),
    "workload": workload(*(group_template(by_name(), name=f"g{index}") for index in range(8))),
    "node": NODE,
}


@pytest.mark.parametrize("obj", VALID.values(), ids=VALID)
def test_valid_objects_have_no_problems(obj: Json) -> None:
    assert problems(obj) == []


INVALID: dict[str, tuple[Json, list[str]]] = {
    "33 of each": (
        device_class(selectors=[{"cel": {"expression": "true"}}] * 33, config=[opaque({})] * 33),
        ["spec.selectors: has 33 entries, too many", "spec.config: has 33 entries, too many"],
    ),
    "class parts": (
        device_class(selectors=[{}], config=[{}, opaque("text")]),
        [
            "spec.selectors[0].cel: is required",
            "spec.config[0].opaque: is required",
            "spec.config[1].opaque.parameters: is str, not a JSON object",
        ],
    ),
    **{
        f"extended resource {name}": (
            device_class(extendedResourceName=name),
            [f"spec.extendedResourceName: {name!r} is no extended resource name"],
        )
        for name in ("gpu", "kubernetes.io/gpu", "deviceclass.resource.kubernetes.io/gpu", "requests.a/b", "a/b c", "")
    },
    "rule": (
        rule({"key": "", "effect": "Evict"}, deviceSelector={"driver": "", "pool": "A", "device": "x.y"}),
        [
            "spec.deviceSelector.driver: is required",
            "spec.deviceSelector.pool: 'A' is no pool name",
            "spec.deviceSelector.device: 'x.y' is no DNS label",
            "spec.taint.key: is required",
            "spec.taint.effect: 'Evict' is not supported",
        ],
    ),
    "rule status": (
        rule(status={"conditions": [condition(f"C{index}") for index in range(8)] + [condition("C0")]}),
        ["status.conditions: has 9 entries, too many", "status.conditions[8]: 'C0' is there already"],
    ),
    "pool status": (
        pool_request(driver="", poolName="", limit=0, defaultPartitionTypeAttribute="profile"),
        [
            "spec.driver: is required",
            "spec.poolName: is required",
            "spec.limit: 0 is out of range",
            "spec.defaultPartitionTypeAttribute: 'profile' has no domain",
        ],
    ),
    "pool status limit": (pool_request(limit=1001), ["spec.limit: 1001 is out of range"]),
    "pool status answer": (
        {
            **pool_request(),
            "status": {
                "poolCount": -1,
                "conditions": [condition(f"C{index}") for index in range(11)],
                "pools": [
                    {"driver": "d", "poolName": "p", "generation": 0, "totalDevices": -1, "resourceSliceCount": 0}
                ],
            },
        },
        [
            "status.conditions: has 11 entries, too many",
            "status.poolCount: -1 is negative",
            "status.pools[0].totalDevices: -1 is negative",
            "status.pools[0].resourceSliceCount: 0 is not greater than zero",
        ],
    ),
    "claims of a pod": (
        pod(
            {"name": "A", "resourceClaimName": "x", "resourceClaimTemplateName": "y"},
            {"name": "b"},
            by_name("b", "X"),
        ),
        [
            "spec.resourceClaims[0].name: 'A' is no DNS label",
            "spec.resourceClaims[0]: sets both resourceClaimName and resourceClaimTemplateName",
            "spec.resourceClaims[1]: names no claim",
            "spec.resourceClaims[2].resourceClaimName: 'X' is no DNS subdomain",
            "spec.resourceClaims[2]: 'b' is there already",
        ],
    ),
    "claims of containers": (
        pod(
            by_name(),
            containers=[
                uses({"name": ""}, {"name": "d"}, {"name": "c", "request": "A"}),
                uses({"name": "c", "request": "x"}, {"name": "c"}, name="second"),
                uses({"name": "c"}, {"name": "c"}, name="third"),
            ],
        ),
        [
            "spec.containers[0].resources.claims[0].name: is required",
            "spec.containers[0].resources.claims[1].name: 'd' is no claim of the pod",
            "spec.containers[0].resources.claims[2].request: 'A' is no DNS label",
            "spec.containers[1].resources.claims[1]: 'c' is there already",
            "spec.containers[2].resources.claims[1]: 'c' is there already",
        ],
    ),
    "claim statuses of a pod": (
        pod(
            by_name(),
            status={
                "resourceClaimStatuses": [
                    {"name": "d"},
                    {"name": "c", "resourceClaimName": "X"},
                    {"name": "c"},
                ]
            },
        ),
        [
            "status.resourceClaimStatuses[0].name: 'd' is no claim in spec.resourceClaims",
            "status.resourceClaimStatuses[1].resourceClaimName: 'X' is no DNS subdomain",
            "status.resourceClaimStatuses[2]: 'c' is there already",
        ],
    ),
    "extended resources of a pod": (
        pod(
            containers=[{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}],
            status={
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "",
                    "requestMappings": [
                        {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"},
                        {"containerName": "main", "resourceName": "example.com/nic", "requestName": "R"},
                        {"containerName": "side", "resourceName": "example.com/gpu", "requestName": "r"},
                    ],
                }
            },
        ),
        [
            "status.extendedResourceClaimStatus.resourceClaimName: is required",
            "status.extendedResourceClaimStatus.requestMappings[1].requestName: 'R' is no DNS label",
            "status.extendedResourceClaimStatus.requestMappings[1].resourceName: "
            "'example.com/nic' is not requested by container 'main'",
            "status.extendedResourceClaimStatus.requestMappings[2].containerName: 'side' is no container of the pod",
        ],
    ),
    "5 claims of a group": (
        pod_group(*(by_name(f"c{index}") for index in range(5))),
        ["spec.resourceClaims: has 5 entries, too many"],
    ),
    "claims of a group": (
        pod_group(by_name(), by_name(), status={"resourceClaimStatuses": [{"name": "x"}] * 5}),
        [
            "spec.resourceClaims[1]: 'c' is there already",
            "status.resourceClaimStatuses: has 5 entries, too many",
        ],
    ),
    "9 templates": (
        workload(*(group_template(name=f"g{index}") for index in range(9))),
        ["spec.podGroupTemplates: has 9 entries, too many"],
    ),
    "templates": (
        workload(
            group_template({"name": "a"}),
            group_template(),
            compositePodGroupTemplates=[
                {"name": "all", "podGroupTemplates": [group_template({"name": "b"}, name="B")]}
            ],
        ),
        [
            "spec.podGroupTemplates[0].resourceClaims[0]: names no claim",
            "spec.podGroupTemplates[1]: 'workers' is there already",
            "spec.compositePodGroupTemplates[0].podGroupTemplates[0].name: 'B' is no DNS label",
            "spec.compositePodGroupTemplates[0].podGroupTemplates[0].resourceClaims[0]: names no claim",
        ],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), INVALID.values(), ids=INVALID)
def test_each_broken_rule_is_told_where_it_is_broken(obj: Json, expected: list[str]) -> None:
    assert problems(obj) == expected


# Updates


def test_stored_selectors_and_parameters_of_a_class_are_not_checked_again() -> None:
    selectors = [{"cel": {"expression": "no longer valid"}}]
    config = [opaque({"a": "x" * 11000})]
    old = device_class(selectors=selectors, config=config)
    assert len(problems(old)) == 2
    assert problems(device_class(selectors=selectors, config=config, extendedResourceName="a.b/c"), old) == []
    assert problems(device_class(selectors=selectors, config=[*config, opaque({})]), old) == [
        "spec.config[0].opaque.parameters: is 11008 bytes long"
    ]
    (text,) = problems(device_class(selectors=selectors * 2, config=config), old)[:1]
    assert text.startswith("spec.selectors[0].cel.expression: does not compile")


def test_an_unknown_effect_stays_while_it_is_not_changed() -> None:
    old = rule({"key": "k", "effect": "Later"})
    assert problems(rule({"key": "k", "value": "v", "effect": "Later"}), old) == []
    assert problems(rule({"key": "k", "effect": "Other"}), old) == ["spec.taint.effect: 'Other' is not supported"]


def test_requests_and_answers_of_pool_status_are_immutable() -> None:
    answered = {**pool_request(), "status": {"poolCount": 0}}
    assert problems(answered, pool_request()) == []
    assert problems({**pool_request(), "status": {"poolCount": 1}}, answered) == ["status: is immutable"]
    assert problems(pool_request(limit=1), pool_request()) == ["spec: is immutable"]


def test_claims_of_pods_groups_and_templates_are_immutable() -> None:
    assert problems(pod(by_name()), pod()) == ["spec.resourceClaims: is immutable"]
    assert problems(pod_group(by_name()), pod_group()) == ["spec.resourceClaims: is immutable"]
    before = workload(group_template(by_name()))
    assert problems(workload(group_template()), before) == ["spec.podGroupTemplates[0].resourceClaims: is immutable"]
    assert problems(workload(group_template(by_name()), group_template(name="more")), before) == [
        "spec.podGroupTemplates: is immutable"
    ]


# Gates and warnings


def test_pool_status_is_served_with_its_gate_alone() -> None:
    assert problems(pool_request(defaultPartitionTypeAttribute="a/b"), features=Features()) == [
        "kind: ResourcePoolStatusRequest is not served",
        "spec.defaultPartitionTypeAttribute: must not be set",
    ]


def test_claims_of_groups_need_their_gate() -> None:
    broken = [by_name(f"c{index}") for index in range(5)]
    assert problems(pod_group(*broken), features=Features()) == []
    assert problems(workload(group_template(*broken)), features=Features()) == []
    assert problems(device_class(extendedResourceName="x"), features=ALL.replace(DRAExtendedResource=False)) == []


def test_a_list_without_its_gate_leaves_an_attribute_without_value() -> None:
    obj = resource_slice(device(attributes={"a": {"ints": [1]}, "b": {"int": 1}}))
    assert validate(obj) == [
        Problem(
            "spec.devices[0].attributes[a]",
            "has no value",
            "exactly one of int, bool, string, version; lists need the feature gate DRAListTypeAttributes",
        )
    ]
    assert problems(obj, obj, features=Features()) == []


@pytest.mark.parametrize(
    ("gate", "fields"),
    [
        ("DRADeviceTaints", {"taints": [{"key": "", "effect": "x"}]}),
        ("DRADeviceBindingConditions", {"bindingConditions": ["a"]}),
        ("DRAResourceClaimDeviceStatus", {"bindingConditions": ["a"]}),
        ("DRAPartitionableDevices", {"consumesCounters": [{"counterSet": "", "counters": {}}]}),
        (
            "DRADeviceCompatibilityGroups",
            {
                "consumesCounters": [
                    {"counterSet": "s", "counters": {"c": {"value": "1"}}, "compatibilityGroups": ["A"]}
                ]
            },
        ),
        ("DRANodeAllocatableResources", {"nodeAllocatableResources": {"x": {}}}),
        ("DRAConsumableCapacity", {"capacity": {"c": {"value": "1", "requestPolicy": {"validValues": ["2"]}}}}),
    ],
)
def test_fields_of_devices_are_dropped_with_their_gate(gate: str, fields: Json) -> None:
    obj = resource_slice(device(**fields))
    off = ALL.replace(**{gate: False})
    assert problems(obj) != []
    assert problems(obj, features=off) == []
    assert problems(obj, obj, features=off) == problems(obj, obj)


@pytest.mark.parametrize(
    ("gate", "spec"),
    [
        ("DRAOptionalNodeOperations", {"skipNodeOperations": ["x"]}),
        ("DRAPartitionableDevicesType", {"partitionTypeAttribute": "x"}),
        ("DRAPartitionableDevices", {"sharedCounters": [{"name": "", "counters": {}}]}),
    ],
)
def test_fields_of_slices_are_dropped_with_their_gate(gate: str, spec: Json) -> None:
    obj = resource_slice(**spec)
    assert problems(obj) != []
    assert problems(obj, features=ALL.replace(**{gate: False})) == []


def texts(obj: object, features: Features = ALL) -> list[str]:
    return [f"{warning.path}: {warning.message}" for warning in warnings(obj, features=features)]


def test_warnings_name_fields_that_are_not_stored() -> None:
    obj = resource_slice(
        device(attributes={"a": {"ints": [1]}}, nodeAllocatableResources={"cpu": {}}), skipNodeOperations=["*"]
    )
    assert texts(obj) == []
    assert warnings(obj)[0] == Problem(
        "spec.devices[0].attributes[a].ints", "is not stored", "it needs the feature gate DRAListTypeAttributes"
    )
    assert texts(obj, Features()) == [
        "spec.devices[0].attributes[a].ints: is not stored",
        "spec.devices[0].nodeAllocatableResources: is not stored",
        "spec.skipNodeOperations: is not stored",
    ]


def test_warnings_name_deprecated_versions() -> None:
    obj = {**rule(), "apiVersion": "resource.k8s.io/v1alpha3"}
    assert [str(warning) for warning in warnings(obj)] == [
        "apiVersion: resource.k8s.io/v1alpha3 is deprecated (use resource.k8s.io/v1)"
    ]
    assert texts(pool_request()) == []


def test_warnings_about_what_does_less_than_it_seems() -> None:
    tolerations = [
        {"value": "x"},
        {"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3},
        {"key": "k", "effect": "None"},
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3},
    ]
    constraint = {"matchAttribute": "a/b", "distinctAttribute": "a/c"}
    path = "spec.devices.requests[0].exactly.tolerations"
    assert texts(claim(exactly(tolerations=tolerations), constraints=[constraint])) == [
        f"{path}[0].operator: is Equal without a key, so that only the value counts",
        f"{path}[1].tolerationSeconds: means nothing with effect NoSchedule",
        f"{path}[2].effect: is None, which needs no toleration",
        "spec.devices.constraints[0]: "
        "has both matchAttribute and distinctAttribute, of which only the first is checked",
    ]
    assert texts(resource_slice(driver="GPU.example.com")) == ["spec.driver: 'GPU.example.com' has upper-case letters"]


# Input of every form


def test_models_dicts_and_client_objects_are_accepted() -> None:
    from kubernetes import client

    obj = resource_slice(device("A"))
    model = ResourceSlice.from_dict(obj)
    as_client = client.V1ResourceSlice(
        api_version="resource.k8s.io/v1",
        kind="ResourceSlice",
        metadata=client.V1ObjectMeta(name="slice"),
        spec=client.V1ResourceSliceSpec(
            driver="gpu.example.com",
            node_name="n1",
            pool=client.V1ResourcePool(name="pool", generation=1, resource_slice_count=1),
            devices=[client.V1Device(name="A")],
        ),
    )
    assert validate(obj) == validate(model) == validate(as_client)
    assert [problem.path for problem in validate(model)] == ["spec.devices[0].name"]


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(DecodeError):
        validate({"spec": {}})


def test_problems_read_well() -> None:
    assert str(Problem("a.b", "is required", "a name")) == "a.b: is required (a name)"
    assert str(Problem("a.b", "is required")) == "a.b: is required"
