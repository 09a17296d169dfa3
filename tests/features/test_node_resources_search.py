"""`node_resources="search"` against its definition: the first of all answers that the node is enough for."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_alloc.api import Device
from tests.features.building import slice_of
from tests.features.scenes import a_pod, asking, container, devices, gpu_class, node, pending, scene

amounts = st.one_of(st.none(), st.integers(1, 6))


@settings(max_examples=150, deadline=None)
@given(
    published=st.lists(st.tuples(amounts, amounts, st.booleans()), min_size=1, max_size=6),
    wanted=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    has=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    own=st.integers(0, 3),
)
def test_the_first_answer_that_suffices(
    published: list[tuple[int | None, int | None, bool]], wanted: list[int], has: tuple[int, int], own: int
) -> None:
    objects: list[Any] = [gpu_class(), node("n1", {"cpu": str(has[0]), "memory": str(has[1])})]
    described = []
    for index, (cpu, memory, as_overhead) in enumerate(published):
        resources: dict[str, Any] = {}
        if cpu is not None:
            resources["cpu"] = (
                {"overhead": {"perPod": str(cpu)}} if as_overhead else {"mapping": {"deviceMultiplier": str(cpu)}}
            )
        if memory is not None:
            resources["memory"] = {"overhead": {"perContainer": str(memory)}}
        described.append({"name": f"d{index}", "nodeAllocatableResources": resources})
    objects.append(slice_of(*(Device.from_dict(each) for each in described), pool="n1", node="n1"))
    claims = {}
    for number, count in enumerate(wanted):
        objects.append(pending(f"c{number}", asking(count)))
        claims[f"x{number}"] = f"c{number}"
    pod = a_pod("p", container("main", {"cpu": str(own)}, *claims), claims=claims)
    _, allocator = scene(objects)
    plan = allocator.allocate_pod(pod, node_resources="search")
    assert (plan and devices(plan)) == _first(published, wanted, has, own)


def _first(
    published: list[tuple[int | None, int | None, bool]], wanted: list[int], has: tuple[int, int], own: int
) -> list[str] | None:
    """The first of all choices in the order of the search: claim by claim, devices in increasing order."""

    def choices(left: list[int], counts: list[int]) -> Any:
        if not counts:
            yield []
            return
        for chosen in combinations(left, counts[0]):
            for rest in choices([each for each in left if each not in chosen], counts[1:]):
                yield [*chosen, *rest]

    for answer in choices(list(range(len(published))), wanted):
        cpu = own + sum(published[each][0] or 0 for each in answer)
        memory = sum(published[each][1] or 0 for each in answer)
        # Own requests are looked at in any case, and all of them fit by themselves or the node is out.
        if cpu <= has[0] and memory <= has[1]:
            return [f"d{each}" for each in answer]
    return None
