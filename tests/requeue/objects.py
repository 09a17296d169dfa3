"""Small objects that read like their YAML."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dra_alloc.api import (
    AllocationResult,
    CELDeviceSelector,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

GPU = "gpu.example.com"
NIC = "nic.example.com"


def selector(text: str) -> DeviceSelector:
    return DeviceSelector(cel=CELDeviceSelector(expression=text))


def device_class(name: str, driver: str, *more: str) -> DeviceClass:
    texts = (f'device.driver == "{driver}"', *more)
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(selectors=tuple(map(selector, texts))))


CLASSES = (device_class("gpu", GPU), device_class("nic", NIC))


def model(name: str) -> str:
    """The selector of a model of GPU."""
    return f'device.attributes["{GPU}"].model == "{name}"'


def request(class_name: str = "gpu", *selectors: str, name: str = "r", **fields: object) -> DeviceRequest:
    body = ExactDeviceRequest(device_class_name=class_name, selectors=tuple(map(selector, selectors)), **fields)
    return DeviceRequest(name=name, exactly=body)


def spec(*requests: DeviceRequest) -> ResourceClaimSpec:
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests or (request(),)))


def claim(name: str, *requests: DeviceRequest, owner: OwnerReference | None = None, entry: str = "") -> ResourceClaim:
    annotations = {"resource.kubernetes.io/pod-claim-name": entry} if entry else {}
    references = (owner,) if owner is not None else ()
    metadata = ObjectMeta(
        name=name, namespace="default", uid=f"uid-{name}", owner_references=references, annotations=annotations
    )
    return ResourceClaim(metadata=metadata, spec=spec(*requests))


def template(name: str, *requests: DeviceRequest) -> ResourceClaimTemplate:
    metadata = ObjectMeta(name=name, namespace="default")
    return ResourceClaimTemplate(metadata=metadata, spec=ResourceClaimTemplateSpec(spec=spec(*requests)))


def holding(
    item: ResourceClaim, *devices: str, pool: str = "pool", driver: str = GPU, on: str = "", share: str | None = None
) -> ResourceClaim:
    """The claim with devices."""
    results = tuple(
        DeviceRequestAllocationResult(request="r", driver=driver, pool=pool, device=device, share_id=share)
        for device in devices
    )
    only = None
    if on:
        field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(on,))
        only = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results), node_selector=only)
    return attrs.evolve(item, status=ResourceClaimStatus(allocation=allocation))


def reserved(item: ResourceClaim, *pods: str) -> ResourceClaim:
    """The claim, reserved for these pods."""
    consumers = tuple(ResourceClaimConsumerReference(resource="pods", name=pod, uid=f"uid-{pod}") for pod in pods)
    return attrs.evolve(item, status=attrs.evolve(item.status or ResourceClaimStatus(), reserved_for=consumers))


def pod(
    name: str, *claims: str, templates: Iterable[str] = (), made: dict[str, str] | None = None, group: str = ""
) -> Pod:
    """A pod; the claim of template `t` is called `t` in the pod, and `made` names those that exist."""
    entries = [PodResourceClaim(name=used, resource_claim_name=used) for used in claims]
    entries += [PodResourceClaim(name=used, resource_claim_template_name=used) for used in templates]
    statuses = tuple(PodResourceClaimStatus(name=entry, resource_claim_name=key) for entry, key in (made or {}).items())
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=PodSpec(
            resource_claims=tuple(entries),
            scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
        ),
        status=PodStatus(resource_claim_statuses=statuses) if statuses else None,
    )


def owned_by(owner: str, kind: str = "Pod") -> OwnerReference:
    api_version = "v1" if kind == "Pod" else "scheduling.k8s.io/v1beta1"
    return OwnerReference(api_version=api_version, kind=kind, name=owner, uid=f"uid-{owner}", controller=True)


def device(name: str, model: str = "a", **fields: object) -> Device:
    return Device(name=name, attributes={"model": DeviceAttribute(string=model)}, **fields)


def slice_of(
    *devices: Device, name: str = "slice", driver: str = GPU, pool: str = "pool", on: str = "", **fields: object
) -> ResourceSlice:
    """The only slice of a pool, on a node or on all."""
    count = fields.pop("count", 1)
    place = {"node_name": on} if on else {"all_nodes": True}
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=1, resource_slice_count=count),
            devices=devices,
            **(place | fields),
        ),
    )


def node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))
