"""The features on manifests and dumps of others: every object that can be read can be asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_alloc.api import DeviceTaintRule as Rule
from dra_alloc.api import Pod, ResourceClaim, ResourceSlice
from dra_alloc.codec import load
from dra_alloc.errors import DraError
from dra_alloc.features.binding import claim_readiness
from dra_alloc.features.devicestatus import addresses, canonical_address, in_network
from dra_alloc.features.poolstatus import pool_status
from dra_alloc.features.standard import attribute_problems
from dra_alloc.features.taints import DeviceTaints, create_rule, eviction_plan, rule_impact
from tests.docs.pages import ROOT
from tests.features.building import accepted, at

REAL = ROOT.parent / "shared" / "real"


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder ../shared/real with manifests of others is not there")
def test_real_objects_can_be_asked_about() -> None:
    objects = readable(REAL)
    slices = [item for item in objects if isinstance(item, ResourceSlice)]
    claims = [item for item in objects if isinstance(item, ResourceClaim)]
    pods = [item for item in objects if isinstance(item, Pod)]
    rules = [item for item in objects if isinstance(item, Rule)]
    assert slices
    assert claims
    assert rules

    for pool in pool_status(slices, claims, rules):
        counts = (pool.allocated_devices, pool.available_devices, pool.unavailable_devices)
        assert pool.validation_error is not None or sum(count or 0 for count in counts) == pool.total_devices
    for item in rules:
        accepted(create_rule(item, at(0)))
        assert rule_impact(item, slices, claims, pods, now=at(0)).published == tuple(
            device for device, taints in DeviceTaints(slices, [item]) if any(taint.rule for taint in taints)
        )
    names = {f"{item.metadata.namespace or 'default'}/{item.metadata.name}" for item in claims}
    for eviction in eviction_plan(slices, claims, pods, rules, now=at(0)):
        assert set(eviction.claims) <= names
    # The golden files of the API have words where addresses should be; they lie in no network.
    found = [*in_network(view := addresses(claims, pods), "0.0.0.0/0"), *in_network(view, "::/0")]
    assert [canonical_address(item.address) for item in found] == [item.address for item in found]
    assert all(claim_readiness(held, now=at(0)).state.value for held in claims)
    named = [attribute_problems(device.attributes) for part in slices for device in part.spec.devices]
    assert any(not problems for problems in named)


def readable(folder: Path) -> list[Any]:
    """All objects in the files of a folder, those aside that are refused (tests/codec says which and why)."""
    found: list[Any] = []
    for path in sorted(folder.iterdir()):
        if path.suffix in (".yaml", ".json"):
            try:
                found.extend(load(str(path)))
            except DraError:
                continue
    return found
