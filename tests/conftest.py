"""Profiles for hypothesis (variable HYPOTHESIS_PROFILE: `default`, `sanitize` or `nightly`), and no terminal."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

#: A change lands or not by the same examples each time; new ones are tried on every other run, and at night.
DERANDOMIZE = os.environ.get("CI") == "true" and "HYPOTHESIS_PROFILE" not in os.environ

settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize=DERANDOMIZE,
    suppress_health_check=[HealthCheck.too_slow],
)
# Memory that is touched wrongly shows on the first example that takes a path, and with sanitizers each costs several
# times as much. Whether answers are right, the plain build is asked with more.
settings.register_profile("sanitize", settings.get_profile("default"), max_examples=25, derandomize=True)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is that of a pipe, whatever the terminal or the test runner say of its width."""
    monkeypatch.delenv("COLUMNS", raising=False)
