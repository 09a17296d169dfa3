"""Pods arrive, are placed, end, and wake others: how often each is tried, with the requeue index and without it.

    python examples/simulate/simulate.py [PODS NODES]

Time is simulated: a pod comes every three seconds and runs for a minute. "Without" is what the hints of a scheduler
come to for devices: each claim that is given back wakes every pod that waits.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

import dra_alloc as dra
from dra_alloc import api

HERE = Path(__file__).resolve().parent

#: What pods ask for, in turn, and how long each runs (seconds).
KINDS = ("t4", "a10", "t4", "h100", "nic", "l40s")
RUNTIME = 60.0
#: Seconds between arrivals.
INTERVAL = 3.0


class Everyone:
    """In place of the index: wakes every pod whenever a claim is given back."""

    def __init__(self) -> None:
        self._pods: dict[str, None] = {}

    def add(self, pod: Any, reason: Any = None) -> None:
        self._pods[pod.metadata.key] = None

    def remove(self, pod: Any) -> None:
        del self._pods[pod.metadata.key]

    def affected(self, event: dra.Event) -> list[str]:
        before, after = event.old, event.object
        given_back = (
            event.kind == "ResourceClaim" and before is not None and before.status and not after.status.allocation
        )
        return list(self._pods) if given_back else []


@attrs.frozen
class Outcome:
    """attempts: by pod. waited: seconds from arrival to place, all pods together. ended: when the last pod ended."""

    attempts: Counter[str]
    waited: float
    ended: float


def siblings(objects: list[Any], number: int) -> list[Any]:
    """The objects, with the node and its slices once for each number."""
    found = [item for item in objects if isinstance(item, (api.DeviceClass, api.ResourceClaimTemplate))]
    for place in range(1, number + 1):
        for item in objects:
            name = item.metadata.name.replace("node-1", f"node-{place}")
            renamed = attrs.evolve(item, metadata=attrs.evolve(item.metadata, name=name))
            if isinstance(item, api.Node):
                found.append(renamed)
            elif isinstance(item, api.ResourceSlice):
                pool = attrs.evolve(item.spec.pool, name=item.spec.pool.name.replace("node-1", f"node-{place}"))
                found.append(attrs.evolve(renamed, spec=attrs.evolve(item.spec, pool=pool, node_name=f"node-{place}")))
    return found


def simulate(pods: int, nodes: int, *, with_index: bool) -> Outcome:
    """Let pods come and go until all have run."""
    cluster = dra.Cluster.from_objects(siblings(list(dra.load(HERE / "cluster.yaml", HERE / "templates.yaml")), nodes))
    allocator = dra.Allocator(cluster)
    now = 0.0
    index = dra.RequeueIndex(cluster) if with_index else Everyone()
    queue = dra.PendingQueue(index, clock=lambda: now)
    cluster.subscribe(queue)
    running: list[tuple[float, str]] = []  # end, claim
    arrivals = [(number * INTERVAL, f"pod-{number}", KINDS[number % len(KINDS)]) for number in range(pods)]
    arrivals.reverse()
    attempts: Counter[str] = Counter()
    waited = 0.0
    ended = 0.0
    while arrivals or running or len(queue):
        while running and running[0][0] <= now:
            cluster.release(heapq.heappop(running)[1])
            ended = now
        while arrivals and arrivals[-1][0] <= now:
            _, name, kind = arrivals.pop()
            template = cluster.get("ResourceClaimTemplate", f"default/{kind}")
            cluster.upsert(
                api.ResourceClaim(metadata=api.ObjectMeta(name=name, namespace="default"), spec=template.spec.spec)
            )
            entry = api.PodResourceClaim(name="devices", resource_claim_name=name)
            queue.add(
                api.Pod(
                    metadata=api.ObjectMeta(name=name, namespace="default"), spec=api.PodSpec(resource_claims=(entry,))
                )
            )
        while (pod := queue.pop()) is not None:
            key = pod.metadata.key
            attempts[key] += 1
            free = allocator.feasible_nodes(key, limit=1)
            if not free:
                queue.failed(pod)
                continue
            results = allocator.allocate(key, free[0])
            assert results is not None
            cluster.commit(key, results[0])
            queue.done(pod)
            heapq.heappush(running, (now + RUNTIME, key))
            waited += now - INTERVAL * int(pod.metadata.name.removeprefix("pod-"))
        times = [running[0][0]] if running else []
        times += [arrivals[-1][0]] if arrivals else []
        due = queue.next_time()
        times += [] if due is None else [due]
        now = max(now, min(times, default=now))
    return Outcome(attempts, waited, ended)


def main() -> None:
    """Run both and compare."""
    pods, nodes = [int(text) for text in sys.argv[1:]] or [120, 3]
    print(f"{pods} pods on {nodes} nodes\n")
    print(f"{'':15}{'attempts':>10}{'a pod':>8}{'most':>6}{'waited':>10}{'ended':>8}")
    for name, with_index in (("with index", True), ("without", False)):
        found = simulate(pods, nodes, with_index=with_index)
        total, most = found.attempts.total(), max(found.attempts.values())
        print(f"{name:15}{total:>10}{total / pods:>8.2f}{most:>6}{found.waited / pods:>9.1f}s{found.ended:>7.0f}s")


if __name__ == "__main__":
    main()
