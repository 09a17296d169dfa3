"""What is accepted and still worth a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_alloc.api import (
    DeviceClaim,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    KubernetesObject,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_alloc.codec.validation._gates import disabled_fields
from dra_alloc.codec.validation._problems import Problem, at
from dra_alloc.gates import Features

__all__ = ["warnings_about"]


def warnings_about(
    obj: object, model: KubernetesObject, old: KubernetesObject | None, features: Features
) -> Iterator[Problem]:
    """Warnings about an object as it was given and as it was read."""
    yield from deprecated_version(_api_version(obj), model)
    for dropped in disabled_fields(model, old, features):
        yield Problem(dropped.path, "is not stored", f"it needs the feature gate {dropped.gate}")
    match model:
        case ResourceSlice():
            yield from _driver(model)
        case ResourceClaim():
            yield from at("spec.devices", _claim(model.spec.devices))
        case ResourceClaimTemplate():
            yield from at("spec.spec.devices", _claim(model.spec.spec.devices))
        case _:
            pass


def deprecated_version(api_version: str, model: KubernetesObject) -> Iterator[Problem]:
    """A version of the API that is not the one to use for this kind."""
    if api_version and api_version != model.api_version:
        yield Problem("apiVersion", f"{api_version} is deprecated", f"use {model.api_version}")


def _api_version(obj: object) -> str:
    if isinstance(obj, KubernetesObject):
        return ""
    from dra_alloc.codec.clients import as_mapping

    data = as_mapping(obj)
    return str(data.get("apiVersion") or data.get("api_version") or "")


def _driver(item: ResourceSlice) -> Iterator[Problem]:
    driver = item.spec.driver
    if driver != driver.lower():
        yield Problem(
            "spec.driver", f"{driver!r} has upper-case letters", f"driver names are lower case: {driver.lower()}"
        )


def _claim(claim: DeviceClaim) -> Iterator[Problem]:
    for index, request in enumerate(claim.requests):
        bodies: Mapping[str, ExactDeviceRequest | DeviceSubRequest | None] = {
            "exactly": request.exactly,
            **{f"firstAvailable[{number}]": item for number, item in enumerate(request.first_available)},
        }
        for step, body in bodies.items():
            for number, toleration in enumerate(body.tolerations if body else ()):
                yield from at(f"requests[{index}].{step}.tolerations[{number}]", _toleration(toleration))
    for index, constraint in enumerate(claim.constraints):
        if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
            fault = "has both matchAttribute and distinctAttribute, of which only the first is checked"
            yield from at(f"constraints[{index}]", [Problem("", fault, "a constraint of its own for each")])


def _toleration(item: DeviceToleration) -> Iterator[Problem]:
    if not item.key and item.operator in (None, "", "Equal"):
        yield Problem(
            "operator", "is Equal without a key, so that only the value counts", "Exists, to tolerate every key"
        )
    if item.effect == "None":
        yield Problem("effect", "is None, which needs no toleration", "NoSchedule, NoExecute, or left out for both")
    if item.toleration_seconds is not None and item.effect in ("None", "NoSchedule"):
        yield Problem("tolerationSeconds", f"means nothing with effect {item.effect}", "only with NoExecute")
