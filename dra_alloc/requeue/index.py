"""`RequeueIndex`: which pending pods an event may help."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from dra_alloc._collector import paused_collector
from dra_alloc._core import Postings
from dra_alloc._waiting import CLAIM_NAME, Waiting, claim_owner
from dra_alloc.api import (
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    Node,
    NodeSelector,
    Pod,
    PodGroup,
    Quantity,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_alloc.errors import DraError
from dra_alloc.events import Event
from dra_alloc.features._consumers import refers_to
from dra_alloc.features._objects import key_of
from dra_alloc.gates import Features
from dra_alloc.inventory import PoolKey, PoolTable, compile_pool, rule_selects
from dra_alloc.nodeselection import selector_admits
from dra_alloc.requeue.changes import Helped, compare_pools, compare_views, freed, offered, taken
from dra_alloc.requeue.demands import CHOOSY, FAILED, PLACELESS, Demands, Overlay, allocated, chosen
from dra_alloc.requeue.judge import Judge
from dra_alloc.requeue.reasons import is_error, requests_blocking

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.inventory import Inventory

__all__ = ["RequeueIndex"]

#: How much is remembered, besides some for each shape and pod, before what no pod has any more is dropped.
_MANY = 4096

_ADMIN_LABEL = "resource.kubernetes.io/admin-access"


class RequeueIndex:
    """Pending pods by what they wait for (KEP-6132): which of them an event may help, in time for these alone.

    cluster: where claims, classes, slices and nodes are looked up; the index follows its changes by itself, so that it
    knows what each pod waits for at any time. features: those of the allocator; default is those that the allocators of
    the cluster have been asked with, before that `Features()`.

    It misses no pod that can be allocated after an event and could not before, provided that an attempt that ended with
    an error is said to have done so (`add(pod, error)`), and wakes fewer than the scheduler's own hints. A pod is
    known by its key, `namespace/name`. May be used from several threads.
    """

    def __init__(self, cluster: Cluster, features: Features | None = None) -> None:
        if not hasattr(cluster, "subscribe"):
            raise TypeError(f"RequeueIndex takes a Cluster, not {type(cluster).__name__}")
        self.cluster = cluster
        self._features = features
        self._postings = Postings()
        self._demands = Demands(cluster)
        self._limit = _MANY
        self._judges: dict[Features, Judge] = {}
        self._due: dict[str, None] = {}
        self._lock = threading.RLock()
        if features is not None:
            self._judges[features] = Judge(self._demands.wants, features)
        weakref.finalize(self, cluster.subscribe(_Follower(self)))

    def __reduce__(self) -> NoReturn:
        """An index follows its cluster and is one thing for all who hold it: neither `copy` nor `pickle` take it."""
        raise TypeError("a RequeueIndex cannot be copied or pickled; make another and add the pods there")

    # Pods

    def add(self, pod: Any, reason: Any = None) -> None:
        """Take in a pod that could not be placed. One that is in the index already is replaced and keeps its turn.

        pod: model, dict, client object, or name of a pod in the cluster. reason: why, if that is known: the
        Explanation over all nodes, the exception that the attempt ended with, or a mapping from claims
        (`namespace/name`) to requests of which, on every node, at least one cannot be served even by itself. It narrows
        what wakes the pod until the pod is first named by `affected`; from then on the reason may not hold any more.

        Raises DraError for what is no pod, TypeError for another reason.
        """
        waiting = Waiting(pod if type(pod) is Pod else self._pod(pod))
        if reason is not None:
            waiting.failed = is_error(reason)
            waiting.blocking = requests_blocking(reason, len(self.cluster.node_names()))
        with self._lock:
            self._put(waiting)

    def add_all(self, pods: Iterable[Any]) -> None:
        """Take in many pods at once, such as all that are pending when a scheduler starts: as `add` for each, faster.

        Raises DraError for what is no pod; then none of them has been added.
        """
        with paused_collector():
            waiting = [Waiting(pod if type(pod) is Pod else self._pod(pod)) for pod in pods]
            with self._lock:
                self._review()
                put, keys = self._postings.put, self._demands.keys
                for each in waiting:
                    own, shared = keys(each)
                    put(each.key, each, own, shared)
                self._learn()

    def remove(self, pod: Any) -> None:
        """Take a pod (or its key) out, since it was placed, or is gone. Raises KeyError if it is not in the index."""
        key = self._key(pod)
        with self._lock:
            if not self._postings.remove(key):
                raise KeyError(f"pod {key} is not in the index")
            self._due.pop(key, None)

    def __len__(self) -> int:
        return len(self._postings)

    def __contains__(self, pod: object) -> bool:
        with self._lock:
            return self._key(pod) in self._postings

    def __iter__(self) -> Iterator[str]:
        """Keys of all pods in the order of addition, as they are now."""
        with self._lock:
            return iter(self._postings.names())

    # Events

    def affected(self, event: Event) -> list[str]:
        """Keys of the pods that an event may help, in the order of addition.

        The cluster may have followed the event already or not. An event about a pod of the index updates or removes
        that pod here. Raises DraError for what is no Event.
        """
        if not isinstance(event, Event):
            raise DraError(f"an Event is needed, such as Event('added', claim), not {type(event).__name__}")
        handler = _HANDLERS.get(type(event.object))
        if handler is None:
            return []
        with self._lock:
            pods = handler(self, event)
            for pod in pods:
                if pod.blocking is not None:
                    pod.blocking = None
                    self._put(pod)
            return [pod.key for pod in pods]

    def notify(self, event: Event) -> None:
        """Remember the pods that an event may help until they are drained: for `cluster.subscribe(index)`."""
        found = self.affected(event)
        if found:
            with self._lock:
                self._due.update(dict.fromkeys(found))

    def drain(self) -> list[str]:
        """Keys of the pods that events have helped since the last call, each once, those helped first in front."""
        with self._lock:
            found = [key for key in self._due if key in self._postings]
            self._due.clear()
            return found

    # Inside

    def _put(self, pod: Waiting) -> None:
        if len(self._demands) > self._limit:
            self._review()
        own, shared = self._demands.keys(pod)
        self._postings.put(pod.key, pod, own, shared)
        if self._judges:
            self._learn()

    def _learn(self) -> None:
        """Let selectors be compiled with the pods that bring them, not with the next event."""
        for judge in self._judges.values():
            judge.learn()

    def _review(self) -> None:
        """Where most of what is remembered may be about pods that are gone, keep the rest."""
        if len(self._demands) > _MANY + 3 * self._postings.shapes() + len(self._postings) // 8:
            self._demands = Demands(self.cluster)
            self._judges = {}
            for key in self._postings.names():
                pod: Waiting = self._postings.get(key)
                own, shared = self._demands.keys(pod)
                self._postings.put(key, pod, own, shared)
        self._limit = max(_MANY, 2 * len(self._demands))

    def _pod(self, pod: Any) -> Pod:
        if isinstance(pod, Pod):
            return pod
        if isinstance(pod, str):
            found = self.cluster.get("Pod", pod)
            if found is None:
                raise DraError(f"there is no Pod {pod!r} in the cluster; pods are named namespace/name")
            model: Pod = found
            return model
        from dra_alloc.codec import decode_as

        return decode_as(Pod, pod)

    def _key(self, pod: Any) -> str:
        return str(pod) if isinstance(pod, str) else self._pod(pod).metadata.key

    def _each_judge(self) -> list[tuple[Judge, Inventory]]:
        """A judge for each set of features that matters, with the pools as these features see them."""
        every = (self._features,) if self._features is not None else tuple(self.cluster._inventories) or (Features(),)
        found = []
        for features in every:
            judge = self._judges.get(features)
            if judge is None:
                judge = self._judges[features] = Judge(self._demands.wants, features)
            found.append((judge, self.cluster.inventory(features)))
        return found

    def _find(self, keys: Iterable[str]) -> list[Waiting]:
        return self._postings.find(keys)

    def _with_failed(self, keys: set[str]) -> list[Waiting]:
        """Pods by keys, and those that any event may help: attempts that ended with an error may end otherwise."""
        keys.add(FAILED)
        return self._find(keys)

    def _helped(
        self, look: Callable[[Helped, Inventory], None], keys: Iterable[str] = (), *, mapped: bool = False
    ) -> list[Waiting]:
        """Pods that changes of devices help, and those under other keys.

        mapped: whether devices of the event have node allocatable resources, besides those of the cluster.
        """
        found = {*keys}
        mapped = mapped or self.cluster.has_node_resources()
        with self.cluster._caches.lock:  # the allocators' lock of what is compiled
            for judge, inventory in self._each_judge():
                helped = Helped(judge, losing=mapped and inventory.features.DRANodeAllocatableResources)
                look(helped, inventory)
                found |= helped.keys
        return self._with_failed(found)

    # Claims

    def _claim_event(self, event: Event) -> list[Waiting]:
        new: ResourceClaim | None = None if event.action == "deleted" else event.object
        old: ResourceClaim | None = event.object if event.action == "deleted" else event.old
        if event.action == "updated" and old is None:
            known = self.cluster.get("ResourceClaim", event.object.metadata.key)
            old = known if known != new else None
        if old is not None and new is not None and _same_claim(old, new):
            return []
        keys = _claim_keys(event.object)
        before, after = _held(old), _held(new)
        if before or after:
            gone, fresh = _by_pool(before, after), _by_pool(after, before)
            key = event.key

            def look(helped: Helped, inventory: Inventory) -> None:
                for pool, names in gone.items():
                    freed(helped, inventory.table(pool), names)
                for pool, names in fresh.items():
                    taken(helped, inventory.table(pool), names, key, self.cluster.holdings(pool))

            found = self._helped(look, keys)
        else:
            found = self._with_failed(set(keys))
        # Of the others the claims are there, or they would not be found by what they want.
        overlay = Overlay(key_of(event.object.metadata), new)
        users = {pod.key for pod in self._find(keys) if self._demands.resolve(pod, overlay) is None}
        return [pod for pod in found if pod.key not in users] if users else found

    def _template_event(self, event: Event) -> list[Waiting]:
        """A template came or changed: pods whose claims are still to be made from it."""
        if event.action == "deleted" or (event.old is not None and event.old.spec == event.object.spec):
            return []
        return self._with_failed({f"template {key_of(event.object.metadata)}"})

    def _group_event(self, event: Event) -> list[Waiting]:
        """A PodGroup came, or got its claims."""
        group, old = event.object, event.old
        if event.action == "deleted" or (old is not None and (old.spec, old.status) == (group.spec, group.status)):
            return []
        return self._with_failed({f"group {key_of(group.metadata)}"})

    # Pods and namespaces

    def _pod_event(self, event: Event) -> list[Waiting]:
        pod: Pod = event.object
        key = pod.metadata.key
        if event.action == "deleted" or _finished(pod):
            self._postings.remove(key)
            self._due.pop(key, None)
            if event.action != "deleted" and event.old is not None and _finished(event.old):
                return []
            return self._left(pod)
        known: Waiting | None = self._postings.get(key)
        if known is None:
            return []
        if pod.spec.node_name:
            self._postings.remove(key)  # it has been placed
            return []
        fresh = Waiting(pod)
        if fresh.is_same(known) and (event.old is None or event.old.spec == pod.spec):
            return []
        self._put(fresh)
        return [fresh] if self._demands.resolve(fresh) is not None else []

    def _left(self, pod: Pod) -> list[Waiting]:
        """A pod has ended: claims that were reserved for it alone, and what it used of its node, are to be had."""
        gone: dict[PoolKey, list[str]] = {}
        keys: set[str] = set()
        for _, name, _ in Waiting(pod).claims:
            claim: ResourceClaim | None = self.cluster.get("ResourceClaim", name) if name else None
            if claim is not None and _reserved_for_alone(claim, pod):
                keys.update(_claim_keys(claim))
                for pool, names in _by_pool(_held(claim), frozenset()).items():
                    gone.setdefault(pool, []).extend(names)
        node = self.cluster.get("Node", pod.spec.node_name) if pod.spec.node_name and _uses_node(pod) else None
        if node is not None:
            keys.update(self._places_of(node, None))
        if not gone and node is None:
            return []

        def look(helped: Helped, inventory: Inventory) -> None:
            for pool, names in gone.items():
                freed(helped, inventory.table(pool), names)
            if node is not None:
                offered(helped, inventory.view(node))

        return self._helped(look, keys)

    def _namespace_event(self, event: Event) -> list[Waiting]:
        """Admin access where it was refused. In a namespace that nothing is known of it is not refused."""
        labelled = event.object.metadata.labels.get(_ADMIN_LABEL) == "true"
        if event.action == "updated":
            helps = labelled and (event.old is None or event.old.metadata.labels.get(_ADMIN_LABEL) != "true")
        else:
            helps = event.action == "deleted" and not labelled
        return self._with_failed({f"admin {event.object.metadata.name}"}) if helps else []

    # Classes

    def _class_event(self, event: Event) -> list[Waiting]:
        new: DeviceClass | None = None if event.action == "deleted" else event.object
        old: DeviceClass | None = event.object if event.action == "deleted" else event.old
        keys: set[str] = set()
        if new is not None and (old is None or old.spec.selectors != new.spec.selectors):
            keys.add(f"class {new.metadata.name}")
        names = {item.spec.extended_resource_name for item in (old, new) if item is not None}
        if old is None or new is None or len(names) == 2 or keys:
            keys.update(f"resource {name}" for name in names if name)
            keys.add(f"resource deviceclass.resource.kubernetes.io/{event.object.metadata.name}")
        return self._with_failed(keys) if keys else []

    # Slices

    def _slice_event(self, event: Event) -> list[Waiting]:
        new: ResourceSlice | None = None if event.action == "deleted" else event.object
        old: ResourceSlice | None = event.object if event.action == "deleted" else event.old
        if event.action == "updated" and old is None:
            known = self.cluster.get("ResourceSlice", event.object.metadata.name)
            old = known if known != new else None
        if old is not None and new is not None and old.spec == new.spec:
            return []
        pools = dict.fromkeys(_pool_of(item) for item in (old, new) if item is not None)

        def look(helped: Helped, inventory: Inventory) -> None:
            for key in pools:
                before, after = (self._pool_with(inventory, key, event.object, item) for item in (old, new))
                compare_pools(helped, before, after, self.cluster.holdings(key))

        devices = [device for item in (old, new) if item is not None for device in item.spec.devices]
        mapped = any(device.node_allocatable_resources for device in devices)
        return self._helped(look, self._users_of(pools) if mapped else (), mapped=mapped)

    def _users_of(self, pools: Iterable[PoolKey]) -> set[str]:
        """Keys of the pods whose claims hold devices of pools, where these take resources of their node."""
        keys: set[str] = set()
        with self.cluster._caches.lock:
            if not any(judge.features.DRANodeAllocatableResources for judge, _ in self._each_judge()):
                return keys
        for pool in pools:
            for holding in self.cluster.holdings(pool).values():
                for name in holding.claims():
                    claim = self.cluster.get("ResourceClaim", name)
                    if claim is not None:
                        keys.update(_claim_keys(claim))
        return keys

    def _pool_with(
        self, inventory: Inventory, key: PoolKey, event_slice: ResourceSlice, item: ResourceSlice | None
    ) -> PoolTable | None:
        """A pool with one slice as it was, or is to be; None: without it."""
        current = self.cluster.slices_of_pool(key)
        slices = [each for each in current if each.metadata.name != event_slice.metadata.name]
        if item is not None and _pool_of(item) == key:
            slices.append(item)
        if {id(each) for each in slices} == {id(each) for each in current}:
            return inventory.table(key)
        return compile_pool(key, slices, self.cluster.rules_of_pool(key), inventory.features)

    def _rule_event(self, event: Event) -> list[Waiting]:
        new: DeviceTaintRule | None = None if event.action == "deleted" else event.object
        old: DeviceTaintRule | None = event.object if event.action == "deleted" else event.old
        if old is not None and new is not None and old.spec == new.spec:
            return []
        return self._helped(lambda helped, inventory: self._compare_rules(helped, inventory, old, new))

    def _compare_rules(
        self, helped: Helped, inventory: Inventory, old: DeviceTaintRule | None, new: DeviceTaintRule | None
    ) -> None:
        features = inventory.features
        if not (features.DRADeviceTaints and features.DRADeviceTaintRules):
            return
        name = next(rule.metadata.name for rule in (new, old) if rule is not None)
        others = [rule for rule in self.cluster.rules() if rule.metadata.name != name]
        for key in list(self.cluster._pool_slices):
            if not any(rule is not None and _may_select(rule, key) for rule in (old, new)):
                continue
            table = inventory.table(key)
            if table is None or table.fault:
                continue
            holdings = self.cluster.holdings(key)
            for device in table.devices:
                was = old is not None and rule_selects(old, key, device.name)
                will_be = new is not None and rule_selects(new, key, device.name)
                if not was and not will_be:
                    continue
                common = (
                    *device.taints,
                    *(rule.spec.taint for rule in others if rule_selects(rule, key, device.name)),
                )
                before, after = helped.judge.rows(
                    key[0],
                    (device, device),
                    (
                        (*common, old.spec.taint) if was and old is not None else common,
                        (*common, new.spec.taint) if will_be and new is not None else common,
                    ),
                )
                holding = holdings.get(device.name)
                helped.changed(before, after)
                helped.other(before, after, normal=holding is None or not holding.whole)
                if helped.losing:
                    helped.better(before)

    # Nodes

    def _node_event(self, event: Event) -> list[Waiting]:
        new: Node | None = None if event.action == "deleted" else event.object
        old: Node | None = event.object if event.action == "deleted" else event.old
        if event.action == "updated" and old is None:
            known = self.cluster.get("Node", event.object.metadata.name)
            old = known if known != new else None
        keys: set[str] = set()
        opened = new is not None and (old is None or _opened(old, new))
        if new is not None:
            keys.update(self._places_of(new, None if opened else old))
            keys.update(_resource_keys(old, new))
            if old is None or opened:
                keys.add(PLACELESS)

        def look(helped: Helped, inventory: Inventory) -> None:
            before = None if old is None else inventory.view(old)
            after = None if new is None else inventory.view(new)
            if before is not None:
                compare_views(helped, before, after)
            if after is not None and opened:
                offered(helped, after)

        if new is not None and old is not None and not opened and old.metadata.labels != new.metadata.labels:
            keys.update(self._for_choosy(new))
        return self._helped(look, keys)

    def _for_choosy(self, node: Node) -> Iterator[str]:
        """Keys of the pods that choose nodes by their labels and may find a device on the node."""
        if not self._postings.has(CHOOSY):
            return
        yield chosen(PLACELESS)
        yield from map(chosen, self._places_of(node, None))
        for judge, inventory in self._each_judge():
            helped = Helped(judge)
            offered(helped, inventory.view(node))
            yield from map(chosen, helped.keys)

    def _places_of(self, node: Node, before: Node | None) -> Iterator[str]:
        """Keys of the pods that allocated claims bind to a node, and did not bind to the node as it was before."""
        if before is None:
            yield f"node {node.metadata.name}"
        for selector, number in list(self._demands.selectors.items()):
            if not self._postings.has(f"place {number}"):
                del self._demands.selectors[selector]
            elif selector_admits(selector, node) and not (before is not None and selector_admits(selector, before)):
                yield f"place {number}"

    # Following the cluster

    def _follow(self, event: Event) -> None:
        """What pods wait for, after a change of the cluster."""
        with self._lock:
            item = event.object
            if isinstance(item, ResourceClaim):
                if event.action == "updated" and event.old is not None and _same_demand(event.old, item):
                    return
                keys = _claim_keys(item)
            elif isinstance(item, DeviceClass):
                self._demands.forget_classes()
                names = {each.spec.extended_resource_name for each in (item, event.old) if each is not None}
                keys = [f"class {item.metadata.name}", *(f"resource {name}" for name in names if name)]
                keys.append(f"resource deviceclass.resource.kubernetes.io/{item.metadata.name}")
            elif isinstance(item, ResourceClaimTemplate):
                keys = [f"template {key_of(item.metadata)}"]
            elif isinstance(item, PodGroup):
                keys = [f"group {key_of(item.metadata)}"]
            else:
                return
            for pod in self._find(keys):
                self._put(pod)


class _Follower:
    """Subscribed to the cluster in place of the index, which may be let go all the same."""

    def __init__(self, index: RequeueIndex) -> None:
        self._index = weakref.ref(index)

    def notify(self, event: Event) -> None:
        index = self._index()
        if index is not None:
            index._follow(event)


_HANDLERS: dict[type, Callable[[RequeueIndex, Event], list[Waiting]]] = {
    DeviceClass: RequeueIndex._class_event,
    DeviceTaintRule: RequeueIndex._rule_event,
    Namespace: RequeueIndex._namespace_event,
    Node: RequeueIndex._node_event,
    Pod: RequeueIndex._pod_event,
    PodGroup: RequeueIndex._group_event,
    ResourceClaim: RequeueIndex._claim_event,
    ResourceClaimTemplate: RequeueIndex._template_event,
    ResourceSlice: RequeueIndex._slice_event,
}


# What events are about


def _claim_keys(claim: ResourceClaim) -> list[str]:
    """Keys of the pods that may refer to a claim."""
    namespace = claim.metadata.namespace or "default"
    keys = [f"{namespace}/{claim.metadata.name}"]
    owner = claim_owner(claim) if claim.metadata.owner_references else None
    if owner is not None:
        keys.append(f"{'group' if owner[0] == 'PodGroup' else 'owner'} {namespace}/{owner[1]}")
    return keys


def _same_claim(old: ResourceClaim, new: ResourceClaim) -> bool:
    """Whether a change of a claim is no matter to anyone: labels, finalizers and the like."""
    return old.status == new.status and _same_demand(old, new)


def _same_demand(old: ResourceClaim, new: ResourceClaim) -> bool:
    """Whether a claim is the same, asks for the same, and is allocated to the same nodes, or not at all."""
    one, other = old.metadata, new.metadata
    return (
        one.uid == other.uid
        and one.deletion_timestamp == other.deletion_timestamp
        and one.owner_references == other.owner_references
        and one.annotations.get(CLAIM_NAME) == other.annotations.get(CLAIM_NAME)
        and (old.spec is new.spec or old.spec == new.spec)
        and allocated(old) == allocated(new)
        and _selector(old) == _selector(new)
    )


def _selector(claim: ResourceClaim) -> NodeSelector | None:
    allocation = claim.status.allocation if claim.status is not None else None
    return None if allocation is None else allocation.node_selector


#: Driver, pool, device, share ID.
_Use = tuple[str, str, str, str | None]


def _held(claim: ResourceClaim | None) -> frozenset[_Use]:
    """What a claim holds. Admin access holds nothing."""
    if claim is None or claim.status is None or claim.status.allocation is None:
        return frozenset()
    return frozenset(
        (result.driver, result.pool, result.device, result.share_id)
        for result in claim.status.allocation.devices.results
        if not result.admin_access
    )


def _by_pool(uses: frozenset[_Use], others: frozenset[_Use]) -> dict[PoolKey, list[str]]:
    """Names of the devices that are in one set of uses and not in the other, by pool."""
    found: dict[PoolKey, list[str]] = {}
    for driver, pool, device, _ in sorted(uses - others, key=_without_share):
        found.setdefault((driver, pool), []).append(device)
    return found


def _without_share(use: _Use) -> tuple[str, str, str]:
    return use[:3]


def _reserved_for_alone(claim: ResourceClaim, pod: Pod) -> bool:
    return (
        allocated(claim)
        and claim.status is not None
        and bool(claim.status.reserved_for)
        and all(refers_to(consumer, pod) for consumer in claim.status.reserved_for)
    )


def _finished(pod: Pod) -> bool:
    return pod.status is not None and pod.status.phase in ("Succeeded", "Failed")


def _uses_node(pod: Pod) -> bool:
    """Whether a pod takes up resources of its node."""
    if pod.spec.overhead or (pod.status is not None and pod.status.node_allocatable_resource_claim_statuses):
        return True
    resources = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    if pod.spec.resources is not None:
        resources.append(pod.spec.resources)
    return any(each.requests or each.limits for each in resources)


def _pool_of(item: ResourceSlice) -> PoolKey:
    return item.spec.driver, item.spec.pool.name


def _may_select(rule: DeviceTaintRule, key: PoolKey) -> bool:
    """Whether a taint rule may select devices of a pool."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, key[0]) and selector.pool in (None, key[1])


def _opened(old: Node, new: Node) -> bool:
    """Whether a node takes pods that it did not take before, by its taints and by what it has and can do."""
    taints = () if new.spec is None else new.spec.taints
    if old.spec is not None and any(taint not in taints for taint in old.spec.taints):
        return True
    if old.spec is not None and old.spec.unschedulable and not (new.spec is not None and new.spec.unschedulable):
        return True
    if not _declared(new) <= _declared(old):
        return True
    before, after = _allocatable(old), _allocatable(new)
    if not before.keys() <= after.keys():
        return True  # what a node does not publish is not judged
    return any(name not in before or amount.nano > before[name].nano for name, amount in after.items())


def _declared(node: Node) -> set[str]:
    """Features that allocated devices may need of a node."""
    return set() if node.status is None else {*node.status.declared_features}


def _allocatable(node: Node | None) -> Mapping[str, Quantity]:
    return {} if node is None or node.status is None else node.status.allocatable


def _resource_keys(old: Node | None, new: Node) -> Iterator[str]:
    """Keys of the pods with an extended resource that the node has now, has more of, or leaves to devices."""
    before, after = _allocatable(old), _allocatable(new)
    for name in {**before, **after}:
        if "/" in name and before.get(name) != after.get(name):
            yield f"resource {name}"
