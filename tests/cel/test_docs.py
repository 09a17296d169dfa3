"""The tables of `docs/cel.md` against the declarations: every function, with the version that brought it."""

from __future__ import annotations

import re
from pathlib import Path

from dra_alloc.cel.declarations import functions, since

ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\|)\|(?!\|)", line.strip()[1:-1])]
    for line in (Path(__file__).parents[2] / "docs" / "cel.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith("|---")
]


def _versions(function: str) -> set[str]:
    """The versions of the rows that call a function, as a whole name or a method."""
    call = re.compile(rf"(?:^|[`\s,]|`\w\.){re.escape(function)}\(")
    return {row[-1] for row in ROWS if call.search(row[0]) and re.fullmatch(r"1\.\d+", row[-1])}


def test_every_function_has_a_row_with_its_version() -> None:
    wrong = {}
    for name, overloads in functions().items():
        if name.startswith(("_", "@", "!", "-", "cel.@")) or overloads[0].library == "authorizer":
            continue
        expected = {since(overload) for overload in overloads}
        if _versions(name) != expected:
            wrong[name] = (_versions(name), expected)
    assert not wrong


def test_no_row_is_of_an_unknown_function() -> None:
    known = set(functions())
    macros = {"has", "all", "exists", "exists_one", "existsOne", "map", "filter", "cel.bind", "optMap", "optFlatMap"}
    macros |= {"transformList", "transformMap", "transformMapEntry", "sortBy"}
    for row in ROWS:
        if not re.fullmatch(r"1\.\d+", row[-1]):
            continue
        for call in re.findall(r"`([\w.]+)\(", row[0]):
            name = call if call in known | macros else call.partition(".")[2]
            assert name in known | macros, call
