"""The locked development environment holds what pyproject.toml asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WANTED = sorted(
    {
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *(line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra),
        *PROJECT["dependency-groups"]["dev"],
    }
)


def locked() -> dict[str, list[Requirement]]:
    """The pins by name; a name may have several, each for its own interpreters."""
    pins: dict[str, list[Requirement]] = {}
    for line in (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines():
        pin = Requirement(line)
        pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


@pytest.mark.parametrize("line", WANTED)
def test_each_dependency_is_pinned_within_its_bounds(line: str) -> None:
    wanted = Requirement(line)
    pins = locked().get(canonicalize_name(wanted.name), [])
    assert pins, f"{wanted.name} is not in requirements-dev.lock; run: make lock"
    for pin in pins:
        (version,) = [specifier.version for specifier in pin.specifier if specifier.operator == "=="]
        assert wanted.specifier.contains(version, prereleases=True), f"{pin} is outside of {wanted}; run: make lock"
