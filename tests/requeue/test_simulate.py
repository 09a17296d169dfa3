"""The example: every pod runs, with half the attempts, and the page shows what it prints."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "examples" / "simulate" / "simulate.py"


def test_the_index_saves_attempts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("simulate", FILE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "simulate", example)
    spec.loader.exec_module(example)
    found = example.simulate(40, 2, with_index=True)
    plain = example.simulate(40, 2, with_index=False)
    assert found.attempts.keys() == plain.attempts.keys() == {f"default/pod-{number}" for number in range(40)}
    assert found.attempts.total() < plain.attempts.total()
    monkeypatch.setattr(sys, "argv", ["simulate.py"])
    example.main()
    assert capsys.readouterr().out in (ROOT / "docs" / "requeue.md").read_text(encoding="utf-8")
