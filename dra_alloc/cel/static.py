"""Static types: what the checker knows about an expression before any device is seen.

Assignability and unification follow the type checker of the CEL reference implementation: `dyn` fits everything, type
parameters are bound on the way, and the more general of two types wins.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "StaticType",
    "Substitution",
    "equivalent",
    "list_type",
    "map_type",
    "optional_type",
    "parameter",
    "type_type",
]


class StaticType:
    """A type: its kind, its name, its parameters. Compare by `is_exactly`; basic types are singletons."""

    __slots__ = ("depth", "has_parameters", "kind", "name", "parameters")

    def __init__(self, kind: str, name: str, parameters: tuple[StaticType, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.parameters = parameters
        #: How many types are nested in it; the checker bounds it.
        self.depth: int = 1 + max((p.depth for p in parameters), default=0)
        #: Whether a type parameter occurs anywhere inside.
        self.has_parameters: bool = kind == "param" or any(p.has_parameters for p in parameters)

    def is_exactly(self, other: StaticType) -> bool:
        """Whether both are the same type."""
        if self is other:
            return True
        if self.kind != other.kind or self.name != other.name or len(self.parameters) != len(other.parameters):
            return False
        return all(p.is_exactly(q) for p, q in zip(self.parameters, other.parameters, strict=True))

    def __str__(self) -> str:
        if self.kind == "param":
            return f"<{self.name}>"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def __repr__(self) -> str:
        return f"StaticType({str(self)!r})"


BOOL: Final = StaticType("bool", "bool")
BYTES: Final = StaticType("bytes", "bytes")
DOUBLE: Final = StaticType("double", "double")
DURATION: Final = StaticType("duration", "google.protobuf.Duration")
DYN: Final = StaticType("dyn", "dyn")
ANY: Final = StaticType("any", "any")
ERROR: Final = StaticType("error", "!error!")
INT: Final = StaticType("int", "int")
NULL: Final = StaticType("null", "null")
STRING: Final = StaticType("string", "string")
TIMESTAMP: Final = StaticType("timestamp", "google.protobuf.Timestamp")
UINT: Final = StaticType("uint", "uint")


def list_type(element: StaticType) -> StaticType:
    """`list(element)`."""
    return StaticType("list", "list", (element,))


def map_type(key: StaticType, value: StaticType) -> StaticType:
    """`map(key, value)`."""
    return StaticType("map", "map", (key, value))


def optional_type(value: StaticType) -> StaticType:
    """`optional_type(value)`."""
    return StaticType("opaque", "optional_type", (value,))


def type_type(of: StaticType) -> StaticType:
    """The type of a type as a value."""
    return StaticType("type", "type", (of,))


def object_type(name: str) -> StaticType:
    """A type with fields, or one of Kubernetes that only functions look into."""
    return StaticType("struct", name)


def parameter(name: str) -> StaticType:
    """A type parameter."""
    return StaticType("param", name)


def is_dyn(t: StaticType) -> bool:
    """Whether anything at all may stand there at run time."""
    return t.kind == "dyn" or t.kind == "any"


def is_optional(t: StaticType) -> bool:
    """Whether it is `optional_type(…)`."""
    return t.kind == "opaque" and t.name == "optional_type"


def equivalent(one: StaticType, other: StaticType) -> bool:
    """The same type up to the names of type parameters."""
    if one is other:
        return True
    if one.kind != other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind != "param" and one.name != other.name:
        return False
    return all(equivalent(p, q) for p, q in zip(one.parameters, other.parameters, strict=True))


#: Kinds that only fit their like.
_PLAIN: Final = frozenset(
    {"bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct"}
)
#: Kinds that null fits too.
_NULLABLE: Final = frozenset({"opaque", "struct", "any", "duration", "timestamp", "dyn", "param", "null"})


class Substitution:
    """What type parameters stand for; attempts that fail leave no trace."""

    __slots__ = ("_bound", "_trail", "_variables")

    def __init__(self) -> None:
        self._bound: dict[str, StaticType] = {}
        self._trail: list[tuple[str, StaticType | None]] = []
        self._variables = 0

    def fresh(self) -> StaticType:
        """A type parameter that nothing else uses."""
        self._variables += 1
        return parameter(f"_var{self._variables}")

    def instantiate(self, types: tuple[StaticType, ...]) -> tuple[StaticType, ...]:
        """Types of a declaration with fresh type parameters in place of its own."""
        fresh: dict[str, StaticType] = {}
        return tuple(self._instantiate(t, fresh) for t in types)

    def _instantiate(self, t: StaticType, fresh: dict[str, StaticType]) -> StaticType:
        if not t.has_parameters:
            return t
        if t.kind == "param":
            found = fresh.get(t.name)
            if found is None:
                found = fresh[t.name] = self.fresh()
            return found
        return StaticType(t.kind, t.name, tuple(self._instantiate(p, fresh) for p in t.parameters))

    def resolve(self, t: StaticType, *, final: bool = False) -> StaticType:
        """The type with all that is known put in; with `final`, what is still unknown becomes `dyn`."""
        while t.kind == "param":
            found = self._bound.get(t.name)
            if found is None:
                return DYN if final else t
            t = found
        if not t.has_parameters:
            return t
        return StaticType(t.kind, t.name, tuple(self.resolve(p, final=final) for p in t.parameters))

    def assignable(self, one: StaticType, other: StaticType) -> bool:
        """Whether the types fit each other; binds type parameters if so."""
        mark = len(self._trail)
        if self._assignable(one, other):
            return True
        self._undo(mark)
        return False

    def all_assignable(self, ones: list[StaticType], others: tuple[StaticType, ...]) -> bool:
        """Whether the lists fit each other in length and pairwise; binds type parameters if so."""
        if len(ones) != len(others):
            return False
        mark = len(self._trail)
        for one, other in zip(ones, others, strict=True):
            if one is not other and not self._assignable(one, other):
                self._undo(mark)
                return False
        return True

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            name, before = self._trail.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before

    def _bind(self, name: str, t: StaticType) -> None:
        self._trail.append((name, self._bound.get(name)))
        self._bound[name] = t

    def _assignable(self, one: StaticType, other: StaticType) -> bool:
        if other.kind == "param":
            valid, had = self._substitutable(one, other)
            if valid:
                return True
            if had:
                return False
        if one.kind == "param":
            return self._substitutable(other, one)[0]
        kind, kind2 = one.kind, other.kind
        if kind in ("dyn", "any", "error") or kind2 in ("dyn", "any", "error"):
            return True
        if kind == "null":
            return kind2 in _NULLABLE
        if kind2 == "null":
            return kind in _NULLABLE
        if kind in _PLAIN:
            return kind == kind2 and one.name == other.name
        if kind == "type":
            return kind2 == "type"
        return (
            kind == kind2
            and one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(self._assignable(p, q) for p, q in zip(one.parameters, other.parameters, strict=True))
        )

    def _substitutable(self, t: StaticType, variable: StaticType) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it stood for one already."""
        if t.kind == "param" and t.name == variable.name:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is not None:
            if t.is_exactly(bound):
                return True, True
            if self._assignable(t, bound):
                general = more_general(t, bound)
                if self._not_inside(variable, general):
                    self._bind(variable.name, general)
                return True, True
            return False, True
        if self._not_inside(variable, t):
            self._bind(variable.name, t)
            return True, False
        return False, False

    def _not_inside(self, variable: StaticType, within: StaticType) -> bool:
        if not within.has_parameters:
            return True
        if within.kind == "param":
            if within.name == variable.name:
                return False
            bound = self._bound.get(within.name)
            return bound is None or self._not_inside(variable, bound)
        return all(self._not_inside(variable, p) for p in within.parameters)


def more_general(one: StaticType, other: StaticType) -> StaticType:
    """The type of the two that says less, the first if they say the same."""
    return one if _says_no_more(one, other) else other


def _says_no_more(one: StaticType, other: StaticType) -> bool:
    if one.kind in ("dyn", "any", "param"):
        return True
    if other.kind in ("dyn", "any", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.parameters:
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(_says_no_more(p, q) for p, q in zip(one.parameters, other.parameters, strict=True))
        )
    return one.is_exactly(other)
