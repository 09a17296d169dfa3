"""The summaries of a pool's status (KEP-5677): partition types, and the capacity of devices that are shared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dra_alloc.api import (
    Device,
    DeviceAttribute,
    PartitionTypeStatus,
    Quantity,
    ResourceSlice,
    ShareableCapacityStatus,
    ShareableSummaryStatus,
)

__all__ = ["MAX_ENTRIES", "Pool", "ViewError", "partition_summary", "shareable_summary"]

#: Entries that each list of a pool's status may hold.
MAX_ENTRIES = 32

#: What is left of each counter, by (counter set, counter), in nanos.
_Headroom = dict[tuple[str, str], int]


class ViewError(Exception):
    """A summary cannot be computed; the text is the pool's `validationError`. Never leaves `pool_status`."""


@attrs.frozen
class Pool:
    """The newest slices of a pool, and what allocations use of it.

    in_use: names of devices. consumed: by name of the capacity. partition_attribute: for slices that declare none;
    with_types: whether what slices declare counts.
    """

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...]
    in_use: frozenset[str]
    consumed: Mapping[str, Quantity]
    partition_attribute: str | None = None
    with_types: bool = True

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for part in self.slices for device in part.spec.devices)

    def grouped_devices(self) -> tuple[tuple[str, Device], ...]:
        """The devices with an attribute that names their partition type, each with that attribute."""
        found: list[tuple[str, Device]] = []
        for part in self.slices:
            attribute = (part.spec.partition_type_attribute or self.partition_attribute) if self.with_types else None
            if attribute:
                found.extend((attribute, device) for device in part.spec.devices)
        return tuple(found)


def partition_summary(pool: Pool) -> tuple[PartitionTypeStatus, ...]:
    """How many devices of each partition type there are, and how many more could be allocated, each type by itself.

    Raises ViewError for a device without (string) partition type, for devices of one type that cost differently, for
    a pool that names an attribute but has no counters, and for too many types.
    """
    grouped = pool.grouped_devices()
    if not grouped:
        return ()
    if not any(part.spec.shared_counters for part in pool.slices):
        raise ViewError(
            f"PartitionTypeMissing: pool {pool.driver}/{pool.name} declares partitionTypeAttribute "
            "but publishes no sharedCounters"
        )
    groups: dict[tuple[str, str], list[Device]] = {}
    for attribute, device in grouped:
        if not device.consumes_counters:
            continue
        value = _attribute(pool.driver, device, attribute)
        if value is None or value.string is None:
            raise ViewError(
                f'PartitionTypeMissing: device "{device.name}" in pool {pool.driver}/{pool.name} '
                f'does not carry partition type attribute "{attribute}"'
            )
        group = groups.setdefault((attribute, value.string), [])
        if group and _cost(group[0]) != _cost(device):
            raise ViewError(
                f'PartitionCostMismatch: devices of partition type "{value.string}" in pool {pool.driver}/{pool.name} '
                "consume different counters"
            )
        group.append(device)
    _bounded("PartitionSummaryOverCap", pool, len(groups), "partition types")
    headroom = _headroom(pool)
    return tuple(
        PartitionTypeStatus(
            attribute=attribute,
            type=name,
            total=len(groups[attribute, name]),
            allocatable=_allocatable(
                [item for item in groups[attribute, name] if item.name not in pool.in_use], headroom
            ),
        )
        for attribute, name in sorted(groups)
    )


def shareable_summary(pool: Pool) -> ShareableSummaryStatus | None:
    """The devices that allow multiple allocations and their capacities; None if the pool has no such device.

    Raises ViewError for too many capacities.
    """
    shareable = [device for device in pool.devices if device.allow_multiple_allocations]
    if not shareable:
        return None
    totals: dict[str, Quantity] = {}
    for device in shareable:
        for name, capacity in device.capacity.items():
            totals[name] = _plus(totals.get(name), capacity.value)
    _bounded("ShareableSummaryOverCap", pool, len(totals), "shareable capacity keys")
    used = sum(device.name in pool.in_use for device in shareable)
    return ShareableSummaryStatus(
        fully_available_devices=len(shareable) - used,
        partially_available_devices=used,
        capacity=tuple(_capacity(name, totals[name], pool.consumed.get(name, Quantity())) for name in sorted(totals)),
    )


def _capacity(name: str, total: Quantity, consumed: Quantity) -> ShareableCapacityStatus:
    available = total.with_nano(max(0, total.nano - consumed.nano))
    return ShareableCapacityStatus(name=name, total=total, consumed=consumed, available=available)


def _plus(total: Quantity | None, amount: Quantity) -> Quantity:
    """The sum in the format of the first amount that is not 0."""
    return total.with_nano(total.nano + amount.nano) if total is not None and total.nano else amount


def _attribute(driver: str, device: Device, name: str) -> DeviceAttribute | None:
    """An attribute by its qualified name, which a device may give bare in the domain of its driver."""
    bare = name.removeprefix(f"{driver}/")
    return device.attributes.get(name) or device.attributes.get(bare)


def _cost(device: Device) -> _Headroom:
    return {
        (consumption.counter_set, name): counter.value.nano
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    }


def _headroom(pool: Pool) -> _Headroom:
    """What devices in use leave of the counters, each charged once; it can be negative."""
    left = {
        (counters.name, name): counter.value.nano
        for part in pool.slices
        for counters in part.spec.shared_counters
        for name, counter in counters.counters.items()
    }
    for device in pool.devices:
        if device.name in pool.in_use:
            _deduct(left, device)
    return left


def _deduct(left: _Headroom, device: Device) -> None:
    for counter, amount in _cost(device).items():
        if counter in left:
            left[counter] -= amount


def _allocatable(free: Iterable[Device], headroom: _Headroom) -> int:
    left, count = dict(headroom), 0
    for device in free:
        if all(counter in left and left[counter] >= amount for counter, amount in _cost(device).items()):
            _deduct(left, device)
            count += 1
    return count


def _bounded(prefix: str, pool: Pool, number: int, what: str) -> None:
    if number > MAX_ENTRIES:
        raise ViewError(
            f"{prefix}: pool {pool.driver}/{pool.name} has {number} {what}, exceeding the maximum of {MAX_ENTRIES}"
        )
