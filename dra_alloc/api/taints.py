"""DeviceTaintRule: taints that an administrator puts on devices (KEP-5055)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model
from dra_alloc.api.meta import Condition, KubernetesObject, ObjectMeta
from dra_alloc.api.slices import DeviceTaint

__all__ = ["DeviceTaintRule", "DeviceTaintRuleSpec", "DeviceTaintRuleStatus", "DeviceTaintSelector"]


@attrs.frozen(kw_only=True)
class DeviceTaintSelector(Model):
    """The devices that a rule taints: every field that is given must be equal; none given: every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


@attrs.frozen(kw_only=True)
class DeviceTaintRuleSpec(Model):
    """A taint and the devices that get it. A rule without selector (None) taints nothing."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = attrs.field(factory=DeviceTaint, metadata=REQUIRED)


@attrs.frozen(kw_only=True)
class DeviceTaintRuleStatus(Model):
    """How far eviction for the rule has come."""

    conditions: tuple[Condition, ...] = ()


@attrs.frozen(kw_only=True)
class DeviceTaintRule(KubernetesObject):
    """Taints devices from outside of their driver (KEP-5055)."""

    kind: ClassVar[str] = "DeviceTaintRule"
    api_version: ClassVar[str] = "resource.k8s.io/v1"

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: DeviceTaintRuleSpec = attrs.field(factory=DeviceTaintRuleSpec, metadata=REQUIRED)
    status: DeviceTaintRuleStatus | None = None
