"""Whether a pod may run on a node at all: its name, node selector, required affinity, and the node's taints."""

from __future__ import annotations

from dra_alloc.api import Node, Pod, Taint
from dra_alloc.nodeselection import selector_admits
from dra_alloc.rules import tolerated

__all__ = ["placement_fault"]

#: The taint that stands for `spec.unschedulable`.
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def placement_fault(pod: Pod, node: Node) -> str | None:
    """Why the pod may not run on the node whatever its devices, or None."""
    spec = pod.spec
    if spec.node_name and spec.node_name != node.metadata.name:
        return f"the pod is bound to node {spec.node_name}"
    labels = node.metadata.labels
    for key, value in spec.node_selector.items():
        if labels.get(key) != value:
            return f"the node lacks the label {key}={value} of spec.nodeSelector"
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is not None and not selector_admits(required, node):
        return "the node is not one of those that spec.affinity.nodeAffinity requires"
    taints = (*node.spec.taints, _UNSCHEDULABLE) if node.spec.unschedulable else node.spec.taints
    for taint in taints:
        if not tolerated(taint, spec.tolerations):
            return f"the pod does not tolerate the taint {taint.key}:{taint.effect} of the node"
    return None
