"""Every function of every library: what it gives, and where it fails."""

from __future__ import annotations

import pytest

from dra_alloc.cel import CelError, compile_selector
from dra_alloc.cel.checker import check
from dra_alloc.cel.declarations import functions
from dra_alloc.cel.parser import parse
from dra_alloc.cel.syntax import Call, Node
from tests.cel.devices import verdict
from tests.cel.rows import ERRORS, REFUSED, TRUE


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert verdict(expression) is True


@pytest.mark.parametrize("expression", ERRORS)
def test_error(expression: str) -> None:
    assert verdict(expression) == "error"


@pytest.mark.parametrize("expression", REFUSED)
def test_refused(expression: str) -> None:
    with pytest.raises(CelError) as caught:
        compile_selector(expression)
    assert caught.value.expression == expression
    assert caught.value.offset is not None
    assert 0 <= caught.value.offset <= len(expression)


def _nodes(value: object, seen: set[int]) -> list[Node]:
    """All nodes below a value, each once."""
    if isinstance(value, (list, tuple)):
        return [node for inner in value for node in _nodes(inner, seen)]
    if not isinstance(value, Node) or id(value) in seen:
        return []
    seen.add(id(value))
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [value, *(node for name in slots for node in _nodes(getattr(value, name, None), seen))]


def test_every_overload_has_a_row() -> None:
    used: set[str] = set()
    for row in TRUE:
        root = parse(row)
        check(root, row, list_attributes=True)
        for node in _nodes(root, set()):
            if isinstance(node, Call):
                used.update(overload.id for overload in node.overloads)
    unused = {
        overload.id
        for items in functions().values()
        for overload in items
        # Device selectors have nothing to authorize: these are declared and always fail.
        if overload.id not in used and overload.library != "authorizer"
    }
    assert not unused


def test_functions_of_list_attributes_need_the_feature() -> None:
    expression = 'device.attributes["gpu.example.com"].modes.includes("mig")'
    assert compile_selector(expression).max_cost > 0
    with pytest.raises(CelError):
        compile_selector(expression, list_attributes=False)
    assert "includes" in functions()
    assert "includes" not in functions(list_attributes=False)
