"""What each rule finds, and what is near it and right."""

from __future__ import annotations

from typing import Any

import pytest

import dra_alloc as dra
from dra_alloc import DecodeError, Features
from dra_alloc.lint import RULES, Finding, Severity, check
from tests.lint.building import (
    ALL,
    Json,
    claim,
    codes,
    device,
    device_class,
    either,
    found,
    node,
    obj,
    pool,
    request,
)

NUMA = "resource.kubernetes.io/numaNode"
PATH = "spec.devices.requests[0].exactly"
GPUS = pool(device("d0", {"model": "a", "index": 0}), device("d1", {"model": "b", "index": 1}))
NICS = pool(device("d0", {"port": 0}), driver="nic.example.com")
CLASSES = (device_class("gpu"), device_class("nic"))


def gpu(expression: str) -> str:
    return f'device.attributes["gpu.example.com"].{expression}'


def test_a_cluster_that_works_has_no_findings() -> None:
    asked = claim(
        request("gpu", gpu('model == "a"')),
        request("nic"),
        constraints=[{"requests": ["gpu"], "matchAttribute": "gpu.example.com/model"}],
    )
    assert found(node(), GPUS, NICS, *CLASSES, asked) == []


# Objects


def test_problems_of_validation_are_errors() -> None:
    (finding,) = check([device_class("gpu", "1 + 1")])
    assert finding.code == "invalid-object"
    assert finding.path == "spec.selectors[0].cel.expression"
    assert finding.severity is Severity.ERROR
    assert finding.object == "DeviceClass gpu"


def test_fields_that_do_not_exist_are_found_where_they_are() -> None:
    asked = claim(request("gpu", cuont=2))
    assert found(node(), asked | {"colour": "red"}) == [f"unknown-field {PATH}.cuont", "unknown-field colour"]
    (finding,) = check([node(), asked])
    assert (finding.object, finding.index, finding.hint) == ("ResourceClaim ns/claim", 1, "did you mean count?")


def test_gates_decide_what_is_stored() -> None:
    sliced = pool(device(), skipNodeOperations=["*"])
    assert found(sliced) == ["field-not-stored spec.skipNodeOperations"]
    assert found(sliced, features=ALL) == []


def test_old_versions_are_told_of_what_was_written_in_them() -> None:
    written = dra.encode(dra.decode(GPUS), "v1beta1")
    assert found(written) == ["deprecated-api-version apiVersion"]
    assert found(dra.decode(written)) == []  # type: ignore[arg-type]


def test_a_name_may_come_once_a_kind_and_namespace() -> None:
    other = {**claim(), "metadata": {"name": "claim", "namespace": "other"}}
    assert codes(claim(), other) == []
    assert codes(claim(), claim()) == ["duplicate-object"]


# Classes and selectors


def test_classes_are_only_judged_where_there_are_devices() -> None:
    empty = device_class("tpu")
    assert codes(empty) == []
    assert codes(empty, GPUS) == ["class-without-devices"]


def test_a_class_is_missing_only_if_there_are_others() -> None:
    assert codes(claim(request("tpu"))) == []
    assert found(claim(request("tpu")), *CLASSES) == [f"class-not-found {PATH}.deviceClassName"]


def test_a_selector_of_a_class_that_fails_on_devices_of_other_drivers() -> None:
    broad = device_class("any", gpu('model == "a"'))
    assert found(GPUS, broad) == []
    assert found(GPUS, NICS, broad) == ["selector-fails spec.selectors[0].cel.expression"]
    guarded = device_class("any", f'device.driver == "gpu.example.com" && {gpu("model")} == "a"')
    assert found(GPUS, NICS, guarded) == []


def test_the_name_in_another_domain_is_told_if_nobody_publishes_in_that_domain() -> None:
    wrong = device_class("any", 'device.attributes["gpu.example.org"].model == "a"')
    (finding,) = check([GPUS, wrong])
    assert finding.code == "selector-fails"
    assert finding.hint == "is another domain meant? The device has gpu.example.com/model"
    broad = device_class("any", gpu('model == "a"'))
    (finding,) = check([GPUS, NICS, broad])
    assert "device.driver" in finding.hint


def test_a_selector_is_judged_on_what_those_before_it_let_through() -> None:
    assert found(GPUS, NICS, *CLASSES, claim(request("gpu", gpu('model == "a"')))) == []
    failing = claim(request("gpu", gpu("index == 0"), gpu("memory == 1")))
    (finding,) = check([GPUS, CLASSES[0], failing])
    assert finding.path == f"{PATH}.selectors[1].cel.expression"
    assert finding.message.startswith("fails on device gpu.example.com/n1/d0: ")


def test_what_never_matches_is_pinned_to_the_selector() -> None:
    assert found(GPUS, CLASSES[0], claim(request("gpu", gpu("index >= 0"), gpu("index > 5")))) == [
        f"selector-never-matches {PATH}.selectors[1].cel.expression"
    ]
    assert found(GPUS, CLASSES[0], claim(request("gpu", gpu('model == "a"'), gpu("index == 1")))) == [
        f"selector-never-matches {PATH}.selectors"
    ]


def test_two_classes_for_one_extended_resource() -> None:
    one, two = (device_class(name, "true", extendedResourceName="example.com/gpu") for name in ("a", "b"))
    other = device_class("c", "true", extendedResourceName="example.com/nic")
    assert found(one, two, other) == ["extended-resource-clash spec.extendedResourceName"]


# Requests


def test_32_devices_are_the_most() -> None:
    assert codes(claim(request("gpu", count=31), request("nic"))) == []
    assert codes(claim(request("gpu", count=32), request("nic", allocationMode="All"))) == ["too-many-devices"]
    cheap = either("gpu", request("gpu-many", count=32), request("gpu-one"))
    assert codes(claim(cheap, request("nic"))) == []


def test_devices_are_counted_by_node() -> None:
    two_nodes = (pool(device("d0"), name="n1"), pool(device("d0"), name="n2"))
    asked = claim(request("gpu", count=2))
    assert found(*two_nodes, *CLASSES[:1], asked) == [f"too-few-devices {PATH}.count"]
    shared = pool(device("x"), name="fabric", allNodes=True)
    assert found(*two_nodes, shared, *CLASSES[:1], asked) == []


def test_a_device_that_can_be_shared_is_as_many_as_are_needed() -> None:
    assert codes(pool(device(allowMultipleAllocations=True)), CLASSES[0], claim(request("gpu", count=8))) == []


def test_tolerations_are_missing_only_if_no_device_is_left() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    tainted = device("d0", taints=[taint])
    asked = claim(request("gpu"))
    assert codes(pool(tainted), CLASSES[0], asked) == ["missing-toleration"]
    assert codes(pool(tainted, device("d1")), CLASSES[0], asked) == []
    assert codes(pool(device("d0", taints=[{**taint, "effect": "None"}])), CLASSES[0], asked) == []
    assert (
        codes(pool(tainted), CLASSES[0], claim(request("gpu", tolerations=[{"key": "k", "operator": "Exists"}]))) == []
    )
    wrong = [{"key": "k", "value": "w"}]
    assert codes(pool(tainted), CLASSES[0], claim(request("gpu", tolerations=wrong))) == ["missing-toleration"]
    assert codes(pool(tainted), CLASSES[0], asked, features=ALL.replace(DRADeviceTaints=False)) == ["field-not-stored"]


def test_claims_that_are_allocated_are_not_judged() -> None:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gone"}
    status = {"allocation": {"devices": {"results": [result]}}}
    assert codes(GPUS, *CLASSES[:1], claim(request("gpu", count=9))) == ["too-few-devices"]
    assert codes(GPUS, *CLASSES[:1], claim(request("gpu", count=9), status=status)) == []


def test_templates_are_judged_as_claims_are() -> None:
    spec = claim(request("gpu", count=9))["spec"]
    template = obj("ResourceClaimTemplate", "t", spec={"spec": spec})
    assert found(GPUS, *CLASSES[:1], template) == ["too-few-devices spec.spec.devices.requests[0].exactly.count"]


# Constraints


def constrained(*requests: Json, **constraint: Any) -> Json:
    return claim(*requests, constraints=[constraint])


def test_an_attribute_must_be_published_for_each_request() -> None:
    asked = constrained(request("gpu"), request("nic"), matchAttribute="gpu.example.com/index")
    (finding,) = check([GPUS, NICS, *CLASSES, asked])
    assert (finding.code, finding.path) == ("attribute-not-published", "spec.devices.constraints[0].matchAttribute")
    assert "'nic'" in finding.message
    assert "nic.example.com/port" in finding.hint
    only_gpu = constrained(request("gpu"), request("nic"), requests=["gpu"], matchAttribute="gpu.example.com/index")
    assert codes(GPUS, NICS, *CLASSES, only_gpu) == []


def test_the_hint_bridges_vendor_spellings_of_standard_attributes() -> None:
    gpus = pool(device(attributes={NUMA: 0}))
    nics = pool(device(attributes={"numa_node": "0"}), driver="nic.example.com")
    asked = constrained(request("gpu"), request("nic"), matchAttribute=NUMA)
    finding = next(item for item in check([gpus, nics, *CLASSES, asked]) if item.code == "attribute-not-published")
    expression = 'int(device.attributes["nic.example.com"].numa_node)'
    assert finding.hint == (
        "let 'nic' derive it (with the feature gate DRADerivedAttributes): "
        f"{{name: {NUMA}, expression: '{expression}'}}"
    )
    bridged = request("nic", derivedAttributes=[{"name": NUMA, "expression": expression}])
    repaired = constrained(request("gpu"), bridged, matchAttribute=NUMA)
    assert codes(gpus, nics, *CLASSES, repaired, features=ALL) == ["vendor-attribute"]


def test_values_of_different_types_never_match() -> None:
    gpus = pool(device(attributes={NUMA: 0}))
    nics = pool(device(attributes={NUMA: 1}), driver="nic.example.com")
    asked = constrained(request("gpu"), request("nic"), matchAttribute=NUMA)
    assert codes(gpus, nics, *CLASSES, asked) == ["match-never-holds"]
    same = pool(device(attributes={NUMA: 0}), driver="nic.example.com")
    assert codes(gpus, same, *CLASSES, asked) == []


def test_the_common_value_must_be_had_on_one_node() -> None:
    def cards(name: str, *indexes: int) -> Json:
        return pool(*(device(f"d{n}", {"card": index}) for n, index in enumerate(indexes)), name=name)

    asked = constrained(request("gpu", count=2), matchAttribute="gpu.example.com/card")
    assert codes(cards("n1", 0, 1), cards("n2", 0, 2), CLASSES[0], asked) == ["match-never-holds"]
    assert codes(cards("n1", 0, 1), cards("n2", 2, 2), CLASSES[0], asked) == []
    together = constrained(request("gpu-a"), request("gpu-b"), matchAttribute="gpu.example.com/card")
    assert codes(cards("n1", 0, 1), CLASSES[0], together) == ["match-never-holds"]


def test_lists_match_by_what_they_have_in_common() -> None:
    gpus = pool(device(attributes={NUMA: [0, 1]}))
    nics = pool(device(attributes={NUMA: 1}), driver="nic.example.com")
    asked = constrained(request("gpu"), request("nic"), matchAttribute=NUMA)
    assert codes(gpus, nics, *CLASSES, asked, features=ALL) == []
    off = codes(gpus, nics, *CLASSES, asked)
    assert "attribute-not-published" in off


def test_distinct_needs_as_many_values_as_devices() -> None:
    def asked(count: int) -> Json:
        return constrained(request("gpu", count=count), distinctAttribute="gpu.example.com/card")

    cards = pool(*(device(f"d{n}", {"card": n // 2}) for n in range(6)))
    assert codes(cards, CLASSES[0], asked(3)) == []
    assert codes(cards, CLASSES[0], asked(4)) == ["distinct-too-few-values"]
    spread = (pool(device("a", {"card": 1}), name="n1"), pool(device("a", {"card": 2}), name="n2"))
    assert "distinct-too-few-values" in codes(*spread, CLASSES[0], asked(2))


def test_alternatives_are_judged_each_for_itself() -> None:
    choice = either("gpu", request("gpu-a", gpu("index > 5")), request("gpu-b"))
    asked = constrained(choice, request("nic"), matchAttribute="gpu.example.com/index")
    nics = pool(device(attributes={"gpu.example.com/index": 1}), driver="nic.example.com")
    assert found(GPUS, nics, *CLASSES, asked) == [
        "selector-never-matches spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression"
    ]


# Derived attributes


def derived(expression: str, name: str = "derived/x") -> Json:
    return constrained(
        request("gpu", derivedAttributes=[{"name": name, "expression": expression}]), matchAttribute=name
    )


def test_derived_attributes_that_fail_or_hide_others() -> None:
    path = f"{PATH}.derivedAttributes[0]"
    assert found(GPUS, CLASSES[0], derived(gpu("model")), features=ALL) == []
    assert found(GPUS, CLASSES[0], derived(gpu("memory")), features=ALL) == [
        f"derived-attribute-fails {path}.expression"
    ]
    assert found(GPUS, CLASSES[0], derived("1", "gpu.example.com/model"), features=ALL) == [
        f"derived-attribute-shadows {path}.name"
    ]


def test_derived_values_are_compared() -> None:
    def pair(expression: str) -> Json:
        attributes = [{"name": "derived/x", "expression": expression}]
        return constrained(request("gpu", count=2, derivedAttributes=attributes), matchAttribute="derived/x")

    assert codes(GPUS, CLASSES[0], pair(gpu("index")), features=ALL) == ["match-never-holds"]
    assert codes(GPUS, CLASSES[0], pair(f"{gpu('index')} / 2"), features=ALL) == []
    assert codes(GPUS, CLASSES[0], pair('semver("1.2.3")'), features=ALL) == []
    assert codes(GPUS, CLASSES[0], pair(f"[{gpu('index')}, 7]"), features=ALL) == []


# Capacities


def capable(policy: Json | None = None, value: str = "10") -> Json:
    more = {"requestPolicy": policy} if policy else {}
    return pool(device(capacity={"memory": {"value": value, **more}}, allowMultipleAllocations=True))


def wanting(**amounts: str) -> Json:
    return claim(request("gpu", capacity={"requests": amounts}))


def test_capacities_may_be_spelled_in_both_ways_but_not_at_once() -> None:
    assert codes(capable(), CLASSES[0], wanting(memory="5")) == []
    assert codes(capable(), CLASSES[0], wanting(**{"gpu.example.com/memory": "5"})) == []
    assert codes(capable(), CLASSES[0], wanting(memory="5", **{"gpu.example.com/memory": "5"})) == [
        "capacity-spelled-twice"
    ]
    assert codes(capable(), CLASSES[0], wanting(**{"nic.example.com/memory": "5"})) == ["capacity-unknown"]


def test_the_nearest_name_of_a_capacity_is_offered() -> None:
    (finding,) = check([capable(), CLASSES[0], wanting(memroy="5")])
    assert (finding.code, finding.hint, finding.fix) == ("capacity-unknown", "did you mean 'memory'?", None)


@pytest.mark.parametrize(
    ("policy", "amount", "fits"),
    [
        (None, "10", True),
        (None, "10001m", False),
        ({"default": "1", "validValues": ["1", "4"]}, "3", True),
        ({"default": "1", "validValues": ["1", "4"]}, "5", False),
        ({"default": "2", "validRange": {"min": "2", "max": "8", "step": "3"}}, "6", True),
        ({"default": "2", "validRange": {"min": "2", "max": "8", "step": "3"}}, "8001m", False),
        ({"default": "2", "validRange": {"min": "2"}}, "1", True),
        ({"default": "2", "validRange": {"min": "2"}}, "11", False),
        ({"default": "2"}, "10", True),
    ],
)
def test_amounts_are_judged_as_the_policy_rounds_them(policy: Json | None, amount: str, fits: bool) -> None:
    assert codes(capable(policy), CLASSES[0], wanting(memory=amount)) == ([] if fits else ["capacity-too-large"])


def test_amounts_must_fit_one_device_together() -> None:
    lopsided = pool(
        device("a", capacity={"x": {"value": "1"}, "y": {"value": "9"}}),
        device("b", capacity={"x": {"value": "9"}, "y": {"value": "1"}}),
    )
    assert found(lopsided, CLASSES[0], wanting(x="5", y="5")) == [f"capacity-too-large {PATH}.capacity.requests"]
    assert found(lopsided, CLASSES[0], wanting(x="5", y="1")) == []


# Admin access


def test_admin_access_is_judged_where_the_namespace_is_given() -> None:
    asked = claim(request("gpu", adminAccess=True))
    namespace = obj("Namespace", "ns", "v1")
    labelled = {**namespace, "metadata": {"name": "ns", "labels": {"resource.kubernetes.io/admin-access": "true"}}}
    assert codes(asked) == []
    assert codes(asked, namespace) == ["admin-access-not-allowed"]
    assert codes(asked, labelled) == []
    assert codes(asked, obj("Namespace", "other", "v1")) == []


# Pools


def test_pools_with_slices_missing_or_too_many() -> None:
    assert found(pool(device(), count=2)) == ["pool-incomplete spec.pool"]
    first, second = pool(device("a"), count=2), pool(device("b"), count=3)
    second["metadata"]["name"] = "second"
    (finding,) = check([first, second])
    assert finding.code == "pool-incomplete"
    assert "disagree" in finding.message


def test_a_count_of_zero_is_refused_and_leaves_the_pool_incomplete() -> None:
    assert found(pool(device(), count=0)) == [
        "invalid-object spec.pool.resourceSliceCount",
        "pool-incomplete spec.pool",
    ]


def test_older_generations_are_ignored() -> None:
    new = pool(device(), pool={"name": "n1", "generation": 2, "resourceSliceCount": 1})
    new["metadata"]["name"] = "new"
    assert found(pool(device()), new) == ["stale-slice spec.pool.generation"]


def counters(**amounts: str) -> Json:
    counter_set = {"name": "set", "counters": {name: {"value": amount} for name, amount in amounts.items()}}
    found = pool(count=2, sharedCounters=[counter_set])
    del found["spec"]["devices"]
    found["metadata"]["name"] = "counters"
    return found


def consumer(**amounts: str) -> Json:
    drawn = {name: {"value": amount} for name, amount in amounts.items()}
    return pool(device(consumesCounters=[{"counterSet": "set", "counters": drawn}]), count=2)


def test_counters_that_are_unused_too_small_or_not_there() -> None:
    assert found(counters(a="4"), consumer(a="4")) == []
    assert found(counters(a="4", b="1"), consumer(a="4")) == ["counter-unused spec.sharedCounters[0].counters[b]"]
    assert found(counters(a="4"), consumer(a="4001m")) == ["counter-too-small spec.devices[0].consumesCounters"]
    assert codes(counters(a="4"), consumer(b="1")) == ["pool-invalid"]
    assert codes(counters(a="-1"), consumer(a="1")) == ["pool-invalid"]


def test_counters_and_devices_in_one_slice() -> None:
    both = pool(device(), sharedCounters=[{"name": "set", "counters": {"a": {"value": "1"}}}])
    assert found(both) == ["counters-with-devices spec"]


# Nodes


def test_devices_are_out_of_reach_only_where_nodes_are_given() -> None:
    def on(*labels: str) -> Json:
        terms = [{"matchExpressions": [{"key": label, "operator": "Exists"}]} for label in labels]
        return pool(device(), name="x", nodeSelector={"nodeSelectorTerms": terms})

    assert codes(GPUS) == []
    assert found(GPUS, node("n2")) == ["device-unreachable spec.nodeName"]
    assert found(GPUS, node("n1")) == []
    assert found(on("rack"), node(rack="a")) == []
    assert found(on("rack"), node(row="a")) == ["device-unreachable spec.nodeSelector"]
    assert "device-unreachable" in codes(on("rack", "rack"), node(rack="a"))


def test_each_device_may_have_its_own_nodes() -> None:
    mixed = pool(device("a", nodeName="n1"), device("b", nodeName="n9"), name="x", perDeviceNodeSelection=True)
    assert found(mixed, node()) == ["device-unreachable spec.devices[1].nodeName"]


# Standard attributes


@pytest.mark.parametrize("name", ["numa", "numaNode", "NUMA_node", "pcieRoot", "pciRoot", "pciBusID", "busId", "bdf"])
def test_vendor_spellings_are_told_once_a_driver(name: str) -> None:
    devices = [device(f"d{index}", {name: f"{index}"}) for index in range(3)]
    assert codes(pool(*devices), pool(*devices, name="n2")) == ["vendor-attribute"]


def test_a_vendor_spelling_beside_the_standard_one_is_fine() -> None:
    assert codes(pool(device(attributes={"numa": 0, NUMA: 0}))) == []
    assert codes(pool(device(attributes={"model": "x", "index": 0}))) == []


def test_standard_attributes_have_their_form() -> None:
    assert codes(pool(device(attributes={NUMA: "0"}))) == ["standard-attribute-malformed"]
    assert codes(pool(device(attributes={"resource.kubernetes.io/pciBusID": "0000:3b:00.0"}))) == []


# Taint rules


def rule(selector: Json | None) -> Json:
    more = {} if selector is None else {"deviceSelector": selector}
    return obj("DeviceTaintRule", "rule", spec={"taint": {"key": "k", "effect": "None"}, **more})


def test_rules_hit_something_and_not_everything() -> None:
    assert codes(rule({})) == ["rule-hits-everything"]
    assert codes(rule(None)) == ["rule-hits-nothing"]
    assert codes(rule({"driver": "gpu.example.com"})) == []
    assert codes(rule({"driver": "gpu.example.com"}), GPUS) == []
    (finding,) = check([rule({"driver": "gpu.example.com", "device": "d9"}), GPUS])
    assert (finding.code, finding.hint) == ("rule-hits-nothing", "devices that it would hit but for device (2)")


# Pods


def pod(*claims: Json, uses: list[Json] | None = None) -> Json:
    container = {"name": "main", "resources": {"claims": uses or [{"name": item["name"]} for item in claims]}}
    return obj("Pod", "pod", "v1", spec={"resourceClaims": list(claims), "containers": [container]})


def test_pods_refer_to_what_exists_in_their_namespace() -> None:
    named = pod({"name": "c", "resourceClaimName": "claim"})
    assert codes(named) == []
    assert codes(named, claim()) == []
    elsewhere = {**claim(), "metadata": {"name": "claim", "namespace": "other"}}
    (finding,) = check([named, elsewhere])
    assert (finding.code, finding.hint) == ("claim-not-found", "there is other/claim")
    made = pod({"name": "c", "resourceClaimTemplateName": "claim"})
    assert found(made, claim()) == ["claim-not-found spec.resourceClaims[0].resourceClaimTemplateName"]


def test_groups_refer_to_what_exists() -> None:
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}
    group = obj("PodGroup", "g", "scheduling.k8s.io/v1beta1", spec=spec)
    assert "claim-not-found" in codes(group, claim())


def test_containers_name_requests_that_exist() -> None:
    named = {"name": "c", "resourceClaimName": "claim"}
    asked = claim(request("gpu"), request("nic"))
    assert codes(pod(named, uses=[{"name": "c", "request": "nic"}]), asked) == []
    assert found(pod(named, uses=[{"name": "c", "request": "tpu"}]), asked) == [
        "request-not-found spec.containers[0].resources.claims[0].request"
    ]


def test_claims_are_used_by_a_container() -> None:
    one, two = ({"name": name, "resourceClaimName": "claim"} for name in ("a", "b"))
    assert found(pod(one, two, uses=[{"name": "a"}]), claim()) == ["claim-unused spec.resourceClaims[1]"]


# Input and output


def test_clusters_are_linted_as_their_objects_are() -> None:
    objects = [GPUS, NICS, *CLASSES, claim(request("gpu", count=9))]
    of_cluster = {finding.code for finding in check(dra.Cluster.from_objects(objects))}
    assert of_cluster == set(codes(*objects)) == {"too-few-devices"}


def test_codes_can_be_chosen() -> None:
    objects = [rule({}), claim(request("gpu", count=33))]
    assert [finding.code for finding in check(objects, codes=["too-many-devices"])] == ["too-many-devices"]
    with pytest.raises(ValueError, match="unknown lint code nonsense; known are invalid-object, "):
        check(objects, codes=["nonsense"])


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(DecodeError):
        check([{"spec": {}}])


def test_findings_read_well_and_become_plain_data() -> None:
    finding = Finding("too-few-devices", Severity.WARNING, "ResourceClaim ns/c", "spec", "asks for 9", "at most 2")
    assert str(finding) == "warning too-few-devices: ResourceClaim ns/c: spec: asks for 9 (at most 2)"
    assert finding.to_dict() == {
        "code": "too-few-devices",
        "severity": "warning",
        "object": "ResourceClaim ns/c",
        "path": "spec",
        "message": "asks for 9",
        "hint": "at most 2",
        "fix": None,
        "where": "",
    }


def test_findings_come_in_the_order_of_the_objects() -> None:
    objects = [claim(request("gpu", count=33)), rule({}), device_class("gpu", "1")]
    assert codes(*objects) == ["too-many-devices", "rule-hits-everything", "invalid-object"]


def test_every_rule_says_how_severe_it_is() -> None:
    assert {rule.severity for rule in RULES.values()} == set(Severity)
    assert all(rule.title.endswith(".") for rule in RULES.values())
    assert Features() == Features.for_version("1.37")
