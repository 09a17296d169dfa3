"""The pytest plugin, found by pytest when the package is installed.

It costs a test run that does not use it nothing: the library is imported by the first test that asks for a fixture.
docs/testing.md shows a complete example.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dra_alloc.errors import MissingExtra

try:
    import pytest
except ModuleNotFoundError:
    raise MissingExtra(
        'the fixtures need the package pytest; install it with: pip install "dra-alloc[testing]"'
    ) from None

if TYPE_CHECKING:
    from dra_alloc import Allocator, Cluster, Features
    from dra_alloc.testing.kit import Kit

__all__ = [
    "assert_allocates",
    "assert_not_allocates",
    "dra_allocator",
    "dra_cluster",
    "dra_kit",
]

#: Files that belong to a test module or folder, by their suffix.
_SUFFIXES = (".yaml", ".yml", ".json")

#: Time of allocations in tests, so that results are the same in every run.
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

_MARKER = (
    "dra_cluster(*files, features=None, version=None): manifests of the fixture dra_cluster, relative to the test's "
    "file; features: dra_alloc.Features, 'all' or 'none'; version: gates as this Kubernetes version has them."
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(scope="session")
def _dra_bases() -> dict[tuple[Path, ...], Cluster]:
    """Clusters as read, by their files: each test gets a fork, so files are read and compiled once a session."""
    return {}


@pytest.fixture
def dra_cluster(request: pytest.FixtureRequest, _dra_bases: dict[tuple[Path, ...], Cluster]) -> Cluster:
    """A cluster of the files next to the test, for this test alone: it may change it.

    The files are those that the marker `dra_cluster` names (folders stand for the manifests in them). Without it they
    are those with the module's name: `test_gpu.yaml` (.yml, .json) and the folder `test_gpu/` beside `test_gpu.py`.
    """
    files = _files(request)
    base = _dra_bases.get(files)
    if base is None:
        from dra_alloc import Cluster, DecodeError, load

        try:
            loaded = load(*map(str, files))
        except DecodeError as error:
            pytest.fail(f"dra_cluster: {error}", pytrace=False)
        for warning in loaded.warnings:
            warnings.warn(f"dra_cluster: {warning}", stacklevel=1)
        base = _dra_bases[files] = Cluster.from_objects(loaded)
    return base.fork()


@pytest.fixture
def dra_allocator(request: pytest.FixtureRequest, dra_cluster: Cluster) -> Allocator:
    """An allocator over `dra_cluster` whose share IDs, times and made names are the same in every run.

    Its features are those of the marker `dra_cluster`, by default the released Kubernetes 1.37.
    """
    from dra_alloc import Allocator

    shares, suffixes = itertools.count(1), itertools.count(1)
    return Allocator(
        dra_cluster,
        features=_features(request),
        share_ids=lambda: f"00000000-0000-4000-8000-{next(shares):012}",
        clock=lambda: _EPOCH,
        suffixes=lambda: f"{next(suffixes):05}",
    )


@pytest.fixture
def dra_kit(dra_allocator: Allocator) -> Kit:
    """The assertions over `dra_allocator`, as an object."""
    from dra_alloc.testing.kit import Kit

    return Kit(dra_allocator)


@pytest.fixture
def assert_allocates(dra_kit: Kit) -> Callable[..., object]:
    """`assert_allocates(claims, node=…, devices=…)`: see `dra_alloc.testing.kit.Kit.assert_allocates`."""
    return dra_kit.assert_allocates


@pytest.fixture
def assert_not_allocates(dra_kit: Kit) -> Callable[..., object]:
    """`assert_not_allocates(claims, node=…, reason=…)`: see `dra_alloc.testing.kit.Kit.assert_not_allocates`."""
    return dra_kit.assert_not_allocates


def _files(request: pytest.FixtureRequest) -> tuple[Path, ...]:
    module = request.path
    named = next((marker.args for marker in request.node.iter_markers("dra_cluster") if marker.args), ())
    if named:
        found = tuple(module.parent / str(name) for name in named)
    else:
        own = (*(module.with_suffix(suffix) for suffix in _SUFFIXES), module.with_suffix(""))
        found = tuple(path for path in own if path.exists())
    missing = [path for path in found if not path.exists()]
    if missing:
        pytest.fail(f"dra_cluster: there is no {' or '.join(map(str, missing))}", pytrace=False)
    if not found:
        pytest.fail(
            f"dra_cluster: no files for this test; write {module.with_suffix('.yaml').name} beside {module.name}, "
            'or name files with @pytest.mark.dra_cluster("cluster.yaml")',
            pytrace=False,
        )
    return found


def _features(request: pytest.FixtureRequest) -> Features:
    from dra_alloc import Features

    none: Mapping[str, object] = {}
    chosen = next((marker.kwargs for marker in request.node.iter_markers("dra_cluster") if marker.kwargs), none)
    unknown = ", ".join(name for name in chosen if name not in ("features", "version"))
    if unknown:
        pytest.fail(f"dra_cluster: unknown argument {unknown}; there are features and version", pytrace=False)
    features, version = chosen.get("features"), chosen.get("version")
    if features is not None and version is not None:
        pytest.fail("dra_cluster: features and version exclude each other", pytrace=False)
    if version is not None:
        try:
            return Features.for_version(str(version))
        except ValueError as error:
            pytest.fail(f"dra_cluster: {error}", pytrace=False)
    match features:
        case None:
            return Features()
        case "all":
            return Features.all()
        case "none":
            return Features.none()
        case Features():
            return features
    pytest.fail(f"dra_cluster: features are dra_alloc.Features, 'all' or 'none', not {features!r}", pytrace=False)
