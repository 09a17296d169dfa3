"""Objects of other Python clients are accepted as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from unittest import mock

import kr8s.objects
import kubernetes.client as official
import pytest
from kubernetes.dynamic.resource import ResourceInstance
from lightkube.models import meta_v1
from lightkube.resources import core_v1, resource_v1

from dra_alloc import api
from dra_alloc.codec import decode, decode_as, encode, load
from dra_alloc.errors import DecodeError, DraError

WRITTEN: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "creationTimestamp": "2026-01-31T12:00:00Z"},
    "spec": {
        "driver": "d.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [
            {
                "name": "x",
                "attributes": {"camelCase": {"string": "a"}, "ints": {"ints": [1, 2]}},
                "capacity": {
                    "memory": {"value": "1Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}
                },
                "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-31T12:00:00Z"}],
                "bindsToNode": False,
            }
        ],
    },
}
SLICE = api.ResourceSlice.from_dict(WRITTEN)


def test_official_client() -> None:
    made = official.V1ResourceSlice.model_validate(WRITTEN)
    assert decode(made, strict=True) == SLICE
    assert decode(made.to_dict(), strict=True) == SLICE
    beta = official.V1beta1ResourceSlice.model_validate(encode(SLICE, "v1beta1"))
    assert decode(beta, strict=True) == SLICE
    assert load([made, beta]) == [SLICE, SLICE]


def test_official_client_leaves_out_the_kind_in_lists() -> None:
    bare = {key: value for key, value in WRITTEN.items() if key not in ("apiVersion", "kind")}
    made = official.V1ResourceSliceList.model_validate({"metadata": {}, "items": [bare]})
    assert made.items[0].kind is None
    assert load(made) == [SLICE]
    assert load(made.items) == [SLICE]
    claim = {"metadata": {"name": "c"}, "spec": {}}
    assert decode(official.ResourceV1ResourceClaim.model_validate(claim)) == api.ResourceClaim.from_dict(claim)
    assert decode(official.V1Node.model_validate({"metadata": {"name": "n"}})) == api.Node(
        metadata=api.ObjectMeta(name="n")
    )
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    for version in ("V1beta1", "V1alpha3"):
        found = decode(getattr(official, f"{version}PodGroup").model_validate(group))
        assert found == api.PodGroup.from_dict(group)


def test_official_dynamic_client() -> None:
    assert decode(ResourceInstance(None, WRITTEN), strict=True) == SLICE


class V1DeviceAttribute:
    """As older official clients are generated: plain attributes, and a map to their JSON names."""

    attribute_map: ClassVar[dict[str, str]] = {"int": "int", "string": "string"}

    def __init__(self, string: str) -> None:
        self.int = None
        self.string = string


class V1Device:
    attribute_map: ClassVar[dict[str, str]] = {
        "name": "name",
        "attributes": "attributes",
        "binds_to_node": "bindsToNode",
    }

    def __init__(self) -> None:
        self.name = "x"
        self.attributes = {"camelCase": V1DeviceAttribute("a")}
        self.binds_to_node = False


class V1ResourceSliceSpec:
    attribute_map: ClassVar[dict[str, str]] = {"driver": "driver", "devices": "devices", "node_name": "nodeName"}

    def __init__(self) -> None:
        self.driver = "d"
        self.devices = [V1Device()]
        self.node_name = None


class V1ObjectMeta:
    attribute_map: ClassVar[dict[str, str]] = {"name": "name", "creation_timestamp": "creationTimestamp"}

    def __init__(self) -> None:
        self.name = "s"
        self.creation_timestamp = datetime(2026, 1, 31, 12, tzinfo=UTC)


class V1ResourceSlice:
    attribute_map: ClassVar[dict[str, str]] = {
        "api_version": "apiVersion",
        "kind": "kind",
        "metadata": "metadata",
        "spec": "spec",
    }

    def __init__(self) -> None:
        self.api_version = None
        self.kind = None
        self.metadata = V1ObjectMeta()
        self.spec = V1ResourceSliceSpec()


def test_older_official_clients() -> None:
    assert decode(V1ResourceSlice(), strict=True) == api.ResourceSlice(
        metadata=api.ObjectMeta(name="s", creation_timestamp=datetime(2026, 1, 31, 12, tzinfo=UTC)),
        spec=api.ResourceSliceSpec(
            driver="d",
            devices=(
                api.Device(name="x", attributes={"camelCase": api.DeviceAttribute(string="a")}, binds_to_node=False),
            ),
        ),
    )


def test_lightkube() -> None:
    assert decode(resource_v1.ResourceSlice.from_dict(WRITTEN)).spec.driver == "d.example.com"  # type: ignore[attr-defined]
    claim = resource_v1.ResourceClaim.from_dict(encode(api.ResourceClaim(metadata=api.ObjectMeta(name="c"))))
    assert decode(claim, strict=True) == api.ResourceClaim(metadata=api.ObjectMeta(name="c"))
    made = core_v1.Node(metadata=meta_v1.ObjectMeta(name="n", labels={"a": "b"}))
    assert load(made, [made]) == [api.Node(metadata=api.ObjectMeta(name="n", labels={"a": "b"}))] * 2


def test_kr8s() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "c"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]},
    }
    made = kr8s.objects.Pod(pod, api=mock.Mock(namespace="ns"))
    assert decode(made, strict=True) == api.Pod.from_dict(pod)
    kind = kr8s.objects.new_class("ResourceSlice", version="resource.k8s.io/v1", namespaced=False)
    assert load(kind(WRITTEN, api=mock.Mock(namespace="ns")), strict=True) == [SLICE]


class Body(Mapping[str, Any]):
    """A view as kopf hands it to handlers: a mapping of mappings, but no dict."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        value = self._data[key]
        return Body(value) if isinstance(value, Mapping) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def test_views() -> None:
    assert decode(Body(WRITTEN), strict=True) == SLICE
    assert load(Body({"apiVersion": "v1", "kind": "List", "items": [Body(WRITTEN)]})) == [SLICE]


def test_models_pass_through() -> None:
    assert decode(SLICE) is SLICE
    assert load(SLICE)[0] is SLICE


@pytest.mark.parametrize(
    "obj", [official.V1Service(), official.V1Device(name="x"), api.Device(name="x"), mock.Mock(spec=["to_dict"])]
)
def test_other_objects_are_refused(obj: Any) -> None:
    with pytest.raises(DecodeError):
        decode(obj)


def test_the_name_of_a_file_is_no_object() -> None:
    with pytest.raises(DecodeError, match=r"str is not a Kubernetes object .*; dra_alloc\.load reads files"):
        decode("cluster.yaml")


def test_decode_as_minds_the_kind() -> None:
    assert decode_as(api.ResourceSlice, WRITTEN) == SLICE
    with pytest.raises(DraError, match="a Pod is needed here, not a ResourceSlice"):
        decode_as(api.Pod, WRITTEN)
