"""Which wants a device serves, which want it as a part of all, and for which it is an error; remembered by rows.

Devices that are equal in all that some want looks at share a row. A row learns about new wants when it is next asked
for, so that each verdict is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from dra_alloc._rows import Reader
from dra_alloc.cel import CelError, DeviceEnv, Program, compile_derived, compile_selector, device_env
from dra_alloc.cel.necessary import DRIVER, Equality, equalities, plain_equalities
from dra_alloc.problem import _is_sound
from dra_alloc.requeue.wants import Buckets, Want, Wants
from dra_alloc.rules import capacity_fault, consumed_amount, published_capacities, qualified, tolerated

if TYPE_CHECKING:
    from dra_alloc.api import Device, DeviceTaint
    from dra_alloc.gates import Features
    from dra_alloc.inventory import PoolTable

__all__ = ["Judge", "Row"]

#: Rows, and values known to the reader, after which both begin anew.
_MAX_ROWS = 50_000


class Row:
    """What devices of a kind are to the wants.

    serves: wants that may have such a device. counts: wants for all devices that it is one of, or too small or tainted
    to be had. breaks: wants for which looking at it is an error.
    """

    __slots__ = ("_env", "_seen_breaks", "_seen_serves", "breaks", "counts", "device", "driver", "serves", "taints")

    def __init__(self, driver: str, device: Device, taints: tuple[DeviceTaint, ...]) -> None:
        self.driver = driver
        self.device = device
        self.taints = taints
        self.serves: list[Want] = []
        self.counts: list[Want] = []
        self.breaks: list[Want] = []
        self._seen_serves = 0
        self._seen_breaks = 0
        self._env: DeviceEnv | CelError | None = None

    def share_env(self, other: Row) -> None:
        """Let expressions see the device as they see another, if there is no difference for them."""
        one, twin = self.device, other.device
        if (
            self._env is None
            and self.driver == other.driver
            and one.attributes == twin.attributes
            and one.capacity == twin.capacity
            and one.allow_multiple_allocations == twin.allow_multiple_allocations
        ):
            self._env = other._env

    def env(self) -> DeviceEnv | CelError:
        if self._env is None:
            try:
                self._env = device_env(self.driver, self.device)
            except CelError as error:
                self._env = error.with_traceback(None)
        return self._env


@attrs.define(eq=False)
class _Selector:
    """A selector. only: it has no terms but `equal`. lists: whether attributes may be lists.

    program: compiled when it is first needed, or the error that it does not compile with.
    """

    expression: str
    lists: bool
    equal: tuple[Equality, ...] = ()
    only: bool = False
    _program: Program | CelError | None = None

    @classmethod
    def of(cls, expression: str, lists: bool) -> _Selector:
        plain = plain_equalities(expression)
        if plain is not None:
            return cls(expression, lists, plain, True)
        selector = cls(expression, lists)
        if isinstance(selector.program, Program):
            selector.equal, selector.only = equalities(selector.program)
        return selector

    @property
    def program(self) -> Program | CelError:
        if self._program is None:
            try:
                self._program = compile_selector(self.expression, list_attributes=self.lists)
            except CelError as error:
                self._program = error.with_traceback(None)
        return self._program

    def reads(self) -> tuple[Iterable[tuple[str, str]], bool]:
        """Attributes that it reads, and whether it may read any."""
        if self.only:
            return [need.path for need in self.equal if need.path != DRIVER], False
        if isinstance(self.program, CelError):
            return (), False
        return self.program.reads.attributes, self.program.reads.whole

    def verdict(self, env: DeviceEnv | CelError) -> bool | CelError:
        """Whether the selector is true of a device. Most are decided by their equalities alone."""
        if not self.equal or isinstance(env, CelError):
            return _verdict(self.program, env)
        certain = self.only
        for need in self.equal:
            if need.path == DRIVER:
                value: object = env.driver
            else:
                value = env.attributes.find(need.path[0]).get(need.path[1])
            if type(value) not in (str, int, bool):
                certain = False  # to compare it may be an error, if no other term is false
            elif type(value) is not type(need.value) or value != need.value:
                return False
        return True if certain else _verdict(self.program, env)


@attrs.frozen(eq=False)
class _Compiled:
    """A want with its selectors and derived attributes."""

    want: Want
    selectors: tuple[_Selector, ...]
    derived: tuple[Program | CelError, ...]


class Judge:
    """Judges devices for the wants of an index, with one set of features."""

    def __init__(self, wants: Wants, features: Features) -> None:
        self.features = features
        self._wants = wants
        self._compiled: list[_Compiled] = []
        self._columns: dict[tuple[str, str], None] = {}
        self._whole = False
        self._reader = Reader((), False, _is_sound)
        self._rows: dict[object, Row] = {}
        self._of_table: dict[tuple[str, str], tuple[PoolTable, Reader, list[Row]]] = {}
        self._serving = Buckets()  # where a want can be true
        self._breaking = Buckets()  # where a want can be an error
        self._fragile: set[int] = set()  # wants that can be an error where they are true

    def rows(self, driver: str, devices: Sequence[Device], taints: Sequence[tuple[DeviceTaint, ...]]) -> list[Row]:
        """The row of each of some devices of a driver."""
        self.learn()
        rows = self._rows
        if len(rows) > _MAX_ROWS or len(self._reader) > _MAX_ROWS:
            self._begin_anew()
            rows = self._rows
        found = []
        for number, key in enumerate(self._reader.keys(driver, devices, taints)):
            row = rows.get(key)
            if row is None:
                row = rows[key] = Row(driver, devices[number], taints[number])
            found.append(row)
        return found

    def rows_of(self, table: PoolTable) -> list[Row]:
        """The rows of all devices of a pool, remembered as long as the pool stays what it is."""
        self.learn()
        known = self._of_table.get(table.key)
        if known is not None and known[0] is table and known[1] is self._reader:
            return known[2]
        rows = self.rows(table.key[0], table.devices, table.taints)
        self._of_table[table.key] = table, self._reader, rows
        return rows

    def row(self, table: PoolTable, index: int) -> Row:
        """The row of one device of a pool."""
        return self.rows(table.key[0], table.devices[index : index + 1], table.taints[index : index + 1])[0]

    def serves(self, row: Row) -> list[Want]:
        """The wants that a device of the row may serve, apart from what is in use."""
        self._judge_serves(row)
        return row.serves

    def counts(self, row: Row) -> list[Want]:
        """The wants for all devices whose selectors a device of the row passes."""
        self._judge_serves(row)
        return row.counts

    def breaks(self, row: Row) -> list[Want]:
        """The wants that end with an error when the search looks at a device of the row."""
        since, row._seen_breaks = row._seen_breaks, len(self._compiled)
        if since == row._seen_breaks:
            return row.breaks
        env = row.env()
        if isinstance(env, CelError):
            # Not even the driver can be asked for.
            candidates = set(range(since, len(self._compiled)))
        else:
            candidates = set(self._breaking.find(row.driver, env, since, odd=True))
            if self._fragile:
                candidates.update(self._fragile.intersection(self._serving.find(row.driver, env, since)))
        for number in sorted(candidates):
            compiled = self._compiled[number]
            verdict = _passes(compiled.selectors, env)
            if (verdict is True and self._fails_later(compiled, row, env)) or isinstance(verdict, CelError):
                row.breaks.append(compiled.want)
        return row.breaks

    def _judge_serves(self, row: Row) -> None:
        since, row._seen_serves = row._seen_serves, len(self._compiled)
        if since == row._seen_serves:
            return
        if row.device.binding_conditions and not (
            self.features.DRADeviceBindingConditions and self.features.DRAResourceClaimDeviceStatus
        ):
            return
        env = row.env()
        if isinstance(env, CelError):
            candidates = [number for number in range(since, len(self._compiled)) if not self._wants[number].expressions]
        else:
            candidates = sorted(self._serving.find(row.driver, env, since))
        for number in candidates:
            compiled = self._compiled[number]
            if _passes(compiled.selectors, env) is not True:
                continue
            if compiled.want.every:
                row.counts.append(compiled.want)
            if self._may_have(compiled.want, row):
                row.serves.append(compiled.want)

    def _may_have(self, want: Want, row: Row) -> bool:
        """Whether a want that selects a device may have it: capacity, counters, taints."""
        device = row.device
        if capacity_fault(want.capacity, row.driver):
            return False
        if self.features.DRAConsumableCapacity and not self._is_large_enough(want, row):
            return False
        if device.consumes_counters and not self.features.DRAPartitionableDevices:
            return False
        return all(tolerated(taint, want.tolerations) for taint in row.taints)

    def _is_large_enough(self, want: Want, row: Row) -> bool:
        capacities = published_capacities(row.device, row.driver)
        asked = {qualified(name, row.driver): nano for name, nano in want.capacity}
        if not asked.keys() <= capacities.keys():
            return False
        for name, (_, capacity) in capacities.items():
            amount = consumed_amount(asked.get(name), capacity, self.features)
            if amount is None or amount > capacity.value.nano:
                return False
        return True

    def _fails_later(self, compiled: _Compiled, row: Row, env: DeviceEnv | CelError) -> bool:
        """Whether a device that passes the selectors is an error for its capacity or a derived attribute."""
        if capacity_fault(compiled.want.capacity, row.driver):
            return True
        return any(isinstance(_value(program, env), CelError) for program in compiled.derived)

    # New wants

    def learn(self) -> None:
        """Take in the wants that have come since."""
        if len(self._compiled) == len(self._wants):
            return
        before = len(self._columns), self._whole
        for want in self._wants.since(len(self._compiled)):
            self._take_in(want)
        if before != (len(self._columns), self._whole):
            self._begin_anew()

    def _take_in(self, want: Want) -> None:
        lists = self.features.DRAListTypeAttributes
        selectors = tuple([_Selector.of(expression, lists) for expression in want.expressions])
        derived: tuple[Program | CelError, ...] = ()
        if self.features.DRADerivedAttributes:
            derived = tuple([_compile_derived(expression) for expression in want.derived])
        reads = [selector.reads() for selector in selectors]
        reads += [(each.reads.attributes, each.reads.whole) for each in derived if isinstance(each, Program)]
        for attributes, whole in reads:
            self._whole = self._whole or whole
            self._columns.update(dict.fromkeys(sorted(attributes)))
        self._serving.add(want.number, [need for selector in selectors for need in selector.equal])
        self._breaking.add(want.number, _safe_needs(selectors))
        if derived or want.capacity:
            self._fragile.add(want.number)
        self._compiled.append(_Compiled(want, selectors, derived))

    def _begin_anew(self) -> None:
        """Rows are told apart by what the wants read; when that changes, they do not hold any more."""
        self._reader = Reader(self._columns, self._whole, _is_sound)
        self._rows = {}
        self._of_table = {}


def _safe_needs(selectors: Sequence[_Selector]) -> list[Equality]:
    """The equalities without which there is not even an error.

    Selectors are evaluated in order, up to the first that is not true. One that only compares the driver is never an
    error; of the others the first decides, and what comes after it may not be reached.
    """
    found: list[Equality] = []
    for selector in selectors:
        found += selector.equal
        if not selector.only or any(need.path != DRIVER for need in selector.equal):
            break
    return found


def _compile_derived(expression: str) -> Program | CelError:
    try:
        return compile_derived(expression)
    except CelError as error:
        return error.with_traceback(None)


def _value(program: Program | CelError, env: DeviceEnv | CelError) -> object:
    """The value of a program, or the error that it ends with."""
    if isinstance(program, CelError):
        return program
    if isinstance(env, CelError):
        return env
    try:
        return program.evaluate(env)
    except CelError as error:
        return error.with_traceback(None)


def _verdict(program: Program | CelError, env: DeviceEnv | CelError) -> bool | CelError:
    value = _value(program, env)
    return value if isinstance(value, CelError) else value is True


def _passes(selectors: Sequence[_Selector], env: DeviceEnv | CelError) -> bool | CelError:
    """The verdict of all selectors, up to the first that is not true."""
    for selector in selectors:
        verdict = selector.verdict(env)
        if verdict is not True:
            return verdict
    return True
