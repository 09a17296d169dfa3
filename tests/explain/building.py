"""Small objects that read like their YAML."""

from __future__ import annotations

import yaml

import dra_alloc as dra


def cluster(*texts: str) -> dra.Cluster:
    """A cluster of the objects in YAML texts."""
    return dra.Cluster.from_objects(dra.load([each for text in texts for each in yaml.safe_load_all(text) if each]))


NODES = """
{apiVersion: v1, kind: Node, metadata: {name: a, labels: {zone: east}}, status: {allocatable: {cpu: 8, memory: 32Gi}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b, labels: {zone: west}}, status: {allocatable: {cpu: 2, memory: 32Gi}}}
---
{apiVersion: v1, kind: Node, metadata: {name: c, labels: {zone: west}}, status: {allocatable: {cpu: 8, memory: 32Gi}}}
"""

GPU_CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""


def gpu(number: int) -> str:
    return f"{{name: gpu-{number}}}"


def gpus(node: str, *devices: str) -> str:
    """The pool of a node, in one slice; two plain GPUs unless others are given."""
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: gpus-{node}}}
spec:
  driver: gpu.example.com
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices: [{", ".join(devices or map(gpu, range(2)))}]
"""


def template(name: str, count: int) -> str:
    """A template of claims for some GPUs."""
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {name}, namespace: default}}
spec: {{spec: {{devices: {{requests: [{{name: gpus, exactly: {{deviceClassName: gpu, count: {count}}}}}]}}}}}}
"""


#: Two GPUs on each of the nodes a and b.
GPUS = "---".join([GPU_CLASS, gpus("a"), gpus("b"), template("two", 2)])


def pod(name: str, *, cpu: str = "1", template: str = "two", more: str = "") -> str:
    """A pod with a claim from a template; `more` goes into its spec."""
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  resourceClaims: [{{name: gpus, resourceClaimTemplateName: {template}}}]
  containers: [{{name: main, resources: {{requests: {{cpu: {cpu}}}, claims: [{{name: gpus}}]}}}}]
  {more}
"""
