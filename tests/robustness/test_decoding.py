"""Whatever is read: it is understood, or refused with an exception of the library, and so is all that follows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_alloc as dra
from dra_alloc.api import Node, ObjectMeta
from dra_alloc.lint import check
from tests.robustness.fuzzing import KINDS, REAL, TREES, changed_bytes, changed_documents, documents, manifests

FILES = manifests()
DOCUMENTS = [found for path in FILES if (found := documents(path))]
CONTENTS = [path.read_bytes() for path in FILES]

EXAMPLES = 5 * (settings.default or settings()).max_examples


def use(objects: Iterable[Any]) -> None:
    """Everything that a program does with objects that it has read."""
    found = list(objects)
    for item in found:
        dra.validate(item)
        dra.warnings(item)
        again = dra.decode(dra.encode(item))
        assert dra.encode(again) == dra.encode(item)
    if any(not (item.metadata.name or item.metadata.generate_name) for item in found):
        with pytest.raises(dra.DraError, match="name is missing"):
            dra.Cluster.from_objects(found)
        found = [item for item in found if item.metadata.name]
    cluster = dra.Cluster.from_objects([Node(metadata=ObjectMeta(name="node-1")), *found])
    allocator = dra.Allocator(cluster, features=dra.Features.all(), budget=dra.Budget(max_steps=20_000))
    for claim in cluster.claims()[:4]:
        with_error(lambda claim=claim: allocator.feasible_nodes(claim))
        with_error(lambda claim=claim: allocator.explain(claim, node="node-1").text())
    for pod in cluster.pods()[:4]:
        with_error(lambda pod=pod: allocator.feasible_nodes(pod=pod))
        with_error(lambda pod=pod: allocator.explain(pod=pod).text())


def with_error(question: Callable[[], object]) -> None:
    with suppress(dra.DraError):
        question()


def read(source: Any) -> None:
    try:
        found = dra.load(source)
    except dra.DecodeError:
        return
    use(found)


@settings(max_examples=EXAMPLES)
@given(changed_documents(DOCUMENTS))
def test_changed_objects_are_read_or_refused(changed: list[Any]) -> None:
    read(changed)


@settings(max_examples=EXAMPLES)
@given(changed_bytes(CONTENTS))
def test_changed_text_is_read_or_refused(content: bytes) -> None:
    read(io.BytesIO(content))


@given(TREES)
def test_any_tree_is_read_or_refused(tree: Any) -> None:
    read(tree if isinstance(tree, dict) else [tree])


@given(st.sampled_from(KINDS), TREES, TREES)
def test_any_tree_with_a_kind_is_read_or_refused(kind: tuple[str, str], spec: Any, other: Any) -> None:
    version, name = kind
    read(
        {"apiVersion": version, "kind": name, "metadata": {"name": "n"}, "spec": spec, "status": other, "items": other}
    )


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read(io.BytesIO(content))


@given(changed_documents(DOCUMENTS))
def test_changed_objects_are_linted_or_refused(changed: list[Any]) -> None:
    try:
        found = dra.load(changed)
    except dra.DecodeError:
        return
    for finding in check(found):
        assert finding.message


def test_real_manifests_are_among_the_files() -> None:
    if not REAL.is_dir():
        pytest.skip("the folder ../shared/real of manifests of others is not there")
    assert any(path.parent == REAL for path in FILES)
