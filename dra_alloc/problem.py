"""One question as tables: what the claims ask for, and what each device means to it.

A `Question` is compiled from the specs of claims, their classes and the features; it does not depend on nodes or on
what is in use, and is shared by all forks of a cluster. Devices that are equal in all that the question can see of them
share a row of its tables. Verdicts of selectors are evaluated once a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import gcd
from operator import is_
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc import _core
from dra_alloc._rows import Reader
from dra_alloc.api import Device, DeviceAttribute
from dra_alloc.cel import Program, compile_derived, compile_selector, device_env
from dra_alloc.errors import AllocationError, CelError
from dra_alloc.pools import AT_ODDS
from dra_alloc.rules import (
    attribute_values,
    capacity_fault,
    consumed_amount,
    derived_values,
    published_capacities,
    qualified,
    tolerated,
)

if TYPE_CHECKING:
    from dra_alloc._core import PoolRows, Tables, Wide
    from dra_alloc.api import (
        DeviceCapacity,
        DeviceClass,
        DeviceRequest,
        DeviceSubRequest,
        DeviceTaint,
        DeviceToleration,
        ExactDeviceRequest,
        ResourceClaim,
    )
    from dra_alloc.cluster import Cluster
    from dra_alloc.gates import Features
    from dra_alloc.inventory import PoolState, PoolTable

__all__ = ["MAX_RESULTS", "Alternative", "Question", "RequestSlot", "RequestType", "compile_question"]

#: The most devices that a claim can get (API field `status.allocation.devices.results`).
MAX_RESULTS = 32

_NARROW = 1 << 58
_MAX_ROWS = 500_000

#: Questions of which a pool keeps the rows; with the devices of a large fleet each takes megabytes.
_MAX_TABLES = 16
_LARGEST_COUNT = 1 << 61

_numbers = count(1)


@attrs.frozen(eq=False)
class RequestType:
    """What a (sub)request demands of each single device.

    programs: selectors of the class, then of the request, or the errors of those that do not compile.
    """

    number: int
    device_class: DeviceClass
    expressions: tuple[str, ...]
    class_selectors: int
    programs: tuple[Program | CelError, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, int], ...]
    admin: bool


@attrs.frozen(eq=False)
class Alternative:
    """A request, or one subrequest of it. `reference` is how results name it; `body` the API object.

    number: of this object, never used again.
    """

    type: RequestType
    reference: str
    body: ExactDeviceRequest | DeviceSubRequest
    count: int
    every: bool
    number: int = attrs.field(factory=lambda: next(_numbers))


@attrs.frozen(eq=False)
class RequestSlot:
    """A request in its place: claim by number among those to allocate."""

    claim: int
    request: DeviceRequest
    alternatives: tuple[Alternative, ...]


@attrs.frozen(eq=False)
class ValueTable:
    """Where the values for a constraint come from: an attribute of devices, or a derived attribute."""

    attribute: str
    derived: Program | CelError | None


@attrs.frozen(eq=False)
class RowFacts:
    """What a row of the tables means. capacities: (name as published, nanos) of the own columns."""

    capacities: tuple[tuple[str, int], ...] = ()
    scales: tuple[int, ...] = ()
    wide: tuple[bool, ...] = ()
    amounts: tuple[tuple[int, ...], ...] = ()  # nanos by type and column; empty for types that the device does not fit


class Question:
    """Claims to allocate together, compiled. Make it with `compile_question`."""

    def __init__(self, claims: Sequence[ResourceClaim], features: Features) -> None:
        self.number = next(_numbers)
        self.claims = tuple(claims)
        self.features = features
        self.types: list[RequestType] = []
        self.slots: list[RequestSlot] = []
        self.tables: Tables
        self.has_every = False
        self.is_small = False  # known to ask for no more devices a claim than it can have
        self.verdicts: dict[tuple[object, ...], int] = {}  # by signature of a node: see feasibility.py
        self._value_tables: list[ValueTable] = []
        self._reader: Reader
        self._rows: dict[bytes, int] = {}  # by key of the reader
        self.alive: list[object] = []  # what `question_key` knows by identity
        self._facts: list[RowFacts] = []
        self._canonical: dict[object, int] = {}
        self._value_numbers: dict[tuple[str, object], int] = {}
        self._value_sets: dict[frozenset[int], int] = {}
        self._groups: dict[str, int] = {}
        self._table_of: dict[tuple[int, int, int], int] = {}  # by slot, alternative, constraint
        self.wide_rows: set[int] = set()  # rows with amounts that do not fit into 64 bits

    def for_claims(self, claims: tuple[ResourceClaim, ...]) -> Question:
        """The same question, asked by other claims that ask for the same; it shares all that was compiled."""
        if all(map(is_, claims, self.claims)):
            return self
        other = Question.__new__(Question)
        other.__dict__.update(self.__dict__)
        other.claims = claims
        return other

    # What devices mean

    def rows(self, table: PoolTable) -> PoolRows:
        """The devices of a pool that mean something to the question."""
        found = table.rows.get(self.number)
        if found is None:
            if len(table.rows) >= _MAX_TABLES:
                del table.rows[next(iter(table.rows))]
            found = table.rows[self.number] = self._compile_rows(table)
        return found

    def _compile_rows(self, table: PoolTable) -> PoolRows:
        numbers = self._reader.rows(table.key[0], table.devices, table.taints, self._rows, self._compile_row)
        if not table.draws:
            rows = _core.PoolRows(self.tables, (), (), 0)
            rows.add_plain(numbers, table.slice_of)
            return rows
        block_of_set = table.blocks
        sets = {name: number for number, name in enumerate(table.sets)}
        blocks_of_columns = [block_of_set[sets[name]] for name, _ in table.columns]
        rows = _core.PoolRows(self.tables, blocks_of_columns, block_of_set, max(block_of_set, default=-1) + 1)
        for index, row in enumerate(numbers):
            if not self.tables.is_wanted(row):
                continue
            memberships = table.memberships[index]
            rows.add(
                index,
                table.slice_of[index],
                row,
                block_of_set[memberships[0][0]] if memberships else -1,
                table.unit_draws(index),
                [(number, self.groups(groups)) for number, groups in memberships],
                any(groups == AT_ODDS for _, groups in memberships),
            )
        return rows

    def keys(self, table: PoolTable) -> list[bytes]:
        """A key for each device of a pool: equal keys, equal meaning to the question, use and counters aside."""
        return self._reader.keys(table.key[0], table.devices, table.taints)

    def groups(self, names: Sequence[str]) -> list[int]:
        """Numbers of compatibility groups."""
        return [self._groups.setdefault(name, len(self._groups)) for name in names]

    @property
    def has_derived(self) -> bool:
        """Whether constraints look at derived attributes."""
        return any(entry.derived is not None for entry in self._value_tables)

    def row(self, table: PoolTable, index: int) -> int:
        """Number of the row of a device of a pool that `rows` was called for."""
        (key,) = self._reader.keys(table.key[0], table.devices[index : index + 1], table.taints[index : index + 1])
        return self._rows[key]

    def _compile_row(self, driver: str, device: Device, taints: tuple[DeviceTaint, ...]) -> int:
        env = _Env(driver, device)
        multi = self.features.DRAConsumableCapacity and bool(device.allow_multiple_allocations)
        capacities = published_capacities(device, driver)
        codes = []
        amounts: list[tuple[int, ...]] = []
        for kind in self.types:
            code, taken = self._judge(kind, driver, device, taints, env, capacities)
            codes.append(code)
            amounts.append(taken if multi and code in (_core.CODE_OK, _core.CODE_BARRED) else ())
        if all(code == _core.CODE_NO for code in codes):
            values = [-1] * len(self._value_tables)
        else:
            values = [self._values(entry, driver, device, env) for entry in self._value_tables]
        facts = _row_facts(capacities, amounts) if multi and any(amounts) else RowFacts(amounts=tuple(amounts))
        key = (tuple(codes), tuple(values), multi, facts.capacities, facts.amounts)
        row = self._canonical.get(key)
        if row is None:
            row = self._canonical[key] = self._add_row(codes, values, multi, facts)
        return row

    def _add_row(self, codes: list[int], values: list[int], multi: bool, facts: RowFacts) -> int:
        narrow = [column for column in range(len(facts.capacities)) if not facts.wide[column]]
        units = [
            [taken[column] // facts.scales[column] for column in narrow] if taken else [0] * len(narrow)
            for taken in facts.amounts
        ]
        room = [_narrow(facts.capacities[column][1] // facts.scales[column]) for column in narrow]
        self._facts.append(facts)
        row = self.tables.add_row(codes, values, multi, room, units)
        if any(facts.wide):
            self.wide_rows.add(row)
        return row

    # The rules for a single device

    def _judge(
        self,
        kind: RequestType,
        driver: str,
        device: Device,
        taints: tuple[DeviceTaint, ...],
        env: _Env,
        capacities: dict[str, tuple[str, DeviceCapacity]],
    ) -> tuple[int, tuple[int, ...]]:
        """What a device is to a type of request, apart from what is in use, and how much of its capacities it takes."""
        if device.binding_conditions and not (
            self.features.DRADeviceBindingConditions and self.features.DRAResourceClaimDeviceStatus
        ):
            return _core.CODE_NO, ()
        verdict = env.passes(kind.programs)
        if verdict is not True:
            return (_core.CODE_NO if verdict is False else _core.CODE_BROKEN), ()
        if capacity_fault(kind.capacity, driver):
            return _core.CODE_MALFORMED, ()
        taken: tuple[int, ...] = ()
        fits = True
        if self.features.DRAConsumableCapacity:
            fits, taken = self._capacity(kind, driver, capacities)
        barred = (device.consumes_counters and not self.features.DRAPartitionableDevices) or not all(
            tolerated(taint, kind.tolerations) for taint in taints
        )
        if not fits:
            return (_core.CODE_USELESS if barred else _core.CODE_SMALL), ()
        return (_core.CODE_BARRED if barred else _core.CODE_OK), taken

    def _capacity(
        self, kind: RequestType, driver: str, capacities: dict[str, tuple[str, DeviceCapacity]]
    ) -> tuple[bool, tuple[int, ...]]:
        asked = {qualified(name, driver): nano for name, nano in kind.capacity}
        if any(name not in capacities for name in asked):
            return False, ()
        taken = []
        for name, (_, capacity) in capacities.items():
            amount = consumed_amount(asked.get(name), capacity, self.features)
            if amount is None or amount > capacity.value.nano:
                return False, ()
            taken.append(amount)
        return True, tuple(taken)

    def constraint_values(
        self, slot: int, alternative: int, constraint: int, driver: str, device: Device
    ) -> frozenset[tuple[str, object]] | None:
        """The values (type, value) that a constraint, numbered over all claims, looks at on a device.

        None if the constraint does not concern the alternative, empty if the device has no such values. Raises CelError
        where a derived attribute fails.
        """
        number = self._table_of.get((slot, alternative, constraint))
        if number is None:
            return None
        return self._found_values(self._value_tables[number], driver, device, _Env(driver, device))

    def _found_values(self, entry: ValueTable, driver: str, device: Device, env: _Env) -> frozenset[tuple[str, object]]:
        lists = self.features.DRAListTypeAttributes
        if entry.derived is not None:
            return derived_values(env.derive(entry.derived), lists)
        domain, _, name = entry.attribute.rpartition("/")
        attribute = device.attributes.get(entry.attribute)
        if attribute is None and domain == driver:
            attribute = device.attributes.get(name)
        return attribute_values(attribute, lists) if attribute is not None else frozenset()

    def _values(self, entry: ValueTable, driver: str, device: Device, env: _Env) -> int:
        """The set of values of an attribute: its number, -1 for none, -2 for an error."""
        try:
            found = self._found_values(entry, driver, device, env)
        except CelError:
            return -2
        if not found:
            return -1
        numbers = frozenset(self._value_numbers.setdefault(value, len(self._value_numbers)) for value in found)
        number = self._value_sets.get(numbers)
        if number is None:
            number = self._value_sets[numbers] = self.tables.add_values(numbers)
        return number

    # Amounts in use

    def rooms_left(self, table: PoolTable, state: PoolState) -> Mapping[int, Sequence[int]]:
        """By device that is used in shares: units left of each narrow own column."""
        found = state.rooms.get(self.number)
        if found is None:
            if len(state.rooms) > 64:
                state.rooms.clear()
            found = state.rooms[self.number] = {
                index: self._room_left(table, index, used) for index, used in state.shares.items()
            }
        return found

    def _room_left(self, table: PoolTable, index: int, used: Mapping[str, int]) -> list[int]:
        facts = self._facts[self.row(table, index)]
        return [
            _narrow(nano // facts.scales[column])
            for column, nano in enumerate(_left(facts, table.key[0], used))
            if not facts.wide[column]
        ]

    def wide_amounts(self, table: PoolTable, state: PoolState) -> Wide:
        """What `Search.add_pool` takes as `wide`: nanos of the columns that do not fit into 64 bits."""
        columns = [column for column, wide in enumerate(table.wide) if wide]
        place = {column: number for number, column in enumerate(columns)}
        draws: dict[int, list[tuple[int, int]]] = {}
        own: dict[int, tuple[list[int], dict[int, list[tuple[int, int]]]]] = {}
        for index in range(len(table.devices)):
            if table.draws:
                here = [(place[column], nano) for column, nano in table.draws[index] if column in place]
                if here:
                    draws[index] = here
            facts = self._facts[self.row(table, index)]
            if any(facts.wide):
                wide = [column for column in range(len(facts.wide)) if facts.wide[column]]
                left = _left(facts, table.key[0], state.shares.get(index, {}))
                by_type = {
                    number: [(position, taken[column]) for position, column in enumerate(wide)]
                    for number, taken in enumerate(facts.amounts)
                    if taken
                }
                own[index] = ([left[column] for column in wide], by_type)
        return [state.remaining[column] for column in columns], draws, own

    def is_overgrown(self) -> bool:
        """Whether so many different devices came by that it is better to begin anew."""
        return len(self._rows) > _MAX_ROWS or len(self._reader) > _MAX_ROWS

    # Errors, worked out again for the message

    def selector_error(self, kind: RequestType, driver: str, device: Device) -> tuple[int, CelError]:
        """Which selector fails on a device, and how."""
        env = _Env(driver, device)
        for number, program in enumerate(kind.programs):
            verdict = env.verdict(program)
            if isinstance(verdict, CelError):
                return number, verdict
        raise AssertionError("no selector fails on this device")

    def derived_error(self, slot: int, alternative: int, constraint: int, driver: str, device: Device) -> CelError:
        """How a derived attribute fails on a device."""
        entry = self._value_tables[self._table_of[slot, alternative, constraint]]
        assert entry.derived is not None
        try:
            _Env(driver, device).derive(entry.derived)
        except CelError as error:
            return error
        raise AssertionError("the derived attribute does not fail on this device")


class _Env:
    """A device as expressions see it, made when the first one asks."""

    __slots__ = ("_device", "_driver", "_env")

    def __init__(self, driver: str, device: Device) -> None:
        self._driver = driver
        self._device = device
        self._env: Any = None

    def _get(self) -> Any:
        if self._env is None:
            try:
                self._env = device_env(self._driver, self._device)
            except CelError as error:
                self._env = error
        if isinstance(self._env, CelError):
            raise self._env
        return self._env

    def verdict(self, program: Program | CelError) -> bool | CelError:
        if isinstance(program, CelError):
            return program
        try:
            return program.evaluate(self._get()) is True
        except CelError as error:
            return error

    def passes(self, programs: Sequence[Program | CelError]) -> bool | CelError:
        """The verdict of all selectors, up to the first that is not true."""
        for program in programs:
            verdict = self.verdict(program)
            if verdict is not True:
                return verdict
        return True

    def derive(self, program: Program | CelError) -> Any:
        if isinstance(program, CelError):
            raise program
        return program.evaluate(self._get())


def _is_sound(value: DeviceAttribute) -> bool:
    """Whether an attribute is well-formed; if not, its mere presence makes every selector fail."""
    try:
        device_env("", Device(name="", attributes={"value": value}))
    except CelError:
        return False
    return True


def _left(facts: RowFacts, driver: str, used: Mapping[str, int]) -> list[int]:
    """Nanos left of each own column; shares in use count under either spelling of a capacity."""
    taken: dict[str, int] = {}
    for name, nano in used.items():
        full = qualified(name, driver)
        taken[full] = taken.get(full, 0) + nano
    return [nano - taken.get(qualified(name, driver), 0) for name, nano in facts.capacities]


def _narrow(units: int) -> int:
    return max(-_NARROW, min(_NARROW, units))


def _row_facts(capacities: dict[str, tuple[str, DeviceCapacity]], amounts: list[tuple[int, ...]]) -> RowFacts:
    names = [(name, capacity.value.nano) for name, capacity in capacities.values()]
    scales = []
    wide = []
    for column in range(len(names)):
        taken = [each[column] for each in amounts if each]
        scale = gcd(*taken) or 1
        scales.append(scale)
        wide.append(max(taken) // scale * 64 >= _NARROW)
    return RowFacts(tuple(names), tuple(scales), tuple(wide), tuple(amounts))


# Compiling


def question_key(claims: Sequence[ResourceClaim], cluster: Cluster, features: Features) -> object:
    """Equal keys, equal questions: everything that `compile_question` reads."""
    parts: list[object] = [features]
    for claim in claims:
        spec = claim.spec.devices
        for request in spec.requests:
            bodies = request.first_available or ((request.exactly,) if request.exactly else ())
            parts.append((request.name, bool(request.first_available)))
            for body in bodies:
                device_class = cluster.get("DeviceClass", body.device_class_name)
                parts.append(
                    (
                        getattr(body, "name", None),
                        body.device_class_name,
                        None if device_class is None else id(device_class),
                        tuple(selector.cel.expression if selector.cel else None for selector in body.selectors),
                        body.allocation_mode,
                        body.count,
                        getattr(body, "admin_access", None),
                        body.tolerations,
                        None
                        if body.capacity is None
                        else tuple((name, amount.nano) for name, amount in body.capacity.requests.items()),
                        body.derived_attributes,
                    )
                )
        parts.append(spec.constraints)
    return tuple(parts)


def compile_question(claims: Sequence[ResourceClaim], cluster: Cluster, features: Features) -> Question:
    """Compile claims that are to be allocated together.

    Raises AllocationError for what is wrong with them whatever the node: `class-not-found`, `unknown-selector`,
    `unknown-mode`, `unknown-constraint`, `unsupported`. A selector that does not compile is no error here; it is one
    when the search comes to a device that it must judge.
    """
    return _Compiler(claims, cluster, features).compile()


def _most_devices(question: Question) -> list[int]:
    """By claim, the devices that it asks for if each request takes its largest alternative."""
    most = [0] * len(question.claims)
    for slot in question.slots:
        most[slot.claim] += max(alternative.count for alternative in slot.alternatives)
    return most


class _Compiler:
    def __init__(self, claims: Sequence[ResourceClaim], cluster: Cluster, features: Features) -> None:
        self.question = Question(claims, features)
        self.cluster = cluster
        self.features = features
        self.types: dict[object, RequestType] = {}
        self.value_tables: dict[tuple[str, str | None], int] = {}

    def compile(self) -> Question:
        question = self.question
        for number, claim in enumerate(question.claims):
            for request in claim.spec.devices.requests:
                question.slots.append(self._slot(number, claim, request))
            for position, constraint in enumerate(claim.spec.devices.constraints):
                if constraint.match_attribute is None and constraint.distinct_attribute is None:
                    raise AllocationError(
                        "unknown-constraint",
                        f"spec.devices.constraints[{position}] has neither matchAttribute nor distinctAttribute",
                        claim=claim.metadata.key,
                    )
        links = self._constraints()
        question.types = list(self.types.values())
        question.tables = _core.Tables(
            len(question.types), len(question._value_tables), len(question.claims), MAX_RESULTS
        )
        for number, claim in enumerate(question.claims):
            for constraint in claim.spec.devices.constraints:
                question.tables.add_constraint(number, constraint.match_attribute is None)
        for number, slot in enumerate(question.slots):
            for place in range(len(slot.alternatives)):
                for constraint_number, table in links[number][place]:
                    question._table_of[number, place, constraint_number] = table
            question.tables.add_slot(
                slot.claim,
                [
                    (
                        alternative.type.number,
                        min(alternative.count, _LARGEST_COUNT),
                        alternative.every,
                        alternative.type.admin,
                        links[number][place],
                    )
                    for place, alternative in enumerate(slot.alternatives)
                ],
            )
            question.has_every = question.has_every or any(each.every for each in slot.alternatives)
        question.is_small = not question.has_every and max(_most_devices(question), default=0) <= MAX_RESULTS
        self._note_reads()
        return question

    def _slot(self, number: int, claim: ResourceClaim, request: DeviceRequest) -> RequestSlot:
        where = {"claim": claim.metadata.key, "request": request.name}
        bodies: tuple[ExactDeviceRequest | DeviceSubRequest, ...] = request.first_available or (
            (request.exactly,) if request.exactly else ()
        )
        if not bodies:
            raise AllocationError("unsupported", "the request has neither exactly nor firstAvailable", **where)
        if request.first_available and not self.features.DRAPrioritizedList:
            raise AllocationError("unsupported", "firstAvailable needs the feature DRAPrioritizedList", **where)
        if not self.features.DRAConsumableCapacity and any(body.capacity is not None for body in bodies):
            raise AllocationError("unsupported", "capacity requests need the feature DRAConsumableCapacity", **where)
        return RequestSlot(number, request, tuple(self._alternative(claim, request, body) for body in bodies))

    def _alternative(
        self, claim: ResourceClaim, request: DeviceRequest, body: ExactDeviceRequest | DeviceSubRequest
    ) -> Alternative:
        name = getattr(body, "name", "")
        reference = f"{request.name}/{name}" if request.first_available else request.name
        where = {"claim": claim.metadata.key, "request": reference}
        admin = getattr(body, "admin_access", None)
        if admin is not None and not self.features.DRAAdminAccess:
            raise AllocationError("unsupported", "adminAccess needs the feature DRAAdminAccess", **where)
        device_class = self.cluster.get("DeviceClass", body.device_class_name) if body.device_class_name else None
        if device_class is None:
            wanted = body.device_class_name
            raise AllocationError(
                "class-not-found",
                f"there is no DeviceClass {wanted!r}" if wanted else "the request names no DeviceClass",
                **where,
            )
        for origin, selectors in (
            (f"DeviceClass {device_class.metadata.name}", device_class.spec.selectors),
            ("the request", body.selectors),
        ):
            for position, selector in enumerate(selectors):
                if selector.cel is None:
                    message = f"selector {position} of {origin} is of no known kind (it has no cel)"
                    raise AllocationError("unknown-selector", message, **where)
        mode = body.allocation_mode or "ExactCount"
        if mode not in ("ExactCount", "All"):
            raise AllocationError("unknown-mode", f"allocationMode {mode!r} is neither ExactCount nor All", **where)
        return Alternative(self._type(device_class, body, bool(admin)), reference, body, body.count or 1, mode == "All")

    def _type(self, device_class: DeviceClass, body: ExactDeviceRequest | DeviceSubRequest, admin: bool) -> RequestType:
        capacity = (
            tuple((name, amount.nano) for name, amount in body.capacity.requests.items()) if body.capacity else ()
        )
        own = tuple(selector.cel.expression for selector in body.selectors if selector.cel)
        of_class = tuple(selector.cel.expression for selector in device_class.spec.selectors if selector.cel)
        key = (device_class.metadata.name, own, capacity, body.tolerations, admin)
        found = self.types.get(key)
        if found is None:
            expressions = (*of_class, *own)
            found = self.types[key] = RequestType(
                len(self.types),
                device_class,
                expressions,
                len(of_class),
                tuple(self._selector(expression) for expression in expressions),
                body.tolerations,
                capacity,
                admin,
            )
            self.question.alive.append(device_class)
        return found

    def _selector(self, expression: str) -> Program | CelError:
        try:
            return compile_selector(expression, list_attributes=self.features.DRAListTypeAttributes)
        except CelError as error:
            return error

    def _constraints(self) -> list[list[list[tuple[int, int]]]]:
        """By slot and alternative: the constraints that concern it, each with its value table."""
        links: list[list[list[tuple[int, int]]]] = []
        first = [0]
        for claim in self.question.claims:
            first.append(first[-1] + len(claim.spec.devices.constraints))
        for slot in self.question.slots:
            constraints = self.question.claims[slot.claim].spec.devices.constraints
            links.append(
                [
                    [
                        (first[slot.claim] + position, self._value_table(alternative, constraint))
                        for position, constraint in enumerate(constraints)
                        if not constraint.requests
                        or slot.request.name in constraint.requests
                        or alternative.reference in constraint.requests
                    ]
                    for alternative in slot.alternatives
                ]
            )
        return links

    def _value_table(self, alternative: Alternative, constraint: Any) -> int:
        attribute = constraint.match_attribute
        if attribute is None:
            attribute = constraint.distinct_attribute
        expression = None
        if self.features.DRADerivedAttributes:
            for derived in alternative.body.derived_attributes:
                if derived.name == attribute:
                    expression = derived.expression
                    break
        key = (attribute, expression)
        number = self.value_tables.get(key)
        if number is None:
            number = self.value_tables[key] = len(self.value_tables)
            program: Program | CelError | None = None
            if expression is not None:
                try:
                    program = compile_derived(expression)
                except CelError as error:
                    program = error
            self.question._value_tables.append(ValueTable(attribute, program))
        return number

    def _note_reads(self) -> None:
        """Which attributes decide what a device means to the question."""
        columns: dict[tuple[str, str], None] = {}
        whole = False
        programs = [program for kind in self.question.types for program in kind.programs]
        programs += [entry.derived for entry in self.question._value_tables if entry.derived is not None]
        for program in programs:
            if isinstance(program, CelError):
                continue
            whole = whole or program.reads.whole
            columns.update(dict.fromkeys(sorted(program.reads.attributes)))
        for entry in self.question._value_tables:
            if entry.derived is None:
                domain, _, name = entry.attribute.rpartition("/")
                columns[domain, name] = None
        self.question._reader = Reader(columns, whole, _is_sound)
