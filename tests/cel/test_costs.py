"""What expressions may cost by estimate, what they cost, and the limits of both."""

from __future__ import annotations

import pytest

from dra_alloc.cel import CelError, check_derived_costs, check_selector_cost, compile_derived, compile_selector
from dra_alloc.cel.costs import LIMIT
from tests.cel.devices import GPU, device

ATTRIBUTES = 'device.attributes["gpu.example.com"]'

CAPACITY = 'device.capacity["gpu.example.com"]'

#: Numbers that the reference expects for expressions of the same form: lists count as 64 elements.
ESTIMATES = {
    "true": 0,
    'device.attributes["gpu.example.com"].x.isGreaterThan(quantity("0"))': 6,
    'device.attributes["gpu.example.com"]["x"].isGreaterThan(quantity("0"))': 6,
    '"gpu.example.com" in device.attributes': 3,
    'device.driver == ""': 2,
    'device.driver == "gpu.example.com"': 4,
    f"{ATTRIBUTES}.x": 4,
    f'{ATTRIBUTES}["x"]': 4,
    f"cel.bind(gpu, {ATTRIBUTES}, gpu.x)": 15,
    f"{ATTRIBUTES}.x > 0": 5,
    f'{ATTRIBUTES}.x == "fish"': 5,
    f"{ATTRIBUTES}.x.exists(e, e > 0)": 5 + 6 * 64,
    f"{ATTRIBUTES}.x.exists(e, e == true)": 5 + 6 * 64,
    f"{ATTRIBUTES}.x.size() == 2": 6,
    f'{ATTRIBUTES}.x.all(e, e != "")': 5 + 4 * 64,
    f'{ATTRIBUTES}.x.all(e, e.isGreaterThan(semver("0.0.1")))': 5 + 6 * 64,
    f'{ATTRIBUTES}.x.exists(e, e.isGreaterThan(semver("0.0.1")))': 5 + 7 * 64,
    f'{ATTRIBUTES}.x.includes("fish")': 4 + 64,
    f'{ATTRIBUTES}.x.includes(semver("1.0.0"))': 4 + 64 + 1,
    f"1 in {ATTRIBUTES}.x": 4 + 64,
    f'{ATTRIBUTES}.x.isGreaterThan(semver("0.0.1"))': 6,
    f'{ATTRIBUTES}.x.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)': 7,
    f'{CAPACITY}.x.isGreaterThan(quantity("1Ki"))': 6,
    f'"x" in {CAPACITY} && {CAPACITY}.x.isGreaterThan(quantity("1Ki"))': 10,
    f'!("x" in {CAPACITY}) || {CAPACITY}.x.isGreaterThan(quantity("1Ki"))': 11,
    f"{ATTRIBUTES}.x && {ATTRIBUTES}.y && {ATTRIBUTES}.z": 12,
    'device.attributes.exists_one(d, d == "gpu.example.com")': 164,
    f'{ATTRIBUTES}.exists_one(n, n == "services")': 133,
    f'{ATTRIBUTES}.x.split("example").size() >= 2': 19,
    f'{ATTRIBUTES}.x.matches("[^a]?sym")': 18,
}


@pytest.mark.parametrize(("expression", "cost"), ESTIMATES.items())
def test_estimates_of_the_reference(expression: str, cost: int) -> None:
    assert compile_selector(expression).max_cost == cost


def test_a_loop_within_loops_costs_the_product() -> None:
    one = compile_selector(f"{ATTRIBUTES}.numas.all(x, x > 0)").max_cost
    two = compile_selector(f"{ATTRIBUTES}.numas.all(x, {ATTRIBUTES}.numas.all(y, x >= y))").max_cost
    assert two > 60 * one


@pytest.mark.parametrize("expression", ['["a", "b"].join("-") == "a-b"', "type(1) == int"])
def test_what_has_no_bound_compiles_and_is_refused_only_when_it_is_new(expression: str) -> None:
    program = compile_selector(expression)
    assert program.evaluate(GPU) is True
    with pytest.raises(CelError, match="unbounded") as caught:
        check_selector_cost(program)
    assert caught.value.expression == expression


def test_an_expensive_selector_is_refused() -> None:
    body = "w >= 0"
    for variable in "wzyx":
        body = f"{ATTRIBUTES}.numas.all({variable}, {body})"
    program = compile_selector(body)
    assert program.max_cost > LIMIT
    with pytest.raises(CelError, match=f"{program.max_cost:,}"):
        check_selector_cost(program)
    check_selector_cost(compile_selector("true"))


def test_derived_attributes_share_one_budget() -> None:
    body = f"{ATTRIBUTES}.numas.exists(x, x in {ATTRIBUTES}.numas)"
    programs = [compile_derived(f"{body} ? {number} : 0") for number in range(250)]
    assert all(program.max_cost <= LIMIT for program in programs)
    assert sum(program.max_cost for program in programs) > LIMIT
    assert programs[7].evaluate(GPU) == 7
    check_derived_costs(programs[:2])
    with pytest.raises(CelError, match="together"):
        check_derived_costs(programs)


# Evaluation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ("device.driver == 'x'", 3),
        (f'{ATTRIBUTES}.model == "A100-SXM4"', 5),
        ("1 + 2 == 3", 2),
        ("true || false", 0),
    ],
)
def test_cost(expression: str, cost: int) -> None:
    _, actual = compile_selector(expression).evaluate_with_cost(GPU)
    assert actual == cost


def _nested(depth: int) -> str:
    body = "true"
    for level in range(depth):
        body = f"{ATTRIBUTES}.many.all(x{level}, {body})"
    return body


def test_evaluation_stops_at_the_limit() -> None:
    many = device({"many": list(range(64))})
    cheap, dear = compile_selector(_nested(2)), compile_selector(_nested(4))
    assert cheap.evaluate(many) is True
    _, cost = cheap.evaluate_with_cost(many)
    assert cost <= cheap.max_cost
    with pytest.raises(CelError, match="cost"):
        dear.evaluate(many)
    error, cost = dear.evaluate_with_cost(many)
    assert isinstance(error, CelError)
    assert LIMIT < cost < LIMIT + 1000


def test_the_limit_is_not_an_error_that_an_or_absorbs() -> None:
    many = device({"many": list(range(64))})
    program = compile_selector(f"{_nested(4)} || true")
    with pytest.raises(CelError, match="cost"):
        program.evaluate(many)


def test_costs_count_on_devices_beyond_the_limits_of_the_api() -> None:
    huge = device({"many": list(range(2000))})
    assert not huge.within_limits
    program = compile_selector(_nested(2))
    assert program.max_cost < LIMIT
    with pytest.raises(CelError, match="cost"):
        program.evaluate(huge)


def test_an_error_has_the_cost_up_to_it() -> None:
    error, cost = compile_selector(f"{ATTRIBUTES}.nope == 1").evaluate_with_cost(GPU)
    assert isinstance(error, CelError)
    assert 0 < cost < 10
