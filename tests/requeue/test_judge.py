"""Verdicts by rows and buckets are those of evaluating every selector on every device."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import CELDeviceSelector, Device, DeviceClass, DeviceClassSpec, DeviceSelector, ObjectMeta
from dra_alloc.cel import CelError, compile_selector, device_env
from dra_alloc.cel.necessary import DRIVER, Equality, equalities, plain_equalities
from dra_alloc.requeue.judge import Judge
from dra_alloc.requeue.wants import Wants
from dra_alloc.testing.strategies import devices

GPU, NIC = "gpu.example.com", "nic.example.org"

TERMS = [
    f'device.driver == "{GPU}"',
    f'"{NIC}" == device.driver',
    f'device.attributes["{GPU}"].index == 1',
    f'device.attributes["{GPU}"]["index"] == 2',
    f'device.attributes["{GPU}"].index == "1"',
    f'device.attributes["{GPU}"].ecc == true',
    f'device.attributes["{GPU}"].ecc == 1',
    'device.attributes["topo.example.org"].numa == 0',
    'device.attributes["example.org"].firmware == "1.0.0"',
    f'has(device.attributes["{GPU}"].index)',
    'device.attributes["resource.kubernetes.io"].pcieRoot == "root-0"',
    "device.allowMultipleAllocations",
    f'device.attributes["{GPU}"].index > 0',
    "device.nope",
]

EXPRESSIONS = st.lists(st.sampled_from(TERMS), min_size=1, max_size=3).map(" && ".join)


def class_of(texts: list[str]) -> DeviceClass:
    selectors = tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in texts)
    return DeviceClass(metadata=ObjectMeta(name="c"), spec=DeviceClassSpec(selectors=selectors))


def plain(texts: list[str], driver: str, device: Device) -> bool | CelError:
    """The verdict of all selectors, one after the other."""
    for text in texts:
        try:
            if compile_selector(text).evaluate(device_env(driver, device)) is not True:
                return False
        except CelError as error:
            return error
    return True


@given(
    st.lists(st.lists(EXPRESSIONS, max_size=3), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from([GPU, NIC]), devices()), min_size=1, max_size=5),
    st.integers(0, 6),
)
def test_verdicts(selectors: list[list[str]], offered: list[tuple[str, Device]], early: int) -> None:
    wants = Wants()
    judge = Judge(wants, dra.Features.all())
    for number, texts in enumerate(selectors):
        if number == early:  # the rows come to know later wants when they are asked for again
            for driver, device in offered:
                judge.serves(judge.rows(driver, [device], [()])[0])
                judge.breaks(judge.rows(driver, [device], [()])[0])
        wants.of_class(class_of(texts))
    for driver, device in offered:
        (row,) = judge.rows(driver, [device], [()])
        serves = {want.expressions for want in judge.serves(row)}
        breaks = {want.expressions for want in judge.breaks(row)}
        for texts in selectors:
            verdict = plain(texts, driver, device)
            assert (tuple(texts) in breaks) is isinstance(verdict, CelError)
            if verdict is not True:
                assert tuple(texts) not in serves
            elif not device.capacity:
                assert tuple(texts) in serves


def test_equalities_of_a_conjunction() -> None:
    program = compile_selector(f'device.driver == "{GPU}" && 3 == device.attributes["{GPU}"]["index"]')
    assert equalities(program) == ((Equality(DRIVER, GPU), Equality((GPU, "index"), 3)), True)
    for text in (
        "true",
        'device.driver == "a" || true',
        'device.driver != "a"',
        f'device.attributes["{GPU}"].x == 1.0',
    ):
        assert equalities(compile_selector(text)) == ((), False)
    found, only = equalities(compile_selector('device.allowMultipleAllocations && device.driver == "a"'))
    assert found == (Equality(DRIVER, "a"),)
    assert not only


PLAIN_PARTS = st.sampled_from(
    [
        *TERMS,
        "",
        " && ",
        " ",
        "&&",
        "\\",
        '"',
        f'device.attributes["{GPU}"].in == 1',
        f'device.attributes["{GPU}"].1a == 1',
    ]
    + [f'device.attributes["{GPU}"].x == {value}' for value in ("0", "-1", "01", "1u", "1.0", "false", '"a b"', "'a'")]
)


@given(st.lists(PLAIN_PARTS, min_size=1, max_size=4), st.sampled_from([" && ", "", " || "]))
def test_what_is_plain_is_what_the_compiler_finds(parts: list[str], between: str) -> None:
    text = between.join(parts)
    plain = plain_equalities(text)
    if plain is not None:
        program = compile_selector(text)
        assert equalities(program) == (plain, True)
        assert {need.path for need in plain} - {DRIVER} == program.reads.attributes
        assert not program.reads.whole


def test_most_selectors_are_plain() -> None:
    text = f'device.driver == "{GPU}" && device.attributes["{GPU}"].index == 3'
    assert plain_equalities(text) == (Equality(DRIVER, GPU), Equality((GPU, "index"), 3))
    assert plain_equalities("device.driver == 3") is None
    assert plain_equalities("true") is None
