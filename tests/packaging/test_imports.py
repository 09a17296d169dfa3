"""What importing costs, and what the package promises to export."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dra_alloc

PACKAGE = Path(dra_alloc.__file__).parent


def python(code: str) -> str:
    """What the code prints in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("heavy", ["click", "rich", "celpy", "lark", "re2", "cattrs", "yaml", "jinja2", "kubernetes"])
def test_the_package_imports_nothing_that_it_may_not_need(heavy: str) -> None:
    loaded = json.loads(python("import json, sys, dra_alloc; print(json.dumps(list(sys.modules)))"))
    assert "dra_alloc" in loaded
    assert [name for name in loaded if name.partition(".")[0] == heavy] == []


def test_type_checkers_and_the_interpreter_see_the_same_exports() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    seen: dict[str, str] = {}
    for block in blocks:
        for statement in block.body:
            assert isinstance(statement, ast.ImportFrom), ast.unparse(statement)
            for alias in statement.names:
                assert alias.asname == alias.name, f"{alias.name} must be imported as itself to count as exported"
                assert statement.module is not None
                seen[alias.name] = statement.module
    assert seen == dra_alloc._EXPORTS


@pytest.mark.parametrize("name", sorted(dra_alloc._EXPORTS))
def test_each_export_is_found_and_owned_by_its_module(name: str) -> None:
    assert getattr(dra_alloc, name) is getattr(import_module(dra_alloc._EXPORTS[name]), name)
    assert name in dir(dra_alloc)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'dra_alloc' has no attribute 'nonsense'"):
        _ = dra_alloc.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize("missing", ["click", "rich"])
@pytest.mark.parametrize("entry", ["main", "kubectl_main"])
def test_a_missing_cli_extra_is_told_with_the_command_that_installs_it(missing: str, entry: str) -> None:
    run = f"from dra_alloc.cli import {entry}; sys.exit({entry}(['allocate', '--help']))"
    code = f"import sys; sys.modules[{missing!r}] = None; {run}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"needs the package {missing!r}" in done.stderr
    assert 'pip install "dra-alloc[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_inside_the_command_line_is_not_taken_for_a_missing_extra() -> None:
    code = "import sys; sys.modules['dra_alloc.cli._app'] = None; from dra_alloc.cli import main; main([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
