"""What the JSON form of each API class looks like: names of fields, fields that are known but not kept."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

import attrs

from dra_alloc import api
from dra_alloc.api import Model

__all__ = ["NOT_KEPT", "Field", "by_key", "fields", "is_model", "item_of", "snake", "some_of", "value_of"]


@attrs.frozen
class Field:
    """A field of an API class: attribute, JSON name, type, default, and whether the API always writes it."""

    name: str
    json: str
    type: Any
    default: Any
    required: bool

    @property
    def default_value(self) -> Any:
        """What the attribute holds when the API leaves the field out."""
        return self.default.factory() if isinstance(self.default, attrs.Factory) else self.default  # type: ignore[arg-type]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def snake(name: str) -> str:
    """A JSON name in snake_case; runs of capitals are one word (`shareID` is `share_id`)."""
    out = []
    for index, letter in enumerate(name):
        if letter.isupper() and index and not name[index - 1].isupper():
            out.append("_")
        out.append(letter.lower())
    return "".join(out)


_FIELDS: dict[type[Any], tuple[Field, ...]] = {}


def fields(cls: type[Any]) -> tuple[Field, ...]:
    """The fields of a class, in the order they are written."""
    found = _FIELDS.get(cls)
    if found is None:
        found = _FIELDS[cls] = _declared(cls)
    return found


def _declared(cls: type[Any]) -> tuple[Field, ...]:
    types = typing.get_type_hints(cls)
    return tuple(
        Field(
            name=attribute.name,
            json=attribute.metadata.get("json", _camel(attribute.name)),
            type=types[attribute.name],
            default=attribute.default,
            required=bool(attribute.metadata.get("required")),
        )
        for attribute in attrs.fields(cls)
    )


def by_key(cls: type[Any]) -> Mapping[str, Field]:
    """Fields by every key that a mapping may use for them: JSON name and snake_case."""
    return {key: field for field in fields(cls) for key in (field.json, field.name)}


def is_model(kind: Any) -> bool:
    """Whether a declared type is an API class."""
    return isinstance(kind, type) and issubclass(kind, Model)


def item_of(kind: Any) -> Any:
    """The type of the items of a declared list; None for other types."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else None


def value_of(kind: Any) -> Any:
    """The type of the values of a declared map; None for other types."""
    return typing.get_args(kind)[1] if typing.get_origin(kind) is dict else None


def some_of(kind: Any) -> Any:
    """X of a declared `X | None`; None for other types."""
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return None
    return next(part for part in typing.get_args(kind) if part is not type(None))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Fields of the API that hold nothing for the allocation of devices. They are dropped without a warning.
NOT_KEPT: Mapping[type[Model], frozenset[str]] = {
    api.ObjectMeta: _words("managedFields"),
    api.Namespace: _words("spec status"),
    api.NodeSpec: _words("configSource externalID podCIDR podCIDRs podPreemptionPolicy providerID"),
    api.NodeStatus: _words(
        "addresses conditions config daemonEndpoints features images nodeInfo phase runtimeHandlers volumesAttached "
        "volumesInUse"
    ),
    api.Affinity: _words("podAffinity podAntiAffinity"),
    api.NodeAffinity: _words("preferredDuringSchedulingIgnoredDuringExecution"),
    api.Container: _words(
        "args command env envFrom image imagePullPolicy lifecycle livenessProbe ports readinessProbe resizePolicy "
        "restartPolicyRules securityContext startupProbe stdin stdinOnce targetContainerName terminationMessagePath "
        "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
    ),
    api.PodSpec: _words(
        "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
        "evictionResponders hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride "
        "imagePullSecrets os readinessGates runtimeClassName securityContext serviceAccount "
        "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds "
        "topologySpreadConstraints volumes"
    ),
    api.PodStatus: _words(
        "allocatedResources containerStatuses ephemeralContainerStatuses hostIP hostIPs initContainerStatuses message "
        "observedGeneration podIP podIPs qosClass reason resize resources startTime volumeHealth"
    ),
}
