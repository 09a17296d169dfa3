"""Feature gates: which optional parts of Dynamic Resource Allocation are on.

Each field of `Features` has the name of its Kubernetes feature gate. The table of defaults by version follows the gate
list of the Kubernetes releases 1.34 to 1.37; a feature that a version does not know is off in it.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

__all__ = ["Features"]


@attrs.frozen(cache_hash=True)
class Features:
    """Switches for everything beyond plain structured parameters. The default is Kubernetes 1.37 as released.

    What a switch that is off means is in docs/features.md; it is what Kubernetes does with the gate off.
    """

    DRAAdminAccess: bool = True
    DRAPrioritizedList: bool = True
    DRAPartitionableDevices: bool = True
    DRADeviceTaints: bool = True
    DRADeviceTaintRules: bool = True
    DRADeviceBindingConditions: bool = True
    DRAConsumableCapacity: bool = True
    DRAFractionalCapacityRange: bool = True
    DRAResourceClaimDeviceStatus: bool = True
    DRAExtendedResource: bool = True
    DRAWorkloadResourceClaims: bool = False
    DRADerivedAttributes: bool = False
    DRADeviceCompatibilityGroups: bool = False
    DRAListTypeAttributes: bool = False
    DRANodeAllocatableResources: bool = False
    DRAOptionalNodeOperations: bool = False
    DRAPartitionableDevicesType: bool = False
    DRAResourcePoolStatus: bool = False
    SchedulerPreQueueingHints: bool = False

    @classmethod
    def all(cls) -> Features:
        """Every feature on."""
        return cls(**dict.fromkeys(_NAMES, True))

    @classmethod
    def none(cls) -> Features:
        """Every feature off: the core of structured parameters alone."""
        return cls(**dict.fromkeys(_NAMES, False))

    @classmethod
    def for_version(cls, version: str, *, enable: Iterable[str] = (), disable: Iterable[str] = ()) -> Features:
        """The defaults of a Kubernetes minor version ("1.34" to "1.37"), with gates switched on or off by name.

        Raises ValueError for a version or gate that is not known, or a gate named on both sides, and TypeError for a
        version that is no text.
        """
        if not isinstance(version, str):
            # As a number, 1.40 would be 1.4.
            raise TypeError(f'a version is text, such as "1.37", not {version!r}')
        short = version.removeprefix("v")
        minor = ".".join(short.split(".")[:2])
        if minor not in _ON:
            raise ValueError(f"no gate table for Kubernetes {version!r}; known are {', '.join(_ON)}")
        switches = {name: name in _ON[minor] for name in _NAMES}
        enabled, disabled = set(enable), set(disable)
        unknown = sorted((enabled | disabled) - set(_NAMES))
        if unknown:
            raise ValueError(f"unknown feature gate {', '.join(unknown)}; known are {', '.join(_NAMES)}")
        both = sorted(enabled & disabled)
        if both:
            raise ValueError(f"feature gate {', '.join(both)} is both enabled and disabled")
        switches.update(dict.fromkeys(enabled, True))
        switches.update(dict.fromkeys(disabled, False))
        return cls(**switches)

    def replace(self, **switches: bool) -> Features:
        """A copy with some switches changed."""
        return attrs.evolve(self, **switches)


_NAMES = tuple(field.name for field in attrs.fields(Features))

_ON_134 = frozenset({"DRAAdminAccess", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"})
_ON_135 = _ON_134
_ON_136 = _ON_135 | {
    "DRAExtendedResource",
    "DRADeviceBindingConditions",
    "DRAConsumableCapacity",
    "DRAPartitionableDevices",
    "DRADeviceTaints",
}
_ON_137 = _ON_136 | {"DRADeviceTaintRules", "DRAFractionalCapacityRange"}
_ON: dict[str, frozenset[str]] = {"1.34": _ON_134, "1.35": _ON_135, "1.36": _ON_136, "1.37": _ON_137}
