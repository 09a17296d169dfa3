"""The fast evaluator: a checked tree becomes a Python function on native values.

The source of the function is made from the tree alone: names are numbered, every literal is an entry of a table, so
that nothing of an expression's text ever becomes code. Costs are not counted: the function only runs where the
estimated cost, with a safe margin, is within the limit. What is nested too deeply for it is left to the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dra_alloc.cel.checker import DEVICE_BINDING
from dra_alloc.cel.device import DeviceEnv
from dra_alloc.cel.fold import Constants
from dra_alloc.cel.library import implementation
from dra_alloc.cel.runtime import BUILTINS, HELPERS
from dra_alloc.cel.syntax import (
    Binding,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from dra_alloc.cel.values import NONE, Amount, Fault, Halt, Optional, Quantity, Semver, Uint, Value

__all__ = ["Compiled", "compile_tree", "is_plain"]

#: Deeper expressions are left to the machine: Python bounds the nesting of its own code.
MAX_DEPTH: Final = 40

Compiled = Callable[[DeviceEnv], Any]


def compile_tree(
    root: Node, constants: Constants, convert: Callable[[Value], Any], *, verdict: bool
) -> Compiled | None:
    """The function of a checked tree, from a device to the converted result; None if it is nested too deeply.

    With `verdict`, a bool is the result as it is.
    """
    if root.depth + root.nesting > MAX_DEPTH:
        return None
    generator = _Generator(constants)
    try:
        result = generator.expression(root)
        last = f"return {result}" if generator.kind(root) == "bool" and verdict else f"return convert({result})"
        source = "\n".join(["def run(env):", *generator.prologue, *generator.lines, f" {last}"])
        space: dict[str, Any] = {**HELPERS, **generator.table, "convert": convert, "__builtins__": BUILTINS}
        exec(compile(source, "<cel>", "exec"), space)
    except (SyntaxError, RecursionError, MemoryError):  # more nested blocks than Python takes, or a caller deep down
        return None
    run: Compiled = space["run"]
    return run


#: Functions that spend work, or that make lists of what they are given.
_SPENDING: Final = frozenset(
    ("slice", "flatten", "reverse", "distinct", "findAll", "split", "format", "lists.range", "getQuery")
)


def is_plain(root: Node, constants: Constants) -> bool:
    """Whether a tree makes and compares no lists of lists and maps of maps, and calls no function that spends work."""
    work = [root]
    while work:
        node = work.pop()
        if node in constants.values:
            if not _is_flat(constants.values[node]):
                return False
        elif type(node) is Select:
            work.append(node.operand)
        elif type(node) is Call:
            if node.function in _SPENDING or (node.function == "_+_" and node.type.kind not in ("int", "string")):
                return False
            if node.function not in _STEPS and any(map(_may_hold_maps, node.operands())):
                return False
            work.extend(node.operands())
        elif type(node) in (ListLiteral, MapLiteral, Comprehension):
            return False
    return True


#: What takes a map without going through it.
_STEPS: Final = frozenset(("_[_]", "_[?_]", "_?._", "_in_", "size"))


def _may_hold_maps(node: Node) -> bool:
    """Whether the value is the device, or made of its maps."""
    types = [node.type]
    while types:
        t = types.pop()
        if t.kind == "map":
            return True
        types.extend(t.parameters)
    return type(node) is Ident


def _is_flat(value: Value) -> bool:
    """Whether comparing a value with any other takes no work that is not in the cost."""
    if isinstance(value, dict):
        return not value
    if isinstance(value, tuple):
        return len(value) <= 64 and not any(isinstance(element, (tuple, dict, Optional)) for element in value)
    return type(value) is not Optional or value is NONE or _is_flat(value.value)


class _Generator:
    """Writes the statements of one function; `expression` gives the Python expression of a node's value."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.lines: list[str] = []
        self.prologue: list[str] = []
        self.table: dict[str, Any] = {}
        self.depth = 1
        self.count = 0
        self.domains: dict[tuple[str, str], str] = {}
        self.variables: dict[Binding, str] = {}
        #: Variables that may hold the fault of their value, to be raised where they are read.
        self.unsure: set[str] = set()
        self.folded: dict[Node, Value] = {}
        #: Variables that are bound to the map of one domain.
        self.bound_domains: dict[Binding, str] = {}

    # Writing --------------------------------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append(" " * self.depth + line)

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, value: Value) -> str:
        if value is True or value is False or value is None:
            return repr(value)
        name = self.name("k")
        self.table[name] = value
        return name

    def temporary(self, expression: str) -> str:
        if expression.isidentifier():
            return expression
        name = self.name("t")
        self.write(f"{name} = {expression}")
        return name

    # Expressions ----------------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> str:
        """The Python expression of a node; statements that it needs are written before."""
        known, value = self.known(node)
        if known:
            return self.constant(value)
        if type(node) is Ident:
            return self.variable(node)
        if type(node) is Select:
            return self.select(node)
        if type(node) is Call:
            return self.call(node)
        if type(node) is ListLiteral:
            return self.list_literal(node)
        if type(node) is MapLiteral:
            return self.map_literal(node)
        assert type(node) is Comprehension
        return self.comprehension(node)

    def known(self, node: Node) -> tuple[bool, Value]:
        """Whether the value of a node is known now: a constant, or a pure call of constants that succeeds."""
        if node in self.constants:
            return True, self.constants[node]
        if node in self.folded:
            return True, self.folded[node]
        if type(node) is Call and node.function in _FOLDED:
            values = []
            for operand in node.operands():
                known, value = self.known(operand)
                if not known:
                    return False, None
                values.append(value)
            try:
                self.folded[node] = implementation(node.function, node.overloads)(*values)
            except (Fault, Halt):
                return False, None
            return True, self.folded[node]
        return False, None

    def variable(self, node: Ident) -> str:
        if node.binding is DEVICE_BINDING:
            return "whole(env)"
        assert node.binding is not None
        name = self.variables[node.binding]
        if name in self.unsure:
            self.write(f"if type({name}) is Fault: raise {name}")
        return name

    def kind(self, node: Node) -> str:
        """The kind of value that a node surely has at run time, `dyn` if only the value can tell.

        Static types do not: through `dyn`, a list of strings may hold a number.
        """
        known, value = self.known(node)
        if known:
            return _KINDS.get(type(value), "dyn")
        if type(node) is Select:
            if node.test:
                return "bool"
            if type(node.operand) is Ident and node.operand.binding is DEVICE_BINDING:
                return node.type.kind
            return "Quantity" if self.domain_of(node.operand) == "capacity" else "dyn"
        if type(node) is Call:
            if node.function == "_?_:_":
                yes, no = self.kind(node.arguments[1]), self.kind(node.arguments[2])
                return yes if yes == no else "dyn"
            if node.function == "_[_]":
                if self.domain_of(node) is not None:
                    return "map"
                constant = _constant_step(node, self.constants)[0] is not None
                return "Quantity" if constant and self.domain_of(node.arguments[0]) == "capacity" else "dyn"
            if any(overload.result.has_parameters for overload in node.overloads):
                return "dyn"
            return _STATIC_KINDS.get(node.type.name, node.type.kind)
        if type(node) is Comprehension:
            return self.kind(node.result) if node.macro == "bind" else _MACRO_KINDS[node.macro]
        return {ListLiteral: "list", MapLiteral: "map"}.get(type(node), "dyn")

    def implementation(self, node: Call) -> Callable[..., Any]:
        sure = all(
            self.kind(operand) in (wanted.kind, *_ACCEPTED.get(wanted.name, ()))
            for operand, wanted in zip(node.operands(), node.overloads[0].arguments, strict=True)
            if wanted.kind not in ("dyn", "param")
        ) and not any(wanted.parameters for wanted in node.overloads[0].arguments)
        return implementation(node.function, node.overloads, sure=sure)

    # Chains of selections -------------------------------------------------------------------------------------------

    def select(self, node: Select) -> str:
        operand = node.operand
        if type(operand) is Ident and operand.binding is DEVICE_BINDING:
            return "True" if node.test else _FIELDS[node.field]
        domain = self.domain(operand)
        key = self.constant(node.field)
        if domain is not None:
            return f"({key} in {domain})" if node.test else f"{domain}[{key}]"
        return f"{'has' if node.test else 'step'}({self.expression(operand)}, {key})"

    def domain_of(self, node: Node) -> str | None:
        """`attributes` or `capacity` if a node is the map of one domain."""
        if type(node) is Ident and node.binding is not None:
            return self.bound_domains.get(node.binding)
        key, operand = _constant_step(node, self.constants)
        if key is None or type(operand) is not Select or operand.test:
            return None
        if not (type(operand.operand) is Ident and operand.operand.binding is DEVICE_BINDING):
            return None
        return operand.field if operand.field in ("attributes", "capacity") else None

    def domain(self, node: Node) -> str | None:
        """The map of one domain of the device, looked up once for the whole function."""
        field = self.domain_of(node)
        if field is None:
            return None
        if type(node) is Ident and node.binding is not None:
            return self.variables[node.binding]
        key, _ = _constant_step(node, self.constants)
        assert key is not None
        found = self.domains.get((field, key))
        if found is None:
            found = self.domains[field, key] = self.name("d")
            self.prologue.append(f" {found} = {_FIELDS[field]}.get({self.constant(key)}, EMPTY)")
        return found

    def index(self, node: Call) -> str:
        domain = self.domain(node)
        if domain is not None:
            return domain
        operand, index = node.arguments
        below = self.domain(operand)
        known, key = (True, index.value) if node.function == "_?._" and type(index) is Literal else self.known(index)
        optional = node.function != "_[_]"
        if known and type(key) is str:
            constant = self.constant(key)
            if below is not None:
                return f"get({below}, {constant})" if optional else f"{below}[{constant}]"
            return f"{'maybe' if optional else 'step'}({self.expression(operand)}, {constant})"
        value = self.temporary(self.expression(operand))
        action = "maybe_at" if optional else "at"
        if known or self.kind(operand) in ("list", "map"):
            return f"{action}({value}, {self.expression(index)})"
        # Of none, the key is not even evaluated.
        result = self.name("r")
        self.write(f"{result} = NONE")
        self.write(f"if {value} is not NONE:")
        self.depth += 1
        self.write(f"{result} = {action}({value}, {self.expression(index)})")
        self.depth -= 1
        return result

    # Calls ----------------------------------------------------------------------------------------------------------

    def call(self, node: Call) -> str:
        function = node.function
        if function in _INDEX:
            return self.index(node)
        special = _SPECIAL.get(function)
        if special is not None:
            found = special(self, node)
            if found is not None:
                return found
        return self.plain_call(node)

    def plain_call(self, node: Call) -> str:
        operands = node.operands()
        arguments = [self.expression(operand) for operand in operands]
        return f"{self.constant(self.implementation(node))}({', '.join(arguments)})"

    def conditional(self, node: Call) -> str | None:
        condition, yes, no = node.arguments
        mapped = self.optional_map(node)
        if mapped is not None:
            return mapped
        test = self.expression(condition)
        result = self.name("r")
        if self.kind(condition) != "bool":
            test = self.temporary(test)
            self.write(f"if {test} is not True and {test} is not False: wrong({test})")
        self.write(f"if {test}:")
        self.assign(result, yes)
        self.write("else:")
        self.assign(result, no)
        return result

    def assign(self, target: str, node: Node) -> None:
        """Write an indented block that assigns the value of a node."""
        self.depth += 1
        self.write(f"{target} = {self.expression(node)}")
        self.depth -= 1

    def optional_map(self, node: Call) -> str | None:
        """`optMap` and `optFlatMap`: the target is evaluated once."""
        condition, mapped, _ = node.arguments
        inner = mapped.arguments[0] if type(mapped) is Call and mapped.function == "optional.of" else mapped
        if (
            type(condition) is not Call
            or condition.function != "hasValue"
            or type(inner) is not Comprehension
            or inner.macro != "bind"
            or type(inner.init) is not Call
            or inner.init.target is not condition.target
            or condition.target is None
        ):
            return None
        target = self.temporary(self.expression(condition.target))
        result = self.name("r")
        assert inner.accumulator_binding is not None
        variable = self.variables[inner.accumulator_binding] = self.name("v")
        self.write(f"if type({target}) is not Optional: wrong({target})")
        self.write(f"{result} = NONE")
        self.write(f"if {target} is not NONE:")
        self.depth += 1
        self.write(f"{variable} = {target}.value")
        value = self.expression(inner.result)
        self.write(f"{result} = {value if inner is mapped else f'Optional({value})'}")
        self.depth -= 1
        return result

    def logical(self, node: Call) -> str:
        """`&&` and `||`: the deciding value wins over errors on either side."""
        decisive = node.function == "_||_"
        operands = node.arguments
        if all(self.is_simple(operand) for operand in operands):
            word = " or " if decisive else " and "
            return f"({word.join(self.expression(operand) for operand in operands)})"
        result, pending = self.name("r"), self.name("p")
        self.write(f"{result} = {decisive}")
        self.write(f"{pending} = None")
        self.write("while True:")
        self.depth += 1
        for operand in operands:
            self.operand(operand, decisive, pending)
        self.write(f"if {pending} is not None: raise {pending}")
        self.write(f"{result} = {not decisive}")
        self.write("break")
        self.depth -= 1
        return result

    def operand(self, node: Node, decisive: bool, pending: str) -> None:
        """One operand of a logical operator: leaves the loop if it decides, else keeps the first error."""
        value = self.name("b")
        if self.is_simple(node):
            self.write(f"if {'' if decisive else 'not '}{self.expression(node)}: break")
            return
        self.write("try:")
        self.assign(value, node)
        self.write(f"except FAULTS as error: {pending} = {pending} or fault_of(error)")
        self.write("else:")
        self.write(f" if {value} is {decisive}: break")
        if self.kind(node) != "bool":
            self.write(f" if {value} is not {not decisive}: {pending} = {pending} or no_overload('&& or ||', {value})")

    def is_simple(self, node: Node) -> bool:
        """Whether a node is a bool that cannot fail and needs no statements."""
        if self.kind(node) != "bool":
            return False
        if self.known(node)[0]:
            return True
        if type(node) is Select:
            operand = node.operand
            if type(operand) is Ident and operand.binding is DEVICE_BINDING:
                return True
            return node.test and self.domain(operand) is not None
        if type(node) is not Call:
            return False
        if node.function == "!_":
            return self.is_simple(node.arguments[0])
        if node.function in ("_&&_", "_||_"):
            return all(map(self.is_simple, node.arguments))
        if node.function == "_in_":
            key, place = node.arguments
            return self.kind(key) == "string" and self.is_sure(key) and self.domain(place) is not None
        if node.function in ("_==_", "_!=_", "startsWith", "endsWith", "contains"):
            return all(self.kind(o) == "string" and self.is_sure(o) for o in node.operands())
        return False

    def is_sure(self, node: Node) -> bool:
        """Whether a node is the driver or known."""
        if self.known(node)[0]:
            return True
        if type(node) is not Select or node.test or type(node.operand) is not Ident:
            return False
        return node.operand.binding is DEVICE_BINDING

    def negation(self, node: Call) -> str:
        value = self.expression(node.arguments[0])
        return f"(not {value})" if self.kind(node.arguments[0]) == "bool" else f"logical_not({value})"

    def either(self, node: Call) -> str | None:
        """`or` and `orValue`: the right side only where there is no left."""
        assert node.target is not None
        unwrap = node.function == "orValue"
        read = self.optional_read(node.target) if unwrap else None
        if read is not None:
            domain, key = read
            result = self.name("r")
            self.write(f"if {key} in {domain}: {result} = {domain}[{key}]")
            self.write("else:")
            self.assign(result, node.arguments[0])
            return result
        target = self.temporary(self.expression(node.target))
        result = self.name("r")
        self.write(f"if {target} is NONE:")
        self.assign(result, node.arguments[0])
        self.write("else:")
        self.write(f" if type({target}) is not Optional: wrong({target})")
        self.write(f" {result} = {target}.value" if unwrap else f" {result} = {target}")
        return result

    def optional_read(self, node: Node) -> tuple[str, str] | None:
        """The domain and the key of `domain.?name` or `domain[?"name"]`."""
        if type(node) is not Call or node.function not in ("_?._", "_[?_]"):
            return None
        domain = self.domain(node.arguments[0])
        index = node.arguments[1]
        if domain is None or type(index) is not Literal or type(index.value) is not str:
            return None
        return domain, self.constant(index.value)

    def comparison(self, node: Call) -> str | None:
        """`==` and orders against a constant: one look at the type, then Python's own operator."""
        left, right = node.arguments
        operator = _OPERATORS[node.function]
        kinds = {self.kind(left), self.kind(right)}
        equality = node.function in ("_==_", "_!=_")
        if len(kinds) == 1 and (kinds <= {"string", "int"} or (equality and kinds == {"bool"})):
            return f"({self.expression(left)} {operator} {self.expression(right)})"
        known, value = self.known(right)
        if not known or type(value) not in (str, int):
            return None
        tested = self.temporary(self.expression(left))
        constant = self.constant(value)
        return (
            f"({tested} {operator} {constant} if type({tested}) is {type(value).__name__} "
            f"else {_GENERAL[node.function]}({tested}, {constant}))"
        )

    def membership(self, node: Call) -> str | None:
        left, right = node.arguments
        members = self.constants.sets.get(node)
        if members is not None:
            texts = [e for e in self.constants[right] if type(e) is str]
            tested = self.temporary(self.expression(left))
            constant = self.constant(members)
            if texts and len(texts) == len(self.constants[right]):
                quick = self.constant(frozenset(texts))
                return f"({tested} in {quick} if type({tested}) is str else {tested} in {constant})"
            return f"({tested} in {constant})"
        domain = self.domain(right)
        if domain is not None and self.kind(left) == "string":
            return f"({self.expression(left)} in {domain})"
        return None

    def text_method(self, node: Call) -> str | None:
        """`startsWith` and the like, of a string or of what may be one, with a known string."""
        operands = node.operands()
        if len(operands) != 2:
            return None
        target, argument = operands
        if self.kind(argument) != "string":
            return None
        template = _TEXT_METHODS[node.function]
        if node.function == "matches" and not self.known(argument)[0]:
            return None
        tested = self.temporary(self.expression(target))
        action = template.format(tested, self.expression(argument))
        if self.kind(target) == "string":
            return action
        return f"({action} if type({tested}) is str else wrong({tested}))"

    def size(self, node: Call) -> str | None:
        operand = node.operands()[0]
        if self.kind(operand) in ("string", "bytes", "list", "map"):
            return f"len({self.expression(operand)})"
        return None

    def versus(self, node: Call) -> str | None:
        """Comparisons of quantities and versions with a known one."""
        if node.target is None or len(node.arguments) != 1:
            return None
        known, value = self.known(node.arguments[0])
        if not known or not isinstance(value, (Quantity, Semver)):
            return None
        field, number = ("nano", value.nano) if isinstance(value, Quantity) else ("precedence", value.precedence)
        other = self.constant(number)
        tested = self.temporary(self.expression(node.target))
        action = _VERSUS[node.function].format(f"{tested}.{field}", other)
        kind = "Quantity" if isinstance(value, Quantity) else "Semver"
        if self.kind(node.target) in (kind, "Amount" if kind == "Quantity" else kind):
            return action
        act = self.constant(implementation(node.function, node.overloads))
        return f"({action} if type({tested}) is {kind} else {act}({tested}, {self.constant(value)}))"

    def has_value(self, node: Call) -> str | None:
        assert node.target is not None
        read = self.optional_read(node.target)
        return f"({read[1]} in {read[0]})" if read is not None else None

    # Aggregates -----------------------------------------------------------------------------------------------------

    def list_literal(self, node: ListLiteral) -> str:
        elements = [self.expression(element) for element in node.elements]
        if node.optional:
            inner = ", ".join(
                f"*entry({element})" if index in node.optional else element for index, element in enumerate(elements)
            )
        else:
            inner = ", ".join(elements)
        return f"({inner},)" if elements else "()"

    def map_literal(self, node: MapLiteral) -> str:
        result = self.name("m")
        self.write(f"{result} = {{}}")
        for index, (key, value) in enumerate(node.entries):
            known, constant = self.known(key)
            plain = known and type(constant) in (str, int)
            spelled = self.constant(constant) if plain else f"map_key({self.expression(key)})"
            if index in node.optional:
                self.write(f"put({result}, {spelled}, {self.expression(value)})")
            else:
                self.write(f"{result}[{spelled}] = {self.expression(value)}")
        return result

    # Comprehensions -------------------------------------------------------------------------------------------------

    def comprehension(self, node: Comprehension) -> str:
        if node.macro == "bind":
            return self.bind(node)
        result = self.name("r")
        ranged = self.expression(node.range)
        assert node.variable_binding is not None
        first = self.variables[node.variable_binding] = self.name("v")
        if node.variable2_binding is not None:
            second = self.variables[node.variable2_binding] = self.name("v")
            loop = f"for {first}, {second} in elements({ranged}, True):"
        elif self.kind(node.range) == "list" or self.domain_of(node.range) is not None:
            loop = f"for {first} in {ranged}:"
        else:
            loop = f"for {first} in elements({ranged}, False):"
        _LOOPS[node.macro](self, node, loop, result)
        return result

    def quantifier(self, node: Comprehension, loop: str, result: str) -> None:
        assert node.predicate is not None
        decisive = node.macro == "exists"
        pending = self.name("p")
        self.write(f"{result} = {not decisive}")
        self.write(f"{pending} = None")
        self.write(loop)
        self.depth += 1
        value = self.name("b")
        self.write("try:")
        self.assign(value, node.predicate)
        self.write(f"except FAULTS as error: {pending} = {pending} or fault_of(error)")
        self.write("else:")
        self.write(f" if {value} is {decisive}:")
        self.write(f"  {result} = {decisive}")
        self.write("  break")
        if self.kind(node.predicate) != "bool":
            self.write(f" if {value} is not {not decisive}: {pending} = {pending} or no_overload('&& or ||', {value})")
        self.depth -= 1
        self.write("else:")
        self.write(f" if {pending} is not None: raise {pending}")

    def exists_one(self, node: Comprehension, loop: str, result: str) -> None:
        assert node.predicate is not None
        count = self.name("n")
        self.write(f"{count} = 0")
        self.write(loop)
        self.depth += 1
        self.guard(node.predicate, f"{count} += 1")
        self.depth -= 1
        self.write(f"{result} = {count} == 1")

    def guard(self, predicate: Node, action: str) -> None:
        """Do something where the predicate is true."""
        value = self.temporary(self.expression(predicate))
        if self.kind(predicate) != "bool":
            self.write(f"if {value} is not True and {value} is not False: wrong({value})")
        self.write(f"if {value}:")
        self.write(f" {action}")

    def collect(self, node: Comprehension, loop: str, result: str) -> None:
        assert node.transform is not None
        found = self.name("l")
        self.write(f"{found} = []")
        self.write(loop)
        self.depth += 1
        self.filtered(node)
        self.write(f"{found}.append({self.expression(node.transform)})")
        self.depth -= 1
        self.write(f"{result} = tuple({found})")

    def filtered(self, node: Comprehension) -> None:
        """Go on with the next element where the predicate is false."""
        if node.predicate is not None:
            value = self.temporary(self.expression(node.predicate))
            if self.kind(node.predicate) != "bool":
                self.write(f"if {value} is not True and {value} is not False: wrong({value})")
            self.write(f"if not {value}: continue")

    def collect_map(self, node: Comprehension, loop: str, result: str) -> None:
        assert node.transform is not None
        assert node.variable_binding is not None
        self.write(f"{result} = {{}}")
        self.write(loop)
        self.depth += 1
        self.filtered(node)
        value = self.expression(node.transform)
        if node.macro == "transformMap":
            self.write(f"insert({result}, {self.variables[node.variable_binding]}, {value})")
        else:
            self.write(f"insert_all({result}, {value})")
        self.depth -= 1

    def bind(self, node: Comprehension) -> str:
        """A variable: its fault, if it has one, is raised where it is read."""
        assert node.accumulator_binding is not None
        domain = self.domain(node.init)
        if domain is not None:
            field = self.domain_of(node.init)
            assert field is not None
            self.variables[node.accumulator_binding] = domain
            self.bound_domains[node.accumulator_binding] = field
            return self.expression(node.result)
        variable = self.variables[node.accumulator_binding] = self.name("v")
        self.write("try:")
        self.assign(variable, node.init)
        self.write(f"except FAULTS as error: {variable} = fault_of(error)")
        self.unsure.add(variable)
        return self.expression(node.result)


_KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    tuple: "list",
    dict: "map",
    Quantity: "Quantity",
    Amount: "Amount",
    Semver: "Semver",
}
_STATIC_KINDS: Final = {"kubernetes.Quantity": "Amount", "kubernetes.Semver": "Semver"}
_ACCEPTED: Final = {"kubernetes.Quantity": ("Quantity", "Amount"), "kubernetes.Semver": ("Semver",)}
_MACRO_KINDS: Final = {
    **dict.fromkeys(("all", "exists", "exists_one"), "bool"),
    **dict.fromkeys(("map", "filter", "transformList"), "list"),
    **dict.fromkeys(("transformMap", "transformMapEntry"), "map"),
}

_INDEX: Final = ("_[_]", "_[?_]", "_?._")

_FIELDS: Final = {
    "driver": "env.driver",
    "allowMultipleAllocations": "env.allow_multiple",
    "attributes": "env.attributes",
    "capacity": "env.capacity",
}

_OPERATORS: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_GENERAL: Final = {
    "_==_": "equals",
    "_!=_": "not_equals",
    "_<_": "less",
    "_<=_": "less_equals",
    "_>_": "greater",
    "_>=_": "greater_equals",
}
_TEXT_METHODS: Final = {
    "startsWith": "{}.startswith({})",
    "endsWith": "{}.endswith({})",
    "contains": "({1} in {0})",
    "matches": "found({1}, {0})",
}
_VERSUS: Final = {
    "isGreaterThan": "({} > {})",
    "isLessThan": "({} < {})",
    "compareTo": "(({0} > {1}) - ({0} < {1}))",
}

#: Functions without side conditions that are evaluated at once where all arguments are known.
_FOLDED: Final = frozenset(
    {"semver", "quantity", "ip", "cidr", "url", "-_", "lowerAscii", "upperAscii", "format.named", "optional.none"}
)

_SPECIAL: Final[dict[str, Callable[[_Generator, Call], str | None]]] = {
    "_?_:_": _Generator.conditional,
    "_&&_": _Generator.logical,
    "_||_": _Generator.logical,
    "!_": _Generator.negation,
    "or": _Generator.either,
    "orValue": _Generator.either,
    **dict.fromkeys(_OPERATORS, _Generator.comparison),
    "_in_": _Generator.membership,
    **dict.fromkeys(_TEXT_METHODS, _Generator.text_method),
    "size": _Generator.size,
    **dict.fromkeys(_VERSUS, _Generator.versus),
    "hasValue": _Generator.has_value,
}

_LOOPS: Final[dict[str, Callable[[_Generator, Comprehension, str, str], None]]] = {
    "all": _Generator.quantifier,
    "exists": _Generator.quantifier,
    "exists_one": _Generator.exists_one,
    "map": _Generator.collect,
    "filter": _Generator.collect,
    "transformList": _Generator.collect,
    "transformMap": _Generator.collect_map,
    "transformMapEntry": _Generator.collect_map,
}


def _constant_step(node: Node, constants: Constants) -> tuple[str | None, Node | None]:
    """`operand.field` or `operand["field"]` as (field, operand)."""
    if type(node) is Select and not node.test:
        return node.field, node.operand
    if type(node) is Call and node.function == "_[_]" and node.arguments[1] in constants:
        key = constants[node.arguments[1]]
        if type(key) is str:
            return key, node.arguments[0]
    return None, None
