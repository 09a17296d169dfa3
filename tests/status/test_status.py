"""What is where: every device once, in a state that agrees with what the allocator can give away."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given

import dra_alloc as dra
from dra_alloc import api
from dra_alloc.status import SEVERAL, STATES, ClusterStatus, cluster_status
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from tests.cli.conftest import Run, run  # noqa: F401
from tests.properties.asking import allocator

ROOT = Path(__file__).parents[2]
REASONS = ROOT / "examples" / "reasons"


def of_example(code: str, **options: str) -> ClusterStatus:
    return cluster_status(
        dra.Cluster.from_objects(dra.load(REASONS / code / "objects.yaml")), dra.Features.all(), **options
    )


@pytest.mark.parametrize(
    ("code", "states"),
    [
        ("in-use", {"gpu-0": "in-use", "gpu-1": "in-use"}),
        ("taint", {"gpu-0": "tainted", "gpu-1": "tainted"}),
        ("counters", {"half-0": "in-use", "half-1": "free", "whole": "blocked"}),
        ("groups", {"part-0": "in-use", "part-1": "blocked"}),
        ("capacity-short", {"gpu-0": "shared"}),
    ],
)
def test_states(code: str, states: dict[str, str]) -> None:
    assert {each.device: each.state for each in of_example(code).devices} == states


def test_holders_and_taints() -> None:
    first, second = of_example("in-use").devices
    assert (first.claims, first.pods) == (("default/first",), ("first-pod",))
    assert (second.claims, second.pods) == (("default/second",), ("second-pod",))
    assert [each.taints for each in of_example("taint").devices] == [
        ("gpu.example.com/unhealthy=ecc:NoExecute",),
        ("example.com/maintenance:NoSchedule",),
    ]


def test_a_faulty_pool_is_named() -> None:
    status = of_example("pool-incomplete")
    assert status.devices == ()
    assert [pool.fault for pool in status.pools] == ["pool gpu.example.com/node-1 has 1 of 2 slices at generation 1"]
    assert status.tree() == (
        "node-1: no devices\n  pool gpu.example.com/node-1 has 1 of 2 slices at generation 1; it offers no devices"
    )


def test_partition_types() -> None:
    status = of_example("counters", partition_attribute="gpu.example.com/type")
    assert status.usage_table(("driver", "type")).to_dicts() == [
        {"driver": "gpu.example.com", "type": "half", "devices": 2}
        | {"in-use": 1, "shared": 0, "tainted": 0, "blocked": 0, "free": 1},
        {"driver": "gpu.example.com", "type": "whole", "devices": 1}
        | {"in-use": 0, "shared": 0, "tainted": 0, "blocked": 1, "free": 0},
    ]
    assert status.tree() == (
        "node-1: 1/3 free (1 in-use, 1 blocked)\n"
        "  gpu.example.com: 1/3 free (1 in-use, 1 blocked)\n"
        "    half: 1/2 free (1 in-use)\n"
        "    whole: 0/1 free (1 blocked)"
    )


def test_devices_of_several_nodes_and_of_one_by_themselves() -> None:
    status = of_example("not-on-node")
    assert {each.device: each.node for each in status.devices} == {"gpu-0": "node-2", "gpu-1": "node-1"}
    assert [pool.node for pool in status.pools] == [SEVERAL]
    assert [each.device for each in status.select(node="node-2").devices] == ["gpu-0"]


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="not counted by rack"):
        of_example("in-use").usage(("rack",))


def test_html_escapes_what_drivers_publish() -> None:
    device = api.Device(name="<b>")
    pool = api.ResourcePool(name="p", generation=1, resource_slice_count=1)
    spec = api.ResourceSliceSpec(driver="d.example.com", pool=pool, node_name="<i>", devices=(device,))
    status = cluster_status(dra.Cluster.from_objects([api.ResourceSlice(metadata=api.ObjectMeta(name="s"), spec=spec)]))
    html = status._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<i>" not in html


@given(clusters())
def test_numbers_add_up_and_states_are_what_the_rules_say(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    status = cluster_status(alloc.cluster, scenario.features)
    assert sum(usage.total for usage in status.usage(("node",))) == len(status.devices)
    assert {each.state for each in status.devices} <= set(STATES)
    states = {f"{each.driver}/{each.pool}/{each.device}": each.state for each in status.devices}
    assert len(states) == len(status.devices)
    wanted = api.ResourceClaim(
        metadata=api.ObjectMeta(name="any", namespace="default"),
        spec=api.ResourceClaimSpec(
            devices=api.DeviceClaim(
                requests=(api.DeviceRequest(name="r", exactly=api.ExactDeviceRequest(device_class_name="everything")),)
            )
        ),
    )
    with alloc.cluster.fork() as trial:
        trial.upsert(api.DeviceClass(metadata=api.ObjectMeta(name="everything")))
        for node in scenario.nodes:
            found = dra.Allocator(trial, scenario.features).explain(wanted, node).only
            assert found is not None
            for name in found.requests[0].candidates:
                assert states[name] in ("free", "shared")
            for out in found.requests[0].ruled_out:
                for name, _ in out.devices:
                    if out.code in ("in-use", "taint"):
                        assert states[name] in ("in-use", "shared", "tainted"), out
                    if out.code in ("counters", "groups"):
                        assert states[name] == "blocked", out


def test_command(run: Run) -> None:  # noqa: F811
    ran = run(
        "status", "-f", REASONS / "counters", "--by", "driver,type", "--partition-attribute", "gpu.example.com/type"
    )
    assert [line.split() for line in ran.out.splitlines()] == [
        ["DRIVER", "TYPE", "DEVICES", "IN-USE", "SHARED", "TAINTED", "BLOCKED", "FREE"],
        ["gpu.example.com", "half", "2", "1", "0", "0", "0", "1"],
        ["gpu.example.com", "whole", "1", "0", "0", "0", "1", "0"],
    ]
    assert ran.status == 0
    found = run("status", "-f", REASONS / "counters", "-o", "json").json
    assert found["totals"] == {"devices": 3, "in-use": 1, "shared": 0, "tainted": 0, "blocked": 1, "free": 1}
    rows = list(csv.DictReader(io.StringIO(run("status", "-f", REASONS / "in-use", "-o", "csv").out)))
    assert [(row["device"], row["claims"]) for row in rows] == [("gpu-0", "default/first"), ("gpu-1", "default/second")]
    assert run("status", "-f", REASONS / "in-use", "-o", "tree").out == (
        "node-1: 0/2 free (2 in-use)\n  gpu.example.com: 0/2 free (2 in-use)\n"
    )
    ran = run("status", "-f", REASONS / "in-use", "--by", "rack")
    assert ran.status == 2
    assert "choose from node, driver, pool, type" in ran.err
