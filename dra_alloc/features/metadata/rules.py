"""The rules of metadata.resource.k8s.io/v1beta1, which a reader may check and a writer is not held to (KEP-5304)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dra_alloc.api import DeviceAttribute, NetworkDeviceData
from dra_alloc.codec.validation import Problem
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._problems import at, byte_length, each, required, too_long, too_many, unique
from dra_alloc.features.metadata.objects import DeviceMetadata, MetadataDevice, MetadataRequest

__all__ = ["metadata_problems"]

MAX_ATTRIBUTES = 32
MAX_IPS = 16
MAX_INTERFACE_NAME = 256
MAX_HARDWARE_ADDRESS = 128


def metadata_problems(metadata: DeviceMetadata) -> tuple[Problem, ...]:
    """What breaks the rules of v1beta1, with the path in the object; none if it is valid."""
    return tuple(_metadata(metadata))


def _metadata(metadata: DeviceMetadata) -> Iterator[Problem]:
    if metadata.pod_claim_name is not None:
        yield from at("podClaimName", formats.label(metadata.pod_claim_name))
    yield from each(metadata.requests, _request, "requests")


def _request(request: MetadataRequest) -> Iterator[Problem]:
    if not request.name:
        yield from at("name", [required("request, or request/subrequest")])
    yield from each(request.devices, _device, "devices")


def _device(device: MetadataDevice) -> Iterator[Problem]:
    yield from at("driver", formats.driver_name(device.driver))
    yield from at("pool", formats.pool_name(device.pool))
    yield from at("name", formats.label(device.name))
    if len(device.attributes) > MAX_ATTRIBUTES:
        yield from at("attributes", [too_many(len(device.attributes), MAX_ATTRIBUTES)])
    else:
        for name, value in device.attributes.items():
            yield from at(f"attributes[{name}]", _attribute(value))
    if device.network_data is not None:
        yield from at("networkData", _network(device.network_data))


def _attribute(value: DeviceAttribute) -> Iterator[Problem]:
    given = [name for name, item in attrs.asdict(value).items() if item is not None]
    if len(given) != 1:
        fault = f"has {' and '.join(given)}" if given else "has no value"
        yield Problem("", fault, "exactly one of int, bool, string, version, ints, bools, strings, versions")


def _network(data: NetworkDeviceData) -> Iterator[Problem]:
    for field, text, limit in (
        ("interfaceName", data.interface_name, MAX_INTERFACE_NAME),
        ("hardwareAddress", data.hardware_address, MAX_HARDWARE_ADDRESS),
    ):
        if text is not None and byte_length(text) > limit:
            yield from at(field, [too_long(byte_length(text), limit)])
    if len(data.ips) > MAX_IPS:
        yield from at("ips", [too_many(len(data.ips), MAX_IPS)])
    else:
        yield from each(data.ips, formats.interface_address, "ips")
        yield from unique(data.ips, str, "ips")
