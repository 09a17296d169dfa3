"""The names of `dra_alloc.features`, and that a Cluster is what the features read."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import dra_alloc as dra
from dra_alloc import features
from dra_alloc.features.taints import plan_evictions, try_rule
from tests.features.building import at, claim, pod, result, rule, slice_of, taint


def test_the_exports_are_what_type_checkers_see() -> None:
    tree = ast.parse(Path(features.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        str(name.asname): str(node.module).removeprefix("dra_alloc.features.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen == features._EXPORTS
    for name, module in seen.items():
        assert getattr(features, name) is getattr(import_module(f"dra_alloc.features.{module}"), name)
    assert dir(features) == sorted(seen)
    assert not hasattr(features, "nothing_of_that_name")


def test_a_cluster_can_be_asked() -> None:
    user = pod("p", "c")
    evil = rule("r", taint("k:NoExecute", 5), {})
    held = claim("c", result("gpu-0"), reserved_for=[user])
    cluster = dra.Cluster.from_objects([slice_of("gpu-0"), held, user, evil])
    plan = plan_evictions(cluster, now=at(10))
    assert [(item.pod, item.when) for item in plan] == [("default/p", at(5))]
    assert try_rule(evil, cluster, now=at(10)).evictions == plan
