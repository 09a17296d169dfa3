"""Reading a cluster of 5,000 nodes with 12 devices each, from JSON and YAML text.

What is replaced is plain parsing, which gives dicts and no objects: the ratio to it is printed beside each benchmark.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml
from pytest_benchmark.fixture import BenchmarkFixture

from dra_alloc import api
from dra_alloc.codec import Loaded, load

NODES = 5_000
NODES_OF_YAML = 250


def _device(driver: str, node: int, index: int) -> dict[str, Any]:
    """A device with eight attributes, of which one is its own."""
    return {
        "name": f"{driver[:3]}-{index}",
        "attributes": {
            "model": {"string": "A100" if driver.startswith("gpu") else "CX-7"},
            "index": {"int": index},
            "numa": {"int": index // 4},
            "healthy": {"bool": True},
            "driverVersion": {"version": "580.126.20"},
            "uuid": {"string": f"{driver[:3]}-{node:05d}-{index}"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
            "resource.kubernetes.io/pciBusID": {"string": f"0000:{index:02x}:00.0"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def _slice(driver: str, node: int, devices: int) -> dict[str, Any]:
    name = f"node-{node:05d}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"{name}-{driver}",
            "uid": f"{node:08d}-{driver}",
            "resourceVersion": str(node),
            "creationTimestamp": "2026-01-31T12:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": f"{node:08d}"}],
        },
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(driver, node, index) for index in range(devices)],
        },
    }


def _node(node: int) -> dict[str, Any]:
    name = f"node-{node:05d}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": f"zone-{node % 3}"}},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi"}, "capacity": {"cpu": "64", "memory": "520Gi"}},
    }


def _objects(nodes: int) -> list[dict[str, Any]]:
    return [
        obj
        for node in range(nodes)
        for obj in (_node(node), _slice("gpu.example.com", node, 8), _slice("nic.example.com", node, 4))
    ]


def _tell(benchmark: BenchmarkFixture, plain: Callable[[], object]) -> None:
    """Print how the benchmark compares to plain parsing, which is measured once."""
    started = time.perf_counter()
    plain()
    seconds = time.perf_counter() - started
    if benchmark.stats is not None:
        print(f"\n{benchmark.name}: {benchmark.stats.stats.min / seconds:.1f} times the cost of plain parsing")


def _check(found: Loaded, nodes: int) -> None:
    assert len(found) == 3 * nodes
    assert not found.warnings
    slices = [obj for obj in found if isinstance(obj, api.ResourceSlice)]
    assert sum(len(obj.spec.devices) for obj in slices) == 12 * nodes
    last = slices[-1].spec.devices[-1]
    assert last.attributes["uuid"].string == f"nic-{nodes - 1:05d}-3"
    assert last.capacity is slices[0].spec.devices[0].capacity


@pytest.mark.benchmark(group="load")
def test_load_json(benchmark: BenchmarkFixture) -> None:
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": _objects(NODES)})
    found = benchmark.pedantic(lambda: load(io.BytesIO(text)), rounds=3)
    _check(found, NODES)
    _tell(benchmark, lambda: orjson.loads(text))


@pytest.mark.benchmark(group="load")
def test_load_yaml(benchmark: BenchmarkFixture) -> None:
    text = yaml.dump_all(_objects(NODES_OF_YAML), Dumper=yaml.CSafeDumper)
    found = benchmark.pedantic(lambda: load(io.StringIO(text)), rounds=3)
    _check(found, NODES_OF_YAML)
    _tell(benchmark, lambda: list(yaml.load_all(text, Loader=yaml.CSafeLoader)))


@pytest.mark.benchmark(group="load")
def test_load_dicts(benchmark: BenchmarkFixture) -> None:
    """60,000 devices that are parsed already, as a client hands them over."""
    objects = _objects(NODES)
    found = benchmark.pedantic(lambda: load(objects), rounds=3)
    _check(found, NODES)
