"""Memory that is used is given back: nothing grows with the number of questions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

_PRELUDE = """
import gc, itertools, resource, sys, tracemalloc
sys.path.insert(0, {root!r})
import dra_alloc as dra
from bench import workloads

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def grown(turn, warm, rounds):
    # Bytes that Python objects, and the whole process, grow by after a warm-up.
    for _ in range(warm):
        turn()
    gc.collect()
    tracemalloc.start()
    turn()
    gc.collect()
    before, resident = tracemalloc.get_traced_memory()[0], rss()
    tracemalloc.stop()
    for _ in range(rounds):
        turn()
    gc.collect()
    grown_rss = rss() - resident
    tracemalloc.start()
    turn()
    gc.collect()
    objects = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(objects, grown_rss)
"""


def growth(program: str) -> tuple[int, int]:
    """Bytes that one more turn keeps in Python objects, compared with a first one, and growth of the whole process."""
    code = _PRELUDE.format(root=str(ROOT)) + program
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    objects, resident = map(int, done.stdout.split())
    return objects, resident


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")


@needs_proc
def test_a_hundred_thousand_allocations_leave_nothing_behind() -> None:
    """Each allocation is committed and released, as a scheduler does; new claims each time."""
    objects, resident = growth(
        """
work = workloads.fleet(8)
cluster = dra.Cluster.from_objects(work.objects)
allocator = dra.Allocator(cluster)
numbers = itertools.count()
node = cluster.node_names()[0]
spec = work.claims[0].spec.devices

def turn():
    for _ in range(1000):
        claim = workloads.claim(f"c-{next(numbers)}", [workloads.request("gpu", "gpu")])
        (found,) = allocator.allocate(claim, node=node)
        cluster.commit(claim, found)
        cluster.release(claim)
        cluster.delete("ResourceClaim", claim.metadata.key)

grown(turn, 12, 100)
"""
    )
    # The history of changes and the log are bounded; they are full after the warm-up.
    assert objects < 256 << 10, objects
    assert resident < 16 << 20, resident


@needs_proc
def test_searches_of_many_kinds_leave_nothing_behind() -> None:
    """Questions that differ each time, hard ones, errors, explanations and forks that are thrown away."""
    objects, resident = growth(
        """
fleet, trap, mig = workloads.fleet(6), workloads.trap(12), workloads.mig(2)
worlds = [(dra.Cluster.from_objects(work.objects), work) for work in (fleet, trap, mig)]
numbers = itertools.count()

def turn():
    for _ in range(40):
        number = next(numbers)
        for cluster, work in worlds:
            with cluster.fork() as trial:
                allocator = dra.Allocator(trial)
                allocator.feasible_nodes(work.claims)
                allocator.allocate(work.claims, node=work.node)
                selector = f'device.attributes["gpu.example.com"].index == {number % 5000}'
                odd = workloads.claim("odd", [workloads.request("gpu", "gpu", 1, selector)])
                try:
                    allocator.feasible_nodes(odd)
                except dra.AllocationError as error:
                    assert error.kind == "cel"
                allocator.explain(work.claims, node=work.node).text()
                trial.delete("ResourceSlice", trial.slices()[0].metadata.name)
                allocator.feasible_nodes(work.claims)

grown(turn, 12, 40)
"""
    )
    assert objects < 1 << 20, objects
    assert resident < 24 << 20, resident


@needs_proc
def test_what_is_read_and_thrown_away_leaves_nothing_behind() -> None:
    objects, resident = growth(
        """
import io
paths = sorted(str(path) for path in __import__("pathlib").Path(sys.path[0], "examples").glob("*/*.yaml"))[:20]

def turn():
    for path in paths:
        for item in dra.load(path):
            dra.validate(item)
            dra.encode(item)
        try:
            dra.load(io.StringIO(f"kind: ResourceClaim\\napiVersion: resource.k8s.io/v1\\nspec: {path}"))
        except dra.DecodeError:
            pass

grown(turn, 4, 25)
"""
    )
    assert objects < 256 << 10, objects
    assert resident < 16 << 20, resident
