"""The map of the rooms in docs/contributing.md is complete, and modules import only from rooms up to their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dra_alloc"

#: These belong to no room: the package itself, and the marker of its types.
OUTSIDE = {"__init__.py", "__main__.py", "py.typed"}


def rows() -> list[tuple[list[str], list[str]]]:
    """The rows of the map: names of modules and packages, folders of their tests."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = page.partition("| Room |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.strip("|").split("|") for line in table]
    return [(re.findall(r"`([^`]+)`", first), re.findall(r"`([^`]+)`", last)) for first, *_, last in cells]


ROWS = rows()
#: The place of each room on the way up; extensions and packages without their endings.
PLACE = {name.partition(".")[0].rstrip("/"): place for place, (names, _) in enumerate(ROWS) for name in names}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name not in OUTSIDE)


def test_the_map_is_complete() -> None:
    here = {path.name for path in PACKAGE.glob("*.py*") if path.suffix in {".py", ".pyx"}} - OUTSIDE
    here |= {path.name for path in PACKAGE.glob("*.px[id]")}
    here |= {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert {name for names, _ in ROWS for name in names} == here
    assert [folder for _, folders in ROWS for folder in folders if not (ROOT / folder).is_dir()] == []


def rooms(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Lines and rooms of what a module imports when it is imported."""
    for node in body:
        if isinstance(node, ast.If):
            yield from rooms(node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from rooms(node.body)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, _room(alias.name)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "dra_alloc":
            yield from ((node.lineno, _room(f"dra_alloc.{alias.name}")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, _room(node.module or "")


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "dra_alloc" and len(parts) > 1 else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_up_the_map(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    found = rooms(ast.parse(path.read_text(encoding="utf-8")).body)
    wrong = [f"line {line}: {room}" for line, room in found if room in PLACE and PLACE[room] > PLACE[own]]
    assert wrong == []
