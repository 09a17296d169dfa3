"""Metadata, conditions and node selectors: the parts of objects that are not particular to DRA."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import attrs

from dra_alloc.api._model import REQUIRED, Model

__all__ = [
    "Condition",
    "KubernetesObject",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "ObjectMeta",
    "OwnerReference",
]


@attrs.frozen(kw_only=True)
class OwnerReference(Model):
    """The object that owns another one; with `controller` it is the managing controller."""

    api_version: str = attrs.field(default="", metadata=REQUIRED)
    kind: str = attrs.field(default="", metadata=REQUIRED)
    name: str = attrs.field(default="", metadata=REQUIRED)
    uid: str = attrs.field(default="", metadata=REQUIRED)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@attrs.frozen(kw_only=True)
class ObjectMeta(Model):
    """Metadata of an object (`metadata`); `managedFields` are not kept."""

    name: str = ""
    namespace: str = ""
    generate_name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = attrs.field(factory=dict)
    annotations: dict[str, str] = attrs.field(factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    self_link: str | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KubernetesObject(Model):
    """Base of the classes of whole objects: those with `kind`, `api_version` (the preferred one) and `metadata`."""

    __slots__ = ()

    kind: ClassVar[str]
    api_version: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def metadata(self) -> ObjectMeta:
            """Name, namespace, labels and the like."""


@attrs.frozen(kw_only=True)
class Condition(Model):
    """One condition of a status (`metav1.Condition`). `status` is "True", "False" or "Unknown"."""

    type: str = attrs.field(default="", metadata=REQUIRED)
    status: str = attrs.field(default="", metadata=REQUIRED)
    reason: str = attrs.field(default="", metadata=REQUIRED)
    message: str = attrs.field(default="", metadata=REQUIRED)
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


@attrs.frozen(kw_only=True)
class NodeSelectorRequirement(Model):
    """A condition on a label or field of a node: `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = attrs.field(default="", metadata=REQUIRED)
    operator: str = attrs.field(default="", metadata=REQUIRED)
    values: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class NodeSelectorTerm(Model):
    """Requirements that must all hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


@attrs.frozen(kw_only=True)
class NodeSelector(Model):
    """Terms of which one must hold. DRA uses selectors of exactly one term."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = attrs.field(default=(), metadata=REQUIRED)
