"""The stubs of the extensions tell what is there, with the parameters that it takes, and nothing else."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dra_alloc

PACKAGE = Path(dra_alloc.__file__).parent
STUBS = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.glob("*.pyi"))}

Functions = dict[str, tuple[str, ...]]


def told(body: list[ast.stmt]) -> tuple[Functions, set[str]]:
    """Functions with their parameters, and other names, of a stub or a class in it. `__init__` is how it is made."""
    functions: Functions = {}
    others: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(mark) == "property" for mark in node.decorator_list):
            others.add(node.name)
        elif isinstance(node, ast.FunctionDef) and not (node.name.startswith("__") and node.name != "__init__"):
            arguments = node.args
            names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            functions[node.name] = tuple(name for name in names if name != "self")
        elif isinstance(node, ast.ClassDef):
            others.add(node.name)
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" not in ast.unparse(node.annotation):
            others.add(ast.unparse(node.target))
    return functions, others


def present(thing: Any, names: list[str]) -> tuple[Functions, set[str]]:
    """The same of a module or class as it was built."""
    functions: Functions = {}
    others: set[str] = set()
    for name in names:
        value = getattr(thing, name)
        if inspect.isroutine(value):
            functions[name] = tuple(each for each in inspect.signature(value).parameters if each != "self")
        else:
            others.add(name)
    return functions, others


@pytest.mark.parametrize("name", STUBS)
def test_stubs_of_modules(name: str) -> None:
    """What an extension has for itself alone is not told; that what Python uses is told, mypy sees."""
    module = import_module(f"dra_alloc.{name}")
    functions, others = told(STUBS[name].body)
    found, rest = present(module, [each for each in vars(module) if not each.startswith("_")])
    assert functions.items() <= found.items()
    assert others <= rest


CLASSES = {
    f"{name}.{node.name}": node for name, tree in STUBS.items() for node in tree.body if isinstance(node, ast.ClassDef)
}


@pytest.mark.parametrize("name", CLASSES)
def test_stubs_of_classes(name: str) -> None:
    module, _, own = name.partition(".")
    built = getattr(import_module(f"dra_alloc.{module}"), own)
    functions, others = told(CLASSES[name].body)
    functions.pop("__init__", None)
    assert (functions, others) == present(built, [each for each in dir(built) if _is_told(built, each)])


def _is_told(built: type, name: str) -> bool:
    """What is public, and not inherited from elsewhere."""
    owner = next((each for each in built.__mro__ if name in vars(each)), object)
    return not name.startswith("_") and owner.__module__ == built.__module__
