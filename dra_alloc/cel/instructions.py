"""The instructions of the machine: functions of the state of an evaluation, and what values do when selected into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dra_alloc.cel.costs import LIMIT, Cost
from dra_alloc.cel.values import (
    INT_MAX,
    NONE,
    Fault,
    Halt,
    Optional,
    Uint,
    Value,
    map_find,
    map_key,
    map_keys,
    no_overload,
    type_of,
)

__all__ = ["UNSET", "Instruction", "Label", "Missing", "State", "elements_of", "qualify"]


class Missing(Fault):
    """A key or index that is not there: an error, or none where the selection is optional."""


def qualify(value: Value, key: Value) -> Value:
    """`value[key]` or `value.key`. Raises Missing where it is not there, Fault where the key cannot be one."""
    if isinstance(value, dict):
        if type(key) not in (str, int, Uint, bool, float):
            raise Fault(f"invalid key of type {type_of(key).name}")
        try:
            return map_find(value, key)
        except KeyError:
            raise Missing(f"no such key: {key}") from None
    if isinstance(value, (tuple, list)):
        index = _index(key)
        if 0 <= index < len(value):
            return value[index]
        raise Missing(f"index out of bounds: {index}")
    raise Missing(f"no such key: {key}")


def _index(key: Value) -> int:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is float:
        if key == key and abs(key) < 2**63 and key == int(key):
            return int(key)
    elif kind is Uint:
        if key <= INT_MAX:
            return int(key)
    else:
        raise Fault(f"unsupported index type '{type_of(key).name}' in list")
    raise Fault(f"unsupported index value {key} in list")


class State:
    """The state of one evaluation."""

    __slots__ = ("calls", "cost", "flags", "iterators", "pc", "pending", "slots", "stack")

    def __init__(self, slots: int) -> None:
        self.pc = 0
        self.cost = 0
        self.stack: list[Any] = []
        self.slots: list[Any] = [UNSET] * slots
        #: For each chain of selections on the way: whether one of them was optional.
        self.flags: list[bool] = []
        #: For each && and || on the way: the error met so far.
        self.pending: list[Fault | None] = []
        self.iterators: list[Iterator[Any]] = []
        self.calls: list[int] = []


UNSET: Final = object()

Instruction = Callable[[State], None]


class Label:
    """A place in the instructions, known once it is reached."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = -1


def push(value: Value) -> Instruction:
    """A value."""

    def act(state: State) -> None:
        state.stack.append(value)

    return act


def charge(cost: int) -> Instruction:
    """Cost, or with a negative one less of it."""

    def act(state: State) -> None:
        state.cost += cost

    return act


def jump(label: Label) -> Instruction:
    """Go on elsewhere."""

    def act(state: State) -> None:
        state.pc = label.at

    return act


def load(slot: int) -> Instruction:
    """The value of a variable."""

    def act(state: State) -> None:
        state.stack.append(state.slots[slot])

    return act


def load_lazy(slot: int, start: Label) -> Instruction:
    """The value of a variable that is computed when it is first read."""

    def act(state: State) -> None:
        value = state.slots[slot]
        if value is UNSET:
            state.calls.append(state.pc - 1)
            state.pc = start.at
        else:
            state.stack.append(value)

    return act


def return_stored(slot: int) -> Instruction:
    """The end of computing the value of a variable."""

    def act(state: State) -> None:
        state.slots[slot] = state.stack.pop()
        state.pc = state.calls.pop()

    return act


def clear(slot: int) -> Instruction:
    """Forget the value of a variable."""

    def act(state: State) -> None:
        state.slots[slot] = UNSET

    return act


def store(slot: int) -> Instruction:
    """Set a variable."""

    def act(state: State) -> None:
        state.slots[slot] = state.stack.pop()

    return act


def initialize(slot: int, value: Value) -> Instruction:
    """Set the accumulator of a macro to its first value."""

    def act(state: State) -> None:
        # Lists and maps grow in place while the macro runs; nothing else can see them before it ends.
        state.slots[slot] = list(value) if type(value) is tuple else dict(value) if type(value) is dict else value

    return act


def freeze(state: State) -> None:
    """The accumulator of a macro has become its result."""
    if type(state.stack[-1]) is list:
        state.stack[-1] = tuple(state.stack[-1])


def begin(end: Label) -> Instruction:
    """The start of a chain of selections on the value on top."""

    def act(state: State) -> None:
        value = state.stack[-1]
        state.flags.append(False)
        if type(value) is Optional:
            if value is NONE:
                state.pc = end.at
            else:
                state.stack[-1] = value.value
                state.flags[-1] = True
        elif isinstance(value, Fault):
            state.pc = end.at

    return act


def _resolve(state: State, key: Value, optional: bool, end: Label) -> None:
    """One step with a key, on the value on top of the stack."""
    flags = state.flags
    flags[-1] = flags[-1] or optional
    try:
        state.stack[-1] = qualify(state.stack[-1], key)
        state.cost += 1
    except Fault as fault:
        state.cost += not flags[-1]
        state.stack[-1] = NONE if flags[-1] and type(fault) is Missing else fault
        flags[-1] = False
        state.pc = end.at


def select(key: Value, optional: bool, end: Label) -> Instruction:
    """A step of a chain with a constant key."""

    def act(state: State) -> None:
        _resolve(state, key, optional, end)

    return act


def select_by_value(optional: bool, end: Label) -> Instruction:
    """A step of a chain with the key on top."""

    def act(state: State) -> None:
        key = state.stack.pop()
        if isinstance(key, Fault):
            state.cost += not (state.flags[-1] or optional)
            state.stack[-1] = key
            state.flags[-1] = False
            state.pc = end.at
        elif type(key) not in (str, int, Uint, bool, float):
            state.cost += not (state.flags[-1] or optional)
            state.stack[-1] = Fault(f"invalid qualifier type: {type_of(key).name}")
            state.flags[-1] = False
            state.pc = end.at
        else:
            _resolve(state, key, optional, end)

    return act


def test(field: str, end: Label) -> Instruction:
    """The presence test at the end of a chain."""

    def act(state: State) -> None:
        optional = state.flags[-1]
        found: Value = True
        try:
            qualify(state.stack[-1], field)
        except Missing:
            found = False
        except Fault as fault:
            found = fault
        state.cost += not optional or found is True
        state.stack[-1] = found
        state.flags[-1] = False

    return act


def none_is_absent(state: State) -> None:
    """A presence test that an optional step has ended early."""
    if state.stack[-1] is NONE:
        state.stack[-1] = False


def finish(cost: int) -> Instruction:
    """The end of a chain."""

    def act(state: State) -> None:
        state.cost += cost
        if state.flags.pop():
            state.stack[-1] = Optional(state.stack[-1])

    return act


def branch(otherwise: Label, end: Label) -> Instruction:
    """A choice by the value on top."""

    def act(state: State) -> None:
        value = state.stack.pop()
        if value is False:
            state.pc = otherwise.at
        elif value is not True:
            state.stack.append(value if isinstance(value, Fault) else no_overload("_?_:_", value))
            state.pc = end.at

    return act


def call(act_on: Callable[..., Any], count: int, cost: Cost, before: bool) -> Instruction:
    """A call of a function with so many arguments."""

    def act(state: State) -> None:
        stack = state.stack
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        result: Value = next((argument for argument in arguments if isinstance(argument, Fault)), UNSET)
        if before:
            state.cost += cost(arguments, None)
            if state.cost > LIMIT:
                raise Halt("operation cancelled: actual cost limit exceeded")
        if result is UNSET:
            try:
                result = act_on(*arguments)
            except Fault as fault:
                result = fault
        if not before:
            state.cost += cost(arguments, result)
        stack.append(result)

    return act


def stop_early(index: int, end: Label) -> Instruction:
    """Leave a call at an argument that is an error."""

    def act(state: State) -> None:
        stack = state.stack
        if isinstance(stack[-1], Fault):
            del stack[len(stack) - 1 - index : len(stack) - 1]
            state.pc = end.at

    return act


def not_strictly_false(state: State) -> None:
    """Whether a macro goes on."""
    if type(state.stack[-1]) is not bool:
        state.stack[-1] = True
    state.cost += 1


def in_constants(members: Any) -> Instruction:
    """Membership in a prepared set."""

    def act(state: State) -> None:
        value = state.stack[-1]
        if not isinstance(value, Fault):
            state.stack[-1] = value in members

    return act


def logical_begin(state: State) -> None:
    """The start of a logical operator."""
    state.pending.append(None)


def logical_step(decisive: bool, end: Label) -> Instruction:
    """One operand of a logical operator."""

    def act(state: State) -> None:
        value = state.stack.pop()
        if value is decisive:
            state.pending.pop()
            state.stack.append(decisive)
            state.pc = end.at
        elif type(value) is not bool and state.pending[-1] is None:
            state.pending[-1] = value if isinstance(value, Fault) else no_overload("logical operator", value)

    return act


def logical_end(neutral: bool) -> Instruction:
    """The end of a logical operator that nothing decided."""

    def act(state: State) -> None:
        pending = state.pending.pop()
        state.stack.append(neutral if pending is None else pending)

    return act


def either(unwrap: bool, end: Label) -> Instruction:
    """The left side of `or` and `orValue`."""

    def act(state: State) -> None:
        value = state.stack[-1]
        if value is NONE:
            state.stack.pop()
            return
        state.pc = end.at
        if type(value) is Optional:
            state.stack[-1] = value.value if unwrap else value
        elif not isinstance(value, Fault):
            state.stack[-1] = no_overload("orValue" if unwrap else "or", value)

    return act


def element(index: int, optional: bool, end: Label) -> Instruction:
    """Leave a literal at an entry that is an error."""

    def act(state: State) -> None:
        stack = state.stack
        if optional and type(stack[-1]) is not Optional and not isinstance(stack[-1], Fault):
            stack[-1] = Fault("cannot initialize optional entry from a value that is not optional")
        if isinstance(stack[-1], Fault):
            del stack[len(stack) - 1 - index : len(stack) - 1]
            state.pc = end.at

    return act


def build_list(count: int, optional: frozenset[int]) -> Instruction:
    """A list of what is on top."""

    def act(state: State) -> None:
        stack = state.stack
        values = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        if optional:
            values = [
                value.value if index in optional else value
                for index, value in enumerate(values)
                if not (index in optional and value is NONE)
            ]
        stack.append(tuple(values))

    return act


def build_map(count: int, optional: frozenset[int]) -> Instruction:
    """A map of what is on top."""

    def act(state: State) -> None:
        stack = state.stack
        values = stack[len(stack) - 2 * count :]
        del stack[len(stack) - 2 * count :]
        result: dict[Any, Any] = {}
        for index in range(count):
            key, value = map_key(values[2 * index]), values[2 * index + 1]
            if index in optional:
                if value is NONE:
                    result.pop(key, None)
                    continue
                value = value.value
            result[key] = value
        stack.append(result)

    return act


def elements_of(value: Value, two: bool) -> Iterator[Any]:
    """What a macro runs over: elements or keys, with `two` pairs of index and element or key and value."""
    if isinstance(value, dict):
        keys = list(map_keys(value))
        return iter([(key, map_find(value, key)) for key in keys] if two else keys)
    if isinstance(value, (tuple, list)):
        return iter(enumerate(value)) if two else iter(value)
    raise Fault(f"got '{type_of(value).name}', expected iterable type")


def iterate(two: bool, end: Label) -> Instruction:
    """The start of a macro over the value on top."""

    def act(state: State) -> None:
        value = state.stack.pop()
        if not isinstance(value, Fault):
            try:
                state.iterators.append(elements_of(value, two))
                return
            except Fault as fault:
                value = fault
        state.stack.append(value)
        state.pc = end.at

    return act


def advance(first: int, second: int | None, result: Label) -> Instruction:
    """The next element, or the end of the macro."""

    def act(state: State) -> None:
        value: Value = next(state.iterators[-1], UNSET)
        if value is UNSET:
            state.pc = result.at
        elif second is None:
            state.slots[first] = value
        else:
            state.slots[first], state.slots[second] = value

    return act


def continue_unless_false(result: Label) -> Instruction:
    """Leave a macro whose condition is false."""

    def act(state: State) -> None:
        if state.stack.pop() is False:
            state.pc = result.at

    return act


def end_iteration(state: State) -> None:
    """The end of a macro."""
    state.iterators.pop()
