"""Checks of what is not particular to DRA: object metadata, conditions, node selectors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dra_alloc.api import Condition, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    byte_length,
    each,
    forbidden,
    immutable,
    invalid,
    one_of,
    required,
    too_long,
    unique,
)

__all__ = ["metadata", "node_selector", "object_conditions", "template_metadata"]

_ANNOTATIONS_MAX = 256 * 1024
_REASON_MAX = 1024
_MESSAGE_MAX = 32768
_REASON_RE = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def metadata(meta: ObjectMeta, old: ObjectMeta | None, *, namespaced: bool) -> Iterator[Problem]:
    """Metadata of a whole object whose name is a DNS subdomain. A missing namespace passes: the request gives it."""
    if meta.name:
        yield from at("name", formats.subdomain(meta.name))
    elif not meta.generate_name:
        yield from at("name", [required("a DNS subdomain, or generateName")])
    if meta.generate_name:
        # The generated suffix ends the name, so that the prefix may end with a dash.
        prefix = meta.generate_name.removesuffix("-")
        yield from at("generateName", formats.subdomain(prefix or meta.generate_name))
    if namespaced and meta.namespace:
        yield from at("namespace", formats.label(meta.namespace))
    elif meta.namespace:
        yield from at("namespace", [forbidden("must not be set", "objects of this kind belong to no namespace")])
    if meta.generation is not None and meta.generation < 0:
        yield from at("generation", [invalid(meta.generation, "is negative")])
    yield from _marks(meta)
    yield from each(meta.finalizers, formats.label_name, "finalizers")
    yield from _owners(meta)
    if old is not None:
        yield from _unchanged(meta, old)


def template_metadata(meta: ObjectMeta) -> Iterator[Problem]:
    """Metadata inside of a template: labels and annotations alone."""
    yield from _marks(meta)
    fields = {
        "name": meta.name,
        "generateName": meta.generate_name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "finalizers": meta.finalizers,
        "ownerReferences": meta.owner_references,
    }
    for field, value in fields.items():
        if value:
            yield from at(field, [forbidden("must not be set", "only labels and annotations are copied to the claim")])


def _marks(meta: ObjectMeta) -> Iterator[Problem]:
    for key, value in meta.labels.items():
        yield from at("labels", formats.label_name(key))
        yield from at(f"labels[{key[:64]}]", formats.label_value(value))
    for key in meta.annotations:
        yield from at("annotations", formats.label_name(key.lower()))
    size = sum(byte_length(key) + byte_length(value) for key, value in meta.annotations.items())
    if size > _ANNOTATIONS_MAX:
        yield from at("annotations", [too_long(size, _ANNOTATIONS_MAX)])


def _owners(meta: ObjectMeta) -> Iterator[Problem]:
    for index, owner in enumerate(meta.owner_references):
        fields = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
        for field, value in fields.items():
            if not value:
                yield from at(f"ownerReferences[{index}].{field}", [required()])
    if sum(bool(owner.controller) for owner in meta.owner_references) > 1:
        yield from at("ownerReferences", [forbidden("has more than one controller", "one with controller: true")])


def _unchanged(meta: ObjectMeta, old: ObjectMeta) -> Iterator[Problem]:
    yield from immutable("name", meta.name, old.name)
    yield from immutable("namespace", meta.namespace, old.namespace)
    # What the server sets itself may be left out of an update.
    if meta.uid:
        yield from immutable("uid", meta.uid, old.uid or meta.uid)
    if meta.creation_timestamp is not None:
        yield from immutable("creationTimestamp", meta.creation_timestamp, old.creation_timestamp)


def object_conditions(items: Sequence[Condition], limit: int) -> Iterator[Problem]:
    """Conditions of a status, seen from the object that holds them. All are checked even if there are too many."""
    if len(items) > limit:
        yield Problem("conditions", f"has {len(items)} entries, too many", f"at most {limit}")
    yield from each(items, _condition, "conditions")
    yield from unique(items, lambda item: item.type, "conditions")


def _condition(condition: Condition) -> Iterator[Problem]:
    yield from at("type", formats.label_name(condition.type))
    yield from at("status", one_of(condition.status, ("True", "False", "Unknown")))
    if condition.observed_generation is not None and condition.observed_generation < 0:
        yield from at("observedGeneration", [invalid(condition.observed_generation, "is negative")])
    if condition.last_transition_time is None:
        yield from at("lastTransitionTime", [required("the time of the last change of status")])
    yield from at("reason", _reason(condition.reason))
    if (length := byte_length(condition.message)) > _MESSAGE_MAX:
        yield from at("message", [too_long(length, _MESSAGE_MAX)])


def _reason(reason: str) -> Iterator[Problem]:
    if not reason:
        yield required("a word in CamelCase")
    elif (length := byte_length(reason)) > _REASON_MAX:
        yield too_long(length, _REASON_MAX)
    elif not _REASON_RE.fullmatch(reason):
        yield invalid(
            reason, "is no reason", "letters, digits, '_', ',' and ':', a letter first, a letter or digit last"
        )


def node_selector(selector: NodeSelector) -> Iterator[Problem]:
    """A node selector of any number of terms."""
    if not selector.node_selector_terms:
        yield from at("nodeSelectorTerms", [required("at least one term")])
    yield from each(selector.node_selector_terms, _term, "nodeSelectorTerms")


def _term(term: NodeSelectorTerm) -> Iterator[Problem]:
    yield from each(term.match_expressions, _expression, "matchExpressions")
    yield from each(term.match_fields, _field, "matchFields")


#: By operator: whether a number of values is right, and what would be.
_VALUES: Mapping[str, tuple[range, str]] = {
    "In": (range(1, 1 << 31), "at least one value"),
    "NotIn": (range(1, 1 << 31), "at least one value"),
    "Exists": (range(1), "no values"),
    "DoesNotExist": (range(1), "no values"),
    "Gt": (range(1, 2), "one value"),
    "Lt": (range(1, 2), "one value"),
}


def _expression(requirement: NodeSelectorRequirement) -> Iterator[Problem]:
    yield from at("key", formats.label_name(requirement.key))
    if requirement.operator not in _VALUES:
        yield from at("operator", one_of(requirement.operator, tuple(_VALUES)))
        return
    counts, hint = _VALUES[requirement.operator]
    if len(requirement.values) not in counts:
        count = len(requirement.values)
        yield from at("values", [forbidden(f"has {count} values for operator {requirement.operator}", hint)])
    yield from each(requirement.values, formats.label_value, "values")


def _field(requirement: NodeSelectorRequirement) -> Iterator[Problem]:
    if requirement.key != "metadata.name":
        yield from at("key", [invalid(requirement.key, "is no field of nodes to select by", "metadata.name")])
    yield from at("operator", one_of(requirement.operator, ("In", "NotIn")))
    if len(requirement.values) != 1:
        yield from at("values", [forbidden(f"has {len(requirement.values)} values", "one name of a node")])
    if requirement.key == "metadata.name":
        yield from each(requirement.values, formats.subdomain, "values")
