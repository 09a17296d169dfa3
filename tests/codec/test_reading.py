"""Fields: which values they take, what a fault is called, and where it is said to be."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_alloc import api
from dra_alloc.codec import decode, encode
from dra_alloc.errors import DecodeError


def slice_of(*devices: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": "d.example.com", "pool": {"name": "p", "generation": 1}, "devices": list(devices), **spec},
    }


def claim_of(**devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"devices": devices},
    }


def refused(data: Any) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode(data)
    return caught.value


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        (slice_of({"name": 1}), "spec.devices[0].name", "expected a string, found 1"),
        (slice_of({"name": "x"}, "..."), "spec.devices[1]", "expected an object, found '...'"),
        (slice_of(allNodes="yes"), "spec.allNodes", "expected true or false, found 'yes'"),
        (slice_of(allNodes=1), "spec.allNodes", "expected true or false, found 1"),
        (slice_of(devices={}), "spec.devices", "expected a list, found an object"),
        (slice_of(devices="x"), "spec.devices", "expected a list, found 'x'"),
        (slice_of(nodeName=["n"]), "spec.nodeName", "expected a string, found a list"),
        (
            slice_of({"name": "x", "attributes": {"a/b": {"int": True}}}),
            "spec.devices[0].attributes[a/b].int",
            "expected a whole number, found True",
        ),
        (
            slice_of({"name": "x", "attributes": {"a": {"int": 1.0}}}),
            "spec.devices[0].attributes[a].int",
            "expected a whole number, found 1.0",
        ),
        (
            slice_of({"name": "x", "attributes": {"a": {"int": 2**63}}}),
            "spec.devices[0].attributes[a].int",
            "expected a number of 64 bits",
        ),
        (
            slice_of({"name": "x", "attributes": {"a": {"bools": [True, "x"]}}}),
            "spec.devices[0].attributes[a].bools[1]",
            "expected true or false",
        ),
        (
            slice_of({"name": "x", "attributes": {"a": {"string": ["x"]}}}),
            "spec.devices[0].attributes[a].string",
            "expected a string, found a list",
        ),
        (
            slice_of({"name": "x", "capacity": {"memory": {"value": "80 Gi"}}}),
            "spec.devices[0].capacity[memory].value",
            "'80 Gi' is not a quantity",
        ),
        (
            slice_of({"name": "x", "capacity": {"memory": {}}}),
            "spec.devices[0].capacity[memory].value",
            "is missing",
        ),
        (
            slice_of({"name": "x", "capacity": {"memory": "80Gi"}}),
            "spec.devices[0].capacity[memory]",
            "expected an object, found '80Gi'",
        ),
        (
            slice_of({"name": "x", "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "yesterday"}]}),
            "spec.devices[0].taints[0].timeAdded",
            "expected a time",
        ),
        (slice_of({"name": "x", "attributes": {1: {"int": 1}}}), "spec.devices[0].attributes", "key 1 is not a string"),
        (slice_of(nodeName="a", node_name="b"), "spec.node_name", "given twice"),
        (
            claim_of(config=[{"opaque": {"driver": "d", "parameters": {"x": object}}}]),
            "parameters",
            "expected a JSON value",
        ),
        (
            claim_of(config=[{"opaque": {"driver": "d", "parameters": float("inf")}}]),
            "parameters",
            "expected a JSON value",
        ),
    ],
)
def test_faults_have_a_path_and_a_reason(data: Any, path: str, message: str) -> None:
    error = refused(data)
    assert error.path.startswith(("ResourceSlice s: ", "ResourceClaim ns/c: "))
    assert error.path.endswith(path)
    assert message in error.message


def test_numbers_in_text_fields_get_a_hint() -> None:
    assert refused(slice_of(nodeName=12)).hint == 'in quotes it is one: "12"'


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": 10**5000},
        {"allNodes": 10**5000},
        {"pool": 10**5000},
        {"devices": [{"name": "x", "capacity": {"memory": 10**5000}}]},
        {"devices": [{"name": "x", "capacity": {"memory": {"value": 10**5000}}}]},
        {"devices": [{"name": "x", "capacity": {"m": {"value": 1, "requestPolicy": {"default": 10**5000}}}}]},
        {"devices": [{"name": "x", "attributes": {"index": 10**5000}}]},
        {"devices": [{"name": "x", "attributes": {"index": {"int": -(10**5000)}}}]},
    ],
)
def test_numbers_that_python_does_not_write_out_are_refused_too(spec: dict[str, Any]) -> None:
    assert re.search(r"number of \d+ bits", refused(slice_of(**spec)).message)


@pytest.mark.parametrize(
    ("device", "hint"),
    [
        ({"capacity": {"memory": "80Gi"}}, 'as in {value: "80Gi"}'),
        ({"capacity": {"memory": 80}}, "as in {value: 80}"),
        ({"attributes": {"model": "R48"}}, 'as in {string: "R48"}'),
        ({"attributes": {"index": 3}}, "as in {int: 3}"),
        ({"attributes": {"fast": True}}, "as in {bool: true}"),
        ({"attributes": {"model": []}}, ""),
        ({"attributes": {"index": {"int": "-3"}}}, "without quotes it is one"),
        ({"attributes": {"index": {"int": "three"}}}, ""),
    ],
)
def test_values_in_the_wrong_form_get_a_hint(device: dict[str, Any], hint: str) -> None:
    assert refused(slice_of({"name": "x", **device})).hint == hint


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (slice_of({"name": "x", "basic": {}}), "v1beta1"),
        ({**slice_of({"name": "x", "attributes": {}}), "apiVersion": "resource.k8s.io/v1beta1"}, "`basic`"),
        (
            {**slice_of({"name": "x", "basic": {"name": "y"}}), "apiVersion": "resource.k8s.io/v1beta1"},
            "beside `basic`",
        ),
        (claim_of(requests=[{"name": "r", "deviceClassName": "c"}]), "`exactly`"),
        (claim_of(requests=[{"name": "r", "device_class_name": "c"}]), "`exactly`"),
        ({**claim_of(requests=[{"name": "r", "exactly": {}}]), "apiVersion": "resource.k8s.io/v1beta1"}, "v1beta1"),
        (claim_of(requests=[{"name": "r", "exactly": {"selectors": [{"cel": None, "expression": "true"}]}}]), "indent"),
        ({**claim_of(), "spec": {"requests": []}}, "`devices`"),
        ({**claim_of(), "spec": {"spec": {}}}, "ResourceClaimTemplate"),
        ({**claim_of(), "spec": {"resourceClassName": "c"}}, "classic"),
        ({**claim_of(), "status": {"deallocationRequested": True}}, "classic"),
        ({**claim_of(), "kind": "ResourceClaimTemplate", "spec": {"devices": {}}}, "a further `spec`"),
        (
            {
                "apiVersion": "resource.k8s.io/v1alpha3",
                "kind": "DeviceTaintRule",
                "metadata": {"name": "r"},
                "spec": {"deviceSelector": {"deviceClassName": "c"}, "taint": {"key": "k", "effect": "NoExecute"}},
            },
            "name driver, pool and device",
        ),
        ({**slice_of({"name": "x", "basic": {"bindsToNode": True}}), "apiVersion": "resource.k8s.io/v1alpha3"}, "v1"),
        (
            {
                **slice_of({"name": "x", "basic": {"capacity": {"m": {"value": "1"}}}}),
                "apiVersion": "resource.k8s.io/v1alpha3",
            },
            "plain quantities",
        ),
    ],
)
def test_fields_of_other_versions_and_places_are_refused_with_what_to_do(data: Any, hint: str) -> None:
    assert hint in refused(data).hint


def test_unknown_fields_are_left_out_or_refused() -> None:
    data = slice_of({"name": "x", "attributes": {"a": {"int": 1, "colour": "red"}}}, speed=1)
    found = decode(data)
    assert isinstance(found, api.ResourceSlice)
    assert found.spec.devices[0].attributes == {"a": api.DeviceAttribute(int=1)}
    with pytest.raises(
        DecodeError, match=r"ResourceSlice s: spec\.devices\[0\]\.attributes\[a\]\.colour: unknown field"
    ):
        decode(data, strict=True)


def test_every_unknown_field_is_noticed_even_in_shared_values() -> None:
    odd = {"value": "1Gi", "colour": "red"}
    for _ in range(2):
        with pytest.raises(DecodeError, match="colour"):
            decode(slice_of({"name": "x", "capacity": {"m": dict(odd)}}), strict=True)


def test_equal_values_are_one_object_but_types_are_kept_apart() -> None:
    devices = [
        {"name": name, "attributes": {"i": {"int": 1}, "b": {"bool": True}}, "capacity": {"m": {"value": "1Gi"}}}
        for name in ("x", "y")
    ]
    found = decode(slice_of(*devices))
    assert isinstance(found, api.ResourceSlice)
    one, two = found.spec.devices
    assert one.attributes["i"] is two.attributes["i"]
    assert one.capacity is two.capacity
    assert one.attributes["b"].bool is True
    assert refused(slice_of(devices[0], {"name": "z", "attributes": {"i": {"int": True}}})).path.endswith(
        "attributes[i].int"
    )


def test_equal_amounts_keep_their_spelling() -> None:
    amounts = ["1Ki", "1024", "1.024e3"]
    found = decode(slice_of(*({"name": text, "capacity": {"m": {"value": text}}} for text in amounts)))
    written = encode(found)
    assert [device["capacity"]["m"]["value"] for device in written["spec"]["devices"]] == ["1Ki", "1024", "1024"]


def test_lists_are_told_from_absent_lists() -> None:
    found = decode(slice_of({"name": "x", "attributes": {"a": {"ints": []}, "b": {"ints": None}}}))
    assert isinstance(found, api.ResourceSlice)
    assert found.spec.devices[0].attributes == {"a": api.DeviceAttribute(ints=()), "b": api.DeviceAttribute()}


def test_none_is_absent_and_snake_case_is_fine() -> None:
    camel = slice_of({"name": "x", "bindsToNode": True}, perDeviceNodeSelection=True)
    snake = {
        "api_version": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "generate_name": None, "owner_references": None},
        "spec": {
            "driver": "d.example.com",
            "pool": {"name": "p", "generation": 1, "resource_slice_count": None},
            "devices": [{"name": "x", "binds_to_node": True, "node_selector": None}],
            "per_device_node_selection": True,
            "shared_counters": None,
        },
    }
    assert decode(snake, strict=True) == decode(camel, strict=True)


def test_times_are_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    meta = api.ObjectMeta.from_dict
    expected = api.ObjectMeta(creation_timestamp=datetime(2026, 1, 31, 12, 0, tzinfo=UTC))
    for given_ in ("2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", datetime(2026, 1, 31, 14, 0, tzinfo=zone)):
        assert meta({"creationTimestamp": given_}) == expected
    assert meta({"creationTimestamp": "2026-01-31T12:00:00.123456789Z"}).to_dict() == expected.to_dict()
    for wrong in ("2026-01-31", "2026-01-31T12:00:00", 1769860800, datetime(2026, 1, 31), "0001-01-01T00:00:00+05:00"):
        with pytest.raises(DecodeError):
            meta({"creationTimestamp": wrong})


def test_views_are_read_like_dicts() -> None:
    plain = claim_of(config=[{"opaque": {"driver": "d", "parameters": {"list": (1, {"a": None})}}}])
    view = MappingProxyType(
        {key: MappingProxyType(value) if isinstance(value, dict) else value for key, value in plain.items()}
    )
    found = decode(view)
    assert found == decode(plain)
    parameters = found.to_dict()["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert parameters == {"list": [1, {"a": None}]}


def test_what_is_written_is_a_copy() -> None:
    found = decode(claim_of(config=[{"opaque": {"driver": "d", "parameters": {"a": [1]}}}]))
    found.to_dict()["spec"]["devices"]["config"][0]["opaque"]["parameters"]["a"].append(2)
    assert found.to_dict()["spec"]["devices"]["config"][0]["opaque"]["parameters"] == {"a": [1]}


def test_pods_lose_what_has_nothing_to_do_with_devices_without_a_word() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "managedFields": [{}]},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "volume_mounts": [], "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "volumes": [{}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }
    found = decode(pod, strict=True)
    assert isinstance(found, api.Pod)
    assert found.spec.containers[0].resources.claims == (api.ContainerResourceClaim(name="gpu"),)
    pod["spec"]["resourceClaim"] = []  # type: ignore[index]
    with pytest.raises(DecodeError, match=r"Pod p: spec\.resourceClaim: unknown field"):
        decode(pod, strict=True)


@pytest.mark.parametrize("data", [1, None, "text", [], object(), {}, {"kind": "Pod"}, {"apiVersion": 1, "kind": []}])
def test_what_is_no_object_is_refused(data: Any) -> None:
    assert refused(data).hint


def test_deep_values_are_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert "deep" in refused(claim_of(config=[{"opaque": {"driver": "d", "parameters": deep}}])).message
    nest: Any = {}
    for _ in range(5000):
        nest = {"name": "t", "compositePodGroupTemplates": [nest]}
    workload = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "spec": nest}
    assert "deep" in refused(workload).message


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "spec", "devices", "value", "int", "exactly"]) | st.text(max_size=2), inner
        )
    ),
    max_leaves=5,
)


@given(st.data())
def test_any_change_of_an_object_is_read_or_refused(data: st.DataObject) -> None:
    whole = slice_of(
        {
            "name": "x",
            "attributes": {"a": {"int": 1}},
            "capacity": {"m": {"value": "1", "requestPolicy": {"validRange": {"min": "1"}}}},
            "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-31T12:00:00Z"}],
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "In", "values": ["x"]}]}]},
        }
    )
    here: Any = whole
    while True:
        key = data.draw(st.sampled_from(sorted(here)) if isinstance(here, dict) else st.integers(0, len(here) - 1))
        inside = here[key]
        if not isinstance(inside, (dict, list)) or not inside or data.draw(st.booleans()):
            here[key] = data.draw(_ANY)
            break
        here = inside
    try:
        found = decode(whole)
    except DecodeError:
        return
    assert decode(encode(found)) == found
