"""The type checker: names and overloads are resolved, and every node gets its type.

Follows the checker of the reference implementation with the settings of the API server: literals of lists and maps
must have elements of one type, numbers compare across their types.
"""

from __future__ import annotations

from typing import Any, Final

from dra_alloc.cel import static
from dra_alloc.cel.declarations import QUANTITY, Overload, functions
from dra_alloc.cel.static import StaticType, Substitution
from dra_alloc.cel.syntax import (
    Binding,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Pass,
    Select,
    run,
)
from dra_alloc.cel.values import INT_MAX, TYPE_NAMES, Uint
from dra_alloc.errors import CelError

__all__ = ["DEVICE", "check"]

#: Types may be nested this deep; nothing that is written by hand comes near it.
MAX_TYPE_DEPTH: Final = 50

_LITERAL_TYPES: Final[dict[type, StaticType]] = {
    bool: static.BOOL,
    int: static.INT,
    Uint: static.UINT,
    float: static.DOUBLE,
    str: static.STRING,
    bytes: static.BYTES,
    type(None): static.NULL,
}

_ANYTHING: Final = static.parameter("A")
_TYPE_CONSTANTS: Final[dict[str, StaticType]] = {
    "bool": static.BOOL,
    "bytes": static.BYTES,
    "double": static.DOUBLE,
    "google.protobuf.Duration": static.DURATION,
    "google.protobuf.Timestamp": static.TIMESTAMP,
    "int": static.INT,
    "list": static.list_type(_ANYTHING),
    "map": static.map_type(_ANYTHING, static.parameter("B")),
    "net.CIDR": static.object_type("net.CIDR"),
    "net.IP": static.object_type("net.IP"),
    "null_type": static.NULL,
    "optional_type": static.optional_type(static.parameter("V")),
    "string": static.STRING,
    "type": static.type_type(_ANYTHING),
    "uint": static.UINT,
}

DEVICE: Final = static.object_type("kubernetes.DRADevice")


def device_fields(list_attributes: bool) -> dict[str, StaticType]:
    """The fields of `device`. Attributes are of type any, or with list attributes dyn, which macros accept."""
    attribute = static.DYN if list_attributes else static.ANY
    return {
        "driver": static.STRING,
        "attributes": static.map_type(static.STRING, static.map_type(static.STRING, attribute)),
        "capacity": static.map_type(static.STRING, static.map_type(static.STRING, QUANTITY)),
        "allowMultipleAllocations": static.BOOL,
    }


_LIST_FIELDS: Final = device_fields(True)
_SCALAR_FIELDS: Final = device_fields(False)

#: The variable `device`, the same for all expressions.
DEVICE_BINDING: Final = Binding("device", DEVICE)


def check(root: Node, expression: str, *, list_attributes: bool = True) -> None:
    """Check a tree in place. Raises CelError at the first fault."""
    checker = _Checker(expression, list_attributes)
    run(checker.check(root))
    for node in checker.checked:
        node.type = checker.known.resolve(node.type, final=True)


class _Checker:
    def __init__(self, expression: str, list_attributes: bool) -> None:
        self.expression = expression
        self.functions = functions(list_attributes)
        self.fields = _LIST_FIELDS if list_attributes else _SCALAR_FIELDS
        self.known = Substitution()
        self.locals: dict[str, list[Binding]] = {}
        self.checked: list[Node] = []

    def fail(self, node: Node, message: str) -> CelError:
        return CelError(message, self.expression, node.offset)

    def expect(self, node: Node, wanted: StaticType, found: StaticType) -> CelError:
        wanted, found = self.known.resolve(wanted, final=True), self.known.resolve(found, final=True)
        return self.fail(node, f"expected type '{wanted}' but found '{found}'")

    def check(self, node: Node) -> Pass[None]:
        kind = type(node)
        if kind is Literal:
            self.literal(node)
        elif kind is Ident:
            self.ident(node)
        elif node.type is static.ERROR:
            yield _PASSES[kind](self, node)
            if node.type.depth > MAX_TYPE_DEPTH:
                raise self.fail(node, f"the type of this is nested deeper than {MAX_TYPE_DEPTH}")
            self.checked.append(node)

    def literal(self, node: Any) -> None:
        value = node.value
        if type(value) is int and value > INT_MAX:
            raise self.fail(node, "invalid int literal")
        node.type = _LITERAL_TYPES[type(value)]

    # Names ----------------------------------------------------------------------------------------------------------

    def ident(self, node: Any) -> None:
        bindings = self.locals.get(node.name)
        if bindings:
            node.binding = bindings[-1]
            node.type = node.binding.type
            self.checked.append(node)
            return
        name = node.name.lstrip(".")
        if name == "device":
            node.binding = DEVICE_BINDING
            node.type = DEVICE
            return
        if name not in _TYPE_CONSTANTS:
            raise self.fail(node, f"undeclared reference to '{name}'")
        node.constant = TYPE_NAMES[name]
        node.type = static.type_type(_TYPE_CONSTANTS[name])

    def qualified(self, node: Node) -> str | None:
        """A chain of selections from a name, as one name with dots."""
        fields: list[str] = []
        while type(node) is Select:
            if node.test:
                return None
            fields.append(node.field)
            node = node.operand
        if type(node) is not Ident:
            return None
        fields.append(node.name)
        return ".".join(reversed(fields))

    def root_is_local(self, name: str) -> bool:
        return not name.startswith(".") and bool(self.locals.get(name.split(".")[0]))

    def select(self, node: Select) -> Pass[None]:
        name = self.qualified(node)
        if name is not None and not self.root_is_local(name) and name.lstrip(".") in _TYPE_CONSTANTS:
            node.constant = TYPE_NAMES[name.lstrip(".")]
            node.type = static.type_type(_TYPE_CONSTANTS[name.lstrip(".")])
            return
        yield self.check(node.operand)
        found = self.field_type(node, node.operand, node.field, optional=False)
        node.type = static.BOOL if node.test else self.known.resolve(found)

    def field_type(self, node: Node, operand: Node, field: str, *, optional: bool) -> StaticType:
        target = self.known.resolve(operand.type)
        if static.is_optional(target):
            target, optional = target.parameters[0], True
        if target.kind == "map":
            found = target.parameters[1]
        elif target.kind == "struct":
            fields = self.fields if target.name == DEVICE.name else {}
            if field not in fields:
                raise self.fail(node, f"undefined field '{field}' of {target}" + _one_of(fields))
            found = fields[field]
        elif target.kind == "param":
            self.known.assignable(static.DYN, target)
            found = static.DYN
        elif static.is_dyn(target):
            found = static.DYN
        else:
            raise self.fail(node, f"type '{target}' does not support field selection")
        return static.optional_type(found) if optional else found

    # Calls ----------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Pass[None]:
        if node.function == "_?._":
            operand, name = node.arguments
            yield self.check(operand)
            self.literal(name)
            assert type(name) is Literal
            node.type = self.known.resolve(self.field_type(node, operand, name.value, optional=True))
            node.overloads = self.functions["_?._"]
            return
        for argument in node.arguments:
            yield self.check(argument)
        if node.target is not None:
            prefix = self.qualified(node.target)
            full = None if prefix is None else f"{prefix.lstrip('.')}.{node.function}"
            if full in self.functions:
                assert full is not None
                node.function, node.target = full, None
            else:
                yield self.check(node.target)
        else:
            node.function = node.function.lstrip(".")
        if node.function in ("_&&_", "_||_"):
            for argument in node.arguments:
                if not self.known.assignable(argument.type, static.BOOL):
                    raise self.expect(argument, static.BOOL, argument.type)
            node.type, node.overloads = static.BOOL, self.functions[node.function]
            return
        candidates = self.functions.get(node.function)
        if candidates is None:
            raise self.fail(node, f"undeclared reference to '{node.function}'")
        self.resolve(node, candidates)

    def resolve(self, node: Call, candidates: tuple[Overload, ...]) -> None:
        """Find the overloads that fit; with arguments of type dyn that may be several."""
        member = node.target is not None
        types = [operand.type for operand in node.operands()]
        known = self.known
        fitting: list[Overload] = []
        result: StaticType | None = None
        for overload in candidates:
            if overload.member is not member or len(overload.arguments) != len(types):
                continue
            wanted, gives = overload.arguments, overload.result
            if overload.generic:
                *instances, gives = known.instantiate((*wanted, gives))
                wanted = tuple(instances)
            if not known.all_assignable(types, wanted):
                continue
            fitting.append(overload)
            found = known.resolve(gives)
            if result is None:
                result = found
            elif not static.is_dyn(result) and not found.is_exactly(result):
                result = static.DYN
        if result is None:
            shown = [str(known.resolve(t, final=True)) for t in types]
            applied = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            raise self.fail(node, f"found no matching overload for '{node.function}' applied to '{applied}'")
        node.type, node.overloads = result, tuple(fitting)

    # Aggregates -----------------------------------------------------------------------------------------------------

    def join(self, before: StaticType | None, found: StaticType) -> StaticType:
        if before is None:
            return found
        if self.known.assignable(before, found):
            return static.more_general(before, found)
        return static.DYN

    def unwrapped(self, node: Node) -> StaticType:
        """The type of what an entry with `?` adds."""
        found = self.known.resolve(node.type)
        if static.is_optional(found):
            return found.parameters[0]
        if not static.is_dyn(found):
            raise self.expect(node, static.optional_type(found), found)
        return found

    def list_literal(self, node: ListLiteral) -> Pass[None]:
        found: StaticType | None = None
        for index, element in enumerate(node.elements):
            yield self.check(element)
            found = self.join(found, self.unwrapped(element) if index in node.optional else element.type)
        node.type = static.list_type(found or self.known.fresh())

    def map_literal(self, node: MapLiteral) -> Pass[None]:
        keys: StaticType | None = None
        values: StaticType | None = None
        for index, (key, value) in enumerate(node.entries):
            yield self.check(key)
            keys = self.join(keys, key.type)
            yield self.check(value)
            values = self.join(values, self.unwrapped(value) if index in node.optional else value.type)
        node.type = static.map_type(keys or self.known.fresh(), values or self.known.fresh())

    # Comprehensions -------------------------------------------------------------------------------------------------

    def bind(self, name: str, found: StaticType) -> Binding:
        binding = Binding(name, found)
        self.locals.setdefault(name, []).append(binding)
        return binding

    def comprehension(self, node: Comprehension) -> Pass[None]:
        yield self.check(node.range)
        yield self.check(node.init)
        ranged = self.known.resolve(node.range.type)
        element: StaticType
        element2: StaticType
        if ranged.kind == "list":
            element, element2 = ranged.parameters[0], ranged.parameters[0]
            if node.variable2 is not None:
                element = static.INT
        elif ranged.kind == "map":
            element, element2 = ranged.parameters
        elif ranged.kind in ("dyn", "param"):
            self.known.assignable(static.DYN, ranged)
            element = element2 = static.DYN
        else:
            raise self.fail(node.range, f"expression of type '{ranged}' cannot be range of a comprehension")
        node.accumulator_binding = self.bind(node.accumulator, node.init.type)
        node.variable_binding = self.bind(node.variable, element)
        if node.variable2 is not None:
            node.variable2_binding = self.bind(node.variable2, element2)
        yield self.check(node.condition)
        if not self.known.assignable(static.BOOL, node.condition.type):
            raise self.expect(node.condition, static.BOOL, node.condition.type)
        yield self.check(node.step)
        if not self.known.assignable(node.init.type, node.step.type):
            raise self.expect(node.step, node.init.type, node.step.type)
        self.locals[node.variable].pop()
        if node.variable2 is not None:
            self.locals[node.variable2].pop()
        yield self.check(node.result)
        self.locals[node.accumulator].pop()
        node.type = self.known.resolve(node.result.type)


def _one_of(names: dict[str, StaticType]) -> str:
    return f" (it has {', '.join(names)})" if names else ""


_PASSES: Final[dict[type, Any]] = {
    Select: _Checker.select,
    Call: _Checker.call,
    ListLiteral: _Checker.list_literal,
    MapLiteral: _Checker.map_literal,
    Comprehension: _Checker.comprehension,
}
