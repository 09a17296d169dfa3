"""The requeue index: what an event costs with 1,000 to 100,000 pending pods, and what a burst of pods costs in all.

What is replaced is a look at every pending pod for each event, as a scheduler without PreQueueingHints does it.
"""

from __future__ import annotations

import attrs
import pytest

import dra_alloc as dra
from bench.conftest import Measure
from bench.workloads import CLASSES, GPU, claim, held, node, pool_slice, request, text
from dra_alloc import api

SIZES = [1_000, 10_000, 100_000]

#: Pods that wait for one model of GPU.
ALIKE = 10

NODES = 500
GPUS_OF_NODE = 8


def pod(name: str, claim_name: str, template: str | None = None) -> api.Pod:
    """A pod with one claim; one that was made from a template, if that is given."""
    entry = api.PodResourceClaim(
        name="gpu",
        resource_claim_name=None if template else claim_name,
        resource_claim_template_name=template,
    )
    made = (api.PodResourceClaimStatus(name="gpu", resource_claim_name=claim_name),) if template else ()
    return api.Pod(
        metadata=api.ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=api.PodSpec(resource_claims=(entry,)),
        status=api.PodStatus(resource_claim_statuses=made),
    )


def wanting(name: str, model: str) -> api.ResourceClaim:
    """A claim to a GPU of a model."""
    return claim(name, [request("gpu", "gpu", 1, f'device.attributes["{GPU}"].model == "{model}"')])


def crowd(size: int) -> tuple[list[api.Pod], list[api.ResourceClaim]]:
    """Pods with a claim of their own; ten of each want the same model, of which there are none."""
    names = [f"{number:06}" for number in range(size)]
    claims = [wanting(f"claim-{name}", f"model-{number // ALIKE}") for number, name in enumerate(names)]
    return [pod(f"pod-{name}", f"claim-{name}") for name in names], claims


def crowded(size: int) -> dra.RequeueIndex:
    """An index in which the crowd waits."""
    pods, claims = crowd(size)
    index = dra.RequeueIndex(dra.Cluster.from_objects([*CLASSES, node("node-0"), *claims]))
    for each in pods:
        index.add(each)
    return index


@pytest.mark.parametrize("size", SIZES)
def test_requeue_claim(measure: Measure, size: int) -> None:
    index = crowded(size)
    old = index.cluster.get("ResourceClaim", f"default/claim-{size // 2:06}")
    reference = api.ResourceClaimConsumerReference(resource="pods", name="other", uid="uid")
    event = dra.Event("updated", attrs.evolve(old, status=api.ResourceClaimStatus(reserved_for=(reference,))), old=old)
    pods, _ = crowd(size)
    expected = [f"default/pod-{size // 2:06}"]

    def scan() -> list[str]:
        return [
            each.metadata.key
            for each in pods
            if any(entry.resource_claim_name == old.metadata.name for entry in each.spec.resource_claims)
        ]

    assert scan() == expected
    found = measure(lambda: index.affected(event), n=size, plain=scan, what="a look at every pod")
    assert found == expected


@pytest.mark.parametrize("size", SIZES)
def test_requeue_slice(measure: Measure, size: int) -> None:
    """A GPU of eight comes free of its taint. Each event has another model, so that nothing is known of it before."""
    index = crowded(size)
    models = size // ALIKE
    turns = [0]

    def next_event() -> tuple[tuple[dra.Event], dict[str, object]]:
        turns[0] += 37
        devices = [
            api.Device(name=f"gpu-{k}", attributes={"model": text(f"model-{turns[0] % models}"), "slot": text(str(k))})
            for k in range(GPUS_OF_NODE)
        ]
        broken = api.DeviceTaint(key="broken", effect="NoSchedule")
        tainted = [*devices[:-1], attrs.evolve(devices[-1], taints=(broken,))]
        old = pool_slice(GPU, f"new-{turns[0]}", tainted, on="node-0")
        return (dra.Event("updated", pool_slice(GPU, f"new-{turns[0]}", devices, on="node-0"), old=old),), {}

    index.affected(*next_event()[0])  # the first event compiles the selectors of all pods
    found = measure(index.affected, n=size, setup=next_event, rounds=100)
    first = turns[0] % models * ALIKE
    assert found == [f"default/pod-{number:06}" for number in range(first, first + ALIKE)]


@pytest.mark.parametrize("size", SIZES)
def test_requeue_add_all(measure: Measure, size: int) -> None:
    """All that are pending when a scheduler starts."""
    pods, claims = crowd(size)
    cluster = dra.Cluster.from_objects([*CLASSES, node("node-0"), *claims])

    def add_all() -> dra.RequeueIndex:
        index = dra.RequeueIndex(cluster)
        index.add_all(pods)
        return index

    found = measure(add_all, n=size, units=size, setup=lambda: None, rounds=2)
    assert len(found) == size


@pytest.mark.parametrize("size", SIZES)
def test_requeue_add(measure: Measure, size: int) -> None:
    """One after the other."""
    pods, claims = crowd(size)
    cluster = dra.Cluster.from_objects([*CLASSES, node("node-0"), *claims])

    def add_each() -> dra.RequeueIndex:
        index = dra.RequeueIndex(cluster)
        for each in pods:
            index.add(each)
        return index

    found = measure(add_each, n=size, units=size, setup=lambda: None, rounds=2)
    assert len(found) == size


@pytest.mark.parametrize("size", [500, 1_000, 2_000])
def test_requeue_burst(measure: Measure, size: int) -> None:
    """Pods come at once, and then, one after the other, their claims, and the pods' notice of these (KEP-6132)."""
    shape = claim("shape", [request("gpu", "gpu")]).spec
    cluster = dra.Cluster.from_objects(
        [
            *CLASSES,
            *(node(f"node-{number:03}") for number in range(NODES)),
            *(
                pool_slice(
                    GPU, f"node-{n:03}", [api.Device(name=f"gpu-{k}") for k in range(GPUS_OF_NODE)], on=f"node-{n:03}"
                )
                for n in range(NODES)
            ),
            *(
                held(f"held-{n}", [(GPU, f"node-{n:03}", f"gpu-{k}") for k in range(GPUS_OF_NODE)])
                for n in range(NODES)
            ),
        ]
    )
    plain = [attrs.evolve(pod(f"pod-{number}", f"made-{number}", "gpu"), status=None) for number in range(size)]
    aware = [pod(f"pod-{number}", f"made-{number}", "gpu") for number in range(size)]
    made = []
    for each in aware:
        owner = api.OwnerReference(
            api_version="v1", kind="Pod", name=each.metadata.name, uid=each.metadata.uid or "", controller=True
        )
        metadata = api.ObjectMeta(
            name=each.metadata.name.replace("pod", "made"), namespace="default", owner_references=(owner,)
        )
        made.append(api.ResourceClaim(metadata=metadata, spec=shape))

    def burst() -> int:
        with cluster.fork() as trial:
            index = dra.RequeueIndex(trial)
            for each in plain:
                index.add(each)
            woken = 0
            for item, before, after in zip(made, plain, aware, strict=True):
                trial.upsert(item)
                woken += len(index.affected(dra.Event("added", item)))
                woken += len(index.affected(dra.Event("updated", after, old=before)))
            return woken

    def scan() -> int:
        woken = 0
        for item in made:
            woken += sum(
                any(entry.resource_claim_name == item.metadata.name for entry in each.status.resource_claim_statuses)
                for each in aware
                if each.status is not None
            )
        return woken

    assert scan() == size
    found = measure(
        burst, n=size, units=size, setup=lambda: None, rounds=2, plain=scan, plain_units=size, what="a full scan"
    )
    assert found == size
