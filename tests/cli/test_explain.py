"""`dra-alloc explain`: what it prints, and how it ends."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.cli.conftest import Run

REASONS = Path(__file__).parents[2] / "examples" / "reasons"


def test_text_and_status(run: Run) -> None:
    ran = run("explain", "-f", REASONS / "in-use")
    assert ran.status == 1
    assert ran.out == (REASONS / "in-use" / "explanation.txt").read_text()
    assert "\x1b" not in ran.out


def test_an_error_ends_with_2(run: Run) -> None:
    ran = run("explain", "-f", REASONS / "class-not-found")
    assert ran.status == 2
    assert "[class-not-found]" in ran.out


def test_fits_ends_with_0(run: Run) -> None:
    ran = run("explain", "-f", REASONS / "claim-elsewhere", "--pod", "trainer")
    assert ran.status == 0
    assert ran.out.startswith("pod default/trainer: fits on 1/2 nodes: node-1\n")


def test_one_node(run: Run) -> None:
    ran = run("explain", "-f", REASONS / "claim-elsewhere", "--pod", "default/trainer", "--node", "node-2")
    assert ran.status == 1
    assert ran.out == (REASONS / "claim-elsewhere" / "explanation.txt").read_text()


def test_json(run: Run) -> None:
    ran = run("explain", "-f", REASONS / "taint", "-o", "json")
    (found,) = ran.json["explanations"]
    assert (found["fits"], found["code"], found["nodes"]) == (False, "taint", 1)
    request = found["groups"][0]["example"]["requests"][0]
    assert [(entry["code"], entry["count"]) for entry in request["ruledOut"]] == [("taint", 1), ("taint", 1)]
    assert request["nearMisses"][1]["detail"] == "by DeviceTaintRule maintenance"


@pytest.mark.parametrize("code", ["taint", "counters"])
def test_csv(run: Run, code: str) -> None:
    ran = run("explain", "-f", REASONS / code, "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert code in {row["code"] for row in rows}
    assert all(int(row["devices"]) >= 1 for row in rows)


def test_an_unknown_node(run: Run) -> None:
    ran = run("explain", "-f", REASONS / "taint", "--node", "nowhere")
    assert ran.status == 2
    assert "no Node nowhere in the input" in ran.err
