"""Device status in claims (KEP-4817): what drivers report in `ResourceClaim.status.devices`, and who has which address.

Gate DRAResourceClaimDeviceStatus. There is at most one entry for each driver, pool, device and share, and only for what
is allocated to the claim.
"""

from __future__ import annotations

from dra_alloc.features.devicestatus.entries import (
    Permission,
    StatusKey,
    allocation_node,
    canonical_address,
    changed_drivers,
    device_status,
    needed_permissions,
    put_device_status,
    remove_device_status,
    status_key,
    update_status,
)
from dra_alloc.features.devicestatus.network import DeviceAddress, addresses, cluster_addresses, in_network

__all__ = [
    "DeviceAddress",
    "Permission",
    "StatusKey",
    "addresses",
    "allocation_node",
    "canonical_address",
    "changed_drivers",
    "cluster_addresses",
    "device_status",
    "in_network",
    "needed_permissions",
    "put_device_status",
    "remove_device_status",
    "status_key",
    "update_status",
]
