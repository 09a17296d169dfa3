"""Which parts of a device an expression reads, and the key that their values make."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import attrs

from dra_alloc.cel.checker import DEVICE_BINDING
from dra_alloc.cel.device import DeviceEnv, distinct
from dra_alloc.cel.fold import Constants
from dra_alloc.cel.syntax import (
    Binding,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
)

__all__ = ["Reads", "reads_of"]

_MISSING: Final = object()


@attrs.frozen
class Reads:
    """What an expression reads of a device.

    driver, allow_multiple: whether it reads those fields. attributes, capacity: (domain, name) of what it reads,
    present or not. whole: it reads keys that it computes, or whole maps, so that anything may matter.
    """

    driver: bool = False
    allow_multiple: bool = False
    attributes: frozenset[tuple[str, str]] = frozenset()
    capacity: frozenset[tuple[str, str]] = frozenset()
    whole: bool = False
    key: Callable[[DeviceEnv], Hashable] = attrs.field(init=False, eq=False, repr=False)

    @key.default
    def _make_key(self) -> Callable[[DeviceEnv], Hashable]:
        if self.whole:
            return DeviceEnv.row
        attributes, capacity = sorted(self.attributes), sorted(self.capacity)
        fields = [name for name, read in (("driver", self.driver), ("allow_multiple", self.allow_multiple)) if read]

        def key(env: DeviceEnv) -> Hashable:
            parts: list[Hashable] = [getattr(env, field) for field in fields]
            for domain, name in attributes:
                parts.append(distinct(env.attributes.find(domain).get(name, _MISSING)))
            for domain, name in capacity:
                parts.append(distinct(env.capacity.find(domain).get(name, _MISSING)))
            return tuple(parts)

        return key


class _Finder:
    """Walks a tree and notes what is read of the device."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.driver = False
        self.allow_multiple = False
        self.whole = False
        self.names: dict[str, set[tuple[str, str]]] = {"attributes": set(), "capacity": set()}
        #: Variables that are bound to the map of one domain.
        self.domains: dict[Binding, tuple[str, str]] = {}

    def find(self, root: Node) -> None:
        seen: set[Node] = set()
        work = [root]
        while work and not self.whole:
            node = work.pop()
            if node in seen or node in self.constants:
                continue
            seen.add(node)
            work.extend(self.below(node))

    def below(self, node: Node) -> list[Node]:
        """Note what a node reads; the nodes that remain to be looked at."""
        if type(node) is Ident:
            self.whole = node.binding is DEVICE_BINDING or node.binding in self.domains
            return []
        if type(node) is Select:
            return self.step(node, node.operand, node.field)
        if type(node) is Call:
            return self.call(node)
        if type(node) is ListLiteral:
            return list(node.elements)
        if type(node) is MapLiteral:
            return [inner for entry in node.entries for inner in entry]
        assert type(node) is Comprehension
        if node.macro != "bind":
            return [node.range, node.init, node.condition, node.step, node.result]
        domain = self.domain(node.init)
        if domain is None:
            return [node.init, node.result]
        assert node.accumulator_binding is not None
        self.domains[node.accumulator_binding] = domain
        return [node.result]

    def call(self, node: Call) -> list[Node]:
        operands = node.operands()
        if node.function in ("_[_]", "_[?_]", "_?._"):
            key = self.text(operands[1])
            if key is not None:
                return self.step(node, operands[0], key)
        if node.function == "_in_":
            key, domain = self.text(operands[0]), self.domain(operands[1])
            if key is not None and domain is not None:
                self.names[domain[0]].add((domain[1], key))
                return []
        return operands

    def step(self, node: Node, operand: Node, name: str) -> list[Node]:
        """A selection: of a field of the device, of a name in a domain, or of something else."""
        if _is_device(operand):
            if name == "driver":
                self.driver = True
            elif name == "allowMultipleAllocations":
                self.allow_multiple = True
            else:
                self.whole = True
            return []
        domain = self.domain(operand)
        if domain is not None:
            self.names[domain[0]].add((domain[1], name))
            return []
        return [operand]

    def domain(self, node: Node) -> tuple[str, str] | None:
        """`attributes` or `capacity` and the domain, if a node is the map of one domain."""
        if type(node) is Ident:
            return self.domains.get(node.binding) if node.binding is not None else None
        key: str | None = None
        operand: Node = node
        if type(node) is Call and node.function == "_[_]":
            key, operand = self.text(node.arguments[1]), node.arguments[0]
        elif type(node) is Select and not node.test:
            key, operand = node.field, node.operand
        if key is not None and type(operand) is Select and not operand.test and _is_device(operand.operand):
            return (operand.field, key) if operand.field in self.names else None
        return None

    def text(self, node: Node) -> str | None:
        value = self.constants.values.get(node)
        return value if type(value) is str else None


def _is_device(node: Node) -> bool:
    return type(node) is Ident and node.binding is DEVICE_BINDING


def reads_of(root: Node, constants: Constants) -> Reads:
    """What a checked expression reads."""
    finder = _Finder(constants)
    finder.find(root)
    if finder.whole:
        return Reads(whole=True)
    return Reads(
        driver=finder.driver,
        allow_multiple=finder.allow_multiple,
        attributes=frozenset(finder.names["attributes"]),
        capacity=frozenset(finder.names["capacity"]),
    )
