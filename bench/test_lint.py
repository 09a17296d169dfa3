"""Linting a fleet of 5,000 nodes of 12 devices each, and validating its slices."""

from __future__ import annotations

import attrs
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.workloads import NUMA, claim, fleet, match, request
from dra_alloc.api import ResourceSlice
from dra_alloc.codec.validation import validate
from dra_alloc.lint import check

NODES = 5_000


@pytest.mark.benchmark(group="lint")
def test_fleet(benchmark: BenchmarkFixture) -> None:
    fleet_objects = fleet(NODES).objects
    fine = [
        claim(f"fine-{n}", [request("gpu", "gpu", n % 4 + 1), request("nic", "nic")], [match(NUMA)]) for n in range(100)
    ]
    scattered = claim("scattered", [request("gpu", "gpu", 5), request("nic", "nic")], [match(NUMA)])
    failing = claim("failing", [request("gpu", "gpu", selector='device.attributes["gpu.example.com"].memory > 1')])
    objects = [*fleet_objects, *fine, scattered, failing]
    found = benchmark.pedantic(check, args=(objects,), rounds=3)
    assert [(finding.code, finding.object) for finding in found] == [
        ("match-never-holds", "ResourceClaim default/scattered"),
        ("selector-fails", "ResourceClaim default/failing"),
    ]


@pytest.mark.benchmark(group="lint")
def test_validation(benchmark: BenchmarkFixture) -> None:
    slices = [obj for obj in fleet(NODES).objects if isinstance(obj, ResourceSlice)]
    broken = attrs.evolve(slices[-1], spec=attrs.evolve(slices[-1].spec, node_name=""))
    found = benchmark.pedantic(lambda: [validate(item) for item in [*slices, broken]], rounds=3)
    assert not any(found[:-1])
    assert [problem.path for problem in found[-1]] == ["spec.nodeName", "spec"]
