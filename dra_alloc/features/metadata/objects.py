"""What a metadata file holds (KEP-5304), `DeviceMetadata` of the group metadata.resource.k8s.io, and where it lies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import ClassVar

import attrs

from dra_alloc.api import (
    Device,
    DeviceAttribute,
    Model,
    NetworkDeviceData,
    ObjectMeta,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.api._model import REQUIRED
from dra_alloc.features._consumers import pod_claims
from dra_alloc.features._objects import key_of, newest_slices
from dra_alloc.gates import Features

__all__ = [
    "CONTAINER_ROOT",
    "POD_CLAIM_NAME",
    "VERSIONS",
    "DeviceMetadata",
    "MetadataDevice",
    "MetadataFile",
    "MetadataRequest",
    "base_request",
    "container_files",
    "container_path",
    "encode_stream",
    "pod_claim_name",
    "published_devices",
    "published_metadata",
]

#: Where metadata files are in a container.
CONTAINER_ROOT = PurePosixPath("/var/run/kubernetes.io/dra-device-attributes")
#: Annotation of claims made from a template: the name that the pod gives the claim.
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

_GROUP = "metadata.resource.k8s.io"
#: The versions that are read and written, newest first; their fields are the same.
VERSIONS = (f"{_GROUP}/v1beta1", f"{_GROUP}/v1alpha1")


@attrs.frozen(kw_only=True)
class MetadataDevice(Model):
    """A device of a request: its identity, and what its driver tells the container about it."""

    driver: str = attrs.field(default="", metadata=REQUIRED)
    pool: str = attrs.field(default="", metadata=REQUIRED)
    name: str = attrs.field(default="", metadata=REQUIRED)
    attributes: dict[str, DeviceAttribute] = attrs.field(factory=dict)
    network_data: NetworkDeviceData | None = None


@attrs.frozen(kw_only=True)
class MetadataRequest(Model):
    """The devices of one request; `name` is `request` or `request/subrequest`."""

    name: str = attrs.field(default="", metadata=REQUIRED)
    devices: tuple[MetadataDevice, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceMetadata(Model):
    """The content of a metadata file.

    `metadata` has name, namespace and UID of the claim, and a `generation` that grows with each update.
    `pod_claim_name` is set for claims made from a template. A file has one request, several files merged have more.
    """

    kind: ClassVar[str] = "DeviceMetadata"
    api_version: ClassVar[str] = VERSIONS[0]

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    pod_claim_name: str | None = None
    requests: tuple[MetadataRequest, ...] = ()


def encode_stream(metadata: DeviceMetadata, versions: Iterable[str]) -> bytes:
    """The object once for each version (`group/version`), in their order, as a stream of JSON values."""
    body = metadata.to_dict()
    heads = ({"kind": DeviceMetadata.kind, "apiVersion": version} for version in versions)
    return "".join(json.dumps({**head, **body}, indent=2, ensure_ascii=False) + "\n" for head in heads).encode()


def published_metadata(driver: str, pool: str, device: Device) -> MetadataDevice:
    """The entry of a device with the attributes that its slice publishes, as drivers are advised to give them."""
    return MetadataDevice(driver=driver, pool=pool, name=device.name, attributes=device.attributes)


def published_devices(
    claim: ResourceClaim, slices: Iterable[ResourceSlice]
) -> dict[str, dict[str, list[MetadataDevice]]]:
    """The entries of an allocated claim's devices by driver, then by `request` or `request/subrequest`.

    They have the attributes that the newest slices of their pools publish; a device in none of these has no attributes.
    """
    pools = newest_slices(slices)
    allocation = claim.status.allocation if claim.status is not None else None
    found: dict[str, dict[str, list[MetadataDevice]]] = {}
    for result in allocation.devices.results if allocation is not None else ():
        pool = pools.get((result.driver, result.pool), [])
        published = (device for item in pool for device in item.spec.devices if device.name == result.device)
        device = next(published, Device(name=result.device))
        entry = published_metadata(result.driver, result.pool, device)
        found.setdefault(result.driver, {}).setdefault(result.request, []).append(entry)
    return found


def base_request(request: str) -> str:
    """The request without the alternative chosen for it, as paths have it."""
    return request.partition("/")[0]


def pod_claim_name(claim: ResourceClaim) -> str | None:
    """The name that the pod gives a claim made from a template; None for a claim that the pod names directly."""
    return claim.metadata.annotations.get(POD_CLAIM_NAME) or None


def container_path(claim: ResourceClaim, request: str, driver: str) -> PurePosixPath:
    """Where a container sees the file of a request (`request` or `request/subrequest`) and driver."""
    name = pod_claim_name(claim)
    folder = ("resourceclaims", claim.metadata.name) if name is None else ("resourceclaimtemplates", name)
    return CONTAINER_ROOT.joinpath(*folder, base_request(request), f"{driver}-metadata.json")


@attrs.frozen
class MetadataFile:
    """A file that a container sees. claim: `namespace/name`; request: as in the allocation result."""

    claim: str
    request: str
    driver: str
    path: PurePosixPath


def container_files(
    pod: Pod, container: str, claims: Iterable[ResourceClaim], features: Features | None = None
) -> tuple[MetadataFile, ...]:
    """The files that a container of a pod sees if all drivers write them: those of the requests that it names.

    A claim of the container without `request` stands for all requests of the claim. container: the name of a container,
    init container or ephemeral container. Claims that are missing or not allocated give no files. In the order of the
    container's claims.
    """
    known = {key_of(claim.metadata): claim for claim in claims}
    by_name = dict(pod_claims(pod, known, features or Features()))
    all_containers = (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)
    wanted = next((item.resources.claims for item in all_containers if item.name == container), ())
    files = (
        file
        for reference in wanted
        if reference.name in by_name
        for file in _files(by_name[reference.name])
        if reference.request in (None, "", base_request(file.request))
    )
    return tuple(dict.fromkeys(files))


def _files(claim: ResourceClaim) -> Iterator[MetadataFile]:
    if claim.status is None or claim.status.allocation is None:
        return
    for result in claim.status.allocation.devices.results:
        path = container_path(claim, result.request, result.driver)
        yield MetadataFile(key_of(claim.metadata), result.request, result.driver, path)
