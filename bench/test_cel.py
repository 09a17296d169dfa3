"""Expressions: compiled, evaluated on a device, and verdicts over a fleet; against other evaluators of CEL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import celpy
import pytest
from cel_expr_python import cel
from celpy.adapter import json_to_cel

from bench.conftest import Measure
from dra_alloc.cel import EnvTable, VerdictCache, compile_selector, device_env_from_dict
from dra_alloc.cel.program import _as_verdict, _build, _selector_type

DRIVER = "gpu.example.com"
A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'

#: Selectors as drivers and users write them; all are true on `_device(0)`.
TYPICAL = (
    f'device.driver == "{DRIVER}"',
    f'{A}.model == "A100-SXM4"',
    f'{A}.model.startsWith("A100")',
    f"{A}.index >= 0 && {A}.index < 8",
    f'has({A}.model) && {A}.model == "A100-SXM4"',
    f'{C}.memory.compareTo(quantity("40Gi")) >= 0',
    f'{A}.driverVersion.isGreaterThan(semver("12.0.0"))',
    f'{A}.?model.orValue("none") == "A100-SXM4"',
    f'cel.bind(gpu, {A}, gpu.model == "A100-SXM4" && gpu.ecc)',
    f'{A}.model.matches("^A100-[A-Z0-9]+$")',
    f"{A}.numa in [0, 1]",
    f'{A}.model in ["H100", "A100-SXM4"] && {A}.ecc',
    f'"model" in {A}',
    f'{A}.model.lowerAscii() == "a100-sxm4"',
    f'device.driver == "{DRIVER}" && {A}.model == "A100-SXM4" && {C}.memory.isGreaterThan(quantity("10Gi"))',
    f"!{A}.ecc || {A}.index == 0",
    f"{A}.modes.exists(mode, mode == 'mig')",
    f"{A}.modes.all(mode, mode.size() > 0)",
    f'{A}.index % 2 == 0 ? {A}.family == "Ampere" : true',
    f'{A}.model + "/" + {A}.family == "A100-SXM4/Ampere"',
)

#: Those of them that the other evaluators understand: no versions, quantities, optionals, bind, lowerAscii.
PLAIN = tuple(
    expression
    for expression in TYPICAL
    if not any(word in expression for word in ("semver", "quantity", ".?", "cel.bind", "lowerAscii"))
)


def _device(number: int) -> dict[str, Any]:
    return {
        "attributes": {
            "model": {"string": "A100-SXM4" if number % 2 == 0 else "H100"},
            "index": {"int": number},
            "ecc": {"bool": True},
            "numa": {"int": number % 2},
            "family": {"string": "Ampere"},
            "driverVersion": {"version": "12.4.1"},
            "modes": {"strings": ["mig", "vgpu"]},
            "uuid": {"string": f"GPU-{number:04d}"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def _plain_device() -> dict[str, Any]:
    """The first device, as evaluators without types of Kubernetes take it."""
    values = {name: next(iter(value.values())) for name, value in _device(0)["attributes"].items()}
    return {"driver": DRIVER, "attributes": {DRIVER: values}}


#: Compiles an expression to a function that evaluates it on the first device.
Compiler = Callable[[str], Callable[[], bool]]


def _cel_python() -> Compiler:
    environment = celpy.Environment()
    activation = {"device": json_to_cel(_plain_device())}

    def compiled(expression: str) -> Callable[[], bool]:
        program = environment.program(environment.compile(expression))
        return lambda: bool(program.evaluate(activation))

    return compiled


def _cel_expr_python() -> Compiler:
    environment = cel.NewEnv(variables={"device": cel.Type.DYN})
    data = {"device": _plain_device()}

    def compiled(expression: str) -> Callable[[], bool]:
        program = environment.compile(expression)
        return lambda: bool(program.eval(data=data).plain_value())

    return compiled


against = pytest.mark.parametrize("other", [_cel_python, _cel_expr_python], ids=["cel-python", "cel-expr-python"])


@against
def test_compile(measure: Measure, other: Callable[[], Compiler], request: pytest.FixtureRequest) -> None:
    """20 typical selectors, compiled anew, with the generated code; against those that the other understands."""
    compile_selector("true")
    compiler = other()
    compiler("true")

    def run() -> list[Any]:
        programs = [_build(expression, True, _selector_type, _as_verdict) for expression in TYPICAL]
        return [program._compiled for program in programs]  # type: ignore[union-attr]

    functions = measure(
        run,
        n=len(TYPICAL),
        units=len(TYPICAL),
        plain=lambda: [[compiler(expression) for expression in PLAIN] for _ in range(5)],
        plain_units=5 * len(PLAIN),
        what=request.node.callspec.id,
    )
    env = device_env_from_dict(DRIVER, _device(0))
    assert [function(env) for function in functions] == [True] * len(TYPICAL)


@against
def test_evaluate(measure: Measure, other: Callable[[], Compiler], request: pytest.FixtureRequest) -> None:
    """Compiled selectors on a device; against the other's on the same."""
    env = device_env_from_dict(DRIVER, _device(0))
    programs = [compile_selector(expression) for expression in PLAIN]
    compiler = other()
    functions = [compiler(expression) for expression in PLAIN]
    answer = measure(
        lambda: [program.evaluate(env) for program in programs],
        n=len(PLAIN),
        units=len(PLAIN),
        plain=lambda: [[function() for function in functions] for _ in range(20)],
        plain_units=20 * len(PLAIN),
        what=request.node.callspec.id,
        rounds=200,
    )
    assert answer == [function() for function in functions] == [True] * len(PLAIN)


def test_evaluate_kubernetes(measure: Measure) -> None:
    """All typical selectors, those that only Kubernetes' libraries understand included."""
    env = device_env_from_dict(DRIVER, _device(0))
    programs = [compile_selector(expression) for expression in TYPICAL]
    answer = measure(
        lambda: [program.evaluate(env) for program in programs], n=len(TYPICAL), units=len(TYPICAL), rounds=200
    )
    assert answer == [True] * len(TYPICAL)


def test_evaluate_with_cost(measure: Measure) -> None:
    """The machine that counts costs exactly."""
    env = device_env_from_dict(DRIVER, _device(0))
    programs = [compile_selector(expression) for expression in TYPICAL]
    answer = measure(
        lambda: [program.evaluate_with_cost(env) for program in programs], n=len(TYPICAL), units=len(TYPICAL)
    )
    assert [value for value, _ in answer] == [True] * len(TYPICAL)
    assert all(0 < cost <= program.max_cost for program, (_, cost) in zip(programs, answer, strict=True))


def test_environment(measure: Measure) -> None:
    """A device as expressions see it, from JSON."""
    device = _device(0)
    env = measure(lambda: device_env_from_dict(DRIVER, device), n=1)
    assert env.driver == DRIVER


def test_verdicts_over_a_fleet(measure: Measure) -> None:
    """One selector over 60,000 devices with 40 distinct rows, environments shared by row."""
    table = EnvTable()
    rows = [device_env_from_dict(DRIVER, _device(number)) for number in range(40)]
    fleet = [table.intern(rows[number % 40]) for number in range(60_000)]
    program = compile_selector(f'{A}.model == "A100-SXM4" && {A}.index >= 0')

    def setup() -> tuple[tuple[VerdictCache], dict[str, Any]]:
        return (VerdictCache(),), {}

    answer = measure(
        lambda cache: cache.many(program, fleet),
        n=len(fleet),
        units=len(fleet),
        plain=lambda: [program.evaluate(env) for env in fleet[:1000]],
        plain_units=1000,
        what="evaluate each device",
        setup=setup,
    )
    assert answer == [number % 2 == 0 for number in range(60_000)]
