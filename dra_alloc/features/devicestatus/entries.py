"""Entries of `status.devices`: reading, writing, and who may write them (KEP-4817)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

import attrs

from dra_alloc.api import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimStatus
from dra_alloc.codec.validation import validate
from dra_alloc.codec.validation._claimstatus import without_stale_devices
from dra_alloc.codec.validation._gates import drop_disabled
from dra_alloc.errors import ValidationError
from dra_alloc.features._objects import gate_off, key_of, refused
from dra_alloc.gates import Features

__all__ = [
    "Permission",
    "StatusKey",
    "allocation_node",
    "canonical_address",
    "changed_drivers",
    "device_status",
    "needed_permissions",
    "put_device_status",
    "remove_device_status",
    "status_key",
    "update_status",
]


class StatusKey(NamedTuple):
    """What tells entries apart; `share_id` is None for a device that is not shared."""

    driver: str
    pool: str
    device: str
    share_id: str | None = None

    def __str__(self) -> str:
        name = f"{self.driver}/{self.pool}/{self.device}"
        return name if self.share_id is None else f"{name} (share {self.share_id})"


def status_key(item: AllocatedDeviceStatus | DeviceRequestAllocationResult) -> StatusKey:
    """The key of an entry of `status.devices`, or of the allocation result that it belongs to."""
    return StatusKey(item.driver, item.pool, item.device, item.share_id)


def device_status(claim: ResourceClaim, key: StatusKey) -> AllocatedDeviceStatus | None:
    """What is reported about a device or share, None if nothing is."""
    return next((entry for entry in _entries(claim) if status_key(entry) == key), None)


def put_device_status(
    claim: ResourceClaim, entry: AllocatedDeviceStatus, features: Features | None = None
) -> ResourceClaim:
    """The claim with this entry, in the place of the one with its key, or after all others.

    Addresses are brought into canonical form (`canonical_address`). Raises ValidationError for a device that is not
    allocated to the claim and for all that `update_status` refuses, AllocationError (`unsupported`) with the gate off.
    """
    features = features or Features()
    if not features.DRAResourceClaimDeviceStatus:
        raise gate_off(f"ResourceClaim {key_of(claim.metadata)}: status.devices", "DRAResourceClaimDeviceStatus")
    if entry.network_data is not None:
        ips = tuple(canonical_address(text) for text in entry.network_data.ips)
        entry = attrs.evolve(entry, network_data=attrs.evolve(entry.network_data, ips=ips))
    key, entries = status_key(entry), _entries(claim)
    if any(status_key(known) == key for known in entries):
        entries = tuple(entry if status_key(known) == key else known for known in entries)
    else:
        entries = (*entries, entry)
    return update_status(claim, _with_entries(claim, entries), features)


def remove_device_status(claim: ResourceClaim, key: StatusKey) -> ResourceClaim:
    """The claim without the entry of a device or share, if there is one."""
    return _with_entries(claim, tuple(entry for entry in _entries(claim) if status_key(entry) != key))


def update_status(old: ResourceClaim, new: ResourceClaim, features: Features | None = None) -> ResourceClaim:
    """A write of a claim's status as the API server does it.

    Metadata and specification stay as stored. Entries for devices that the update deallocates are dropped, so that a
    client which only clears `allocation` leaves no stale reports. Fields whose gates are off, with this gate all
    entries, are dropped unless they were in use before. The rest is validated: raises ValidationError with all
    problems, each with its path.
    """
    features = features or Features()
    kept = drop_disabled(attrs.evolve(old, status=new.status), old, features)
    status = without_stale_devices(kept.status or ResourceClaimStatus(), old.status or ResourceClaimStatus())
    stored = attrs.evolve(old, status=status)
    if problems := validate(stored, old, features):
        raise ValidationError(problems)
    return stored


def canonical_address(text: str) -> str:
    """An address with prefix length in the form that the API wants: `2001:DB8::5/64` becomes `2001:db8::5/64`.

    The bits of the host stay. Raises ValidationError for what is no address with prefix length.
    """
    hint = "an address with prefix length, as in 192.0.2.5/24 or 2001:db8::5/64"
    address, _, length = text.partition("/")
    try:
        if not (length.isascii() and length.isdigit()) or "%" in address:
            raise ValueError
        interface = ipaddress.ip_interface(text)
    except ValueError:
        raise refused("networkData.ips", f"{text[:60]!r} is no address in CIDR notation", hint) from None
    if isinstance(interface, ipaddress.IPv6Interface) and interface.ipv4_mapped is not None:
        raise refused("networkData.ips", f"{text[:60]!r} is an IPv4 address in IPv6 form", "the plain IPv4 address")
    return f"{interface.ip.compressed}/{interface.network.prefixlen}"


def changed_drivers(old: ResourceClaim, new: ResourceClaim) -> tuple[str, ...]:
    """The drivers of entries that were added, changed or removed, sorted."""
    before = {status_key(entry): entry for entry in _entries(old)}
    after = {status_key(entry): entry for entry in _entries(new)}
    return tuple(sorted({key.driver for key in before.keys() | after.keys() if before.get(key) != after.get(key)}))


def allocation_node(claim: ResourceClaim) -> str | None:
    """The node that an allocation is bound to by name; None if it is not bound to exactly one in that way."""
    selector = claim.status.allocation.node_selector if claim.status and claim.status.allocation else None
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return None
    field = term.match_fields[0]
    named = field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1
    return field.values[0] if named else None


@attrs.frozen
class Permission:
    """What a write of the status needs besides update on `resourceclaims/status`: any one of `verbs` on `resource`.

    namespace, name: empty for the whole cluster. node: where the caller must run for a verb `associated-node:…`, empty
    if no such verb helps.
    """

    verbs: tuple[str, ...]
    resource: str
    namespace: str = ""
    name: str = ""
    node: str = ""


def needed_permissions(old: ResourceClaim, new: ResourceClaim, verb: str = "update") -> tuple[Permission, ...]:
    """What the authorization of status writes asks for (DRAResourceClaimGranularStatusAuthorization, on since 1.36).

    Changing allocation or `reservedFor` is binding; changing entries concerns each driver by itself, which may be
    limited to the node that the allocation is for. verb: `update` or `patch`.
    """
    before, after = old.status or ResourceClaimStatus(), new.status or ResourceClaimStatus()
    found: list[Permission] = []
    if (before.allocation, before.reserved_for) != (after.allocation, after.reserved_for):
        found.append(Permission((verb,), "resourceclaims/binding"))
    node = allocation_node(new) or ""
    verbs = (*((f"associated-node:{verb}",) if node else ()), f"arbitrary-node:{verb}")
    namespace = old.metadata.namespace or "default"
    found.extend(
        Permission(verbs, "resourceclaims/driver", namespace, driver, node) for driver in changed_drivers(old, new)
    )
    return tuple(found)


def _entries(claim: ResourceClaim) -> tuple[AllocatedDeviceStatus, ...]:
    return claim.status.devices if claim.status else ()


def _with_entries(claim: ResourceClaim, entries: Iterable[AllocatedDeviceStatus]) -> ResourceClaim:
    status = attrs.evolve(claim.status or ResourceClaimStatus(), devices=tuple(entries))
    return attrs.evolve(claim, status=status)
