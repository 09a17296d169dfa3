"""Workloads for a scheduler: the objects that a file describes, for one of its sizes.

The files in `workloads/` are re-made after the cases of the Kubernetes scheduler benchmarks: nodes with devices, pods
that are there before, and pods that are measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import yaml

__all__ = ["Size", "Workload", "read_workload"]

FOLDER = Path(__file__).resolve().parent / "workloads"
NAMESPACE = "test"


@attrs.frozen
class Size:
    """nodes: with devices. init_pods: scheduled before the measurement begins. measure_pods: in it."""

    nodes: int
    init_pods: int
    measure_pods: int


@attrs.frozen
class Workload:
    """A case; `data` is the file as read."""

    data: dict[str, Any]

    @property
    def sizes(self) -> dict[str, Size]:
        return {
            name: Size(size["nodes"], size["initPods"], size["measurePods"])
            for name, size in self.data["sizes"].items()
        }

    def cluster(self, nodes: int) -> Iterator[dict[str, Any]]:
        """Namespace, classes, templates, nodes, and a slice of devices for each node."""
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        yield from self.data["objects"]
        driver, count = self.data["devices"]["driver"], self.data["devices"]["perNode"]
        for number in range(nodes):
            name = f"node-{number:05}"
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
            }
            yield {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{name}-{driver}"},
                "spec": {
                    "driver": driver,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [_device(number) for number in range(count)],
                },
            }

    def pods(self, first: int, count: int, scheduler: str) -> Iterator[dict[str, Any]]:
        """Pods with consecutive numbers."""
        for number in range(first, first + count):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"pod-{number:05}", "namespace": NAMESPACE},
                "spec": {**self.data["pod"], "schedulerName": scheduler},
            }


def _device(number: int) -> dict[str, Any]:
    attributes = {"healthy": {"bool": True}, "resource.kubernetes.io/numaNode": {"int": number % 2}}
    return {"name": f"device-{number}", "attributes": attributes}


def read_workload(name: str) -> Workload:
    """The workload of a file in `workloads/`, by its name without suffix."""
    path = FOLDER / f"{name}.yaml"
    if not path.exists():
        raise SystemExit(
            f"there is no workload {name!r}; there are {', '.join(sorted(p.stem for p in FOLDER.glob('*.yaml')))}"
        )
    return Workload(yaml.safe_load(path.read_text(encoding="utf-8")))
