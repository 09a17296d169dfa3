"""What the functions do: one Python function an overload, found by the id of the overload.

Values are native (see `values`); a function raises Fault where CEL has a run-time error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from dra_alloc.cel.declarations import Overload, functions
from dra_alloc.cel.library.registry import OVERLOADS, SINGLETONS
from dra_alloc.cel.static import StaticType
from dra_alloc.cel.values import (
    CIDR,
    IP,
    URL,
    Amount,
    Duration,
    NamedFormat,
    Optional,
    Quantity,
    Semver,
    Sum,
    Timestamp,
    TypeValue,
    Uint,
    map_keys,
    no_overload,
)

__all__ = ["implementation"]

Function = Callable[..., Any]

for _module in ("standard", "strings", "lists", "kubernetes", "network", "formats", "optionals"):
    import_module(f"dra_alloc.cel.library.{_module}")

_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "bytes": (bytes,),
    "double": (float,),
    "int": (int,),
    "string": (str,),
    "uint": (Uint,),
    "timestamp": (Timestamp,),
    "duration": (Duration,),
    "null": (type(None),),
    "type": (TypeValue,),
    "kubernetes.Quantity": (Quantity, Amount, Sum),
    "kubernetes.Semver": (Semver,),
    "kubernetes.URL": (URL,),
    "kubernetes.NamedFormat": (NamedFormat,),
    "net.IP": (IP,),
    "net.CIDR": (CIDR,),
}


def _accepts(wanted: StaticType, value: Any) -> bool:
    """Whether a value may be an argument of a type; of lists and maps the first element counts, as in the reference."""
    kind = wanted.kind
    if kind in ("dyn", "any", "param"):
        return True
    if kind == "list":
        return isinstance(value, (tuple, list)) and (not value or _accepts(wanted.parameters[0], value[0]))
    if kind == "map":
        if not isinstance(value, dict):
            return False
        if not value:
            return True
        first, held = next(iter(zip(map_keys(value), value.values(), strict=False)))
        return _accepts(wanted.parameters[0], first) and _accepts(wanted.parameters[1], held)
    if kind == "opaque":
        return type(value) is Optional
    return type(value) in _CLASSES.get(wanted.name if kind == "struct" else kind, ())


@cache
def _guarded(overload: Overload) -> Function:
    act = OVERLOADS.get(overload.id)
    wanted = overload.arguments
    name = overload.function

    def call(*values: Any) -> Any:
        if act is None or len(values) != len(wanted) or not all(map(_accepts, wanted, values)):
            raise no_overload(name, *values)
        return act(*values)

    return call


@cache
def _dispatched(function: str) -> Function:
    """The function by the types of its arguments at run time, methods and others alike."""
    candidates = [
        (overload.arguments, OVERLOADS[overload.id]) for overload in functions()[function] if overload.id in OVERLOADS
    ]

    def call(*values: Any) -> Any:
        for wanted, act in candidates:
            if len(wanted) == len(values) and all(map(_accepts, wanted, values)):
                return act(*values)
        raise no_overload(function, *values)

    return call


def implementation(function: str, overloads: tuple[Overload, ...], *, sure: bool = False) -> Function:
    """What a call does, given the overloads that fit.

    One overload is that overload, its arguments looked at first unless their types are `sure` at run time (a static
    type is not: a list may get elements of any type through `dyn`). Several are told apart by the values.
    """
    single = SINGLETONS.get(function)
    if single is not None:
        return single
    if len(overloads) > 1:
        return _dispatched(function)
    overload = overloads[0]
    if sure and overload.id in OVERLOADS:
        return OVERLOADS[overload.id]
    return _guarded(overload)
