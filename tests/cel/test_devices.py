"""Environments of devices, what expressions read of them, and the caches of verdicts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dra_alloc.api import Device
from dra_alloc.cel import (
    CelError,
    DeviceEnv,
    EnvTable,
    Reads,
    Semver,
    VerdictCache,
    compile_derived,
    compile_selector,
    device_env,
    device_env_from_dict,
)
from tests.cel.devices import DRIVER, GPU, device, verdict

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'


def _env(attributes: dict[str, Any], *, list_attributes: bool = True) -> DeviceEnv:
    data = {"name": "dev", "attributes": attributes}
    made = device_env(DRIVER, Device.from_dict(data), list_attributes=list_attributes)
    again = device_env_from_dict(DRIVER, data, list_attributes=list_attributes)
    assert made.row() == again.row()
    return made


# Environments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("x", "gpu.example.com/x"), ("gpu.example.com/x", "x")])
def test_the_name_with_the_domain_of_the_driver_wins(names: tuple[str, str]) -> None:
    values = {"x": {"int": 1}, "gpu.example.com/x": {"int": 2}}
    env = _env({name: values[name] for name in names})
    assert compile_selector(f"{ATTRIBUTES}.x == 2").evaluate(env) is True


def test_names_without_a_domain_are_in_that_of_the_driver() -> None:
    env = _env({"x": {"int": 1}, "other.example.com/y": {"int": 2}})
    assert verdict(f"{ATTRIBUTES}.x == 1", env) is True
    assert verdict('device.attributes["other.example.com"].y == 2', env) is True
    assert verdict('device.attributes["gpu.example.com"].y == 2', env) == "error"
    assert verdict('"gpu.example.com" in device.attributes && !("nope" in device.attributes)', env) is True
    assert verdict('device.attributes["nope"].size() == 0', env) is True


@pytest.mark.parametrize(
    "attribute", [{}, {"version": "1.2"}, {"version": "v1.2.3"}, {"versions": ["1.2.3", "x"]}, {"version": "01.2.3"}]
)
def test_an_attribute_without_a_value_fails_the_device(attribute: dict[str, Any]) -> None:
    with pytest.raises(CelError, match="attribute bad"):
        device_env_from_dict(DRIVER, {"attributes": {"good": {"int": 1}, "bad": attribute}})


@pytest.mark.parametrize("attribute", [{"int": 2**63}, {"int": 1.5}, {"string": 1.5}, {"ints": [None]}])
def test_json_that_is_no_attribute_is_refused(attribute: dict[str, Any]) -> None:
    with pytest.raises(CelError, match="attribute bad"):
        device_env_from_dict(DRIVER, {"attributes": {"bad": attribute}})


@pytest.mark.parametrize("value", ["1 Gi", "", None, {}])
def test_a_capacity_that_is_no_quantity_is_refused(value: object) -> None:
    with pytest.raises(CelError, match="capacity bad"):
        device_env_from_dict(DRIVER, {"capacity": {"bad": {"value": value}}})


def test_lists_are_unknown_without_the_feature() -> None:
    lists = {"x": {"ints": [1]}}
    assert compile_selector(f"1 in {ATTRIBUTES}.x").evaluate(_env(lists)) is True
    with pytest.raises(CelError):
        device_env(DRIVER, Device.from_dict({"name": "dev", "attributes": lists}), list_attributes=False)
    with pytest.raises(CelError):
        compile_selector(f"{ATTRIBUTES}.x.exists(e, e == 1)", list_attributes=False)
    plain = compile_selector(f"{ATTRIBUTES}.x == 1", list_attributes=False)
    assert plain.evaluate(_env({"x": {"int": 1}}, list_attributes=False)) is True


def test_multiple_allocations() -> None:
    assert verdict("device.allowMultipleAllocations", device(shared=True)) is True
    assert verdict("device.allowMultipleAllocations", device()) is False


def test_devices_beyond_the_limits_of_the_api_are_known() -> None:
    assert GPU.within_limits
    assert not device({"x": "a" * 65}).within_limits
    assert not device({f"n{number}": 1 for number in range(33)}).within_limits
    assert not device({"x" * 33: 1}).within_limits
    assert not device({"x": ["a" * 65]}).within_limits
    assert not device({f"{'x' * 64}/y": 1}).within_limits
    assert not device(driver="x" * 64).within_limits


# Reads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("true", Reads()),
        ('device.driver == "x"', Reads(driver=True)),
        ("device.allowMultipleAllocations", Reads(allow_multiple=True)),
        (f'{ATTRIBUTES}.a == 1 && {ATTRIBUTES}["b"] == 2', Reads(attributes=frozenset({(DRIVER, "a"), (DRIVER, "b")}))),
        (f"has({ATTRIBUTES}.a)", Reads(attributes=frozenset({(DRIVER, "a")}))),
        (f'"a" in {ATTRIBUTES}', Reads(attributes=frozenset({(DRIVER, "a")}))),
        (f"{ATTRIBUTES}.?a.orValue(true)", Reads(attributes=frozenset({(DRIVER, "a")}))),
        (f'{ATTRIBUTES}[?"a"].hasValue()', Reads(attributes=frozenset({(DRIVER, "a")}))),
        (f"cel.bind(g, {ATTRIBUTES}, g.a == g.b)", Reads(attributes=frozenset({(DRIVER, "a"), (DRIVER, "b")}))),
        (f'{CAPACITY}.m.compareTo(quantity("1")) > 0', Reads(capacity=frozenset({(DRIVER, "m")}))),
        (f"{ATTRIBUTES}[device.driver] == 1", Reads(whole=True)),
        ("device.attributes[device.driver].a == 1", Reads(whole=True)),
        ("device.attributes.size() == 1", Reads(whole=True)),
        (f"{ATTRIBUTES}.size() == 1", Reads(whole=True)),
        (f'{ATTRIBUTES}.exists(k, k == "a")', Reads(whole=True)),
        ("[device].exists(d, d.attributes.size() == 1)", Reads(whole=True)),
        ('"gpu.example.com" in device.attributes', Reads(whole=True)),
        ("has(device.attributes.x)", Reads(whole=True)),
        (f"cel.bind(g, {ATTRIBUTES}, g == g)", Reads(whole=True)),
        ("device == device", Reads(whole=True)),
    ],
)
def test_reads(expression: str, reads: Reads) -> None:
    assert compile_selector(expression).reads == reads


VALUES: list[object] = [
    0,
    1,
    True,
    False,
    "1",
    "true",
    "",
    "v:1.0.0",
    "v:1.0.0+b",
    [1],
    [True],
    ["1"],
    ["v:1.0.0"],
    [1, 2],
]


def test_keys_tell_all_values_apart() -> None:
    program = compile_selector(f"{ATTRIBUTES}.x == 1")
    keys = [program.key(device({"x": value})) for value in VALUES] + [program.key(device())]
    rows = [device({"x": value}).row() for value in VALUES] + [device().row()]
    for found in (keys, rows):
        assert len(set(found)) == len(found)
    assert program.key(device({"x": 1})) == program.key(device({"x": 1, "y": 2}))


def test_a_capacity_is_what_the_api_keeps_of_it() -> None:
    program = compile_selector(f"{CAPACITY}.m.isInteger()")
    # The API writes 1000m as 1.
    one, milli, kilo, binary = (device(capacity={"m": text}) for text in ("1", "1000m", "1024", "1Ki"))
    assert program.key(one) == program.key(milli)
    assert program.evaluate(one) is program.evaluate(milli) is True
    assert verdict('quantity("1").isInteger() && !quantity("1000m").isInteger()') is True
    assert program.key(kilo) != program.key(binary)


# Caches -------------------------------------------------------------------------------------------------------------


def test_verdicts() -> None:
    cache = VerdictCache()
    program = compile_selector(f"{ATTRIBUTES}.x == 1")
    for value, expected in [(1, True), (2, False), (True, False), ([1], False)]:
        for _ in range(2):
            assert cache.get(program, device({"x": value})) is expected
    error = cache.get(program, device())
    assert isinstance(error, CelError)
    assert error.expression == program.expression
    assert cache.get(program, device({"y": 1})) is error
    assert len(cache) == 5


def test_many_verdicts_are_those_of_each() -> None:
    cache, table = VerdictCache(), EnvTable()
    program = compile_selector(f"{ATTRIBUTES}.x > 1")
    envs = [table.intern(device({"x": number % 3})) for number in range(300)]
    assert len(table) == 3
    assert len(set(map(id, envs))) == 3
    assert cache.many(program, envs) == [number % 3 > 1 for number in range(300)]
    other = compile_selector(f"{ATTRIBUTES}.y")
    found = cache.many(other, [*envs, device({"y": True})])
    assert all(isinstance(value, CelError) for value in found[:-1])
    assert found[-1] is True


def test_the_cache_is_bounded() -> None:
    cache = VerdictCache(max_entries=10)
    program = compile_selector(f"{ATTRIBUTES}.x > 1")
    for number in range(100):
        assert cache.get(program, device({"x": number})) is (number > 1)
        assert cache.many(program, [device({"x": number})]) == [number > 1]
    assert len(cache) == 10


def test_the_cache_is_shared_by_threads() -> None:
    cache = VerdictCache(max_entries=50)
    envs = [device({"x": number}) for number in range(100)]
    wrong: list[object] = []

    def work() -> None:
        for round_ in range(5):
            program = compile_selector(f"{ATTRIBUTES}.x % 7 == {round_} && {ATTRIBUTES}.x >= 0")
            for number, env in enumerate(envs):
                if cache.get(program, env) is not (number % 7 == round_):
                    wrong.append((round_, number))
            if cache.many(program, envs) != [number % 7 == round_ for number in range(100)]:
                wrong.append(round_)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cache) <= 50


def test_programs_are_kept() -> None:
    assert compile_selector("1 == 1") is compile_selector("1 == 1")
    assert compile_derived("1 == 1") is not compile_selector("1 == 1")
    errors = []
    for _ in range(2):
        with pytest.raises(CelError) as caught:
            compile_selector("1 +")
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert str(errors[0]) == str(errors[1])


# Derived attributes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 1", 2),
        ('"a" + "b"', "ab"),
        ("1 == 1", True),
        ('semver("1.2.3")', Semver.parse("1.2.3")),
        ("[1, 2]", (1, 2)),
        ('["a"]', ("a",)),
        ("[true]", (True,)),
        ('[semver("1.2.3")]', (Semver.parse("1.2.3"),)),
        ("[]", ()),
        (f"{ATTRIBUTES}.index", 3),
        (f"{ATTRIBUTES}.model", "A100-SXM4"),
        (f"{ATTRIBUTES}.driverVersion", Semver.parse("12.4.1")),
        (f"{ATTRIBUTES}.numas", (0, 2, 5)),
        (f"{ATTRIBUTES}.numas.map(n, n / 2)", (0, 1, 2)),
        (f"[{ATTRIBUTES}.index, 7]", (3, 7)),
        (f"dyn({ATTRIBUTES}.?index)", 3),
        (f"{ATTRIBUTES}.?nope.orValue(5)", 5),
        ('device.attributes["topo.example.io"].path.split("/")[1]', "rack-3"),
    ],
)
def test_derived(expression: str, value: object) -> None:
    found = compile_derived(expression).evaluate(GPU)
    assert found == value
    assert type(found) is type(value)
    exact, _ = compile_derived(expression).evaluate_with_cost(GPU)
    assert exact == value


@pytest.mark.parametrize(
    "expression",
    [
        "1.5",
        "1u",
        "null",
        "{}",
        "[[1]]",
        "[1.5]",
        'quantity("1")',
        'duration("1s")',
        "device",
        "optional.of(1)",
        f"{ATTRIBUTES}.?index",
        "1 +",
    ],
)
def test_derived_of_another_type_does_not_compile(expression: str) -> None:
    with pytest.raises(CelError):
        compile_derived(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "dyn(1.5)",
        "dyn({})",
        "dyn([1.5])",
        f'[{ATTRIBUTES}.index, "a"]',
        f"[{ATTRIBUTES}.index, true]",
        f"{ATTRIBUTES}.nope",
        f"dyn({ATTRIBUTES}.?nope)",
        "1 / 0",
    ],
)
def test_derived_that_fails(expression: str) -> None:
    program = compile_derived(expression)
    with pytest.raises(CelError):
        program.evaluate(GPU)
    assert isinstance(program.evaluate_with_cost(GPU)[0], CelError)
