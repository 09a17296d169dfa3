"""Which pods belong together, how many of them must run, and on which nodes they may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.api import Node, Pod, PodGroup
from dra_alloc.errors import DraError
from dra_alloc.features._objects import key_in, key_of, refused
from dra_alloc.features.noderesources import is_finished
from dra_alloc.features.pods.planner import pod_of

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.cluster import Cluster

__all__ = ["Members", "domains_of", "fewest_of", "group_of", "known_group", "members_of", "pods_of"]


@attrs.frozen
class Members:
    """Pods that are planned together: `waiting` have no node yet, `running` do; group: None if pods were asked for."""

    group: PodGroup | None
    waiting: tuple[Pod, ...]
    running: tuple[Pod, ...]


def members_of(allocator: Allocator, group: Any) -> Members:
    """The pods that are asked for: those of a group, or those given. Raises DraError for what is not there."""
    if isinstance(group, (str, PodGroup, dict)) or not isinstance(group, Iterable):
        cluster = allocator.cluster
        known = known_group(cluster, group)
        pods = pods_of(cluster, known)
        waiting = tuple(pod for pod in pods if not pod.spec.node_name and pod.metadata.deletion_timestamp is None)
        return Members(known, waiting, tuple(pod for pod in pods if pod.spec.node_name))
    found = tuple(pod_of(pod, allocator) for pod in group)
    keys = [pod.metadata.key for pod in found]
    for position, key in enumerate(keys):
        if key in keys[:position]:
            raise DraError(f"pod {key} is asked for twice")
    return Members(None, found, ())


def known_group(cluster: Cluster, group: Any) -> PodGroup:
    """A group of the cluster, given as model, dict or name. Raises DraError if it is not there."""
    key = group
    if not isinstance(group, str):
        from dra_alloc.codec import decode

        model = group if isinstance(group, PodGroup) else decode(group)
        if not isinstance(model, PodGroup):
            raise DraError(f"a PodGroup or several pods are needed here, not a {model.kind}")
        key = key_of(model.metadata)
    found: PodGroup | None = cluster.get("PodGroup", key)
    if found is None:
        raise DraError(f"there is no PodGroup {key!r} in the cluster; groups are named namespace/name")
    return found


def pods_of(cluster: Cluster, group: PodGroup) -> list[Pod]:
    """The pods of a group that have not finished."""
    return [pod for pod in cluster.pods() if _belongs(pod, group) and not is_finished(pod)]


def group_of(pod: Pod, cluster: Cluster) -> PodGroup | None:
    """The group that a pod names, if it is in the cluster."""
    reference = pod.spec.scheduling_group
    if reference is None or not reference.pod_group_name:
        return None
    found: PodGroup | None = cluster.get("PodGroup", key_in(pod.metadata.namespace, reference.pod_group_name))
    return found


def _belongs(pod: Pod, group: PodGroup) -> bool:
    reference = pod.spec.scheduling_group
    return (
        reference is not None
        and reference.pod_group_name == group.metadata.name
        and (pod.metadata.namespace or "default") == (group.metadata.namespace or "default")
    )


def fewest_of(members: Members, min_count: int | None) -> int:
    """The fewest pods that must run, those that run already included."""
    if min_count is not None:
        if min_count < 1:
            raise ValueError(f"min_count is {min_count}; it must be at least 1")
        return min_count
    gang = members.group.spec.scheduling_policy.gang if members.group is not None else None
    if gang is None:
        return len(members.waiting) + len(members.running)
    if gang.min_count < 1:
        assert members.group is not None
        path = f"PodGroup {members.group.metadata.key}: spec.schedulingPolicy.gang.minCount"
        raise refused(path, f"{gang.min_count} is too small", "at least 1")
    return gang.min_count


def domains_of(cluster: Cluster, members: Members, nodes: Iterable[str] | None) -> Iterator[list[str] | None]:
    """Sets of nodes that the group may run on as a whole: one for each value of its topology, all where it has none."""
    constraints = members.group.spec.scheduling_constraints if members.group is not None else None
    keys = [each.key for each in constraints.topology] if constraints is not None else []
    names = None if nodes is None else list(nodes)
    if not keys:
        yield names
        return
    domains: dict[tuple[str, ...], list[str]] = {}
    for name in cluster.node_names() if names is None else names:
        labels = _labels(cluster, name)
        if all(key in labels for key in keys):
            domains.setdefault(tuple(labels[key] for key in keys), []).append(name)
    homes = {pod.spec.node_name for pod in members.running}
    for members_of_domain in domains.values():
        labels = _labels(cluster, members_of_domain[0])
        if all(_in_domain(cluster, home, keys, labels) for home in homes):
            yield members_of_domain


def _labels(cluster: Cluster, node: str) -> dict[str, str]:
    found: Node | None = cluster.get("Node", node)
    return {} if found is None else found.metadata.labels


def _in_domain(cluster: Cluster, node: str | None, keys: Sequence[str], labels: dict[str, str]) -> bool:
    found = _labels(cluster, node or "")
    return all(key in found and found[key] == labels[key] for key in keys)
