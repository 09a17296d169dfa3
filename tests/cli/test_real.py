"""Manifests as their authors published them, where they lie beside the project: always an answer or a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

REAL = Path(__file__).resolve().parents[3] / "shared" / "real"
FILES = sorted(path for path in REAL.glob("**/*") if path.suffix in {".yaml", ".json"})


@pytest.mark.skipif(not FILES, reason="no folder ../shared/real beside the project")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REAL).as_posix())
@pytest.mark.parametrize("command", ["allocate", "nodes"])
def test_a_real_manifest_ends_with_an_answer_or_a_message(command: str, path: Path, run: Run) -> None:
    shown = run(command, "-f", path, "--features", "all", "-o", "json")
    if shown.out:
        answers = shown.json["answers"]
        failed = any(answer["error"] for answer in answers)
        fits = all(answer.get("fits", answer.get("nodes")) for answer in answers)
        assert shown.status == (2 if failed else 0 if fits else 1)
    else:
        assert shown.status == 2
        assert shown.err.splitlines()[-1].startswith("error: ") or "Error: " in shown.err


@pytest.mark.skipif(not FILES, reason="no folder ../shared/real beside the project")
def test_a_folder_of_manifests_is_read_at_once_or_refused(run: Run) -> None:
    shown = run("allocate", "-f", REAL / "bugs", "-o", "json")
    assert shown.status in {1, 2}
    assert json.loads(shown.out)["answers"] if shown.out else shown.err.startswith("error: ")
