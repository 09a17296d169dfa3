"""`dra-alloc sweep`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars
import pytest

from dra_alloc.cli import main

ROOT = Path(__file__).parents[2]
PLAN = str(ROOT / "examples" / "sweep" / "plan.yaml")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["sweep", *arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_the_table_shows_each_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "-f", PLAN, "--explain")
    assert status == 1
    assert err == ""
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["SCENARIO", "PLACED", "NODES", "DEVICES", "FIRST", "REASON"]
    assert lines[1] == ["nodes=1", "jobs=2", "beside=nothing", "1/2", "1", "3", "gpu.example.com", "in-use"]
    assert out.endswith("scenarios place the whole workload\n")


def test_all_that_fits_is_status_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = ROOT / "examples" / "sweep"
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"cluster: {folder / 'cluster.yaml'}\nworkload: {folder / 'workload.yaml'}\n", encoding="utf-8")
    assert run(capsys, "-f", str(plan))[0] == 0


def test_outputs_for_programs_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    csv_file, parquet = tmp_path / "out.csv", tmp_path / "out.parquet"
    status, out, _ = run(capsys, "-f", PLAN, "-o", "json", "--write", str(csv_file), "--write", str(parquet))
    assert status == 1
    found = json.loads(out)["scenarios"]
    assert len(found) == 12
    _, text, _ = run(capsys, "-f", PLAN, "-o", "csv")
    assert csv_file.read_text(encoding="utf-8") == text
    frame = polars.read_parquet(parquet)
    assert frame["placed"].to_list() == [each["placed"] for each in found]
    assert frame["nodes"].to_list() == [each["labels"]["nodes"] for each in found]
    assert frame["nodes"].dtype == polars.Int64
    assert frame["beside"].to_list()[:2] == ["nothing", "notebooks"]


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_plot_is_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"plot.{suffix}"
    run(capsys, "-f", PLAN, "--plot", str(file), "--x", "jobs")
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


@pytest.mark.slow
def test_processes_and_a_file_to_resume_from_change_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, expected, _ = run(capsys, "-f", PLAN, "-o", "json")
    file = tmp_path / "sweep.jsonl"
    for _ in range(2):
        _, out, _ = run(capsys, "-f", PLAN, "-o", "json", "--workers", "2", "--resume", str(file))
        assert out == expected
    assert len(file.read_text(encoding="utf-8").splitlines()) == 13


@pytest.mark.slow
def test_the_sweep_of_a_dask_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `sweep` is not installed")
    _, expected, _ = run(capsys, "-f", PLAN, "-o", "json")
    with distributed.LocalCluster(n_workers=1, dashboard_address=None, host="127.0.0.1") as local:
        _, out, _ = run(capsys, "-f", PLAN, "-o", "json", "--dask", local.scheduler_address)
    assert out == expected


def test_a_scenario_that_cannot_be_played_is_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"cluster: {ROOT / 'examples' / 'sweep' / 'cluster.yaml'}\n"
        "axes: {a: [{label: 1, remove: Node/node-1}], b: [{label: 1, remove: Node/node-1}]}\n",
        encoding="utf-8",
    )
    status, _, err = run(capsys, "-f", str(plan))
    assert status == 2
    assert "error: a=1 b=1: there is no Node node-1 to delete" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", PLAN, "--workers", "2", "--dask", "tcp://127.0.0.1:1"], "exclude each other"),
        (["-f", PLAN, "--workers", "0"], "--workers"),
        (["-f", PLAN, "--write", "x.txt"], "a table is written as .csv or .parquet"),
        (["-f", PLAN, "--plot", "x.svg", "--x", "none"], "no axis 'none'; there are nodes, jobs, beside"),
        (["-f", str(ROOT / "README.md")], "README.md"),
    ],
)
def test_wrong_arguments_are_told_before_any_work(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("polars", ["--write", "x.parquet"]),
        ("matplotlib", ["--plot", "x.svg"]),
        ("distributed", ["--dask", "tcp://x:1"]),
    ],
)
def test_a_missing_extra_is_told_with_the_command_that_installs_it(
    tmp_path: Path, package: str, arguments: list[str]
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from dra_alloc.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "sweep", "-f", PLAN, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert 'pip install "dra-alloc[sweep]"' in done.stderr
    assert "Traceback" not in done.stderr
