"""Which nodes a node selector, a slice or a device concerns."""

from __future__ import annotations

import re

from dra_alloc.api import Device, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ResourceSlice

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def selector_matches(selector: NodeSelector | None, node: Node) -> bool:
    """Whether the selector admits the node: none admits all, else one of its terms must match."""
    return selector is None or any(term_matches(term, node) for term in selector.node_selector_terms)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether all requirements of the term hold; a term without requirements matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(need, node.metadata.labels) for need in term.match_expressions) and all(
        need.operator in ("In", "NotIn") and len(need.values) == 1 and need.key in fields and _holds(need, fields)
        for need in term.match_fields
    )


def _holds(need: NodeSelectorRequirement, labels: dict[str, str]) -> bool:
    value = labels.get(need.key)
    match need.operator:
        case "In":
            return value in need.values
        case "NotIn":
            return bool(need.values) and value not in need.values
        case "Exists":
            return not need.values and value is not None
        case "DoesNotExist":
            return not need.values and value is None
        case "Gt" | "Lt":
            if value is None or len(need.values) != 1:
                return False
            left, right = _int64(value), _int64(need.values[0])
            if left is None or right is None:
                return False
            return left > right if need.operator == "Gt" else left < right
    return False


def _int64(text: str) -> int | None:
    number = int(text) if len(text) < 100 and _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def slice_concerns(item: ResourceSlice, node: Node) -> bool:
    """Whether the slice, or with per-device node selection one of its devices, concerns the node."""
    spec = item.spec
    if spec.node_name or spec.all_nodes or spec.node_selector:
        return _place_matches(spec.node_name, spec.all_nodes, spec.node_selector, node)
    return bool(spec.per_device_node_selection) and any(device_concerns(device, node) for device in spec.devices)


def device_concerns(device: Device, node: Node) -> bool:
    """Whether a device of a slice with per-device node selection concerns the node."""
    return _place_matches(device.node_name, device.all_nodes, device.node_selector, node)


def _place_matches(name: str | None, everywhere: bool | None, selector: NodeSelector | None, node: Node) -> bool:
    if name:
        return name == node.metadata.name
    if everywhere:
        return True
    if selector is None or len(selector.node_selector_terms) != 1:
        return False
    return term_matches(selector.node_selector_terms[0], node)
