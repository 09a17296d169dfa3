"""Other implementations as judges: cel-python's evaluator, and CEL's own in C++ (cel-expr-python).

Neither is CEL as Kubernetes has it: they lack its libraries, and differ where `EXPLAINED` says. On expressions that
all of them understand they must agree.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import celpy
import pytest
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_alloc.cel import CelError, compile_selector
from tests.cel.devices import GPU

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
VALUES: dict[str, object] = {
    "model": "A100-SXM4",
    "index": 3,
    "ecc": True,
    "numas": [0, 2, 5],
    "modes": ["mig", "vgpu"],
}
DEVICE = {"driver": "gpu.example.com", "attributes": {"gpu.example.com": VALUES}}

_INTS = st.sampled_from(
    ("0", "1", "2", "-3", "7", "9223372036854775807", "-9223372036854775808", f"{ATTRIBUTES}.index", "size([1, 2])")
)
_STRINGS = st.sampled_from(("''", "'a'", "'A100-SXM4'", "'é😀'", "'mig'", f"{ATTRIBUTES}.model", "device.driver"))
_INDICES = st.sampled_from(("0", "1", "2", "9", f"{ATTRIBUTES}.index"))
_LISTS = st.sampled_from(("[0, 2]", "[1, 2, 3]", "[7]", f"{ATTRIBUTES}.numas"))
_BOOLS = st.sampled_from(
    (
        "true",
        "false",
        f"{ATTRIBUTES}.ecc",
        f"has({ATTRIBUTES}.model)",
        f"has({ATTRIBUTES}.nope)",
        f"{ATTRIBUTES}.nope == 1",
    )
)


def _fill(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda values: template.format(*values))


def _ints(depth: int, variables: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    leaves = st.one_of(_INTS, st.sampled_from(variables)) if variables else _INTS
    if not depth:
        return leaves
    inner = _ints(depth - 1, variables)
    return st.one_of(
        leaves,
        *(_fill(f"({{}} {operator} {{}})", inner, inner) for operator in "+-*/%"),
        _fill("({} ? {} : {})", _bools(depth - 1, variables), inner, inner),
        _fill("size({})", _strings(depth - 1, variables)),
        _fill("{}.size()", _lists(depth - 1, variables)),
        _fill("{}[{}]", _lists(depth - 1, variables), _INDICES),
        _fill("-({})", inner),
    )


def _strings(depth: int, variables: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    if not depth:
        return _STRINGS
    inner = _strings(depth - 1, variables)
    return st.one_of(
        _STRINGS,
        _fill("string({} + {})", inner, inner),
        _fill("({} ? {} : {})", _bools(depth - 1, variables), inner, inner),
        _fill("string({})", _ints(depth - 1, variables)),
        _fill("{}[{}]", st.just(f"{ATTRIBUTES}.modes"), _INDICES),
    )


def _lists(depth: int, variables: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    if not depth:
        return _LISTS
    inner = _lists(depth - 1, variables)
    name = f"v{depth}"
    return st.one_of(
        _LISTS,
        _fill("[{}, {}]", _ints(depth - 1, variables), _ints(depth - 1, variables)),
        _fill(f"{{}}.map({name}, {{}})", inner, _ints(depth - 1, (*variables, name))),
        _fill(f"{{}}.filter({name}, {{}})", inner, _bools(depth - 1, (*variables, name))),
        _fill("({} + {})", inner, inner),
    )


def _bools(depth: int, variables: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    if not depth:
        return _BOOLS
    inner, ints = _bools(depth - 1, variables), _ints(depth - 1, variables)
    strings, lists = _strings(depth - 1, variables), _lists(depth - 1, variables)
    name = f"v{depth}"
    body = _bools(depth - 1, (*variables, name))
    return st.one_of(
        _BOOLS,
        *(_fill(f"({{}} {operator} {{}})", inner, inner) for operator in ("&&", "||", "&&", "||", "==", "!=")),
        *(_fill(f"({{}} {operator} {{}})", ints, ints) for operator in ("==", "!=", "<", "<=", ">", ">=")),
        *(_fill(f"({{}} {operator} {{}})", strings, strings) for operator in ("==", "!=", "<", "<=", ">", ">=")),
        *(_fill(f"{{}}.{method}({{}})", strings, strings) for method in ("startsWith", "endsWith", "contains")),
        *(_fill(f"{{}}.{macro}({name}, {{}})", lists, body) for macro in ("all", "exists", "exists_one")),
        _fill("({} in {})", ints, lists),
        _fill("({} == {})", lists, lists),
        _fill("!({})", inner),
        _fill("({} ? {} : {})", inner, inner, inner),
        _fill("{}.matches('[A-C]+[0-9]*')", strings),
    )


def _ours(expression: str) -> bool | str | None:
    """The verdict, `error`, or None for what does not compile (constants that are errors, mostly)."""
    try:
        program = compile_selector(expression)
    except CelError:
        return None
    try:
        return bool(program.evaluate(GPU))
    except CelError:
        return "error"


@cache
def _celpy_environment() -> tuple[celpy.Environment, Any]:
    return celpy.Environment(), json_to_cel(DEVICE)


def _celpy(expression: str) -> bool | str:
    environment, device = _celpy_environment()
    try:
        value = environment.program(environment.compile(expression)).evaluate({"device": device})
    except CELEvalError:
        return "error"
    assert isinstance(value, (bool, celtypes.BoolType)), value
    return bool(value)


@cache
def _cpp_environment() -> Any:
    cel = pytest.importorskip("cel_expr_python.cel", exc_type=ImportError)
    return cel, cel.NewEnv(variables={"device": cel.Type.DYN})


def _cpp(expression: str) -> bool | str:
    cel, environment = _cpp_environment()
    result = environment.compile(expression).eval(data={"device": DEVICE})
    if result.type() == cel.Type.ERROR:
        return "error"
    return bool(result.plain_value())


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    # cel-python raises the recursion limit when it evaluates first, which Hypothesis would warn about.
    assert _celpy("true") is True


@settings(max_examples=250, deadline=None)
@given(_bools(3))
def test_cel_python(expression: str) -> None:
    ours = _ours(expression)
    # An error in `exists_one` escapes from cel-python's `&&` and `||`.
    if ours is not None and "exists_one" not in expression:
        assert ours == _celpy(expression), expression


@settings(max_examples=400, deadline=None)
@given(_bools(3))
def test_cel_in_cpp(expression: str) -> None:
    ours = _ours(expression)
    if ours is not None:
        assert ours == _cpp(expression), expression


#: Expression, ours, cel-python's verdict, that of C++. `refused` where an expression does not compile.
EXPLAINED: list[tuple[str, bool | str, bool | str | None, bool | str | None]] = [
    # Equality of values of different types is false in CEL; cel-python makes it an error.
    (f"{ATTRIBUTES}.model == 1", False, "error", False),
    (f"{ATTRIBUTES}.numas != 1", True, "error", True),
    (f"'a' in {ATTRIBUTES}.numas", False, "error", False),
    # A bool is no number.
    (f"{ATTRIBUTES}.ecc == 1", False, True, False),
    (f"{ATTRIBUTES}.ecc > 0", "error", True, "error"),
    (f"int({ATTRIBUTES}.ecc) == 1", "error", True, True),
    # Kubernetes turns comparison across numeric types on; in C++ it is not declared, and cel-python has none.
    ("1 < 2u", True, "error", "refused"),
    ("1.5 < 2", True, True, "refused"),
    (f"{ATTRIBUTES}.index > 2u", True, "error", True),
    # Texts of values.
    ("string(true) == 'true'", True, False, True),
    ("string(1.0) == '1'", True, False, True),
    ("int(duration('90s')) == 90000000000", True, "error", "error"),
    # Presence of a field in what has no fields: Kubernetes says no.
    (f"has({ATTRIBUTES}.index.a)", False, None, "error"),
    (f"has({ATTRIBUTES}.nope.a)", "error", False, "error"),
    # `false && error` is false.
    (f"false && [1].exists_one(v, {ATTRIBUTES}.nope == 1)", False, "error", False),
    # A negative index is not that of Python.
    (f"{ATTRIBUTES}.numas[0 - 1] == 5", "error", True, "error"),
    # Python's own types show through in cel-python: a concatenation is a str without methods of CEL.
    ("('a' + 'b').contains('a')", True, "error", True),
    (f"{ATTRIBUTES}.model.all(c, true)", "error", True, "error"),
]


@pytest.mark.parametrize(("expression", "ours", "celpy_says", "cpp_says"), EXPLAINED)
def test_explained(
    expression: str, ours: bool | str, celpy_says: bool | str | None, cpp_says: bool | str | None
) -> None:
    assert _ours(expression) == ours
    if celpy_says is not None:
        assert _celpy(expression) == celpy_says
    if cpp_says is not None:
        try:
            found = _cpp(expression)
        except RuntimeError:
            found = "refused"
        assert found == cpp_says
