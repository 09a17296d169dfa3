"""`Program`: a compiled expression, and the caches of programs and of verdicts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from dra_alloc.cel import static
from dra_alloc.cel.checker import check
from dra_alloc.cel.compiler import Compiled, compile_tree, is_plain
from dra_alloc.cel.costs import LIMIT
from dra_alloc.cel.declarations import SEMVER
from dra_alloc.cel.device import DeviceEnv
from dra_alloc.cel.estimate import estimate
from dra_alloc.cel.fold import Constants, fold
from dra_alloc.cel.machine import Machine, assemble
from dra_alloc.cel.parser import parse
from dra_alloc.cel.reads import Reads, reads_of
from dra_alloc.cel.runtime import FAULTS, fault_of
from dra_alloc.cel.static import StaticType
from dra_alloc.cel.syntax import Node
from dra_alloc.cel.values import NONE, Fault, Optional, Semver, Value, type_of
from dra_alloc.cel.work import Halt, begin_work
from dra_alloc.errors import CelError

__all__ = [
    "LIMIT",
    "Program",
    "VerdictCache",
    "check_derived_costs",
    "check_selector_cost",
    "compile_derived",
    "compile_selector",
]

#: Programs that are kept, by expression.
MAX_PROGRAMS: Final = 4096

#: Characters of a compile error; it may quote a part of the expression.
MAX_MESSAGE: Final = 500

DerivedValue = bool | int | str | Semver | tuple[bool | int | str | Semver, ...]


class Program:
    """A compiled expression. Immutable and safe to share between threads.

    expression: its text. reads: which parts of a device it looks at. max_cost: what the API server estimates that it
    may cost; it refuses new expressions beyond 1,000,000 (see `check_selector_cost`).
    """

    def __init__(self, expression: str, root: Node, constants: Constants, convert: Callable[[Value], Any]) -> None:
        self.expression = expression
        self.reads: Reads = reads_of(root, constants)
        self._root = root
        self._constants = constants
        self._convert = convert

    def __repr__(self) -> str:
        return f"<Program {self.expression!r}>"

    @cached_property
    def max_cost(self) -> int:
        """The estimated cost; beyond 2⁶⁰ nothing bounds it."""
        return estimate(self._root)

    @cached_property
    def _compiled(self) -> Compiled | None:
        """The generated function, if the expression cannot cost more than the limit on a device within its limits."""
        if estimate(self._root, safe=True) > LIMIT // 4:
            return None
        run = compile_tree(self._root, self._constants, self._convert, verdict=self._convert is _as_verdict)
        if run is None or is_plain(self._root, self._constants):
            return run

        def metered(env: DeviceEnv) -> Any:
            begin_work()
            return run(env)

        return metered

    @cached_property
    def _machine(self) -> Machine:
        return assemble(self._root, self._constants, self.expression)

    def evaluate(self, env: DeviceEnv) -> Any:
        """The verdict of a selector (bool), or the value of a derived attribute, on a device.

        Raises CelError for a run-time error, for a result of another type, and when the evaluation costs more than
        1,000,000.
        """
        run = self._compiled
        if run is None or not env.within_limits:
            value, _ = self._machine.evaluate(env)
            return self._result(value)
        try:
            return run(env)
        except FAULTS as error:
            raise CelError(fault_of(error).message, self.expression) from None
        except Halt as halt:
            raise CelError(halt.message, self.expression) from None

    def evaluate_with_cost(self, env: DeviceEnv) -> tuple[Any, int]:
        """The value, or the CelError that `evaluate` would raise, with what the evaluation cost."""
        value, cost = self._machine.evaluate(env)
        try:
            return self._result(value), cost
        except CelError as error:
            return error, cost

    def _result(self, value: Value) -> Any:
        if isinstance(value, (Fault, Halt)):
            raise CelError(value.message, self.expression)
        try:
            return self._convert(value)
        except Fault as fault:
            raise CelError(fault.message, self.expression) from None

    def key(self, env: DeviceEnv) -> Hashable:
        """The values of what the program reads: devices with equal keys have equal verdicts."""
        return self.reads.key(env)


# Results ------------------------------------------------------------------------------------------------------------


def _unwrapped(value: Value) -> Value:
    while type(value) is Optional and value is not NONE:
        value = value.value
    return value


def _as_verdict(value: Value) -> bool:
    value = _unwrapped(value)
    if type(value) is bool:
        return value
    raise Fault(f"CEL result of type {type_of(value).name} could not be converted to bool")


_DERIVED: Final = (bool, int, str, Semver)


def _as_derived(value: Value) -> DerivedValue:
    value = _unwrapped(value)
    if type(value) is tuple:
        if value and type(value[0]) not in _DERIVED:
            raise Fault(f"unsupported list element type: {type_of(value[0]).name}")
        for index, element in enumerate(value):
            if type(element) is not type(value[0]):
                wanted, found = type_of(value[0]).name, type_of(element).name
                raise Fault(f"expected list element at index {index} to be {wanted}, got {found}")
        return value
    if type(value) in _DERIVED:
        scalar: bool | int | str | Semver = value
        return scalar
    raise Fault(f"unsupported CEL return type: {type_of(value).name}")


def _selector_type(t: StaticType) -> str | None:
    if t.kind == "bool" or static.is_dyn(t):
        return None
    return f"must evaluate to bool or the unknown type, not {t}"


def _is_derived_scalar(t: StaticType) -> bool:
    return t.kind in ("bool", "int", "string") or static.is_dyn(t) or t.is_exactly(SEMVER)


def _derived_type(t: StaticType) -> str | None:
    if _is_derived_scalar(t) or (t.kind == "list" and _is_derived_scalar(t.parameters[0])):
        return None
    wanted = "a primitive scalar (string, integer, boolean, semver) or a list of these scalars"
    return f"must evaluate to {wanted}, not {t}"


# Compilation --------------------------------------------------------------------------------------------------------


class _Failure(NamedTuple):
    """A compile error, kept instead of the program."""

    message: str
    expression: str
    offset: int | None


def _build(
    expression: str,
    list_attributes: bool,
    wrong_type: Callable[[StaticType], str | None],
    convert: Callable[[Value], Any],
    *,
    mixed: bool = False,
) -> Program | _Failure:
    try:
        root = parse(expression)
        check(root, expression, list_attributes=list_attributes)
        problem = wrong_type(root.type)
        if problem is not None:
            raise CelError(problem, expression, 0)
        begin_work()
        return Program(expression, root, fold(root, expression, mixed=mixed), convert)
    except CelError as error:
        message = error.message if len(error.message) <= MAX_MESSAGE else f"{error.message[:MAX_MESSAGE]}…"
        return _Failure(message, error.expression, error.offset)


@lru_cache(maxsize=MAX_PROGRAMS)
def _selector(expression: str, list_attributes: bool) -> Program | _Failure:
    return _build(expression, list_attributes, _selector_type, _as_verdict)


@lru_cache(maxsize=MAX_PROGRAMS)
def _derived(expression: str) -> Program | _Failure:
    # `[device.attributes["d"].x, 7]` is a list of attributes and literals: what its elements are shows when it is made.
    return _build(expression, True, _derived_type, _as_derived, mixed=True)


def _checked(program: Program | _Failure) -> Program:
    if isinstance(program, _Failure):
        raise CelError(*program)
    return program


def compile_selector(expression: str, *, list_attributes: bool = True) -> Program:
    """Compile a device selector (`CELDeviceSelector.expression`), as a scheduler does.

    list_attributes: whether attributes may be lists (KEP-5491); stored expressions are compiled as if they may.
    Raises CelError with the place of the fault if it does not compile: syntax, names, types, constants that are
    errors, more than 10 KiB, or a result that is not bool. Programs are kept, so that a second call costs nothing.
    """
    return _checked(_selector(expression, list_attributes))


def compile_derived(expression: str) -> Program:
    """Compile the expression of a derived attribute (KEP-6080): to a string, int, bool, semver, or a list of one.

    Raises CelError if it does not compile.
    """
    return _checked(_derived(expression))


def check_selector_cost(program: Program) -> None:
    """Raise CelError if the API server would refuse a new selector for its estimated cost."""
    if program.max_cost > LIMIT:
        raise CelError(_too_expensive(program.max_cost), program.expression)


def check_derived_costs(programs: Sequence[Program]) -> None:
    """Raise CelError if the derived attributes of a claim cost too much, one by one or together."""
    for program in programs:
        check_selector_cost(program)
    total = sum(program.max_cost for program in programs)
    if total > LIMIT:
        raise CelError(f"the derived attributes of the claim together: {_too_expensive(total)}")


def _too_expensive(cost: int) -> str:
    # A part of what is unbounded is far beyond any cost too.
    shown = "unbounded" if cost >= 2**60 else f"{cost:,}"
    return f"too complex: the estimated cost is {shown}, at most {LIMIT:,} is allowed"


# Verdicts -----------------------------------------------------------------------------------------------------------


class VerdictCache:
    """Verdicts of programs, by the values that they read: shared over devices, nodes, claims and forks.

    max_entries: how many are kept; beyond it the oldest are dropped. Safe with threads: at worst a verdict is
    computed twice.
    """

    def __init__(self, max_entries: int = 1 << 16) -> None:
        self._entries: dict[tuple[Program, Hashable], Any] = {}
        self._by_env: dict[Program, _Verdicts] = {}
        self._max = max_entries
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, program: Program, env: DeviceEnv) -> Any:
        """The value of the program on a device, or the CelError that it ends with (not raised)."""
        key = (program, program.key(env))
        found = self._entries.get(key, self)
        if found is self:
            try:
                found = program.evaluate(env)
            except CelError as error:
                found = error.with_traceback(None)
            self._put(key, found)
        return found

    def many(self, program: Program, envs: Iterable[DeviceEnv]) -> list[Any]:
        """`get` for many devices. Fast where devices of equal rows share one environment (see `EnvTable`)."""
        table = self._by_env.get(program)
        if table is None:
            with self._lock:
                if len(self._by_env) >= MAX_PROGRAMS:
                    self._by_env.clear()
                table = self._by_env[program] = _Verdicts(self, program, self._max)
        return list(map(table.__getitem__, envs))

    def _put(self, key: tuple[Program, Hashable], value: Any) -> None:
        with self._lock:
            while len(self._entries) >= self._max:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = value


class _Verdicts(dict[DeviceEnv, Any]):
    """Verdicts of one program by environment, computed when they are first asked for."""

    __slots__ = ("_cache", "_max", "_program")

    def __init__(self, cache: VerdictCache, program: Program, most: int) -> None:
        super().__init__()
        self._cache = cache
        self._program = program
        self._max = most

    def __missing__(self, env: DeviceEnv) -> Any:
        if len(self) >= self._max:
            self.clear()
        value = self[env] = self._cache.get(self._program, env)
        return value
