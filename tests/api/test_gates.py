"""Feature gates by the version of Kubernetes."""

from __future__ import annotations

import pytest

from dra_alloc import Features


def test_versions_and_switches() -> None:
    assert Features.for_version("v1.37.2") == Features.for_version("1.37") == Features()
    assert Features.for_version("1.36", enable=["DRADeviceTaintRules"]).DRADeviceTaintRules
    assert not Features.for_version("1.37", disable=["DRADeviceTaintRules"]).DRADeviceTaintRules


@pytest.mark.parametrize(
    ("version", "switches", "message"),
    [
        ("1.12", {}, r"no gate table for Kubernetes '1\.12'; known are 1\.34"),
        ("1.37", {"enable": ["DRANonsense"]}, "unknown feature gate DRANonsense; known are "),
        ("1.37", {"enable": ["DRADeviceTaints"], "disable": ["DRADeviceTaints"]}, "both enabled and disabled"),
    ],
)
def test_what_is_not_known(version: str, switches: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Features.for_version(version, **switches)


def test_a_version_is_no_number() -> None:
    with pytest.raises(TypeError, match=r'a version is text, such as "1\.37", not 1\.4'):
        Features.for_version(1.40)  # type: ignore[arg-type]
