"""`Scenario`: a whole question to the allocator as one value that can be printed and asked."""

from __future__ import annotations

from typing import Any

import attrs
import yaml

from dra_alloc.api import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    KubernetesObject,
    Node,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.gates import Features
from dra_alloc.testing.model import plain_allocate

__all__ = ["Scenario", "dump_yaml"]


class _Dumper(yaml.SafeDumper):
    """Without anchors: a person reads this."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def dump_yaml(*documents: object) -> str:
    """Kubernetes JSON forms as a YAML stream, keys in their order."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120, default_flow_style=None)


_LISTS = ("nodes", "slices", "classes", "taint_rules", "allocated_claims", "claims")


@attrs.frozen(kw_only=True, repr=False)
class Scenario:
    """A cluster and the `claims` that are to be allocated together on one of its nodes.

    `allocated_claims` are those of others, with `status.allocation`. `features` are the gates of the question.
    """

    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    allocated_claims: tuple[ResourceClaim, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    features: Features = attrs.field(factory=Features.all)

    def __repr__(self) -> str:
        counts = {field: len(getattr(self, field)) for field in _LISTS}
        return f"<Scenario: {', '.join(f'{number} {field}' for field, number in counts.items() if number)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Hypothesis shows this one; the whole is for `to_yaml`."""
        printer.text(repr(self))

    def cluster_objects(self) -> list[KubernetesObject]:
        """Everything but the claims that are asked for: what `Cluster.from_objects` takes."""
        return [*self.nodes, *self.slices, *self.classes, *self.taint_rules, *self.allocated_claims]

    def to_yaml(self) -> str:
        """The scenario as a manifest that `dra-alloc -f` reads; switched-off features stand in a comment on top."""
        off = [name for name, on in attrs.asdict(self.features).items() if not on]
        header = f"# features off: {', '.join(off)}\n" if off else ""
        return header + dump_yaml(*(item.to_dict() for item in (*self.cluster_objects(), *self.claims)))

    def plain_allocate(self, node: Node, *, max_steps: int | None = None) -> list[AllocationResult] | None:
        """The answer of the plain-search model for one of the nodes; raises what `model.plain_allocate` raises."""
        return plain_allocate(
            self.claims,
            node,
            self.slices,
            self.classes,
            self.taint_rules,
            self.allocated_claims,
            self.features,
            max_steps=max_steps,
        )
