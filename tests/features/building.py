"""Objects for the tests of the features, built to read like their YAML, and the judgement of the client's models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
import kubernetes.client

from dra_alloc.api import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
    Model,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

EPOCH = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)

#: How the client calls kinds that are not just `V1` and their name.
_CLASSES = {
    "ResourceClaim": "ResourceV1ResourceClaim",
    "ResourcePoolStatusRequest": "V1alpha3ResourcePoolStatusRequest",
}


def at(seconds: float) -> datetime:
    """A time, in seconds after the beginning of the tests' clock."""
    return datetime.fromtimestamp(EPOCH.timestamp() + seconds, UTC)


def accepted(obj: Model) -> dict[str, Any]:
    """The Kubernetes form of an object, which the models of kubernetes==37.0.2 read and give back unchanged."""
    data = obj.to_dict()
    cls = getattr(kubernetes.client, _CLASSES.get(data["kind"], f"V1{data['kind']}"))
    again = json.loads(cls.from_dict(data).to_json())
    assert _plain(again) == _plain(data)
    return data


def _plain(value: Any) -> Any:
    """Without fields that are null, and with times in one spelling."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str) and len(value) >= 20 and value[4] == "-" and value[10] == "T":
        return datetime.fromisoformat(value).isoformat()
    return value


def slice_of(
    *devices: Device | str,
    driver: str = "gpu.example.com",
    pool: str = "node-1",
    node: str | None = "node-1",
    generation: int = 1,
    count: int = 1,
    name: str | None = None,
    **spec: Any,
) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{pool}-{driver.partition('.')[0]}-{generation}"),
        spec=ResourceSliceSpec(
            driver=driver,
            node_name=node,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
            devices=tuple(Device(name=item) if isinstance(item, str) else item for item in devices),
            **spec,
        ),
    )


def result(
    device: str, request: str = "gpu", driver: str = "gpu.example.com", pool: str = "node-1", **fields: Any
) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(request=request, driver=driver, pool=pool, device=device, **fields)


def claim(
    name: str,
    *results: DeviceRequestAllocationResult,
    reserved_for: Iterable[Pod | ResourceClaimConsumerReference] = (),
    namespace: str = "default",
    owner: Pod | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    **allocation: Any,
) -> ResourceClaim:
    """A claim; with results it is allocated."""
    status = None
    if results:
        status = ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocationResult(results=results), **allocation),
            reserved_for=tuple(consumer(item) if isinstance(item, Pod) else item for item in reserved_for),
        )
    owners: tuple[OwnerReference, ...] = ()
    if owner is not None:
        owners = (
            OwnerReference(
                api_version="v1",
                kind="Pod",
                name=owner.metadata.name,
                uid=owner.metadata.uid or "",
                controller=True,
                block_owner_deletion=True,
            ),
        )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            owner_references=owners,
            annotations=dict(annotations or {}),
        ),
        spec=ResourceClaimSpec.from_dict(spec or {}),
        status=status,
    )


def with_status(held: ResourceClaim, **changes: Any) -> ResourceClaim:
    """The claim with other values in its status."""
    return attrs.evolve(held, status=attrs.evolve(held.status or ResourceClaimStatus(), **changes))


def consumer(pod: Pod) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid or "")


def pod(
    name: str,
    *claims: str,
    templates: Mapping[str, str] | None = None,
    namespace: str = "default",
    node: str | None = "node-1",
    uid: str | None = "",
    spec: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    """A pod. claims: of these names; templates: name of the pod's claim to name of the claim made for it."""
    generated = templates or {}
    more = PodSpec.from_dict(spec or {"containers": []})
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}" if uid == "" else uid, **metadata),
        spec=PodSpec(
            node_name=node,
            resource_claims=(
                *(PodResourceClaim(name=item, resource_claim_name=item) for item in claims),
                *(PodResourceClaim(name=item, resource_claim_template_name=f"{item}-template") for item in generated),
            ),
            containers=more.containers,
            init_containers=more.init_containers,
            scheduling_group=more.scheduling_group,
        ),
        status=PodStatus(
            resource_claim_statuses=tuple(
                PodResourceClaimStatus(name=item, resource_claim_name=made) for item, made in generated.items()
            )
        ),
    )


def taint(text: str, added: float | None = None) -> DeviceTaint:
    """A taint written `key=value:Effect` or `key:Effect`, added at these seconds."""
    head, _, effect = text.partition(":")
    key, equals, value = head.partition("=")
    time = None if added is None else at(added)
    return DeviceTaint(key=key, value=value if equals else None, effect=effect, time_added=time)


def tolerate(key: str | None = None, effect: str | None = None, seconds: int | None = None) -> DeviceToleration:
    """A toleration of every value of a key."""
    return DeviceToleration(key=key, operator="Exists", effect=effect, toleration_seconds=seconds)


def rule(name: str, item: DeviceTaint, selector: Mapping[str, str] | None, **metadata: Any) -> DeviceTaintRule:
    chosen = None if selector is None else DeviceTaintSelector(**selector)
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", **metadata),
        spec=DeviceTaintRuleSpec(device_selector=chosen, taint=item),
    )


class Objects:
    """The objects of a cluster, as the features read them."""

    def __init__(self, **objects: Iterable[Any]) -> None:
        self._objects = {kind: list(items) for kind, items in objects.items()}

    def slices(self) -> list[Any]:
        return self._objects.get("slices", [])

    def claims(self) -> list[Any]:
        return self._objects.get("claims", [])

    def pods(self) -> list[Any]:
        return self._objects.get("pods", [])

    def rules(self) -> list[Any]:
        return self._objects.get("rules", [])

    def nodes(self) -> list[Any]:
        return self._objects.get("nodes", [])
