"""API versions: what each looks like, and what it cannot hold."""

from __future__ import annotations

from typing import Any

import pytest

from dra_alloc import api
from dra_alloc.codec import decode, encode
from dra_alloc.errors import DecodeError


def _slice(**device: Any) -> api.ResourceSlice:
    return api.ResourceSlice(
        metadata=api.ObjectMeta(name="s"),
        spec=api.ResourceSliceSpec(
            driver="d.example.com",
            pool=api.ResourcePool(name="p", generation=1, resource_slice_count=1),
            node_name="n",
            devices=(api.Device(name="x", **device),),
        ),
    )


def _claim(*requests: api.DeviceRequest, **devices: Any) -> api.ResourceClaim:
    return api.ResourceClaim(
        metadata=api.ObjectMeta(name="c", namespace="ns"),
        spec=api.ResourceClaimSpec(devices=api.DeviceClaim(requests=requests, **devices)),
    )


def _exact(**fields: Any) -> api.DeviceRequest:
    return api.DeviceRequest(name="r", exactly=api.ExactDeviceRequest(device_class_name="gpu", **fields))


GIB = api.Quantity.parse("1Gi")


def test_a_slice_in_every_version() -> None:
    obj = _slice(attributes={"a": api.DeviceAttribute(int=1)}, capacity={"m": api.DeviceCapacity(value=GIB)})
    head = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    attributes = {"a": {"int": 1}}
    for version, device in {
        "v1": {"name": "x", "attributes": attributes, "capacity": {"m": {"value": "1Gi"}}},
        "v1beta2": {"name": "x", "attributes": attributes, "capacity": {"m": {"value": "1Gi"}}},
        "v1beta1": {"name": "x", "basic": {"attributes": attributes, "capacity": {"m": {"value": "1Gi"}}}},
        "v1alpha3": {"name": "x", "basic": {"attributes": attributes, "capacity": {"m": "1Gi"}}},
    }.items():
        written = encode(obj, version)
        assert written == {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {**head, "devices": [device]},
        }
        assert decode(written, strict=True) == obj
        assert encode(obj, f"resource.k8s.io/{version}") == written


def test_a_claim_in_every_version() -> None:
    first = (api.DeviceSubRequest(name="big", device_class_name="gpu", count=2),)
    obj = _claim(_exact(count=3), api.DeviceRequest(name="f", first_available=first))
    alternatives = {"name": "f", "firstAvailable": [{"name": "big", "deviceClassName": "gpu", "count": 2}]}
    for version, request in {
        "v1": {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}},
        "v1beta2": {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}},
        "v1beta1": {"name": "r", "deviceClassName": "gpu", "count": 3},
        "v1alpha3": {"name": "r", "deviceClassName": "gpu", "count": 3},
    }.items():
        written = encode(obj, version)
        assert written["spec"]["devices"]["requests"] == [request, alternatives]
        assert decode(written, strict=True) == obj


def test_an_empty_exact_request_is_told_from_none() -> None:
    for request in (api.DeviceRequest(name="r"), api.DeviceRequest(name="r", exactly=api.ExactDeviceRequest())):
        for version in ("v1", "v1beta1"):
            assert decode(encode(_claim(request), version)) == _claim(request)


def test_null_fields_of_old_requests_are_no_request() -> None:
    data = encode(_claim(api.DeviceRequest(name="r")), "v1beta1")
    data["spec"]["devices"]["requests"][0] |= {"deviceClassName": None, "count": None}
    assert decode(data) == _claim(api.DeviceRequest(name="r"))


def test_a_taint_rule_in_every_version() -> None:
    rule = api.DeviceTaintRule(
        metadata=api.ObjectMeta(name="r"),
        spec=api.DeviceTaintRuleSpec(
            device_selector=api.DeviceTaintSelector(driver="d"), taint=api.DeviceTaint(key="k", effect="NoExecute")
        ),
    )
    for version in ("v1", "v1beta2", "v1alpha3"):
        written = encode(rule, version)
        assert written["apiVersion"] == f"resource.k8s.io/{version}"
        assert written["spec"] == {"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoExecute"}}
        assert decode(written, strict=True) == rule


def test_workloads_in_both_versions() -> None:
    group = api.PodGroup(
        metadata=api.ObjectMeta(name="g", namespace="ns"),
        spec=api.PodGroupSpec(
            scheduling_policy=api.PodGroupSchedulingPolicy(gang=api.GangSchedulingPolicy(min_count=2)),
            resource_claims=(api.PodGroupResourceClaim(name="gpu", resource_claim_template_name="t"),),
        ),
    )
    for version in ("v1beta1", "v1alpha3"):
        assert decode(encode(group, version), strict=True) == group


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (_slice(binds_to_node=True), "spec.devices[0].basic.bindsToNode"),
        (_slice(allow_multiple_allocations=False), "spec.devices[0].basic.allowMultipleAllocations"),
        (_slice(attributes={"a": api.DeviceAttribute(ints=(1,))}), "spec.devices[0].basic.attributes[a].ints"),
        (
            _slice(capacity={"m": api.DeviceCapacity(value=GIB, request_policy=api.CapacityRequestPolicy())}),
            "spec.devices[0].basic.capacity[m].requestPolicy",
        ),
        (
            _slice(consumes_counters=(api.DeviceCounterConsumption(counter_set="s", compatibility_groups=("g",)),)),
            "spec.devices[0].basic.consumesCounters[0].compatibilityGroups",
        ),
        (
            _claim(_exact(capacity=api.CapacityRequirements(requests={"m": GIB}))),
            "spec.devices.requests[0].capacity",
        ),
        (
            _claim(_exact(), constraints=(api.DeviceConstraint(distinct_attribute="a/b"),)),
            "spec.devices.constraints[0].distinctAttribute",
        ),
        (
            api.DeviceClass(
                metadata=api.ObjectMeta(name="c"), spec=api.DeviceClassSpec(extended_resource_name="example.com/gpu")
            ),
            "spec.extendedResourceName",
        ),
    ],
)
def test_v1alpha3_names_the_field_that_it_cannot_hold(obj: api.Model, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        encode(obj, "v1alpha3")
    assert caught.value.path.split(": ")[1] == path
    assert caught.value.message == "v1alpha3 has no such field"
    for version in ("v1", "v1beta2", "v1beta1"):
        assert decode(encode(obj, version), strict=True) == obj


@pytest.mark.parametrize("version", ["v2", "v1alpha2", "apps/v1", "resource.k8s.io/v2", "apps/v1beta1", ""])
def test_versions_that_do_not_exist_are_refused(version: str) -> None:
    with pytest.raises(DecodeError, match=r"ResourceSlice: has no version .*known are resource\.k8s\.io/v1, "):
        encode(_slice(), version)


def test_parts_are_not_objects() -> None:
    with pytest.raises(DecodeError, match="part of an object"):
        encode(api.Device(name="x"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("resource.k8s.io/v1alpha2", "ResourceClaim", "classic"),
        ("resource.k8s.io/v1alpha2", "ResourceClass", "classic"),
        ("resource.k8s.io/v1alpha2", "PodSchedulingContext", "classic"),
        ("resource.k8s.io/v1alpha1", "ResourceClaimTemplate", "classic"),
        ("resource.k8s.io/v1", "ResourcePool", "no kind 'ResourcePool'"),
        ("resource.k8s.io/v1", "resourceclaim", "no kind 'resourceclaim'"),
        ("resource.k8s.io/v9", "ResourceClaim", "no version"),
        ("scheduling.k8s.io/v1alpha2", "PodGroup", "no version"),
        ("resource.k8s.io/v1beta1", "DeviceTaintRule", "no version"),
        ("apps/v1", "Deployment", "not a kind that decides about devices"),
        ("v1", "ResourceClaim", "v1 has no kind"),
        ("v1", "Service", "not a kind that decides about devices"),
    ],
)
def test_kinds_that_cannot_be_read(api_version: str, kind: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    assert message in caught.value.message


def test_from_dict_reads_any_version_and_minds_the_kind() -> None:
    obj = _slice(attributes={"a": api.DeviceAttribute(int=1)})
    assert api.ResourceSlice.from_dict(encode(obj, "v1beta1")) == obj
    assert api.ResourceSlice.from_dict({"spec": encode(obj)["spec"], "metadata": {"name": "s"}}) == obj
    for wrong in (3, None, []):
        with pytest.raises(DecodeError):
            api.ResourceClaim.from_dict(wrong)  # type: ignore[arg-type]
        with pytest.raises(DecodeError):
            api.Device.from_dict(wrong)  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="is not a ResourceClaim"):
        api.ResourceClaim.from_dict(encode(obj))
