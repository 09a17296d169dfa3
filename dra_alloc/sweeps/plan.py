"""Plans of sweeps, as files: a cluster, a workload, and what varies. docs/sweep.md shows the form.

The scenarios are all combinations of one setting of each axis, the last axis varying fastest.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import attrs

from dra_alloc.api import Node, Pod, ResourceClaim, ResourceSlice
from dra_alloc.cluster import Cluster
from dra_alloc.codec import load
from dra_alloc.codec.yamltext import documents
from dra_alloc.errors import DecodeError
from dra_alloc.gates import Features
from dra_alloc.sweeps.model import Label, Scenario

__all__ = ["Plan", "read_plan"]

#: Most scenarios, nodes that one setting adds, and repetitions of a workload.
MAX_SCENARIOS, MAX_COPIES, MAX_REPEAT = 1_000_000, 10_000, 10_000


@attrs.frozen(kw_only=True)
class _Setting:
    """One value of an axis. repeat: how often the workload of the plan is there."""

    label: Label
    upsert: tuple[Any, ...] = ()
    delete: tuple[tuple[str, str], ...] = ()
    workload: tuple[Any, ...] = ()
    repeat: int | None = None
    features: Features | None = None


@attrs.frozen(kw_only=True)
class Plan(Sequence[Scenario]):
    """The scenarios of a plan, made as they are asked for, with the cluster that they start from and its features."""

    cluster: Cluster
    features: Features
    workload: tuple[Any, ...]
    axes: Mapping[str, tuple[_Setting, ...]]

    def __len__(self) -> int:
        total = 1
        for settings in self.axes.values():
            total *= len(settings)
        return total

    @overload
    def __getitem__(self, place: int) -> Scenario: ...
    @overload
    def __getitem__(self, place: slice) -> list[Scenario]: ...
    def __getitem__(self, place: int | slice) -> Scenario | list[Scenario]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = place + len(self) if place < 0 else place
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} scenarios")
        chosen = []
        for settings in reversed(list(self.axes.values())):
            number, which = divmod(number, len(settings))
            chosen.append(settings[which])
        return self._scenario(chosen[::-1])

    def __iter__(self) -> Iterator[Scenario]:
        return map(self._scenario, itertools.product(*self.axes.values()))

    def _scenario(self, chosen: Iterable[_Setting]) -> Scenario:
        settings = dict(zip(self.axes, chosen, strict=True))
        repeat = next((each.repeat for each in reversed(settings.values()) if each.repeat is not None), 1)
        return Scenario(
            name=" ".join(f"{name}={setting.label}" for name, setting in settings.items()) or "base",
            labels={name: setting.label for name, setting in settings.items()},
            upsert=tuple(item for each in settings.values() for item in each.upsert),
            delete=tuple(pair for each in settings.values() for pair in each.delete),
            workload=(
                *_repeated(self.workload, repeat),
                *(item for each in settings.values() for item in each.workload),
            ),
            features=next((each.features for each in reversed(settings.values()) if each.features is not None), None),
        )


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a YAML or JSON file. Paths in it are relative to it.

    Raises DecodeError that names the field, and OSError for files that cannot be opened.
    """
    file = Path(path)
    try:
        found = [document for _, document in documents(file.read_text(encoding="utf-8"))]
    except DecodeError as error:
        raise DecodeError(f"{file} {error.path}".strip(), error.message, error.hint) from None
    except UnicodeDecodeError as error:
        raise DecodeError(str(file), f"no UTF-8 text: {error}") from None
    if len(found) != 1:
        raise DecodeError(str(file), f"a plan is one document, not {len(found)}")
    return _Reader(file).plan(found[0])


class _Reader:
    """Reads the fields of a plan; `where` is the path of a field."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read: dict[Path, tuple[Any, ...]] = {}

    def plan(self, data: Any) -> Plan:
        fields = self._fields(data, "", ("cluster", "workload", "kubernetesVersion", "features", "axes"))
        if "cluster" not in fields:
            raise self._wrong("", "there is no `cluster`", "files of the objects that all scenarios start from")
        cluster = Cluster.from_objects(self._objects(fields["cluster"], "cluster"))
        axes = self._fields(fields.get("axes") or {}, "axes")
        features = self._features(fields, "") or Features()
        plan = Plan(
            cluster=cluster,
            features=features,
            workload=self._objects(fields.get("workload") or (), "workload"),
            axes={
                str(name): self._axis(settings, f"axes.{name}", cluster, features) for name, settings in axes.items()
            },
        )
        if len(plan) > MAX_SCENARIOS:
            raise self._wrong("axes", f"{len(plan)} scenarios are too many", f"at most {MAX_SCENARIOS}")
        return plan

    def _axis(self, data: Any, where: str, cluster: Cluster, features: Features) -> tuple[_Setting, ...]:
        if not isinstance(data, list) or not data:
            raise self._wrong(where, "an axis is a list of settings", "- label: …")
        settings = tuple(
            self._setting(each, f"{where}[{number}]", cluster, features) for number, each in enumerate(data)
        )
        labels = [setting.label for setting in settings]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise self._wrong(where, f"the label {twice!r} is there twice", "labels tell the settings apart")
        return settings

    def _setting(self, data: Any, where: str, cluster: Cluster, features: Features) -> _Setting:
        names = ("label", "add", "remove", "clone", "workload", "repeat", "kubernetesVersion", "features")
        fields = self._fields(data, where, names)
        label = fields.get("label")
        if not isinstance(label, str | int | float | bool):
            raise self._wrong(f"{where}.label", "a setting needs a label", "text or a number")
        repeat = self._number(fields.get("repeat"), f"{where}.repeat", MAX_REPEAT)
        own = self._objects(fields.get("workload") or (), f"{where}.workload")
        return _Setting(
            label=label,
            upsert=(
                *self._objects(fields.get("add") or (), f"{where}.add"),
                *self._clones(fields.get("clone"), f"{where}.clone", cluster),
            ),
            delete=tuple(self._removed(fields.get("remove") or (), f"{where}.remove", cluster)),
            # A setting repeats the workload that it brings, or else that of the plan.
            workload=_repeated(own, 1 if repeat is None else repeat),
            repeat=None if own else repeat,
            features=self._features(fields, where, features),
        )

    def _objects(self, data: Any, where: str) -> tuple[Any, ...]:
        names = [data] if isinstance(data, str) else data
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise self._wrong(where, "files are named by their paths", "a path, or a list of paths")
        found: list[Any] = []
        for name in names:
            path = self._file.parent / name
            if not path.exists():
                raise self._wrong(where, f"there is no {path}", "paths are relative to the plan")
            if path not in self._read:
                self._read[path] = tuple(load(str(path)))
            found += self._read[path]
        return tuple(found)

    def _clones(self, data: Any, where: str, cluster: Cluster) -> Iterator[Any]:
        """More nodes like one of the cluster, each with slices like its own."""
        if data is None:
            return
        fields = self._fields(data, where, ("node", "times"))
        name = fields.get("node")
        node = cluster.get("Node", name) if isinstance(name, str) else None
        if node is None:
            raise self._wrong(f"{where}.node", f"there is no node {name!r} in the cluster")
        times = self._number(fields.get("times"), f"{where}.times", MAX_COPIES)
        slices = [item for item in cluster.slices() if item.spec.node_name == name]
        for number in range(1, (1 if times is None else times) + 1):
            yield from _cloned(node, slices, f"{name}-copy-{number}")

    def _removed(self, data: Any, where: str, cluster: Cluster) -> Iterator[tuple[str, str]]:
        entries = [data] if isinstance(data, str) else data
        if not isinstance(entries, list | tuple):
            raise self._wrong(where, f"expected a list, found {data!r:.60}", "KIND/NAME or KIND/NAMESPACE/NAME")
        for number, entry in enumerate(entries):
            kind, slash, key = str(entry).partition("/")
            if not slash or cluster.get(kind, key) is None:
                raise self._wrong(
                    f"{where}[{number}]", f"there is no {entry!r} in the cluster", "KIND/NAME or KIND/NAMESPACE/NAME"
                )
            yield kind, key
            if kind == "Node":
                # Its devices go with it; otherwise a pool without its node would stay behind.
                for item in cluster.slices():
                    if item.spec.node_name == key:
                        yield "ResourceSlice", item.metadata.name

    def _features(self, fields: Mapping[str, Any], where: str, base: Features | None = None) -> Features | None:
        version, switches = fields.get("kubernetesVersion"), fields.get("features")
        if version is None and switches is None:
            return None
        gates = self._fields(switches or {}, f"{where}.features".lstrip("."))
        wrong = next((name for name, on in gates.items() if not isinstance(on, bool)), None)
        if wrong is not None:
            raise self._wrong(f"{where}.features.{wrong}".lstrip("."), "a gate is true or false")
        try:
            if version is not None or base is None:
                base = Features.for_version("1.37" if version is None else str(version))
            on = [name for name, switch in gates.items() if switch]
            Features.for_version("1.37", enable=on, disable=set(gates) - set(on))  # refuses names that are not known
            return base.replace(**gates)
        except ValueError as error:
            raise self._wrong(where or "kubernetesVersion", str(error)) from None

    def _number(self, value: Any, where: str, most: int) -> int | None:
        if value is not None and (type(value) is not int or not 0 <= value <= most):
            raise self._wrong(where, f"{value!r} is no number that will do", f"a whole number from 0 to {most}")
        return value

    def _fields(self, data: Any, where: str, names: Sequence[str] | None = None) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise self._wrong(where, f"expected an object, found {data!r:.60}")
        if not where and "kind" in data:
            hint = "a plan names files of such objects in `cluster` and `workload`"
            raise self._wrong(where, "this is a Kubernetes object, and no plan", hint)
        unknown = [name for name in data if names is not None and name not in names]
        if unknown:
            raise self._wrong(where, f"unknown field {unknown[0]!r}", f"there are {', '.join(names or ())}")
        return data

    def _wrong(self, where: str, message: str, hint: str = "") -> DecodeError:
        return DecodeError(f"{self._file}: {where}" if where else str(self._file), message, hint)


def _cloned(node: Node, slices: Iterable[ResourceSlice], name: str) -> Iterator[Any]:
    labels = {key: name if key == "kubernetes.io/hostname" else value for key, value in node.metadata.labels.items()}
    yield attrs.evolve(node, metadata=attrs.evolve(node.metadata, name=name, uid=None, labels=labels))
    for item in slices:
        old = item.spec.pool.name
        pool = attrs.evolve(item.spec.pool, name=name if old == node.metadata.name else f"{old}-{name}")
        yield attrs.evolve(
            item,
            metadata=attrs.evolve(item.metadata, name=f"{item.metadata.name}-{name}", uid=None, owner_references=()),
            spec=attrs.evolve(item.spec, node_name=name, pool=pool),
        )


def _repeated(workload: tuple[Any, ...], times: int) -> tuple[Any, ...]:
    """The workload several times: pods and claims get numbers, pods name the claims of their number."""
    if times == 1:
        return workload
    movable = [item for item in workload if isinstance(item, Pod | ResourceClaim)]
    claims = {item.metadata.key for item in movable if isinstance(item, ResourceClaim)}
    fixed = [item for item in workload if not isinstance(item, Pod | ResourceClaim)]
    return (*fixed, *(_numbered(item, number, claims) for number in range(1, times + 1) for item in movable))


def _numbered(item: Any, number: int, claims: set[str]) -> Any:
    metadata = attrs.evolve(item.metadata, name=f"{item.metadata.name}-{number}", uid=None)
    if not isinstance(item, Pod):
        return attrs.evolve(item, metadata=metadata)
    references = tuple(
        attrs.evolve(each, resource_claim_name=f"{each.resource_claim_name}-{number}")
        if f"{item.metadata.namespace}/{each.resource_claim_name}" in claims
        else each
        for each in item.spec.resource_claims
    )
    return attrs.evolve(item, metadata=metadata, spec=attrs.evolve(item.spec, resource_claims=references))
