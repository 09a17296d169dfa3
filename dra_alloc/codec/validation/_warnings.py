"""What is accepted and still worth a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
from dra_alloc.codec.validation._gates import Dropped
from dra_alloc.codec.validation._problems import Problem, at

__all__ = ["NOT_STORED", "version_of", "warnings_about"]

NOT_STORED = "is not stored"


def warnings_about(api_version: str, model: KubernetesObject, dropped: Iterable[Dropped]) -> Iterator[Problem]:
    """Warnings about an object, written in a version ("": not known), of which some fields are not stored."""
    if api_version and api_version != model.api_version:
        yield Problem("apiVersion", f"{api_version} is deprecated", f"use {model.api_version}")
    for field in dropped:
        yield Problem(field.path, NOT_STORED, f"it needs the feature gate {field.gate}")
    match model:
        case ResourceSlice():
            yield from _driver(model)
        case ResourceClaim():
            yield from at("spec.devices", _claim(model.spec.devices))
        case ResourceClaimTemplate():
            yield from at("spec.spec.devices", _claim(model.spec.spec.devices))
        case _:
            pass


def version_of(obj: object) -> str:
    """The API version that an object was given in; empty for an API object, which has none."""
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
