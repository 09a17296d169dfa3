"""What the linter says: findings, their codes and severities, and fixes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import attrs

from dra_alloc.api import KubernetesObject

__all__ = ["RULES", "Finding", "Fix", "Rule", "Severity"]


class Severity(Enum):
    """How bad a finding is: ERROR cannot work, WARNING likely does not do what was meant, INFO is good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@attrs.frozen
class Rule:
    """A kind of finding. `code` is stable; `title` says in one sentence what is wrong. Documented in docs/lint.md."""

    code: str
    severity: Severity
    title: str


@attrs.frozen
class Fix:
    """A change that is certainly right. `apply` gives the objects that stand in place of the object of the finding."""

    description: str
    apply: Callable[[Any], tuple[KubernetesObject, ...]] = attrs.field(eq=False, repr=False)


@attrs.frozen
class Finding:
    """One thing that is wrong with one object.

    code: stable name of the rule, see `RULES`. object: kind and key (`ResourceClaim default/c`). path: field, as the
    API server writes it, empty for the whole object. message: what is wrong. hint: what would be right (may be empty).
    fix: the change that repairs it, where that is certain. index: position of the object in the input. where: file,
    document and item it was read from, if known.
    """

    code: str
    severity: Severity
    object: str
    path: str
    message: str
    hint: str = ""
    fix: Fix | None = None
    index: int = -1
    where: str = ""

    def __str__(self) -> str:
        place = f"{self.object}: {self.path}" if self.path else self.object
        text = f"{self.severity.value} {self.code}: {place}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "object": self.object,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
            "fix": self.fix.description if self.fix else None,
            "where": self.where,
        }


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

#: All rules by code.
RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        Rule("invalid-object", _E, "The API server would refuse the object."),
        Rule("unknown-field", _W, "The API does not know a field: kubectl refuses it, the API server drops it."),
        Rule("field-not-stored", _W, "A field needs a feature gate that is off, and is dropped."),
        Rule("questionable-value", _W, "A value is accepted and does nothing, or not what it seems to."),
        Rule("deprecated-api-version", _W, "The object is written in an old version of the API."),
        Rule("duplicate-object", _W, "Two objects have one name; the later one counts."),
        Rule("class-not-found", _E, "A request names a DeviceClass that does not exist."),
        Rule("class-without-devices", _W, "No published device passes the selectors of a class."),
        Rule("selector-never-matches", _W, "No published device of the class passes the selectors of a request."),
        Rule("selector-fails", _E, "A selector fails on a published device; an allocation that gets there ends."),
        Rule("derived-attribute-fails", _E, "A derived attribute fails on a device that the request may get."),
        Rule("derived-attribute-shadows", _I, "A derived attribute hides one that the devices publish."),
        Rule("extended-resource-clash", _W, "Two classes serve one extended resource."),
        Rule("attribute-not-published", _E, "A constraint compares an attribute that no device of a request has."),
        Rule("match-never-holds", _E, "No set of devices has a common value of the attribute that must match."),
        Rule("distinct-too-few-values", _E, "More devices must differ in an attribute than it has values."),
        Rule("too-many-devices", _E, "A claim asks for more than 32 devices."),
        Rule("too-few-devices", _W, "No node has as many devices as a request asks for."),
        Rule("missing-toleration", _W, "All devices of a request have taints that it does not tolerate."),
        Rule("capacity-unknown", _E, "A request names a capacity that none of its devices has."),
        Rule("capacity-spelled-twice", _E, "A request names one capacity with and without its domain."),
        Rule("negative-amount", _E, "A request asks for a negative amount, or a stored allocation consumes one."),
        Rule("capacity-too-large", _E, "A request asks for more of a capacity than any of its devices allows."),
        Rule("admin-access-not-allowed", _E, "A claim asks for admin access in a namespace without the label for it."),
        Rule("pool-incomplete", _W, "Slices of a pool are missing or disagree, so that it offers no devices."),
        Rule("pool-invalid", _E, "The slices of a pool contradict each other, so that it offers no devices."),
        Rule("stale-slice", _I, "A slice belongs to an older generation of its pool and is ignored."),
        Rule("counters-with-devices", _E, "Shared counters and devices are in one slice, which Kubernetes refuses."),
        Rule("counter-unused", _I, "No device consumes a counter."),
        Rule("counter-too-small", _W, "A device consumes more of a counter than there is."),
        Rule("device-unreachable", _W, "No node reaches a device."),
        Rule("vendor-attribute", _I, "A driver spells a standard attribute in its own way."),
        Rule("standard-attribute-malformed", _W, "A standard attribute has not the standard form."),
        Rule("rule-hits-everything", _W, "A taint rule taints every device of the cluster."),
        Rule("rule-hits-nothing", _W, "A taint rule taints no device."),
        Rule("claim-not-found", _E, "A pod names a claim or template that does not exist."),
        Rule("request-not-found", _E, "A container names a request that its claim does not have."),
        Rule("claim-unused", _I, "No container of the pod uses one of its claims."),
    )
}
