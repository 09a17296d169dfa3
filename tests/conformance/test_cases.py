"""Questions that the vectors leave open, asked of the plain model and of the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import dra_alloc as dra
from dra_alloc.api import DeviceClass, Node, ResourceClaim, ResourceSlice
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "cases.yaml").read_text(encoding="utf-8"))
DRIVER, POOL, NODE = "gpu.example.com", "pool", "node-0"

every_case = pytest.mark.parametrize("case", CASES, ids=[case["name"].replace(" ", "-") for case in CASES])


def read(case: dict[str, Any]) -> Scenario:
    spec = {
        "driver": DRIVER,
        "pool": {"name": POOL, "generation": 1, "resourceSliceCount": 1},
        "nodeName": NODE,
        "devices": case["devices"],
    }
    held = [{"request": "r", "driver": DRIVER, "pool": POOL} | result for result in case.get("held", ())]
    return Scenario(
        nodes=(Node.from_dict({"metadata": {"name": NODE}}),),
        slices=(ResourceSlice.from_dict({"metadata": {"name": "slice"}, "spec": spec}),),
        classes=(DeviceClass.from_dict({"metadata": {"name": "any"}, "spec": {}}),),
        allocated_claims=(claim("holder", [], status={"allocation": {"devices": {"results": held}}}),),
        claims=tuple(
            claim(f"claim-{number}", requests, constraints=case.get("constraints", []) if not number else [])
            for number, requests in enumerate(case["claims"])
        ),
        features=dra.Features.all().replace(**dict.fromkeys(case.get("without", ()), False)),
    )


def claim(name: str, requests: list[dict[str, Any]], *, constraints: Any = (), status: Any = None) -> ResourceClaim:
    """A claim of class `any`, unless its requests say another."""
    named = [request | {form: classed(request[form]) for form in request if form != "name"} for request in requests]
    devices = {"requests": named, "constraints": list(constraints)}
    metadata = {"name": name, "namespace": "default"}
    return ResourceClaim.from_dict({"metadata": metadata, "spec": {"devices": devices}, "status": status})


def classed(body: Any) -> Any:
    if isinstance(body, list):
        return [classed(alternative) for alternative in body]
    return {"deviceClassName": "any"} | body


@every_case
def test_model(case: dict[str, Any]) -> None:
    scenario = read(case)
    check(case, scenario, Outcome.of(lambda: scenario.plain_allocate(scenario.nodes[0])))


@every_case
def test_search(case: dict[str, Any]) -> None:
    scenario = read(case)
    alloc = dra.Allocator(dra.Cluster.from_objects(scenario.cluster_objects()), features=scenario.features)
    check(case, scenario, Outcome.of(lambda: alloc.allocate(scenario.claims, node=NODE)))


def check(case: dict[str, Any], scenario: Scenario, outcome: Outcome) -> None:
    shown = outcome.verdict
    if outcome.results is not None:
        shown = " ".join(device.device for result in outcome.results for device in result.devices.results)
    assert shown == case["answer"], scenario.to_yaml()
