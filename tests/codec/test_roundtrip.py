"""What is written can be read again, and is the same: every class, every version, every way of spelling."""

from __future__ import annotations

import io
import json
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_alloc import api
from dra_alloc.api import Model
from dra_alloc.codec import decode, dump_yaml, encode, load
from dra_alloc.codec.schema import snake
from dra_alloc.codec.versions import KINDS, Shape
from tests.codec.strategies import objects

_VERSIONS = [(kind.cls, version, shape) for kind in KINDS.values() for version, shape in kind.versions.items()]
_LENIENT = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=40, deadline=None
)


@pytest.mark.parametrize(("cls", "version", "shape"), _VERSIONS, ids=lambda part: getattr(part, "__name__", str(part)))
@_LENIENT
@given(st.data())
def test_every_version_holds_what_it_can_hold(
    cls: type[Model], version: str, shape: Shape, data: st.DataObject
) -> None:
    obj = data.draw(objects(cls, shape))
    written = encode(obj, version)
    again = decode(orjson.loads(orjson.dumps(written)), strict=True)
    assert again == obj
    assert repr(again) == repr(obj), "equal amounts in another format"
    assert encode(again, version) == written


@_LENIENT
@given(objects(api.ResourceSlice))
def test_yaml_and_json_and_snake_case_say_the_same(obj: Model) -> None:
    written = encode(obj)
    texts = [json.dumps(written), json.dumps(written, indent=2), dump_yaml(written)]
    for text in texts:
        (again,) = load(io.StringIO(text), strict=True)
        assert again == obj
    assert decode(_snake(written), strict=True) == obj


def _snake(written: dict[str, Any]) -> dict[str, Any]:
    """Keys of the object and its metadata in snake_case, and None for what is absent, as older clients give them."""
    metadata = {snake(key): entry for key, entry in written.get("metadata", {}).items()}
    outer = {snake(key): entry for key, entry in written.items()}
    return {**outer, "metadata": {"generate_name": None, **metadata}, "spec": {"node_name": None, **written["spec"]}}


@given(objects(api.Device))
@_LENIENT
def test_versions_agree_with_each_other(device: api.Device) -> None:
    """Through v1beta1 and back to v1 nothing is lost."""
    obj = api.ResourceSlice(spec=api.ResourceSliceSpec(driver="d", devices=(device,)))
    beta = encode(obj, "v1beta1")
    assert set(beta["spec"]["devices"][0]) == {"name", "basic"}
    assert encode(decode(beta)) == encode(obj)
