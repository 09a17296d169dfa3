"""docs/features.md and the README say of each switch and feature what the code says."""

from __future__ import annotations

import re

import attrs
import pytest

from dra_alloc import Features
from tests.docs.pages import ROOT, read_page

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
ROW = re.compile(r"^\| `(?P<gate>\w+)` \| (?P<since>[\d.]+|–) \|", re.MULTILINE)
TABLE = dict(ROW.findall((ROOT / "docs" / "features.md").read_text(encoding="utf-8")))


def test_the_table_has_every_switch() -> None:
    assert sorted(TABLE) == sorted(field.name for field in attrs.fields(Features))


@pytest.mark.parametrize("gate", sorted(TABLE))
def test_the_table_says_since_when_a_switch_is_on(gate: str) -> None:
    on = [version for version in VERSIONS if getattr(Features.for_version(version), gate)]
    assert on == ([] if TABLE[gate] == "–" else list(VERSIONS[VERSIONS.index(TABLE[gate]) :]))


def test_the_readme_links_every_page_of_a_feature() -> None:
    linked = {target for _, target in read_page(ROOT / "README.md").links}
    pages = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "features").glob("*.md"))]
    assert [page for page in pages if page not in linked] == []
