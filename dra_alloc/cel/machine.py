"""The exact evaluator: a stack machine that counts the cost of every step as the reference does.

It evaluates anything, however deep, without recursion, and is the fallback and the yardstick of the generated code.
Errors are values here (`Fault` on the stack), since they cost and go on like other values until something absorbs
them; what nothing may absorb is raised as `Halt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dra_alloc.cel.costs import CHARGED_BEFORE, LIMIT, LIST, MAP, Cost, call_cost
from dra_alloc.cel.device import DeviceEnv
from dra_alloc.cel.fold import Constants
from dra_alloc.cel.library import implementation
from dra_alloc.cel.syntax import (
    Binding,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Pass,
    Select,
    run,
)
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
from dra_alloc.errors import CelError

__all__ = ["Machine", "assemble", "qualify"]

#: Instructions that an expression may take. Macros that mention their target twice double it when nested.
MAX_INSTRUCTIONS: Final = 100_000


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


# Instructions: a function of the state, and its operands ------------------------------------------------------------


class _State:
    """The state of one evaluation."""

    __slots__ = ("calls", "cost", "flags", "iterators", "pc", "pending", "slots", "stack")

    def __init__(self, slots: int) -> None:
        self.pc = 0
        self.cost = 0
        self.stack: list[Any] = []
        self.slots: list[Any] = [_UNSET] * slots
        #: For each chain of selections on the way: whether one of them was optional.
        self.flags: list[bool] = []
        #: For each && and || on the way: the error met so far.
        self.pending: list[Fault | None] = []
        self.iterators: list[Iterator[Any]] = []
        self.calls: list[int] = []


_UNSET: Final = object()

Instruction = Callable[[_State], None]


class Machine:
    """The instructions of one expression."""

    __slots__ = ("_code", "_slots")

    def __init__(self, code: list[Instruction], slots: int) -> None:
        self._code = code
        self._slots = slots

    def evaluate(self, env: DeviceEnv, limit: int = LIMIT) -> tuple[Value, int]:
        """The value on a device, or the Fault or Halt that it ended with, and what it cost."""
        state = _State(self._slots)
        state.slots[0] = {
            "driver": env.driver,
            "allowMultipleAllocations": env.allow_multiple,
            "attributes": env.attributes,
            "capacity": env.capacity,
        }
        code = self._code
        end = len(code)
        try:
            while state.pc < end:
                instruction = code[state.pc]
                state.pc += 1
                instruction(state)
                if state.cost > limit:
                    raise Halt("operation cancelled: actual cost limit exceeded")
        except Halt as halt:
            return halt, state.cost
        return state.stack[-1], state.cost


def assemble(root: Node, constants: Constants, expression: str) -> Machine:
    """The instructions for a checked tree. Raises CelError if it takes too many."""
    assembler = _Assembler(constants, expression)
    run(assembler.emit(root))
    return Machine(assembler.code, assembler.slots)


class _Label:
    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = -1


class _Qualifier:
    """One step of a chain of selections: a constant key, a key to compute, or a presence test."""

    __slots__ = ("key", "node", "optional", "test")

    def __init__(self, key: Value = None, node: Node | None = None, optional: bool = False, test: bool = False) -> None:
        self.key = key
        self.node = node
        self.optional = optional
        self.test = test


_INDEX: Final = ("_[_]", "_[?_]", "_?._")


def is_chain(node: Node) -> bool:
    """Whether a node is a selection, an index, a name, or a choice: the reference resolves those together."""
    if type(node) is Call:
        return node.function in _INDEX or node.function == "_?_:_"
    return type(node) in (Ident, Select)


class _Assembler:
    def __init__(self, constants: Constants, expression: str) -> None:
        self.constants = constants
        self.expression = expression
        self.code: list[Instruction] = []
        self.slots = 1
        self.slot_of: dict[Binding, int] = {}
        self.lazy: dict[Binding, _Label] = {}

    def add(self, instruction: Instruction) -> None:
        if len(self.code) >= MAX_INSTRUCTIONS:
            raise CelError("the expression is too large once its macros are expanded", self.expression)
        self.code.append(instruction)

    def place(self, label: _Label) -> None:
        label.at = len(self.code)

    def new_slot(self, binding: Binding) -> int:
        # A node that a macro mentions twice is assembled twice; its variables may share their slots.
        if binding not in self.slot_of:
            self.slot_of[binding] = self.slots
            self.slots += 1
        return self.slot_of[binding]

    def emit(self, node: Node) -> Pass[None]:
        if node in self.constants:
            self.add(_push(self.constants[node]))
        elif is_chain(node):
            yield self.chain(node, [], own_cost=True)
        else:
            yield _EMITTERS[type(node)](self, node)

    # Chains ---------------------------------------------------------------------------------------------------------

    def chain(self, node: Node, tail: list[_Qualifier], *, own_cost: bool) -> Pass[None]:
        """Resolve a chain with more steps at its end, which a choice hands on to its branches."""
        steps: list[_Qualifier] = []
        test = type(node) is Select and node.test
        while True:
            if node in self.constants:
                break
            if type(node) is Select:
                steps.append(_Qualifier(node.field, test=node.test))
                node = node.operand
            elif type(node) is Call and node.function in _INDEX:
                steps.append(self.index_step(node))
                node = node.arguments[0]
            else:
                break
        steps.reverse()
        steps += tail
        if type(node) is Call and node.function == "_?_:_" and node not in self.constants:
            yield self.choice(node, steps)
            if test:
                self.add(_charge(-1))
            return
        if type(node) is Ident and node not in self.constants:
            self.variable(node)
        else:
            yield self.emit(node)
            if not steps:
                return
        yield self.steps(steps, int(own_cost and not test))

    def index_step(self, node: Call) -> _Qualifier:
        index = node.arguments[1]
        optional = node.function != "_[_]"
        if index in self.constants and type(self.constants[index]) in (str, int, Uint, bool, float):
            return _Qualifier(self.constants[index], optional=optional)
        return _Qualifier(node=index, optional=optional)

    def variable(self, node: Ident) -> None:
        binding = node.binding
        assert binding is not None
        slot = self.slot_of.get(binding, 0)
        lazy = self.lazy.get(binding)
        self.add(_load(slot) if lazy is None else _load_lazy(slot, lazy))

    def steps(self, steps: list[_Qualifier], cost: int) -> Pass[None]:
        end = _Label()
        self.add(_begin(end))
        for step in steps:
            if step.test:
                self.add(_test(step.key, end))
            elif step.node is None:
                self.add(_qualify(step.key, step.optional, end))
            else:
                if is_chain(step.node) and step.node not in self.constants:
                    yield self.chain(step.node, [], own_cost=False)
                else:
                    yield self.emit(step.node)
                self.add(_qualify_by_value(step.optional, end))
        self.place(end)
        self.add(_finish(cost))

    def choice(self, node: Call, tail: list[_Qualifier]) -> Pass[None]:
        condition, yes, no = node.arguments
        otherwise, end = _Label(), _Label()
        yield self.emit(condition)
        self.add(_branch(otherwise, end))
        yield self.alternative(yes, tail)
        self.add(_jump(end))
        self.place(otherwise)
        yield self.alternative(no, tail)
        self.place(end)

    def alternative(self, node: Node, tail: list[_Qualifier]) -> Pass[None]:
        if is_chain(node) and node not in self.constants:
            yield self.chain(node, tail, own_cost=False)
            return
        yield self.emit(node)
        if tail:
            yield self.steps(tail, 0)

    # Calls ----------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Pass[None]:
        function = node.function
        operands = node.operands()
        if function in ("_&&_", "_||_"):
            yield self.logical(operands, function == "_&&_")
        elif function in ("or", "orValue"):
            yield self.either(operands, function == "orValue")
        elif function == "@not_strictly_false":
            yield self.emit(operands[0])
            self.add(_not_strictly_false)
        elif node in self.constants.sets:
            yield self.emit(operands[0])
            self.add(_in_constants(self.constants.sets[node]))
        else:
            yield self.plain_call(node, operands)

    def plain_call(self, node: Call, operands: list[Node]) -> Pass[None]:
        single = node.overloads[0].id if len(node.overloads) == 1 else ""
        act = implementation(node.function, node.overloads)
        end = _Label()
        early = self.stops_early(node, single, operands)
        for index, operand in enumerate(operands):
            yield self.emit(operand)
            if early:
                self.add(_stop_early(index, end))
        # Where errors cost, they are arguments like others: `_==_` and `_!=_` are known by their own name.
        overload = {"_==_": "equals", "_!=_": "not_equals"}.get(node.function, single)
        self.add(_call(act, len(operands), call_cost(node.function, overload), overload in CHARGED_BEFORE))
        self.place(end)

    def stops_early(self, node: Call, single: str, operands: list[Node]) -> bool:
        """Whether the reference leaves the call at the first argument that is an error, and then charges nothing."""
        if len(operands) > 2 or node.function == "format":
            return True
        if node.function in ("matches", "find", "findAll"):
            return len(operands) > 1 and operands[1] in self.constants or not single and node.function == "findAll"
        return not single and node.function not in _SINGLETON

    def logical(self, operands: list[Node], conjunction: bool) -> Pass[None]:
        end = _Label()
        self.add(_logical_begin)
        step = _logical_step(not conjunction, end)
        for operand in operands:
            yield self.emit(operand)
            self.add(step)
        self.add(_logical_end(conjunction))
        self.place(end)

    def either(self, operands: list[Node], unwrap: bool) -> Pass[None]:
        end = _Label()
        yield self.emit(operands[0])
        self.add(_either(unwrap, end))
        yield self.emit(operands[1])
        self.place(end)

    # Aggregates -----------------------------------------------------------------------------------------------------

    def list_literal(self, node: ListLiteral) -> Pass[None]:
        end = _Label()
        for index, element in enumerate(node.elements):
            yield self.emit(element)
            self.add(_element(index, index in node.optional, end))
        self.add(_build_list(len(node.elements), node.optional))
        self.place(end)
        self.add(_charge(LIST))

    def map_literal(self, node: MapLiteral) -> Pass[None]:
        end = _Label()
        for index, (key, value) in enumerate(node.entries):
            yield self.emit(key)
            self.add(_element(2 * index, False, end))
            yield self.emit(value)
            self.add(_element(2 * index + 1, index in node.optional, end))
        self.add(_build_map(len(node.entries), node.optional))
        self.place(end)
        self.add(_charge(MAP))

    # Comprehensions -------------------------------------------------------------------------------------------------

    def comprehension(self, node: Comprehension) -> Pass[None]:
        assert node.accumulator_binding is not None and node.variable_binding is not None
        accumulator = self.new_slot(node.accumulator_binding)
        if node.macro == "bind":
            yield self.bind(node, accumulator)
            return
        first = self.new_slot(node.variable_binding)
        second = None if node.variable2_binding is None else self.new_slot(node.variable2_binding)
        top, result, end = _Label(), _Label(), _Label()
        yield self.emit(node.range)
        self.add(_iterate(second is not None, end))
        self.add(_initialize(accumulator, self.constants[node.init]))
        self.place(top)
        self.add(_next(first, second, result))
        yield self.emit(node.condition)
        self.add(_continue_unless_false(result))
        yield self.emit(node.step)
        self.add(_store(accumulator))
        self.add(_jump(top))
        self.place(result)
        self.add(_end_iteration)
        yield self.emit(node.result)
        self.add(_freeze)
        self.place(end)

    def bind(self, node: Comprehension, slot: int) -> Pass[None]:
        """A variable whose value is computed when it is first read."""
        assert node.accumulator_binding is not None
        start, body = _Label(), _Label()
        self.lazy[node.accumulator_binding] = start
        self.add(_clear(slot))
        self.add(_jump(body))
        self.place(start)
        yield self.emit(node.init)
        self.add(_return_stored(slot))
        self.place(body)
        yield self.emit(node.result)


_SINGLETON: Final = frozenset(
    {
        *("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_in_"),
        *("size", "type", "dyn", "matches", "sort", "@sortByAssociatedKeys"),
    }
)

_EMITTERS: Final[dict[type, Any]] = {
    Call: _Assembler.call,
    ListLiteral: _Assembler.list_literal,
    MapLiteral: _Assembler.map_literal,
    Comprehension: _Assembler.comprehension,
}


# The instructions ---------------------------------------------------------------------------------------------------


def _push(value: Value) -> Instruction:
    def act(state: _State) -> None:
        state.stack.append(value)

    return act


def _charge(cost: int) -> Instruction:
    def act(state: _State) -> None:
        state.cost += cost

    return act


def _jump(label: _Label) -> Instruction:
    def act(state: _State) -> None:
        state.pc = label.at

    return act


def _load(slot: int) -> Instruction:
    def act(state: _State) -> None:
        state.stack.append(state.slots[slot])

    return act


def _load_lazy(slot: int, start: _Label) -> Instruction:
    def act(state: _State) -> None:
        value = state.slots[slot]
        if value is _UNSET:
            state.calls.append(state.pc - 1)
            state.pc = start.at
        else:
            state.stack.append(value)

    return act


def _return_stored(slot: int) -> Instruction:
    def act(state: _State) -> None:
        state.slots[slot] = state.stack.pop()
        state.pc = state.calls.pop()

    return act


def _clear(slot: int) -> Instruction:
    def act(state: _State) -> None:
        state.slots[slot] = _UNSET

    return act


def _store(slot: int) -> Instruction:
    def act(state: _State) -> None:
        state.slots[slot] = state.stack.pop()

    return act


def _initialize(slot: int, value: Value) -> Instruction:
    def act(state: _State) -> None:
        # Lists and maps grow in place while the macro runs; nothing else can see them before it ends.
        state.slots[slot] = list(value) if type(value) is tuple else dict(value) if type(value) is dict else value

    return act


def _freeze(state: _State) -> None:
    if type(state.stack[-1]) is list:
        state.stack[-1] = tuple(state.stack[-1])


def _begin(end: _Label) -> Instruction:
    def act(state: _State) -> None:
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


def _resolve(state: _State, key: Value, optional: bool, end: _Label) -> None:
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


def _qualify(key: Value, optional: bool, end: _Label) -> Instruction:
    def act(state: _State) -> None:
        _resolve(state, key, optional, end)

    return act


def _qualify_by_value(optional: bool, end: _Label) -> Instruction:
    def act(state: _State) -> None:
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


def _test(field: str, end: _Label) -> Instruction:
    def act(state: _State) -> None:
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


def _finish(cost: int) -> Instruction:
    def act(state: _State) -> None:
        state.cost += cost
        if state.flags.pop():
            state.stack[-1] = Optional(state.stack[-1])

    return act


def _branch(otherwise: _Label, end: _Label) -> Instruction:
    def act(state: _State) -> None:
        value = state.stack.pop()
        if value is False:
            state.pc = otherwise.at
        elif value is not True:
            state.stack.append(value if isinstance(value, Fault) else no_overload("_?_:_", value))
            state.pc = end.at

    return act


def _call(act_on: Callable[..., Any], count: int, cost: Cost, before: bool) -> Instruction:
    def act(state: _State) -> None:
        stack = state.stack
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        result: Value = next((argument for argument in arguments if isinstance(argument, Fault)), _UNSET)
        if before:
            state.cost += cost(arguments, None)
            if state.cost > LIMIT:
                raise Halt("operation cancelled: actual cost limit exceeded")
        if result is _UNSET:
            try:
                result = act_on(*arguments)
            except Fault as fault:
                result = fault
        if not before:
            state.cost += cost(arguments, result)
        stack.append(result)

    return act


def _stop_early(index: int, end: _Label) -> Instruction:
    def act(state: _State) -> None:
        stack = state.stack
        if isinstance(stack[-1], Fault):
            del stack[len(stack) - 1 - index : len(stack) - 1]
            state.pc = end.at

    return act


def _not_strictly_false(state: _State) -> None:
    if type(state.stack[-1]) is not bool:
        state.stack[-1] = True
    state.cost += 1


def _in_constants(members: Any) -> Instruction:
    def act(state: _State) -> None:
        value = state.stack[-1]
        if not isinstance(value, Fault):
            state.stack[-1] = value in members

    return act


def _logical_begin(state: _State) -> None:
    state.pending.append(None)


def _logical_step(decisive: bool, end: _Label) -> Instruction:
    def act(state: _State) -> None:
        value = state.stack.pop()
        if value is decisive:
            state.pending.pop()
            state.stack.append(decisive)
            state.pc = end.at
        elif type(value) is not bool and state.pending[-1] is None:
            state.pending[-1] = value if isinstance(value, Fault) else no_overload("logical operator", value)

    return act


def _logical_end(neutral: bool) -> Instruction:
    def act(state: _State) -> None:
        pending = state.pending.pop()
        state.stack.append(neutral if pending is None else pending)

    return act


def _either(unwrap: bool, end: _Label) -> Instruction:
    def act(state: _State) -> None:
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


def _element(index: int, optional: bool, end: _Label) -> Instruction:
    def act(state: _State) -> None:
        stack = state.stack
        if optional and type(stack[-1]) is not Optional and not isinstance(stack[-1], Fault):
            stack[-1] = Fault("cannot initialize optional entry from a value that is not optional")
        if isinstance(stack[-1], Fault):
            del stack[len(stack) - 1 - index : len(stack) - 1]
            state.pc = end.at

    return act


def _build_list(count: int, optional: frozenset[int]) -> Instruction:
    def act(state: _State) -> None:
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


def _build_map(count: int, optional: frozenset[int]) -> Instruction:
    def act(state: _State) -> None:
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


def _iterate(two: bool, end: _Label) -> Instruction:
    def act(state: _State) -> None:
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


def _next(first: int, second: int | None, result: _Label) -> Instruction:
    def act(state: _State) -> None:
        value = next(state.iterators[-1], _UNSET)
        if value is _UNSET:
            state.pc = result.at
        elif second is None:
            state.slots[first] = value
        else:
            state.slots[first], state.slots[second] = value

    return act


def _continue_unless_false(result: _Label) -> Instruction:
    def act(state: _State) -> None:
        if state.stack.pop() is False:
            state.pc = result.at

    return act


def _end_iteration(state: _State) -> None:
    state.iterators.pop()

