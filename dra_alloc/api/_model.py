"""What all API classes share: how they are declared, and their way to and from the Kubernetes JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

__all__ = ["REQUIRED", "Model", "json_name"]

#: Metadata of a field that the API always writes, even when it holds its zero value.
REQUIRED: Mapping[str, Any] = {"required": True}


def json_name(name: str) -> Mapping[str, Any]:
    """Metadata of a field whose JSON name is not its own name in camelCase."""
    return {"json": name}


class Model:
    """Base of all API classes, which are declared as `attrs.frozen(kw_only=True)`.

    Objects are values: frozen, equal by value, safe to share. Change one with `attrs.evolve`. Lists are tuples;
    maps are plain dicts and must not be changed in place. A field that the API leaves out is None, `()` or `{}`.
    """

    __slots__ = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the Kubernetes JSON form (camelCase or snake_case keys; None counts as absent).

        Fields that the API does not know are left out. Raises DecodeError for a value of a wrong type.
        """
        from dra_alloc.codec import structure

        return structure(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """The Kubernetes JSON form in the preferred API version; whole objects have their `apiVersion` and `kind`."""
        from dra_alloc.codec import unstructure

        return unstructure(self)
