"""The objects as the checks see them: by name, and devices by what selectors can tell apart.

What a pool offers is decided by the same code that the allocator uses. Devices with the same values form one row: a
fleet of 60,000 devices has some dozen of them, and each selector runs once a row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from dra_alloc.api import (
    Device,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    KubernetesObject,
    Namespace,
    Node,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePoolStatusRequest,
    ResourceSlice,
)
from dra_alloc.codec.sources import Origin
from dra_alloc.errors import CelError
from dra_alloc.gates import Features
from dra_alloc.inventory import PoolTable, compile_pool
from dra_alloc.lint._findings import RULES, Finding, Fix
from dra_alloc.pools import PoolKey, rule_selects
from dra_alloc.rules import namesake

if TYPE_CHECKING:
    from dra_alloc.cel import DeviceEnv, Program, VerdictCache

__all__ = ["Failure", "Item", "Published", "Row", "Selection", "World", "finding", "key_of"]

_CLUSTER_SCOPED = (ResourceSlice, DeviceClass, DeviceTaintRule, Namespace, Node, ResourcePoolStatusRequest)

T = TypeVar("T", bound=KubernetesObject)
M = TypeVar("M")


@attrs.frozen
class Item:
    """An object of the input: its position, and where it was read."""

    index: int
    obj: KubernetesObject
    origin: Origin

    @property
    def label(self) -> str:
        """Kind and key, as findings name the object."""
        return f"{type(self.obj).__name__} {key_of(self.obj)}"


@attrs.frozen(eq=False)
class Published:
    """A device of the newest generation of a pool. `node` is the one that reaches it, empty if there may be several."""

    key: PoolKey
    device: Device
    taints: tuple[DeviceTaint, ...]
    node: str

    @property
    def name(self) -> str:
        """`driver/pool/device`."""
        return f"{self.key[0]}/{self.key[1]}/{self.device.name}"


class Row:
    """Devices that no selector can tell apart."""

    __slots__ = ("_env", "_fault", "device", "driver", "members")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device
        self.members: list[Published] = []
        self._env: DeviceEnv | None = None
        self._fault: CelError | None = None

    def env(self) -> DeviceEnv | CelError:
        """What expressions see of the device, or why they cannot see anything."""
        if self._env is None and self._fault is None:
            from dra_alloc.cel import device_env

            try:
                self._env = device_env(self.driver, self.device)
            except CelError as error:
                self._fault = error
        return self._env if self._env is not None else self._fault or CelError("no environment")


@attrs.frozen
class Failure:
    """A selector that fails: its position, the first device it fails on, the number of them, and why.

    other: what the device publishes in place of what it lacks, under the same name in another domain.
    """

    selector: int
    device: Published
    count: int
    message: str
    other: str | None = None


@attrs.frozen
class Selection:
    """Rows that pass selectors, and the selectors that fail on rows that got as far as them.

    unknown: a selector could not be judged (it does not compile), so that `rows` may be too many.
    """

    rows: tuple[Row, ...]
    failures: tuple[Failure, ...] = ()
    unknown: bool = False

    @cached_property
    def most_on_a_node(self) -> int | None:
        """The most of these devices that a node can have; None if one can be had any number of times."""
        if any(row.device.allow_multiple_allocations for row in self.rows):
            return None
        by_node = Counter(member.node for row in self.rows for member in row.members)
        wide = by_node.pop("", 0)
        return wide + max(by_node.values(), default=0)

    @cached_property
    def total(self) -> int:
        """The number of these devices."""
        return sum(len(row.members) for row in self.rows)


class World:
    """All objects, indexed once."""

    def __init__(self, objects: Iterable[KubernetesObject], origins: Sequence[Origin], features: Features) -> None:
        self.features = features
        self.items = [
            Item(index, obj, origins[index] if index < len(origins) else Origin()) for index, obj in enumerate(objects)
        ]
        self._by_type: dict[type[KubernetesObject], list[Item]] = defaultdict(list)
        for item in self.items:
            self._by_type[type(item.obj)].append(item)
        self._memos: dict[str, Any] = {}
        self._selections: dict[tuple[object, ...], Selection] = {}

    def of(self, kind: type[T]) -> Iterator[tuple[Item, T]]:
        """The objects of a kind, each with its item."""
        for item in self._by_type.get(kind, ()):
            assert isinstance(item.obj, kind)
            yield item, item.obj

    def has(self, *kinds: type[KubernetesObject]) -> bool:
        """Whether there is any object of these kinds; what is not there at all is taken as not given."""
        return any(self._by_type.get(kind) for kind in kinds)

    @cached_property
    def classes(self) -> Mapping[str, DeviceClass]:
        return {obj.metadata.name: obj for _, obj in self.of(DeviceClass)}

    @cached_property
    def claims(self) -> Mapping[str, ResourceClaim]:
        return {key_of(obj): obj for _, obj in self.of(ResourceClaim)}

    @cached_property
    def templates(self) -> Mapping[str, ResourceClaimTemplate]:
        return {key_of(obj): obj for _, obj in self.of(ResourceClaimTemplate)}

    @cached_property
    def namespaces(self) -> Mapping[str, Namespace]:
        return {obj.metadata.name: obj for _, obj in self.of(Namespace)}

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {obj.metadata.name: obj for _, obj in self.of(Node)}

    @cached_property
    def slices(self) -> Mapping[str, Item]:
        """Items of slices by name; of two with one name the later."""
        return {obj.metadata.name: item for item, obj in self.of(ResourceSlice)}

    @cached_property
    def pools(self) -> Mapping[PoolKey, PoolTable]:
        """Pools as the allocator compiles them."""
        slices: dict[PoolKey, list[ResourceSlice]] = defaultdict(list)
        for item in self.slices.values():
            assert isinstance(item.obj, ResourceSlice)
            slices[item.obj.spec.driver, item.obj.spec.pool.name].append(item.obj)
        rules = [obj for _, obj in self.of(DeviceTaintRule)]
        tables = {key: compile_pool(key, parts, rules, self.features) for key, parts in slices.items()}
        return {key: table for key, table in tables.items() if table is not None}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """All published devices, also those of pools that offer none for now."""
        rows: dict[tuple[object, ...], Row] = {}
        for published in self._published():
            device = published.device
            driver = published.key[0]
            # Maps that were read together are shared; others are compared as little as their devices are many.
            row_key = (driver, id(device.attributes), id(device.capacity), bool(device.allow_multiple_allocations))
            row = rows.get(row_key)
            if row is None:
                row = rows[row_key] = Row(driver, device)
            row.members.append(published)
        return tuple(rows.values())

    def _published(self) -> Iterator[Published]:
        rules = [obj for _, obj in self.of(DeviceTaintRule)]
        for key, table in self.pools.items():
            if not table.fault:
                for device, number, taints in zip(table.devices, table.slice_of, table.taints, strict=True):
                    yield Published(key, device, taints, _only_node(table.slices[number], device))
                continue
            for item in table.slices:
                for device in item.spec.devices:
                    added = tuple(rule.spec.taint for rule in rules if rule_selects(rule, key, device.name))
                    yield Published(key, device, (*device.taints, *added), _only_node(item, device))

    def select(self, rows: tuple[Row, ...], selectors: tuple[DeviceSelector, ...]) -> Selection:
        """The rows that pass the selectors, each judged on what those before it let through."""
        expressions = tuple(item.cel.expression if item.cel else None for item in selectors)
        key = (id(rows), expressions)
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = self._select(rows, expressions)
        return found

    def _select(self, rows: tuple[Row, ...], expressions: tuple[str | None, ...]) -> Selection:
        failures = []
        unknown = False
        for number, expression in enumerate(expressions):
            program = self._program(expression)
            if program is None:
                unknown = True
                continue
            verdicts = [(row, self._verdict(program, row)) for row in rows]
            rows = tuple(row for row, verdict in verdicts if verdict is True)
            faults = [(row, verdict) for row, verdict in verdicts if isinstance(verdict, CelError)]
            if faults:
                (first, error), count = faults[0], sum(len(row.members) for row, _ in faults)
                failures.append(Failure(number, first.members[0], count, error.message, self._namesake(program, first)))
        return Selection(rows, tuple(failures), unknown)

    def memo(self, name: str, make: Callable[[World], M]) -> M:
        """Something that a check keeps for as long as the world is looked at."""
        if name not in self._memos:
            self._memos[name] = make(self)
        found: M = self._memos[name]
        return found

    def compiles(self, expression: str) -> bool:
        """Whether an expression that derives an attribute compiles; validation tells of one that does not."""
        from dra_alloc.cel import compile_derived

        try:
            compile_derived(expression)
        except CelError:
            return False
        return True

    def _program(self, expression: str | None) -> Program | None:
        from dra_alloc.cel import compile_selector

        try:
            if expression is None:
                return None
            return compile_selector(expression, list_attributes=self.features.DRAListTypeAttributes)
        except CelError:
            return None

    def _namesake(self, program: Program, row: Row) -> str | None:
        """What a device has of a name that the expression looks for in a domain of which nobody publishes anything."""
        reads: list[tuple[Iterable[str], tuple[str, str]]] = []
        reads += ((row.device.attributes, read) for read in sorted(program.reads.attributes))
        reads += ((row.device.capacity, read) for read in sorted(program.reads.capacity))
        found = (
            namesake(names, domain, name, row.driver)
            for names, (domain, name) in reads
            if all(other.driver != domain for other in self.rows)
        )
        return next(filter(None, found), None)

    def _verdict(self, program: Program, row: Row) -> bool | CelError:
        env = row.env()
        return env if isinstance(env, CelError) else self._cache.get(program, env)

    @cached_property
    def _cache(self) -> VerdictCache:
        from dra_alloc.cel import VerdictCache

        return VerdictCache()

    def of_class(self, name: str) -> Selection | None:
        """What passes the selectors of a class; None if there is no such class."""
        found = self.classes.get(name)
        return None if found is None else self.select(self.rows, found.spec.selectors)


def finding(item: Item, code: str, path: str, message: str, hint: str = "", fix: Fix | None = None) -> Finding:
    """A finding about an object of the input."""
    severity = RULES[code].severity
    return Finding(code, severity, item.label, path, message, hint, fix, item.index, item.origin.where)


def _only_node(item: ResourceSlice, device: Device) -> str:
    if item.spec.per_device_node_selection:
        return device.node_name or ""
    return item.spec.node_name or ""


def key_of(obj: KubernetesObject) -> str:
    """`namespace/name`, with the namespace default where a namespaced object has none; else the name."""
    meta = obj.metadata
    if isinstance(obj, _CLUSTER_SCOPED):
        return str(meta.name)
    return f"{meta.namespace or 'default'}/{meta.name or meta.generate_name or ''}"
