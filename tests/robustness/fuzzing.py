"""Manifests that went wrong: random changes of objects as they are read from YAML, and of the text itself."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "real"

#: Values that some field or other does not expect.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            "-1",
            "1e999",
            "9" * 60,
            "1Ki",
            "a/b/c",
            "a/",
            "/",
            "device.driver",
            "1 +",
            "0003:00:02.0",
            "\x00",
            "\ud800",
        ]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.none(), min_size=1, max_size=3),
    st.dictionaries(st.text(max_size=3), st.none(), min_size=1, max_size=2),
)

#: Anything that JSON can say, and keys that JSON cannot.
TREES = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(["apiVersion", "kind", "metadata", "name", "spec", "status", "items", "devices"]),
                st.text(max_size=5),
                st.integers(-1, 1),
                st.none(),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)

KINDS = [
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("resource.k8s.io/v1beta2", "ResourceClaim"),
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplate"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1alpha3", "DeviceTaintRule"),
    ("v1", "Pod"),
    ("v1", "Node"),
    ("v1", "List"),
]


def manifests() -> list[Path]:
    """Files to begin with: the examples, the reports of bugs, and real manifests where they are at hand."""
    found = [
        *ROOT.glob("examples/**/*.yaml"),
        *ROOT.glob("tests/data/bugs/*.yaml"),
        *(path for path in REAL.glob("*") if path.suffix in (".yaml", ".json")),
    ]
    return sorted(path for path in found if path.stat().st_size < 30_000)


def documents(path: Path) -> list[Any]:
    """The documents of a file; none if it is no YAML."""
    try:
        return [item for item in yaml.safe_load_all(path.read_text(encoding="utf-8")) if item is not None]
    except (yaml.YAMLError, ValueError):
        return []


@st.composite
def changed_documents(draw: st.DrawFn, originals: list[list[Any]]) -> list[Any]:
    """The documents of one file with one to four changes."""
    found = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(found))
        holder, key = draw(st.sampled_from(places))
        _change(draw, holder, key, found)
    return found


def _change(draw: st.DrawFn, holder: Any, key: Any, whole: list[Any]) -> None:
    value = holder[key]
    match draw(st.integers(0, 6)):
        case 0:
            holder[key] = draw(ODD)
        case 1:
            holder[key] = [value]
        case 2:
            holder[key] = {draw(st.text(max_size=5)): value}
        case 3 if isinstance(holder, dict) and len(holder) > 1:
            del holder[key]
        case 4 if isinstance(holder, dict):
            holder[draw(st.text(max_size=8))] = holder.pop(key)
        case 5 if isinstance(holder, list):
            holder.extend([value] * draw(st.sampled_from([1, 2, 40, 300])))
        case _:
            # A part of another place: right in itself, wrong here.
            other, place = draw(st.sampled_from(list(_places(whole))))
            holder[key] = copy.deepcopy(other[place])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


@st.composite
def changed_bytes(draw: st.DrawFn, originals: list[bytes]) -> bytes:
    """The content of one file with one to six bytes or stretches changed."""
    content = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(0, len(content) - 1)))
        match draw(st.integers(0, 3)):
            case 0:
                content[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
            case 1:
                del content[place : place + draw(st.integers(1, 30))]
            case 2:
                content[place:place] = draw(
                    st.sampled_from([b"\n", b"  ", b"- ", b": ", b"&a ", b"*a", b"{", b"'", b"\t"])
                )
            case _:
                content[place:place] = content[place : place + draw(st.integers(1, 60))]
    return bytes(content)
