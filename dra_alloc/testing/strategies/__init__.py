"""Hypothesis strategies for the objects of Dynamic Resource Allocation, from quantities to whole clusters.

All of them use few names and small amounts, so that what is asked for meets what is there, and shrink to objects that a
person can read. `clusters()` gives a `Scenario`: print it with `to_yaml()`.
"""

from __future__ import annotations

from importlib.util import find_spec

from dra_alloc.errors import MissingExtra

if find_spec("hypothesis") is None:
    raise MissingExtra('the strategies need the package hypothesis; install it with: pip install "dra-alloc[testing]"')

from dra_alloc.testing.strategies._claims import claims, classes, derived_attributes, requests, selectors
from dra_alloc.testing.strategies._clusters import allocated_claims, clusters, features, taint_rules
from dra_alloc.testing.strategies._devices import devices
from dra_alloc.testing.strategies._knobs import Knobs
from dra_alloc.testing.strategies._pools import counter_sets, node_selectors, nodes, pools
from dra_alloc.testing.strategies._values import attributes, quantities, taints, tolerations

__all__ = [
    "Knobs",
    "allocated_claims",
    "attributes",
    "claims",
    "classes",
    "clusters",
    "counter_sets",
    "derived_attributes",
    "devices",
    "features",
    "node_selectors",
    "nodes",
    "pools",
    "quantities",
    "requests",
    "selectors",
    "taint_rules",
    "taints",
    "tolerations",
]
