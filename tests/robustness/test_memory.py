"""Memory that is used is given back: nothing grows with the number of questions."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

needs_glibc = pytest.mark.skipif(
    not (sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallinfo2")),
    reason="what is allocated outside of Python objects is told by glibc 2.33 or newer",
)
#: A sanitizer brings an allocator of its own, which keeps what was freed and tells glibc nothing.
pytestmark = [pytest.mark.slow, pytest.mark.plain_build, needs_glibc]

_PRELUDE = """
import ctypes, gc, itertools, sys
sys.path.insert(0, {root!r})
import dra_alloc as dra
from bench import workloads

libc = ctypes.CDLL(None)

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]

libc.mallinfo2.restype = Info

def held():
    gc.collect()
    info = libc.mallinfo2()
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd

def grown(turn, warm, rounds):
    for _ in range(warm):
        turn()
    blocks, size = held()
    for _ in range(rounds):
        turn()
    now = held()
    print(now[0] - blocks, now[1] - size)
"""


class Growth(NamedTuple):
    """blocks: Python's, each an object or its content of up to 512 bytes. bytes: all that malloc gave, C++ included."""

    blocks: int
    bytes: int


def growth(program: str) -> Growth:
    """What a process holds more after many turns than after the warm-up: counted, so the least leak is a number."""
    code = _PRELUDE.format(root=str(ROOT)) + program
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return Growth(*map(int, done.stdout.split()))


#: What may grow whatever the number of turns: tables of strings, free lists, the rounding of containers.
SLACK = Growth(blocks=2_000, bytes=64 << 10)


def assert_nothing_stays(found: Growth) -> None:
    assert found.blocks < SLACK.blocks, found
    assert found.bytes < SLACK.bytes, found


@pytest.mark.parametrize(
    ("leak", "seen"),
    [
        ("kept.append(object())", lambda found: found.blocks > 9_000),
        ("kept.append(bytearray(600))", lambda found: found.bytes > 9_000 * 600),
        ("libc.malloc(8)", lambda found: found.bytes > 9_000 * 8),
    ],
)
def test_a_leak_of_the_least_thing_is_seen(leak: str, seen: Callable[[Growth], bool]) -> None:
    found = growth(f"""
kept = []
def turn():
    for _ in range(1000):
        {leak}
grown(turn, 1, 10)
""")
    assert seen(found), found
    with pytest.raises(AssertionError):
        assert_nothing_stays(found)


def test_a_hundred_thousand_allocations_leave_nothing_behind() -> None:
    """Each allocation is committed and released, as a scheduler does; new claims each time."""
    found = growth(
        """
work = workloads.fleet(8)
cluster = dra.Cluster.from_objects(work.objects)
allocator = dra.Allocator(cluster)
numbers = itertools.count()
node = cluster.node_names()[0]

def turn():
    for _ in range(1000):
        claim = workloads.claim(f"c-{next(numbers)}", [workloads.request("gpu", "gpu")])
        (found,) = allocator.allocate(claim, node=node)
        cluster.commit(claim, found)
        cluster.release(claim)
        cluster.delete("ResourceClaim", claim.metadata.key)

# The log of changes is bounded; it is full after the warm-up.
grown(turn, 12, 100)
"""
    )
    assert_nothing_stays(found)


def test_searches_of_many_kinds_leave_nothing_behind() -> None:
    """Questions easy and hard, errors, explanations, and forks that are thrown away."""
    found = growth(
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
                selector = f'device.attributes["gpu.example.com"].index == {number % 20}'
                odd = workloads.claim("odd", [workloads.request("gpu", "gpu", 1, selector)])
                try:
                    allocator.feasible_nodes(odd)
                except dra.AllocationError as error:
                    assert error.kind == "cel"
                allocator.explain(work.claims, node=work.node).text()
                trial.delete("ResourceSlice", trial.slices()[0].metadata.name)
                allocator.feasible_nodes(work.claims)

# Programs of selectors are kept, up to a bound; there are twenty here.
grown(turn, 2, 40)
"""
    )
    assert_nothing_stays(found)


def test_what_is_read_and_thrown_away_leaves_nothing_behind() -> None:
    found = growth(
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
    assert_nothing_stays(found)
