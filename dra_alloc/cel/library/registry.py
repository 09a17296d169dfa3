"""Where the library keeps its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["OVERLOADS", "SINGLETONS", "implements", "implements_all"]

_F = TypeVar("_F", bound=Callable[..., Any])

#: By id of the overload.
OVERLOADS: Final[dict[str, Callable[..., Any]]] = {}

#: By name of the function, for those that look at their values themselves, whatever overload was resolved.
SINGLETONS: Final[dict[str, Callable[..., Any]]] = {}


def implements(*overloads: str) -> Callable[[_F], _F]:
    """Register a function for overloads."""

    def register(function: _F) -> _F:
        OVERLOADS.update(dict.fromkeys(overloads, function))
        return function

    return register


def implements_all(*names: str) -> Callable[[_F], _F]:
    """Register a function for all overloads of functions."""

    def register(function: _F) -> _F:
        SINGLETONS.update(dict.fromkeys(names, function))
        return function

    return register
