"""The generated code against the machine that counts costs: on any expression and device they agree."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dra_alloc.cel import CelError, DeviceEnv, compile_derived, compile_selector
from dra_alloc.cel.estimate import estimate
from dra_alloc.cel.program import Program
from dra_alloc.cel.work import exhaust
from tests.cel.devices import GPU, device
from tests.cel.expressions import expressions

BARE = device()
OTHER = device({"model": 1, "index": "x", "ecc": [True], "numas": [], "modes": "mig", "driverVersion": "v:0.1.0-rc.1"})


def _agree(program: Program, env: DeviceEnv) -> None:
    exact, cost = program.evaluate_with_cost(env)
    found: object
    exhaust()
    try:
        found = program.evaluate(env)
    except CelError as error:
        found = error
    if isinstance(exact, CelError) or isinstance(found, CelError):
        assert isinstance(exact, CelError), (program, exact, found)
        assert isinstance(found, CelError), (program, exact, found)
    else:
        assert type(exact) is type(found)
        assert exact == found, program
    if env.within_limits:
        # What is run without counting may not cost more than the limit: the bound has a margin of four.
        assert cost <= 4 * estimate(program._root, safe=True) + 8, program


@settings(max_examples=300, deadline=None)
@given(expressions(), st.sampled_from([GPU, BARE, OTHER]))
@example("dyn(1 / 0 == 1) || true", BARE)
@example("device.attributes['gpu.example.com'].index in [[3], [4]]", GPU)
@example("dyn(device.attributes['gpu.example.com'].numas) == [[3], [4], [5]]", GPU)
@example("{'a': 1}.?b.c.hasValue()", BARE)
@example("cel.bind(x, 1 / 0, true)", BARE)
@example("[1, 2].exists(x, dyn(x))", BARE)
def test_selectors(expression: str, env: DeviceEnv) -> None:
    for compile_ in (compile_selector, compile_derived):
        try:
            program = compile_(expression)
        except CelError:
            continue
        _agree(program, env)
        assert program.key(env) == program.key(env)


@settings(max_examples=200, deadline=None)
@given(expressions(max_leaves=6), expressions(max_leaves=6), st.sampled_from(["==", "!=", "<", "in"]))
def test_comparisons_of_anything(left: str, right: str, operator: str) -> None:
    try:
        program = compile_selector(f"dyn({left}) {operator} dyn({right})")
    except CelError:
        return
    _agree(program, GPU)
    _agree(program, OTHER)


@st.composite
def _values(draw: st.DrawFn) -> object:
    scalar = st.one_of(
        st.integers(-3, 3), st.booleans(), st.sampled_from(["", "a", "A100-SXM4", "v:1.2.3", "v:12.4.1", "mig"])
    )
    first = draw(scalar)
    if not draw(st.booleans()):
        return first
    same = (
        st.just(first)
        if isinstance(first, str) and first.startswith("v:")
        else scalar.filter(lambda value: type(value) is type(first) and not str(value).startswith("v:"))
    )
    return [first, *draw(st.lists(same, max_size=3))]


@settings(max_examples=200, deadline=None)
@given(
    expressions(max_leaves=6),
    st.dictionaries(st.sampled_from(["model", "index", "numas", "ecc", "modes", "other"]), _values(), max_size=6),
    st.dictionaries(st.sampled_from(["model", "index", "numas", "ecc", "modes", "other"]), _values(), max_size=6),
)
def test_devices_with_equal_keys_have_equal_values(
    expression: str, one: dict[str, object], other: dict[str, object]
) -> None:
    try:
        program = compile_derived(f"dyn({expression})")
    except CelError:
        return
    first, second = device(one), device(other)
    _agree(program, first)
    _agree(program, second)
    if program.key(first) == program.key(second):
        a, _ = program.evaluate_with_cost(first)
        b, _ = program.evaluate_with_cost(second)
        assert (type(a), str(a)) == (type(b), str(b))
