"""Every vector of the reference implementation: verdicts, compile errors and costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_alloc.api import Device
from dra_alloc.cel import CelError, EnvTable, VerdictCache, compile_selector, device_env, device_env_from_dict
from dra_alloc.cel.costs import LIMIT

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "conformance" / "cel.jsonl").read_text().splitlines()
]

#: The reference walks maps in an order that changes from run to run, so what it costs until the answer is known does
#: too: here it came to "model" first once and second once, of names in a domain.
ORDER_DEPENDENT = {'device.attributes["gpu.example.com"].exists(k, k == "model")'}


def _identity(vector: dict[str, Any]) -> str:
    return str(vector["id"])


def test_the_vectors_are_all_there() -> None:
    assert len(VECTORS) == 1214
    assert {vector["verdict"] for vector in VECTORS} == {True, False, "error", "compile-error"}


@pytest.mark.parametrize("vector", VECTORS, ids=_identity)
def test_vector(vector: dict[str, Any]) -> None:
    expression = vector["expression"]
    if vector["verdict"] == "compile-error":
        with pytest.raises(CelError):
            compile_selector(expression)
        return
    program = compile_selector(expression)
    try:
        env = device_env_from_dict(vector["driver"], vector["device"])
    except CelError:
        assert vector["verdict"] == "error"
        return
    exact, cost = program.evaluate_with_cost(env)
    assert ("error" if isinstance(exact, CelError) else exact) == vector["verdict"]
    if vector["verdict"] == "error":
        with pytest.raises(CelError) as caught:
            program.evaluate(env)
        assert caught.value.expression == expression
    else:
        assert program.evaluate(env) is vector["verdict"]
    if "cost" in vector and expression not in ORDER_DEPENDENT:
        assert cost == vector["cost"]
    assert cost <= LIMIT


def test_costs_that_depend_on_the_order_of_a_map_are_those_of_some_order() -> None:
    checked = 0
    for vector in VECTORS:
        if vector["expression"] in ORDER_DEPENDENT and "cost" in vector:
            env = device_env_from_dict(vector["driver"], vector["device"])
            _, cost = compile_selector(vector["expression"]).evaluate_with_cost(env)
            names = len(env.attributes.find("gpu.example.com"))
            # Four for `device.attributes[…]` and the loop, six for each other name, nine for the one that it finds.
            some = {4 + 6 * others + 9 for others in range(names)} if vector["verdict"] else {4 + 6 * names}
            assert {cost, vector["cost"]} <= some
            checked += 1
    assert checked > 1


def test_the_model_of_a_device_and_its_json_are_the_same_environment() -> None:
    table = EnvTable()
    checked = set()
    for vector in VECTORS:
        text = json.dumps([vector["driver"], vector["device"]])
        if "device" not in vector or text in checked:
            continue
        checked.add(text)
        try:
            env = device_env_from_dict(vector["driver"], vector["device"])
        except CelError:
            with pytest.raises(CelError):
                device_env(vector["driver"], Device.from_dict(vector["device"]))
            continue
        table.intern(env)
        before = len(table)
        assert table.intern(device_env(vector["driver"], Device.from_dict(vector["device"]))) is table.intern(env)
        assert len(table) == before
    assert len(checked) > 5


def test_verdicts_by_key_are_those_of_evaluation() -> None:
    cache = VerdictCache()
    for vector in VECTORS:
        if vector["verdict"] == "compile-error":
            continue
        try:
            env = device_env_from_dict(vector["driver"], vector["device"])
        except CelError:
            continue
        value = cache.get(compile_selector(vector["expression"]), env)
        assert ("error" if isinstance(value, CelError) else value) == vector["verdict"]
    assert 0 < len(cache) < len(VECTORS)
