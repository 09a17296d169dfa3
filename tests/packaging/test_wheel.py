"""The distributions hold what they must and nothing else, and work where the source is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo"
SAMPLE = Path(__file__).with_name("sample_project.py")

pytestmark = [pytest.mark.slow, pytest.mark.plain_build, pytest.mark.timeout(900), pytest.mark.xdist_group("wheel")]


def run(command: Sequence[str | Path], cwd: Path) -> str:
    """What the command prints; a failure shows all of it."""
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    # From a copy: building writes into the tree, where other tests read or build at the same time.
    source = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.so", "*.egg-info", "site"))
    run([sys.executable, "-m", "build", "--sdist", "--outdir", out, source], cwd=out)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, sdist], cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds the wheel, what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    run([sys.executable, "-m", "venv", folder / "env"], cwd=folder)
    python = folder / "env" / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", wheel], cwd=folder)
    return python


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds the wheel with its `cli` extra and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    run([sys.executable, "-m", "venv", folder / "env"], cwd=folder)
    python = folder / "env" / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", f"{wheel}[cli]"], cwd=folder)
    return python


def test_the_source_distribution_holds_sources_only(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "setup.py", "pyproject.toml", "dra_alloc/_core.pyx", "dra_alloc/py.typed"} <= names
    assert [name for name in names if name.endswith((".c", ".cpp", ".so", ".pyd", ".pyc"))] == []


def test_the_wheel_holds_the_package_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    folders = {name.partition("/")[0] for name in names}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == {"dra_alloc"}
    assert "dra_alloc/py.typed" in names
    assert any(name.startswith("dra_alloc/_core.") and name.endswith((".so", ".pyd")) for name in names)
    assert [name for name in names if name.endswith((".c", ".cpp", ".pyx", ".pyc"))] == []


def test_the_wheel_holds_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("dra_alloc/")}
    tracked = run(["git", "ls-files", "dra_alloc"], cwd=ROOT).splitlines()
    assert {name for name in tracked if not name.endswith((".pyx", ".pxi", ".pxd"))} <= packed


def test_the_source_distribution_holds_every_module(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert set(run(["git", "ls-files", "dra_alloc"], cwd=ROOT).splitlines()) <= packed


#: By extra: the end of a program that needs it.
NEEDS = {
    "cli": "import sys; from dra_alloc.cli import main; sys.exit(main(['allocate', '--help']))",
    "live": "from dra_alloc.live import fetch; fetch()",
    "report": "dra.render_report(dra.Allocator(cluster))",
    "arrow": "from dra_alloc.tables import Table; Table.of(['name'], [['x']]).__arrow_c_stream__()",
    "sweep": "from dra_alloc.sweeps import Outcome, output; output.plot([Outcome(name='x', labels={'n': 1})], 'x.svg')",
    "testing": "import dra_alloc.testing.strategies",
}


def test_each_extra_has_a_program_that_needs_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert NEEDS.keys() == project["optional-dependencies"].keys()


@pytest.mark.parametrize("extra", NEEDS)
def test_a_missing_extra_is_told_with_the_command_that_installs_it(bare: Path, extra: str, tmp_path: Path) -> None:
    program = f"import dra_alloc as dra\ncluster = dra.Cluster.from_objects(dra.load({str(DEMO)!r}))\n{NEEDS[extra]}\n"
    done = subprocess.run([bare, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith(f'install it with: pip install "dra-alloc[{extra}]"')


def test_everything_but_extras_works_without_them(bare: Path, tmp_path: Path) -> None:
    listed = run([bare, "-m", "pip", "list", "--format", "freeze"], cwd=tmp_path)
    assert "click" not in listed
    run([bare, SAMPLE], cwd=tmp_path)


def test_the_demo_runs_from_the_wheel_in_another_folder(clean: Path, tmp_path: Path) -> None:
    shown = run([clean, DEMO / "demo.py"], cwd=tmp_path)
    assert "trainer-0" in shown
    where = run([clean, "-c", "import dra_alloc; print(dra_alloc.__file__)"], cwd=tmp_path)
    assert not Path(where.strip()).is_relative_to(ROOT)


def test_the_scripts_of_the_wheel_run(clean: Path, tmp_path: Path) -> None:
    question = ["allocate", "-f", DEMO, "--pod", "default/trainer-0"]
    outputs = {
        run([*command, *question], cwd=tmp_path)
        for command in ([clean.with_name("dra-alloc")], [clean, "-m", "dra_alloc"], [clean.with_name("kubectl-dra")])
    }
    assert len(outputs) == 1
    assert "fits on node node-1" in outputs.pop()


def test_a_sample_project_passes_strict_type_checks_against_the_wheel(clean: Path, tmp_path: Path) -> None:
    sample = tmp_path / "sample_project.py"
    sample.write_text(SAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    run([sys.executable, "-m", "mypy", "--strict", "--python-executable", clean, sample], cwd=tmp_path)
    run([clean, sample], cwd=tmp_path)
