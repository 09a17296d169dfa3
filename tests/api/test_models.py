"""The models: the fields of the Kubernetes 1.37 API, and what a value is."""

from __future__ import annotations

import copy
import pickle
import re
from datetime import UTC, datetime

import attrs
import kubernetes.client.models as official
import pytest

from dra_alloc import api
from dra_alloc.codec.schema import NOT_KEPT, fields, snake

#: Classes of ours that the official client names differently.
_RENAMED = {
    "ContainerResourceClaim": "CoreV1ResourceClaim",
    "ResourceClaim": "ResourceV1ResourceClaim",
    "NodeAllocatableMappedResources": "V1NodeAllocatableMappedResources",
    "NodeAllocatableOverheadResources": "V1NodeAllocatableOverheadResources",
}


def _models() -> list[type[api.Model]]:
    found = [getattr(api, name) for name in api.__all__]
    return [cls for cls in found if attrs.has(cls) and issubclass(cls, api.Model)]


def _official(cls: type[api.Model]) -> list[type]:
    """The classes of the official client for a model, of all versions that have the shape of the model."""
    names = [_RENAMED.get(cls.__name__, ""), *(f"{v}{cls.__name__}" for v in ("V1", "V1beta2", "V1beta1", "V1alpha3"))]
    if cls is api.Container:
        names.append("V1EphemeralContainer")
    found = [getattr(official, name) for name in names if hasattr(official, name)]
    flat = {"V1beta1Device", "V1beta1DeviceRequest"}  # the wrapped forms, which the codec takes apart
    return [model for model in found if model.__name__ not in flat]


@pytest.mark.parametrize("cls", _models(), ids=lambda cls: cls.__name__)
def test_has_the_fields_of_the_api(cls: type[api.Model]) -> None:
    models = _official(cls)
    assert models, f"the official client has no {cls.__name__}"
    ours = {field.json for field in fields(cls)} | NOT_KEPT.get(cls, frozenset())
    head = {"apiVersion", "kind"} if isinstance(getattr(cls, "kind", None), str) else set()
    theirs = {model: set(model.attribute_map.values()) - head for model in models}
    assert set().union(*theirs.values()) == ours
    if cls is not api.Container:
        assert all(names == ours for names in theirs.values()), theirs


@pytest.mark.parametrize("cls", _models(), ids=lambda cls: cls.__name__)
def test_knows_which_fields_the_api_requires(cls: type[api.Model]) -> None:
    model = _official(cls)[0]
    required = {
        model.attribute_map[name]
        for name, info in model.model_fields.items()
        if info.is_required() and name in model.attribute_map
    }
    ours = {field.json: field for field in fields(cls)}
    for name in required:
        assert ours[name].required or name in ("metadata", "lastTransitionTime"), f"{cls.__name__}.{name}"


@pytest.mark.parametrize("cls", _models(), ids=lambda cls: cls.__name__)
def test_is_a_frozen_value_that_needs_no_arguments(cls: type[api.Model]) -> None:
    made = cls()
    assert made == cls()
    assert not hasattr(made, "__dict__")
    assert copy.copy(made) == pickle.loads(pickle.dumps(made)) == attrs.evolve(made) == made
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(made, fields(cls)[0].name, None)
    assert cls.__doc__
    assert cls.from_dict(made.to_dict()) == made


def test_spells_json_names_in_snake_case() -> None:
    for cls in _models():
        for field in fields(cls):
            assert snake(field.json) == field.name
            assert re.fullmatch(r"[a-z][a-z_]*", field.name)


def test_has_keys() -> None:
    assert api.ObjectMeta(name="c", namespace="default").key == "default/c"
    assert api.ObjectMeta(name="node-a").key == "node-a"


def test_goes_to_the_kubernetes_form_and_back() -> None:
    claim = api.ResourceClaim(
        metadata=api.ObjectMeta(
            name="c", namespace="default", creation_timestamp=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        ),
        spec=api.ResourceClaimSpec(
            devices=api.DeviceClaim(
                requests=(
                    api.DeviceRequest(name="gpu", exactly=api.ExactDeviceRequest(device_class_name="gpu", count=2)),
                )
            )
        ),
        status=api.ResourceClaimStatus(
            allocation=api.AllocationResult(
                devices=api.DeviceAllocationResult(
                    results=(
                        api.DeviceRequestAllocationResult(
                            request="gpu",
                            driver="gpu.example.com",
                            pool="node-a",
                            device="gpu-0",
                            share_id="11111111-2222-3333-4444-555555555555",
                            consumed_capacity={"memory": api.Quantity.parse("1.5Gi")},
                        ),
                    )
                )
            )
        ),
    )
    written = claim.to_dict()
    assert written == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}]},
        },
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "request": "gpu",
                            "driver": "gpu.example.com",
                            "pool": "node-a",
                            "device": "gpu-0",
                            "shareID": "11111111-2222-3333-4444-555555555555",
                            "consumedCapacity": {"memory": "1536Mi"},
                        }
                    ]
                }
            }
        },
    }
    assert list(written) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert api.ResourceClaim.from_dict(written) == claim
    assert api.AllocationResult.from_dict(written["status"]["allocation"]) == claim.status.allocation  # type: ignore[union-attr]
