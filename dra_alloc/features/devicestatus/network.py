"""Who has which network address: `status.devices[].networkData` of all claims, seen from the pods (KEP-4817)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from dra_alloc.api import Pod, ResourceClaim
from dra_alloc.features._consumers import pod_claims, reserved_for
from dra_alloc.features._objects import ClusterObjects, key_of, refused
from dra_alloc.features.devicestatus.entries import StatusKey, status_key
from dra_alloc.gates import Features

__all__ = ["DeviceAddress", "addresses", "cluster_addresses", "in_network"]

_Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


@attrs.frozen
class DeviceAddress:
    """An address of an allocated device.

    pods: those that use the claim and are in its `reservedFor`, as `namespace/name`; several may share a claim, none is
    left when all have ended. claim: `namespace/name`. address: with prefix length, as reported.
    """

    pods: tuple[str, ...]
    claim: str
    device: StatusKey
    address: str
    interface: str = ""
    hardware_address: str = ""


def cluster_addresses(cluster: ClusterObjects, features: Features | None = None) -> tuple[DeviceAddress, ...]:
    """`addresses` of the objects of a cluster."""
    return addresses(cluster.claims(), cluster.pods(), features)


def addresses(
    claims: Iterable[ResourceClaim], pods: Iterable[Pod], features: Features | None = None
) -> tuple[DeviceAddress, ...]:
    """All addresses that drivers report, in the order of claims and entries; none with the gate off."""
    features = features or Features()
    if not features.DRAResourceClaimDeviceStatus:
        return ()
    known = {key_of(claim.metadata): claim for claim in claims if claim.status and claim.status.devices}
    users = _users(known, pods, features)
    return tuple(
        DeviceAddress(
            pods=users.get(key, ()),
            claim=key,
            device=status_key(entry),
            address=address,
            interface=entry.network_data.interface_name or "",
            hardware_address=entry.network_data.hardware_address or "",
        )
        for key, claim in known.items()
        for entry in (claim.status.devices if claim.status else ())
        if entry.network_data is not None
        for address in entry.network_data.ips
    )


def in_network(items: Iterable[DeviceAddress], network: str) -> Iterator[DeviceAddress]:
    """Those whose address lies in a network, such as `10.0.0.0/8`, or is the address `10.0.0.5`.

    An address that a driver reports in no valid form lies in no network. Raises ValidationError for what is no network.
    """
    wanted = _network(network)
    return (item for item in items if _lies_in(item.address, wanted))


def _users(claims: dict[str, ResourceClaim], pods: Iterable[Pod], features: Features) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for pod in pods:
        for _, claim in pod_claims(pod, claims, features, extended=True):
            if reserved_for(claim, pod, features):
                found.setdefault(key_of(claim.metadata), {})[key_of(pod.metadata)] = None
    return {key: tuple(names) for key, names in found.items()}


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise refused(
            "network", f"{text[:60]!r} is no network", "as in 10.0.0.0/8, 2001:db8::/32 or 10.0.0.5"
        ) from None


def _lies_in(address: str, network: _Network) -> bool:
    try:
        ip = ipaddress.ip_interface(address).ip
    except ValueError:
        return False
    return ip.version == network.version and ip in network
