"""Quantities, attributes, taints and tolerations."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from dra_alloc.api import DeviceAttribute, DeviceTaint, DeviceToleration, Quantity
from dra_alloc.testing.strategies._words import TAINT_KEYS, TAINT_VALUES, chance, some_but_none

__all__ = ["attributes", "quantities", "taints", "tolerations"]

_HALF = 500_000_000  # nanos
_VERSIONS = ("1.0.0", "1.2.0", "2.0.0-rc.1")
_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def quantities(minimum: int = 0, maximum: int = 8, *, fractional: bool = False) -> st.SearchStrategy[Quantity]:
    """Amounts from `minimum` to `maximum`, whole or with halves: few, so that they compete. Shrinks to the least."""
    if fractional:
        return st.integers(2 * minimum, 2 * maximum).map(_halves)
    return st.integers(minimum, maximum).map(_wholes)


def _halves(number: int) -> Quantity:
    return Quantity(number * _HALF)


def _wholes(number: int) -> Quantity:
    return Quantity(number * 2 * _HALF)


@st.composite
def attributes(draw: st.DrawFn, kind: str = "string", *, lists: bool = False, broken: bool = False) -> DeviceAttribute:
    """An attribute of one of the kinds `int`, `bool`, `string`, `version`, from few values.

    lists: may be a list. broken: may have no value, or a version that is no semantic version.
    """
    if broken and chance(draw, 1):
        return draw(st.sampled_from((DeviceAttribute(), DeviceAttribute(version="1.0"), DeviceAttribute(ints=()))))
    if lists and chance(draw, 4):
        if kind == "int":
            return DeviceAttribute(ints=tuple(map(int, some_but_none(draw, ("0", "1", "2")))))
        if kind == "bool":
            return DeviceAttribute(bools=tuple(text == "true" for text in some_but_none(draw, ("false", "true"))))
        if kind == "version":
            return DeviceAttribute(versions=some_but_none(draw, _VERSIONS))
        return DeviceAttribute(strings=some_but_none(draw, ("r0", "r1", "r2")))
    number = draw(st.integers(0, 2))
    if kind == "int":
        return DeviceAttribute(int=number)
    if kind == "bool":
        return DeviceAttribute(bool=number > 0)
    if kind == "version":
        return DeviceAttribute(version=_VERSIONS[number])
    return DeviceAttribute(string=f"r{number}")


@st.composite
def taints(draw: st.DrawFn) -> DeviceTaint:
    """A taint from few keys and values, of any effect."""
    return DeviceTaint(
        key=draw(st.sampled_from(TAINT_KEYS)),
        value=draw(st.sampled_from((*TAINT_VALUES, None))),
        effect=draw(st.sampled_from(("NoSchedule", "NoExecute", "None"))),
        time_added=_TIME,
    )


@st.composite
def tolerations(draw: st.DrawFn) -> DeviceToleration:
    """A toleration of some of the taints that `taints` makes, at times of all."""
    effect = draw(st.sampled_from((None, "NoSchedule", "NoExecute")))
    if chance(draw, 5):
        return DeviceToleration(key=draw(st.sampled_from((*TAINT_KEYS, None))), operator="Exists", effect=effect)
    return DeviceToleration(
        key=draw(st.sampled_from(TAINT_KEYS)),
        operator=draw(st.sampled_from(("Equal", None))),
        value=draw(st.sampled_from((*TAINT_VALUES, None))),
        effect=effect,
    )
