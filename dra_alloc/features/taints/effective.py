"""Which taints a device has, and which a request tolerates (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from operator import itemgetter

import attrs

from dra_alloc.api import DeviceTaint, DeviceTaintRule, DeviceTaintSelector, DeviceToleration, ResourceSlice
from dra_alloc.features._objects import DeviceId, newest_slices
from dra_alloc.gates import Features
from dra_alloc.rules import BLOCKING_EFFECTS, tolerated, tolerates

__all__ = ["BLOCKING_EFFECTS", "DeviceTaints", "EffectiveTaint", "describe", "selects", "tolerates", "untolerated"]


@attrs.frozen
class EffectiveTaint:
    """A taint on one device. `rule` is the name of the DeviceTaintRule it comes from, empty if the slice has it.

    `index` is its place in `spec.devices[].taints` of the slice, 0 for a rule.
    """

    taint: DeviceTaint
    device: DeviceId
    rule: str = ""
    index: int = 0

    @property
    def order(self) -> tuple[bool, str, DeviceId, int]:
        """How the eviction controller orders reasons: rules by name, then taints of slices by device."""
        return (not self.rule, self.rule, self.device, self.index)

    def __str__(self) -> str:
        source = f"DeviceTaintRule {self.rule}" if self.rule else f"slice, taint {self.index}"
        return f"{describe(self.taint)} on {self.device} ({source})"


#: Driver, pool and device that a rule asks for, None where any will do.
_Wanted = tuple[str | None, ...]


def _wanted(selector: DeviceTaintSelector) -> _Wanted:
    return selector.driver, selector.pool, selector.device


def describe(taint: DeviceTaint) -> str:
    """A taint as `key=value:effect`, or `key:effect` without value."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def selects(selector: DeviceTaintSelector | None, device: DeviceId) -> bool:
    """Whether a rule's `deviceSelector` selects a device: absent none, empty every one, else all given fields equal."""
    if selector is None:
        return False
    return all(value is None or value == actual for value, actual in zip(_wanted(selector), device, strict=True))


def untolerated(
    taints: Iterable[EffectiveTaint], tolerations: Iterable[DeviceToleration]
) -> tuple[EffectiveTaint, ...]:
    """The taints that keep a device from a request with these tolerations; none means it may be allocated."""
    known = tuple(tolerations)
    return tuple(item for item in taints if not tolerated(item.taint, known))


class DeviceTaints:
    """The taints of all devices: those of the newest slices of each pool in their order, then one for each rule.

    With DRADeviceTaints off no device has any, with DRADeviceTaintRules off none comes from a rule.
    """

    def __init__(
        self, slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule] = (), features: Features | None = None
    ) -> None:
        features = features or Features()
        self._published: dict[DeviceId, tuple[DeviceTaint, ...]] = {}
        for (driver, pool), parts in newest_slices(slices).items():
            for device in (device for part in parts for device in part.spec.devices):
                self._published.setdefault(DeviceId(driver, pool, device.name), device.taints)
        self._of_slices = features.DRADeviceTaints
        self._rules: dict[_Wanted, list[tuple[int, DeviceTaintRule]]] = {}
        if features.DRADeviceTaints and features.DRADeviceTaintRules:
            for place, rule in enumerate(rules):
                if (selector := rule.spec.device_selector) is not None:
                    self._rules.setdefault(_wanted(selector), []).append((place, rule))

    def of(self, device: DeviceId) -> tuple[EffectiveTaint, ...]:
        """The taints of a device; one that no slice publishes (any more) can still have taints from rules."""
        own = self._published.get(device, ()) if self._of_slices else ()
        return (
            *(EffectiveTaint(taint, device, index=index) for index, taint in enumerate(own)),
            *(EffectiveTaint(rule.spec.taint, device, rule=rule.metadata.name) for rule in self._rules_for(device)),
        )

    def _rules_for(self, device: DeviceId) -> Iterable[DeviceTaintRule]:
        """The rules that select the device, in their order: each of their fields is the device's own or not given."""
        if not self._rules:
            return ()
        wanted = product(*((value, None) for value in device))
        found = [ranked for key in wanted for ranked in self._rules.get(key, ())]
        return (rule for _, rule in sorted(found, key=itemgetter(0)))

    def __iter__(self) -> Iterator[tuple[DeviceId, tuple[EffectiveTaint, ...]]]:
        """The published devices that have taints, in the order of the slices."""
        for device in self._published:
            if taints := self.of(device):
                yield device, taints

    def published(self, selector: DeviceTaintSelector | None) -> tuple[DeviceId, ...]:
        """The published devices that a rule with this selector taints."""
        return tuple(device for device in self._published if selects(selector, device))
