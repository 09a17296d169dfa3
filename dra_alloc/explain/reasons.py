"""The reasons that explanations give: stable codes, in the order in which rules are named.

Codes never change their meaning; new ones may come. docs/reasons.md shows an example of each.
"""

from __future__ import annotations

from typing import Final

import attrs

__all__ = ["DEVICE_CODES", "REASONS", "Reason", "stage"]


@attrs.frozen
class Reason:
    """A reason. scope: "device" rules out single devices, "node" a node as a whole, "error" ends the attempt.

    title: what it means in a few words, as it stands in the summary over many nodes.
    """

    code: str
    scope: str
    title: str


_ALL: Final = (
    Reason("not-on-node", "device", "devices that match are not on the node"),
    Reason("node-operations", "device", "the node lacks what the driver's slices skip"),
    Reason("feature-off", "device", "devices need a feature that is off"),
    Reason("class-selector", "device", "no device passes the selectors of the class"),
    Reason("request-selector", "device", "no device passes the selectors of the request"),
    Reason("selector-error", "device", "a selector fails on devices"),
    Reason("capacity-request", "device", "the request names amounts that make no sense"),
    Reason("in-use", "device", "devices are in use"),
    Reason("taint", "device", "devices have taints that are not tolerated"),
    Reason("counters", "device", "too little is left of shared counters"),
    Reason("groups", "device", "devices are not compatible with those in use"),
    Reason("capacity-short", "device", "devices have too little capacity"),
    Reason("constraint-attribute", "device", "devices lack the attribute of a constraint"),
    Reason("no-devices", "node", "the node has no devices"),
    Reason("pool-incomplete", "node", "the pools of the node are incomplete"),
    Reason("too-few", "node", "fewer devices match than are asked for"),
    Reason("constraint", "node", "no set of devices meets the constraints"),
    Reason("conflict", "node", "requests compete for the same devices"),
    Reason("limit", "node", "the claim would get more than 32 devices"),
    Reason("node-resources", "node", "too little of the node's resources is left"),
    Reason("placement", "node", "the pod may not run on the node"),
    Reason("claim-unusable", "node", "a claim of the pod cannot be used"),
    Reason("claim-elsewhere", "node", "a claim is allocated on other nodes"),
    Reason("class-not-found", "error", "the DeviceClass is not there"),
    Reason("pool-all", "error", "all devices are asked for and a pool is incomplete or invalid"),
    Reason("too-many-devices", "error", "more than 32 devices are asked for"),
    Reason("cel", "error", "a selector or derived attribute fails on a device"),
    Reason("capacity", "error", "the request names a capacity twice or a negative amount"),
    Reason("unknown-selector", "error", "a selector is of no known kind"),
    Reason("unknown-mode", "error", "the allocation mode is not known"),
    Reason("all-violates-constraint", "error", "all devices are asked for and a constraint forbids it"),
    Reason("invalid-pool", "error", "nothing fits and a pool of the node is invalid"),
    Reason("unknown-constraint", "error", "a constraint is of no known kind"),
    Reason("unsupported", "error", "a feature that the claims need is off"),
    Reason("forbidden", "error", "the namespace may not ask for admin access"),
    Reason("pod-claims", "error", "claims, templates or groups that the pod names are not there"),
    Reason("budget-exceeded", "error", "the search ran out of its budget"),
)

#: Every reason by its code, in order.
REASONS: Final[dict[str, Reason]] = {reason.code: reason for reason in _ALL}

#: Codes that rule out single devices, in the order in which they are looked at.
DEVICE_CODES: Final[tuple[str, ...]] = tuple(reason.code for reason in _ALL if reason.scope == "device")

_STAGES: Final = {code: number for number, code in enumerate(DEVICE_CODES)}


def stage(code: str) -> int:
    """The place of a device rule: a device that is ruled out at a later one came closer."""
    return _STAGES[code]
