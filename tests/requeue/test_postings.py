"""The index in C against dicts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dra_alloc._core import Postings

NAMES = st.sampled_from([f"pod-{number}" for number in range(6)])
KEYS = st.lists(st.sampled_from(["a", "ä", "b", "a key that is too long to be kept in place", ""]), unique=True)
STEPS = st.lists(st.tuples(NAMES, st.none() | KEYS), max_size=40)


@given(STEPS, KEYS)
def test_finds_what_was_put_and_not_removed(steps: list[tuple[str, list[str] | None]], asked: list[str]) -> None:
    postings = Postings()
    expected: dict[str, list[str]] = {}
    for name, keys in steps:
        if keys is None:
            assert postings.remove(name) is (expected.pop(name, None) is not None)
        else:
            postings.put(name, (name, keys), keys)
            expected[name] = keys
        assert postings.find(asked) == [(name, keys) for name, keys in expected.items() if {*asked} & {*keys}]
    assert postings.names() == list(expected)
    assert len(postings) == len(expected)
    for name in ("pod-0", "pod-1"):
        assert (name in postings) is (name in expected)
        assert postings.get(name) == ((name, expected[name]) if name in expected else None)
    for key in asked:
        assert postings.has(key) is any(key in keys for keys in expected.values())
