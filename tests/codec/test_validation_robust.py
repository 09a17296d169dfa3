"""Validation never fails on an object, whatever its fields hold."""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from functools import cache
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_alloc import Features, Problem, validate, warnings
from dra_alloc.api import (
    DeviceClass,
    DeviceTaintRule,
    Model,
    Pod,
    PodGroup,
    Quantity,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePoolStatusRequest,
    ResourceSlice,
    Workload,
)

KINDS: list[type[Model]] = [
    ResourceSlice,
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    DeviceTaintRule,
    ResourcePoolStatusRequest,
    Pod,
    PodGroup,
    Workload,
]

#: Any text, and texts that get past the first check of some field.
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=8),
    st.sampled_from(
        ["a", "gpu", "a/b", "a.b/c", "All", "Exists", "NoExecute", "true", "1.2.3", "10.0.0.1/8", "a" * 300, "é" * 40]
    ),
)
NUMBERS = st.one_of(st.integers(-2, 2), st.integers(-(2**70), 2**70))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


@cache
def anything(kind: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values of a type, whatever they hold. Below some depth objects have their default fields alone."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(anything(argument, depth) for argument in arguments))
    if origin is tuple:
        return st.lists(anything(arguments[0], depth), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXTS, anything(arguments[1], depth), max_size=2)
    if isinstance(kind, type) and issubclass(kind, Model):
        if not depth:
            return st.builds(kind)
        hints = typing.get_type_hints(kind)
        names = [field.name for field in attrs.fields(kind)]
        # Most fields are left out, so that what is drawn reaches deep without growing large.
        fields = st.fixed_dictionaries({}, optional={name: anything(hints[name], depth - 1) for name in names})
        return fields.map(lambda values: kind(**values))
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        int: NUMBERS,
        bool: st.booleans(),
        Any: JSON,
        type(None): st.none(),
        Quantity: NUMBERS.map(Quantity),
        datetime: st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    }
    return plain[kind]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), features=st.sampled_from([Features.all(), Features.none(), Features()]))
def test_any_object_can_be_validated(kind: type[Model], data: st.DataObject, features: Features) -> None:
    new = data.draw(anything(kind, 7))
    old = data.draw(st.none() | st.just(new) | anything(kind, 4))
    for problem in [*validate(new, old, features), *warnings(new, old, features)]:
        assert isinstance(problem, Problem)
        assert problem.path
        assert problem.message
        assert not problem.path.startswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_without_anything_has_problems(kind: type[Model]) -> None:
    assert "metadata.name" in [problem.path for problem in validate(kind())]


def test_deep_parameters_are_a_problem_and_no_crash() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": value}
    obj = DeviceClass.from_dict({"metadata": {"name": "c"}, "spec": {"config": [{"opaque": {"driver": "d"}}]}})
    config = attrs.evolve(obj.spec.config[0], opaque=attrs.evolve(obj.spec.config[0].opaque, parameters=value))
    broken = attrs.evolve(obj, spec=attrs.evolve(obj.spec, config=(config,)))
    (problem,) = validate(broken)
    assert problem.path == "spec.config[0].opaque.parameters"
    while value:  # taken apart from outside, for freeing so deep a nest would itself recurse
        value = value.pop("a")
