"""The exact evaluator: a stack machine that counts the cost of every step as the reference does.

It evaluates anything, however deep, without recursion, and is the fallback and the yardstick of the generated code.
Errors are values here (`Fault` on the stack), since they cost and go on like other values until something absorbs
them; what nothing may absorb is raised as `Halt`.
"""

from __future__ import annotations

from typing import Any, Final

from dra_alloc.cel import instructions as op
from dra_alloc.cel.costs import CHARGED_BEFORE, LIMIT, LIST, MAP, call_cost
from dra_alloc.cel.device import DeviceEnv
from dra_alloc.cel.fold import Constants
from dra_alloc.cel.instructions import Instruction, Label, State
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
from dra_alloc.cel.values import Halt, Uint, Value
from dra_alloc.cel.work import begin_work
from dra_alloc.errors import CelError

__all__ = ["Machine", "assemble"]

#: Instructions that an expression may take. Macros that mention their target twice double it when nested.
MAX_INSTRUCTIONS: Final = 100_000


class Machine:
    """The instructions of one expression."""

    __slots__ = ("_code", "_slots")

    def __init__(self, code: list[Instruction], slots: int) -> None:
        self._code = code
        self._slots = slots

    def evaluate(self, env: DeviceEnv, limit: int = LIMIT) -> tuple[Value, int]:
        """The value on a device, or the Fault or Halt that it ended with, and what it cost."""
        begin_work()
        state = State(self._slots)
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
        self.lazy: dict[Binding, Label] = {}

    def add(self, instruction: Instruction) -> None:
        if len(self.code) >= MAX_INSTRUCTIONS:
            raise CelError("the expression is too large once its macros are expanded", self.expression)
        self.code.append(instruction)

    def place(self, label: Label) -> None:
        label.at = len(self.code)

    def new_slot(self, binding: Binding) -> int:
        # A node that a macro mentions twice is assembled twice; its variables may share their slots.
        if binding not in self.slot_of:
            self.slot_of[binding] = self.slots
            self.slots += 1
        return self.slot_of[binding]

    def emit(self, node: Node) -> Pass[None]:
        if node in self.constants:
            self.add(op.push(self.constants[node]))
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
                self.add(op.none_is_absent)
                self.add(op.charge(-1))
            return
        if type(node) is Ident and node not in self.constants:
            self.variable(node)
        else:
            yield self.emit(node)
            if not steps:
                return
        yield self.steps(steps, int(own_cost and not test))
        if test:
            self.add(op.none_is_absent)

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
        self.add(op.load(slot) if lazy is None else op.load_lazy(slot, lazy))

    def steps(self, steps: list[_Qualifier], cost: int) -> Pass[None]:
        end = Label()
        self.add(op.begin(end))
        for step in steps:
            if step.test:
                self.add(op.test(step.key, end))
            elif step.node is None:
                self.add(op.select(step.key, step.optional, end))
            else:
                if is_chain(step.node) and step.node not in self.constants:
                    yield self.chain(step.node, [], own_cost=False)
                else:
                    yield self.emit(step.node)
                self.add(op.select_by_value(step.optional, end))
        self.place(end)
        self.add(op.finish(cost))

    def choice(self, node: Call, tail: list[_Qualifier]) -> Pass[None]:
        condition, yes, no = node.arguments
        otherwise, end = Label(), Label()
        yield self.emit(condition)
        self.add(op.branch(otherwise, end))
        yield self.alternative(yes, tail)
        self.add(op.jump(end))
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
            self.add(op.not_strictly_false)
        elif node in self.constants.sets:
            yield self.emit(operands[0])
            self.add(op.in_constants(self.constants.sets[node]))
        else:
            yield self.plain_call(node, operands)

    def plain_call(self, node: Call, operands: list[Node]) -> Pass[None]:
        single = node.overloads[0].id if len(node.overloads) == 1 else ""
        act = implementation(node.function, node.overloads)
        end = Label()
        early = self.stops_early(node, single, operands)
        for index, operand in enumerate(operands):
            yield self.emit(operand)
            if early:
                self.add(op.stop_early(index, end))
        # Where errors cost, they are arguments like others: `_==_` and `_!=_` are known by their own name.
        overload = {"_==_": "equals", "_!=_": "not_equals"}.get(node.function, single)
        self.add(op.call(act, len(operands), call_cost(node.function, overload), overload in CHARGED_BEFORE))
        self.place(end)

    def stops_early(self, node: Call, single: str, operands: list[Node]) -> bool:
        """Whether the reference leaves the call at the first argument that is an error, and then charges nothing."""
        if len(operands) > 2 or node.function == "format":
            return True
        if node.function in ("matches", "find", "findAll"):
            return (len(operands) > 1 and operands[1] in self.constants) or (not single and node.function == "findAll")
        return not single and node.function not in _SINGLETON

    def logical(self, operands: list[Node], conjunction: bool) -> Pass[None]:
        end = Label()
        self.add(op.logical_begin)
        step = op.logical_step(not conjunction, end)
        for operand in operands:
            yield self.emit(operand)
            self.add(step)
        self.add(op.logical_end(conjunction))
        self.place(end)

    def either(self, operands: list[Node], unwrap: bool) -> Pass[None]:
        end = Label()
        yield self.emit(operands[0])
        self.add(op.either(unwrap, end))
        yield self.emit(operands[1])
        self.place(end)

    # Aggregates -----------------------------------------------------------------------------------------------------

    def list_literal(self, node: ListLiteral) -> Pass[None]:
        end = Label()
        for index, element in enumerate(node.elements):
            yield self.emit(element)
            self.add(op.element(index, index in node.optional, end))
        self.add(op.build_list(len(node.elements), node.optional))
        self.place(end)
        self.add(op.charge(LIST))

    def map_literal(self, node: MapLiteral) -> Pass[None]:
        end = Label()
        for index, (key, value) in enumerate(node.entries):
            yield self.emit(key)
            self.add(op.element(2 * index, False, end))
            yield self.emit(value)
            self.add(op.element(2 * index + 1, index in node.optional, end))
        self.add(op.build_map(len(node.entries), node.optional))
        self.place(end)
        self.add(op.charge(MAP))

    # Comprehensions -------------------------------------------------------------------------------------------------

    def comprehension(self, node: Comprehension) -> Pass[None]:
        assert node.accumulator_binding is not None
        assert node.variable_binding is not None
        accumulator = self.new_slot(node.accumulator_binding)
        if node.macro == "bind":
            yield self.bind(node, accumulator)
            return
        first = self.new_slot(node.variable_binding)
        second = None if node.variable2_binding is None else self.new_slot(node.variable2_binding)
        top, result, end = Label(), Label(), Label()
        yield self.emit(node.range)
        self.add(op.iterate(second is not None, end))
        self.add(op.initialize(accumulator, self.constants[node.init]))
        self.place(top)
        self.add(op.advance(first, second, result))
        yield self.emit(node.condition)
        self.add(op.continue_unless_false(result))
        yield self.emit(node.step)
        self.add(op.store(accumulator))
        self.add(op.jump(top))
        self.place(result)
        self.add(op.end_iteration)
        yield self.emit(node.result)
        self.add(op.freeze)
        self.place(end)

    def bind(self, node: Comprehension, slot: int) -> Pass[None]:
        """A variable whose value is computed when it is first read."""
        assert node.accumulator_binding is not None
        start, body = Label(), Label()
        self.lazy[node.accumulator_binding] = start
        self.add(op.clear(slot))
        self.add(op.jump(body))
        self.place(start)
        yield self.emit(node.init)
        self.add(op.return_stored(slot))
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
