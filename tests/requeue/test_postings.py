"""The index in C against dicts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_alloc._core import Postings

NAMES = st.sampled_from([f"pod-{number}" for number in range(6)])
KEYS = st.lists(st.sampled_from(["a", "ä", "b", "a key that is too long to be kept in place", ""]), unique=True)
#: Keys of an item's own, and shared ones; few of the latter, so that items often share all of them.
POSTED = st.tuples(KEYS, st.sampled_from([(), ("x",), ("x", "y"), ("y",)]))
STEPS = st.lists(st.tuples(NAMES, st.none() | POSTED), max_size=40)


@given(STEPS, st.lists(st.sampled_from(["a", "ä", "", "x", "y"]), unique=True))
def test_finds_what_was_put_and_not_removed(
    steps: list[tuple[str, tuple[list[str], tuple[str, ...]] | None]], asked: list[str]
) -> None:
    postings = Postings()
    expected: dict[str, list[str]] = {}
    for name, keys in steps:
        if keys is None:
            assert postings.remove(name) is (expected.pop(name, None) is not None)
        else:
            own, shared = keys
            expected[name] = [*own, *shared]
            postings.put(name, (name, expected[name]), own, shared)
        assert postings.find(asked) == [(name, keys) for name, keys in expected.items() if {*asked} & {*keys}]
        assert postings.names() == list(expected)
    assert len(postings) == len(expected)
    for name in ("pod-0", "pod-1"):
        assert (name in postings) is (name in expected)
        assert postings.get(name) == ((name, expected[name]) if name in expected else None)
    for key in asked:
        assert postings.has(key) is any(key in keys for keys in expected.values())


def crowd(size: int) -> list[tuple[str, list[str], tuple[str, ...]]]:
    """Names with a key of their own and one that ten of them share."""
    return [(f"pod-{n}", [f"claim-{n}"], ("all", f"shape-{n // 10}")) for n in range(size)]


def check(postings: Postings, there: Sequence[tuple[str, list[str], tuple[str, ...]]], gone: Sequence[str]) -> None:
    """Every item is found by its name and by its own key, and all by what they share; none that is gone is."""
    assert postings.names() == postings.find(["all"]) == [name for name, _, _ in there]
    for name, own, shared in there:
        assert postings.find(own) == [name] == [postings.get(name)]
        assert name in postings.find(shared[1:])
    assert not any(name in postings or postings.has(name.replace("pod", "claim")) for name in gone)


@pytest.mark.parametrize("seed", range(3))
def test_many_come_and_go(seed: int) -> None:
    """Enough for the tables to grow, and for strings to be moved up when others before them go."""
    random = Random(seed)
    postings = Postings()
    there: dict[str, tuple[str, list[str], tuple[str, ...]]] = {}
    everybody = crowd(600)
    for _ in range(6):
        for item in random.sample(everybody, 300):
            there.setdefault(item[0], item)
            postings.put(item[0], item[0], *item[1:])
        for name in random.sample(list(there), len(there) * 2 // 3):
            del there[name]
            assert postings.remove(name)
        check(postings, list(there.values()), [name for name, _, _ in everybody if name not in there])


def test_keeps_nothing_of_what_is_gone() -> None:
    class Thing:
        pass

    thing, key, shared = Thing(), "a key of its own"[:-1] + "!", ("x", "y")
    before = sys.getrefcount(thing), sys.getrefcount(key), sys.getrefcount(shared)
    postings = Postings()
    for _ in range(3):
        postings.put("a", thing, [key], shared)
        postings.put("b", thing, [], shared)
        postings.put("a", thing, [key, "another"], ("x",))
        assert postings.remove("a")
        assert postings.has("x")  # that of the other
        assert postings.remove("b")
        assert not postings.has("x")
    assert (sys.getrefcount(thing), sys.getrefcount(key), sys.getrefcount(shared)) == before
