"""An allocation as a table, and in a notebook."""

from __future__ import annotations

from pathlib import Path

import polars

import dra_alloc as dra

REASONS = Path(__file__).parents[2] / "examples" / "reasons"


def test_allocations_and_clusters_show_themselves() -> None:
    cluster = dra.Cluster.from_objects(dra.load(REASONS / "constraint" / "objects.yaml"))
    claim = cluster.get("ResourceClaim", "default/wanted")
    assert claim is not None
    found = dra.Allocator(cluster).allocate({**claim.to_dict(), "spec": {"devices": {"requests": [REQUEST]}}}, "node-1")
    assert found is not None
    assert polars.DataFrame(found.table()).rows() == [(0, "one", "gpu.example.com", "node-1", "gpu-0", None)]
    assert "<td>gpu-0</td>" in found._repr_html_()
    assert "4/4 free" in cluster._repr_html_()


REQUEST = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
