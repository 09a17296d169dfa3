"""What happened in a cluster: one object added, updated or deleted."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["Event"]

_ACTIONS = ("added", "updated", "deleted")


def _decoded(value: Any) -> Any:
    from dra_alloc.codec import decode

    return None if value is None else decode(value)


def _known(_: Event, __: object, action: str) -> None:
    if action not in _ACTIONS:
        raise ValueError(f"the action of an event is one of {', '.join(_ACTIONS)}, not {action!r}")


@attrs.frozen
class Event:
    """A change of one object, as a watch delivers it.

    action: "added", "updated" or "deleted". object: the object after the change; for "deleted" its last state.
    old: the object before an update, None where it is not known. Models, dicts and client objects are accepted.
    Raises ValueError for another action, DecodeError for what is no Kubernetes object.
    """

    action: str = attrs.field(validator=_known)
    object: Any = attrs.field(converter=_decoded)
    old: Any = attrs.field(default=None, kw_only=True, converter=_decoded)

    @property
    def kind(self) -> str:
        """Kind of the object, such as "ResourceClaim"."""
        return str(self.object.kind)

    @property
    def key(self) -> str:
        """`namespace/name` of the object, or its name."""
        return str(self.object.metadata.key)
