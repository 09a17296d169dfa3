"""Every reason code has an example file, and what is said about it is what its `explanation.txt` says.

Lines of comment at the top of an example are options: `# node: NAME`, `# features: all|none`, `# max steps: N`. After
a change of wording, `python -m tests.explain.test_reasons` writes the texts anew; look at the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import dra_alloc as dra
from dra_alloc.cli._questions import questions
from dra_alloc.explain import REASONS, Explanation

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "reasons"

FEATURES = {"all": dra.Features.all(), "none": dra.Features.none(), "": dra.Features()}


#: Reasons that show beside others only: an error that the search did not come to, and devices of another node.
HIDDEN = {"selector-error", "capacity-request", "not-on-node"}


def options(path: Path) -> dict[str, str]:
    found = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        name, _, value = line[2:].partition(": ")
        found[name] = value
    return found


def explained(code: str) -> Explanation:
    path = EXAMPLES / code / "objects.yaml"
    given = options(path)
    loaded = dra.load(path)
    assert not loaded.warnings
    cluster = dra.Cluster.from_objects(loaded)
    budget = dra.Budget(max_steps=int(given["max steps"])) if "max steps" in given else None
    alloc = dra.Allocator(cluster, FEATURES[given.get("features", "")], budget=budget)
    (question,) = questions(loaded)
    if question.pod is not None:
        return alloc.explain(pod=question.pod, node=given.get("node"))
    return alloc.explain(question.claims, given.get("node"))


@pytest.mark.parametrize("code", REASONS)
def test_example_says_what_is_written_down(code: str) -> None:
    found = explained(code)
    assert found.text() + "\n" == (EXAMPLES / code / "explanation.txt").read_text()
    assert not found.fits
    assert f"[{code}]" in found.text()
    assert max(map(len, found.text().splitlines())) <= 100


@pytest.mark.parametrize("code", [code for code in REASONS if code not in HIDDEN])
def test_code_of_the_example_is_the_reason(code: str) -> None:
    assert explained(code).code == code


def test_no_example_without_a_reason() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == set(REASONS)


def test_every_reason_is_documented_with_its_example() -> None:
    page = (ROOT / "docs" / "reasons.md").read_text()
    for code in REASONS:
        assert f"### `{code}`" in page
        assert f"examples/reasons/{code}" in page
        text = (EXAMPLES / code / "explanation.txt").read_text().rstrip("\n")
        assert text in page


if __name__ == "__main__":
    for each in REASONS:
        (EXAMPLES / each / "explanation.txt").write_text(explained(each).text() + "\n")
