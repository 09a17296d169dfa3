"""What a person wants to know about an allocated device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dra_alloc import api
from dra_alloc.features._objects import newest_slices
from dra_alloc.features.pods.claims import CLAIM_NAME_ANNOTATION

__all__ = ["Devices"]

#: Parts of names by which people tell devices apart, most telling first.
_TELLING = ("product", "model", "profile", "type", "memory", "numanode", "pcieroot", "rdma", "speed")
#: Parts of names of attributes that only identify, and of those that every device of a node shares.
_SILENT = ("uuid", "busid", "serial", "version", "minor", "index", "macaddress", "driver")
#: Attributes and capacities shown for a device.
_SHOWN = 5


class Devices:
    """The devices of the newest generation of each pool, by driver, pool and name."""

    def __init__(self, objects: Iterable[Any]) -> None:
        slices = (found for found in objects if isinstance(found, api.ResourceSlice))
        self._devices = {
            (driver, pool, device.name): device
            for (driver, pool), newest in newest_slices(slices).items()
            for found in newest
            for device in found.spec.devices
        }

    def rows(
        self, allocated: Iterable[tuple[api.ResourceClaim, api.AllocationResult | None]]
    ) -> Iterator[tuple[str, str, str, str]]:
        """What claims get, for a table: claim, request, device, details.

        A claim made from a template has the name that the pod gives it, which a person knows.
        """
        for claim, allocation in allocated:
            name = claim.metadata.annotations.get(CLAIM_NAME_ANNOTATION) or claim.metadata.name
            for result in allocation.devices.results if allocation is not None else ():
                device = f"{result.driver}/{result.pool}/{result.device}"
                yield name, result.request, device, self.details(result)

    def details(self, result: api.DeviceRequestAllocationResult) -> str:
        """A line such as `model=R48, memory=48Gi, numaNode=1`; for a share first what it consumes of the whole."""
        device = self._devices.get((result.driver, result.pool, result.device))
        if device is None:
            return "no longer published"
        facts = {_short(name): _value(attribute) for name, attribute in device.attributes.items()}
        facts |= {_short(name): str(capacity.value) for name, capacity in device.capacity.items()}
        shares = [
            f"{_short(name)}={consumed} of {device.capacity[name].value}"
            for name, consumed in result.consumed_capacity.items()
            if name in device.capacity
        ]
        silent = {_short(name) for name in result.consumed_capacity}
        telling = (name for name in facts if name not in silent and not _matches(name, _SILENT))
        shown = sorted(telling, key=lambda name: (_rank(name), name))[:_SHOWN]
        remarks = [*shares, *(f"{name}={facts[name]}" for name in shown)]
        if result.admin_access:
            remarks.append("admin access")
        remarks += [f"tainted {taint.key}:{taint.effect}" for taint in device.taints]
        return ", ".join(remarks)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _matches(name: str, parts: Iterable[str]) -> bool:
    return any(part in name.lower() for part in parts)


def _rank(name: str) -> int:
    return next((rank for rank, part in enumerate(_TELLING) if part in name.lower()), len(_TELLING))


def _value(attribute: api.DeviceAttribute) -> str:
    for single in (attribute.string, attribute.version, attribute.int):
        if single is not None:
            return str(single)
    if attribute.bool is not None:
        return str(attribute.bool).lower()
    for several in (attribute.strings, attribute.versions, attribute.ints):
        if several is not None:
            return "|".join(map(str, several))
    return "|".join(str(value).lower() for value in attribute.bools or ())
