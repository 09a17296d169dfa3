"""Which nodes a node selector admits, and which a slice or a device concerns.

The operators are those of node affinity: In, NotIn, Exists, DoesNotExist, Gt, Lt. A requirement that the API would
refuse (an unknown operator, Gt with two values, …) matches no node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_alloc.api import Device, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ResourceSlice

__all__ = ["device_concerns", "selector_admits", "slice_concerns", "term_admits"]

_INT = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def selector_admits(selector: NodeSelector | None, node: Node) -> bool:
    """Whether a selector admits a node: one of its terms must; no selector admits every node."""
    return selector is None or any(term_admits(term, node) for term in selector.node_selector_terms)


def term_admits(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether all requirements of a term hold. A term without requirements admits no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(_holds(requirement, labels) for requirement in term.match_expressions) and all(
        _field_holds(requirement, node) for requirement in term.match_fields
    )


def _field_holds(requirement: NodeSelectorRequirement, node: Node) -> bool:
    return (
        requirement.key == "metadata.name"
        and len(requirement.values) == 1
        and requirement.operator in ("In", "NotIn")
        and _holds(requirement, {"metadata.name": node.metadata.name})
    )


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    values, operator = requirement.values, requirement.operator
    value = labels.get(requirement.key)
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return bool(values) and value not in values
    if operator == "Exists":
        return not values and value is not None
    if operator == "DoesNotExist":
        return not values and value is None
    if operator in ("Gt", "Lt") and value is not None and len(values) == 1:
        left, right = _int64(value), _int64(values[0])
        if left is not None and right is not None:
            return left > right if operator == "Gt" else left < right
    return False


def _int64(text: str) -> int | None:
    if _INT.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def slice_concerns(resource_slice: ResourceSlice, node: Node) -> bool:
    """Whether a slice concerns a node: by its own node selection, or through one of its devices (KEP-4815)."""
    spec = resource_slice.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return _place_admits(spec.node_name, spec.all_nodes, spec.node_selector, node)
    return bool(spec.per_device_node_selection) and any(device_concerns(device, node) for device in spec.devices)


def device_concerns(device: Device, node: Node) -> bool:
    """Whether a device of a slice with per-device node selection concerns a node."""
    return _place_admits(device.node_name, device.all_nodes, device.node_selector, node)


def _place_admits(name: str | None, everywhere: bool | None, selector: NodeSelector | None, node: Node) -> bool:
    """Node selection of DRA: the first of the three that is given decides; a selector must have exactly one term."""
    if name:
        return name == node.metadata.name
    if everywhere:
        return True
    return (
        selector is not None
        and len(selector.node_selector_terms) == 1
        and term_admits(selector.node_selector_terms[0], node)
    )
