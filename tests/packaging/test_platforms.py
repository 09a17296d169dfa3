"""The wheels that cibuildwheel would build, told by cibuildwheel itself, which builds nothing here."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
VERSIONS = [line.rpartition(" ")[2].replace("3.", "cp3") for line in CLASSIFIERS if ":: 3." in line]

PLATFORMS = {
    "linux": ["manylinux_x86_64", "manylinux_aarch64"],
    "macos": ["macosx_x86_64", "macosx_arm64"],
    "windows": ["win_amd64"],
}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_there_is_a_wheel_for_each_supported_python(platform: str) -> None:
    """And for the free-threaded build, where it is no longer an experiment."""
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert VERSIONS[0] == "cp311"
    expected = {f"{python}-{tag}" for python, tag in product([*VERSIONS, "cp314t"], PLATFORMS[platform])}
    assert set(done.stdout.split()) == expected
    assert done.stderr == ""
