"""Many threads on one cluster and on its forks: each gets the answers that it would get alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import dra_alloc as dra
from bench import workloads
from dra_alloc.api import ResourceClaim

NODES = 24
THREADS = 8


def world() -> tuple[dra.Cluster, list[ResourceClaim]]:
    """A fleet, and claims of several kinds."""
    fleet = workloads.fleet(NODES)
    claims = [
        *fleet.claims,
        workloads.claim("gpu", [workloads.request("gpu", "gpu")]),
        workloads.claim("nics", [workloads.request("nic", "nic", 3)]),
        workloads.claim(
            "indexed", [workloads.request("gpu", "gpu", 2, 'device.attributes["gpu.example.com"].index > 3')]
        ),
        workloads.claim("apart", [workloads.request("gpu", "gpu", 4)], [workloads.match(workloads.ROOT)]),
    ]
    return dra.Cluster.from_objects(fleet.objects), claims


def test_threads_share_one_allocator() -> None:
    cluster, claims = world()
    alone = dra.Allocator(cluster.fork())
    expected = [alone.feasible_nodes(claim) for claim in claims]
    results = {
        (number, node): alone.allocate(claim, node=node)
        for number, claim in enumerate(claims)
        for node in cluster.node_names()[:6]
    }
    # A cluster as read, so that all threads find nothing compiled yet.
    fresh = dra.Cluster.from_objects(list(cluster))
    shared = dra.Allocator(fresh)
    start = Barrier(THREADS)

    def work(seed: int) -> None:
        random = Random(seed)
        start.wait()
        for _ in range(40):
            number = random.randrange(len(claims))
            if random.random() < 0.5:
                parallel = random.choice([1, 2])
                assert shared.feasible_nodes(claims[number], parallel=parallel) == expected[number]
            else:
                node = random.choice(fresh.node_names()[:6])
                assert shared.allocate(claims[number], node=node) == results[number, node]

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, seed) for seed in range(THREADS)]:
            done.result()


def play(cluster: dra.Cluster, claims: list[ResourceClaim], seed: int) -> list[object]:
    """A life of a cluster that depends on the seed alone, and everything that was seen in it."""
    random = Random(seed)
    allocator = dra.Allocator(cluster)
    seen: list[object] = []
    for turn in range(25):
        claim = workloads.claim(f"c-{seed}-{turn}", claims[random.randrange(len(claims))].spec.devices.requests)
        nodes = allocator.feasible_nodes(claim)
        seen.append(tuple(nodes))
        if nodes:
            found = allocator.allocate(claim, node=random.choice(nodes))
            assert found is not None
            cluster.commit(claim, found[0])
            seen.append(found[0])
        match random.randrange(5):
            case 0:
                cluster.release(random.choice(cluster.claims()))
            case 1:
                name = random.choice(cluster.slices()).metadata.name
                kept = cluster.get("ResourceSlice", name)
                cluster.delete("ResourceSlice", name)
                seen.append(tuple(allocator.feasible_nodes(claims[0])))
                cluster.upsert(kept)
            case 2:
                cluster = cluster.fork()
                allocator = dra.Allocator(cluster)
    return seen


def test_forks_live_apart_while_others_read_their_original() -> None:
    cluster, claims = world()
    expected = [play(cluster.fork(), claims, seed) for seed in range(THREADS)]
    before = list(cluster)
    fresh = dra.Cluster.from_objects(before)
    original = dra.Allocator(fresh)
    answers = [original.feasible_nodes(claim) for claim in claims]
    forks = [fresh.fork() for _ in range(THREADS)]
    start = Barrier(2 * THREADS)

    def live(seed: int) -> None:
        start.wait()
        assert play(forks[seed], claims, seed) == expected[seed]

    def ask(seed: int) -> None:
        start.wait()
        for turn in range(30):
            number = (seed + turn) % len(claims)
            assert original.feasible_nodes(claims[number]) == answers[number]
            assert dra.Allocator(fresh).feasible_nodes(claims[number]) == answers[number]
            assert dra.Allocator(fresh.fork()).feasible_nodes(claims[number]) == answers[number]

    with ThreadPoolExecutor(2 * THREADS) as pool:
        for done in [pool.submit(work, seed) for seed in range(THREADS) for work in (live, ask)]:
            done.result()
    assert list(fresh) == before
