"""DeviceClass, device selectors and opaque configuration."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model
from dra_alloc.api.meta import KubernetesObject, ObjectMeta

__all__ = [
    "CELDeviceSelector",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceSelector",
    "OpaqueDeviceConfiguration",
]


@attrs.frozen(kw_only=True)
class CELDeviceSelector(Model):
    """A CEL expression over `device` that is true for the devices that fit."""

    expression: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class DeviceSelector(Model):
    """A test on a device. `cel` is the only kind there is; None is an unknown kind."""

    cel: CELDeviceSelector | None = None


@attrs.frozen(kw_only=True)
class OpaqueDeviceConfiguration(Model):
    """Parameters for a driver. `parameters` is any JSON value, handed through unread."""

    driver: str = attrs.field(default="", metadata=REQUIRED)
    parameters: Any = attrs.field(default=None, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class DeviceClassConfiguration(Model):
    """Configuration that goes with every device claimed through the class."""

    opaque: OpaqueDeviceConfiguration | None = None


@attrs.frozen(kw_only=True)
class DeviceClassSpec(Model):
    """Selectors that all devices of the class pass, their configuration, the extended resource it serves (KEP-5004)."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


@attrs.frozen(kw_only=True)
class DeviceClass(KubernetesObject):
    """A named kind of devices, made by the administrator (KEP-4381)."""

    kind: ClassVar[str] = "DeviceClass"
    api_version: ClassVar[str] = "resource.k8s.io/v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: DeviceClassSpec = attrs.field(factory=DeviceClassSpec, metadata=REQUIRED)
