"""`Cluster`: Kubernetes objects by key, what is allocated, and cheap forks of it all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import attrs

from dra_alloc._collector import paused_collector
from dra_alloc._cow import CowMap
from dra_alloc.api import (
    AllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    KubernetesObject,
    Namespace,
    Node,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
    Workload,
)
from dra_alloc.errors import Conflict, DraError
from dra_alloc.events import Event
from dra_alloc.gates import Features
from dra_alloc.inventory import Inventory, PoolTable, compile_state
from dra_alloc.pools import Holding, PoolKey
from dra_alloc.rules import published_capacities, qualified

if TYPE_CHECKING:
    from dra_alloc.features.noderesources import NodeUse

__all__ = ["Cluster"]

#: How many changes `revert` can take back.
HISTORY = 10_000

#: Entries of the log of touched nodes before it is cut.
_LOG_LIMIT = 4096

Listener = Callable[[Event], object]

_Object = TypeVar("_Object", bound=KubernetesObject)


@attrs.define(eq=False)
class _Caches:
    """What a cluster and all its forks share: compiled questions. See problem.py."""

    questions: dict[object, Any] = attrs.field(factory=dict)
    lock: threading.RLock = attrs.field(factory=threading.RLock)

    def __reduce__(self) -> tuple[type[_Caches], tuple[()]]:
        return _Caches, ()


class Cluster:
    """A snapshot of Kubernetes objects that can be changed, forked and asked.

    Objects are kept by kind and by `namespace/name`. Claims with `status.allocation` hold their devices. Objects given
    in are api models, Kubernetes dicts, or objects of a Kubernetes client; objects given out are api models.

    `fork` costs next to nothing; fork and original do not see each other's changes. `version` grows with every change.
    Reading from several threads is safe, also while forks are changed; changes of one cluster must come from one
    thread at a time.
    """

    def __init__(self) -> None:
        self._objects: dict[str, CowMap[str, Any]] = {}
        self._pool_slices: CowMap[PoolKey, tuple[ResourceSlice, ...]] = CowMap()
        self._pools_of_node: CowMap[str, tuple[PoolKey, ...]] = CowMap()
        self._wide_pools: tuple[PoolKey, ...] = ()
        self._holdings: CowMap[PoolKey, Mapping[str, Holding]] = CowMap()
        self._mapped_pools: CowMap[PoolKey, bool] = CowMap()
        self._claims_of_owner: CowMap[str, tuple[str, ...]] = CowMap()
        self._pods_of_node: CowMap[str, tuple[str, ...]] = CowMap()
        self._use_of_node: CowMap[str, NodeUse] = CowMap()
        self._order: tuple[str, ...] | None = None
        self._places: tuple[tuple[str, ...], dict[str, int]] | None = None
        self._rules: tuple[DeviceTaintRule, ...] | None = None
        self._inventories: dict[Features, Inventory] = {}
        self._caches = _Caches()
        self._answers: dict[object, Any] = {}
        self._log: list[tuple[str, ...] | None] = []
        self._log_start = 0
        self._history: deque[tuple[str, str, Any]] = deque(maxlen=HISTORY)
        self._listeners: list[Listener] = []
        self._version = 0
        #: Changes ever made, those taken back and the taking back included: unlike the version it never returns.
        self._edits = 0

    @classmethod
    def from_objects(cls, objects: Iterable[Any]) -> Self:
        """A cluster of these objects, such as `dra_alloc.load` reads. Of two objects with one key the later counts.

        Objects that have only `generateName` get a name each, as the API server would give them: the prefix and a
        number. Raises DecodeError for what is not a Kubernetes object that the library knows, DraError for what has
        neither name nor prefix, or is no collection of objects.
        """
        if isinstance(objects, (str, bytes, PurePath, Mapping)) or not isinstance(objects, Iterable):
            raise DraError(
                f"from_objects takes a list of objects, not {_short(objects)}; dra_alloc.load reads files into one"
            )
        cluster = cls()
        with paused_collector():
            models = [_model(item) for item in objects]
            if not all(item.metadata.name for item in models):
                from dra_alloc.features._naming import named

                models = named(models)
            cluster._fill(models)
        return cluster

    def _fill(self, items: list[Any]) -> None:
        """Put objects into an empty cluster, the slices pool by pool."""
        slices = {item.metadata.name: item for item in items if isinstance(item, ResourceSlice)}
        pools: dict[PoolKey, list[ResourceSlice]] = {}
        self._objects["ResourceSlice"] = CowMap()
        for name, item in slices.items():
            self._objects["ResourceSlice"][name] = item
            pools.setdefault(_pool_key(item), []).append(item)
        for key, members in pools.items():
            self._set_pool(key, tuple(members))
        self._version = len(slices)
        for item in items:
            if not isinstance(item, ResourceSlice):
                self._put(item)
        self._history.clear()

    # Reading

    @property
    def version(self) -> int:
        """Number of changes so far; a fork begins with the number of its original."""
        return self._version

    def __len__(self) -> int:
        return sum(len(objects) for objects in self._objects.values())

    def __iter__(self) -> Iterator[Any]:
        """All objects, kind by kind."""
        for objects in self._objects.values():
            yield from objects.values()

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(objects)} {kind}" for kind, objects in self._objects.items() if objects)
        return f"<Cluster version {self._version}: {kinds or 'empty'}>"

    def _repr_html_(self) -> str:
        """The map of nodes and devices, for notebooks."""
        from dra_alloc.status import cluster_status

        return cluster_status(self)._repr_html_()

    def get(self, kind: str, key: str) -> Any | None:
        """The object of a kind with the key `namespace/name` (or the name), or None.

        An object without a namespace is in `default`, as for kubectl, and found under both keys. Raises ValueError for
        what is no kind of object that a cluster holds.
        """
        objects = self._objects.get(kind)
        if objects is None:
            _check_kind(kind)
            return None
        found = objects.get(key)
        return objects.get(_other_key(key)) if found is None else found

    def resolve(self, item: Any, kind: type[_Object]) -> _Object:
        """An object given as model, dict, object of a client, or name (`namespace/name`) of one in the cluster.

        Raises DraError for a name that is not there and for an object of another kind, DecodeError for what is no
        object.
        """
        if isinstance(item, kind):
            return item
        if isinstance(item, str):
            found: _Object | None = self.get(kind.kind, item)
            if found is None:
                named = "" if kind is Node else "; the name is namespace/name"
                raise DraError(f"there is no {kind.kind} {item!r} in the cluster{named}")
            return found
        from dra_alloc.codec import decode_as

        return decode_as(kind, item)

    def objects(self, kind: str) -> list[Any]:
        """All objects of a kind, in the order in which they came. Raises ValueError as `get` does."""
        objects = self._objects.get(kind)
        if objects is None:
            _check_kind(kind)
            return []
        return list(objects.values())

    def nodes(self) -> list[Node]:
        """All nodes in order."""
        return self.objects("Node")

    def slices(self) -> list[ResourceSlice]:
        """All ResourceSlices."""
        return self.objects("ResourceSlice")

    def classes(self) -> list[DeviceClass]:
        """All DeviceClasses."""
        return self.objects("DeviceClass")

    def claims(self) -> list[ResourceClaim]:
        """All ResourceClaims."""
        return self.objects("ResourceClaim")

    def templates(self) -> list[ResourceClaimTemplate]:
        """All ResourceClaimTemplates."""
        return self.objects("ResourceClaimTemplate")

    def rules(self) -> list[DeviceTaintRule]:
        """All DeviceTaintRules."""
        return self.objects("DeviceTaintRule")

    def pods(self) -> list[Pod]:
        """All pods."""
        return self.objects("Pod")

    def namespaces(self) -> list[Namespace]:
        """All namespaces."""
        return self.objects("Namespace")

    def pod_groups(self) -> list[PodGroup]:
        """All PodGroups."""
        return self.objects("PodGroup")

    def workloads(self) -> list[Workload]:
        """All Workloads."""
        return self.objects("Workload")

    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes in order. The same tuple as long as no node comes or goes."""
        if self._order is None:
            nodes = self._objects.get("Node")
            self._order = () if nodes is None else tuple(nodes)
        return self._order

    def node_places(self) -> Mapping[str, int]:
        """The place of each node in `node_names`."""
        order = self.node_names()
        if self._places is None or self._places[0] is not order:
            self._places = order, {name: number for number, name in enumerate(order)}
        return self._places[1]

    def holdings(self, pool: PoolKey) -> Mapping[str, Holding]:
        """Who holds what of a pool: by device name. Results with admin access hold nothing."""
        return self._holdings.get(pool, _NOTHING)

    # Changing

    def upsert(self, *objects: Any) -> None:
        """Add objects, or replace those with the same kind and key. All are read before any is put in.

        Raises DecodeError for what is not a Kubernetes object that the library knows, DraError for one without a name.
        """
        models = [_model(item) for item in objects]
        for place, model in enumerate(models):
            if not model.metadata.name:
                raise DraError(f"objects[{place}] {model.kind}: metadata.name is missing: give a name")
        for model in models:
            self._put(model)

    @overload
    def delete(self, item: str, key: str) -> None: ...
    @overload
    def delete(self, item: Any) -> None: ...
    def delete(self, item: Any, key: str | None = None) -> None:
        """Remove an object: `delete(obj)` or `delete("ResourceSlice", name)`. Raises KeyError if it is not there."""
        kind, name = (item, key) if key is not None else _identity(_model(item))
        known = self.get(kind, name)
        if known is None:
            raise KeyError(f"there is no {kind} {name}")
        self._remove(*_identity(known))

    def commit(self, *parts: Any) -> None:
        """Write allocations into their claims: `commit(claim, result)`, or `commit([(claim, result), …])`.

        Claims are names (`namespace/name`), models or dicts; one that the cluster does not have is added. Together or
        not at all: if a device was taken meanwhile, is gone, or has too little left, Conflict is raised and nothing is
        changed. A claim that holds exactly this allocation already is left as it is.

        `commit(plan)` writes the plan of a pod or of a group: its claims, who they are reserved for, and its pods.
        Raises TypeError for other arguments.
        """
        if len(parts) == 1 and hasattr(parts[0], "commit_parts"):
            self._commit(*parts[0].commit_parts(self))
            return
        pairs: list[Any] = [parts]
        if len(parts) == 1:
            pairs = list(parts[0]) if isinstance(parts[0], Iterable) and not isinstance(parts[0], str) else [None]
        if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
            nothing = "; None is no answer: it did not fit" if parts and parts[-1] is None else ""
            raise TypeError(f"commit takes a plan, a claim and its result, or a list of such pairs{nothing}")
        self._commit([(self._claim(claim), _allocation(result)) for claim, result in pairs], ())

    def release(self, *items: Any) -> None:
        """Take allocation, reservations and device status from claims. A claim that holds nothing is left as it is.

        A pod or a PodGroup among the items has ended: it leaves the cluster (a pod that is Succeeded or Failed stays)
        and gives up its claims. A claim that nobody uses any more loses its allocation; one that was made for the pod
        or group is removed. Claims of a group stay allocated until the group itself ends (KEP-5729).

        Raises KeyError for the name of a claim that is not there, Conflict for a group whose pods still run.
        """
        for item in items:
            if isinstance(item, str) or (model := _model(item)).kind not in ("Pod", "PodGroup"):
                claim = self._claim(item)
                if claim.status is not None and claim.status != _RELEASED:
                    self._put(attrs.evolve(claim, status=_RELEASED))
                continue
            from dra_alloc.features.pods.release import ended

            changed, removed = ended(self, model)
            for changed_claim in changed:
                self._put(changed_claim)
            for kind, key in removed:
                self._remove(kind, key)

    def revert(self, version: int) -> None:
        """Take back all changes since the given version (of this cluster, not of a fork).

        The last 10,000 changes are remembered; raises ValueError for an older version or one that is yet to come.
        """
        changes = self._version - version
        if changes < 0 or changes > len(self._history):
            raise ValueError(
                f"version {version} is not within reach: now at {self._version}, with {len(self._history)} "
                "changes remembered"
            )
        for _ in range(changes):
            kind, key, old = self._history.pop()
            if old is None:
                self._remove(kind, key)
            else:
                self._put(old)
            self._history.pop()
        self._version = version

    def fork(self) -> Self:
        """An independent copy, at a cost that does not depend on the size of the cluster. Usable in `with`."""
        other = type(self).__new__(type(self))
        other._objects = {kind: objects.fork() for kind, objects in self._objects.items()}
        other._pool_slices = self._pool_slices.fork()
        other._pools_of_node = self._pools_of_node.fork()
        other._wide_pools = self._wide_pools
        other._holdings = self._holdings.fork()
        other._mapped_pools = self._mapped_pools.fork()
        other._claims_of_owner = self._claims_of_owner.fork()
        other._pods_of_node = self._pods_of_node.fork()
        with self._caches.lock:
            other._use_of_node = self._use_of_node.fork()
        other._order = self.node_names()
        other._places = self._places
        other._rules = self._rules
        other._inventories = {features: each.fork(other) for features, each in self._inventories.items()}
        other._caches = self._caches
        other._answers = self._answers.copy()
        # The fork goes on with the log where it stands; what came before is needed by answers that lag behind.
        behind = min((answer.upto for answer in other._answers.values()), default=self.log_end())
        other._log = self._log[max(0, behind - self._log_start) :]
        other._log_start = self.log_end() - len(other._log)
        other._history = deque(maxlen=HISTORY)
        other._listeners = []
        other._version = self._version
        other._edits = self._edits
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold the objects; what is compiled from them is compiled anew."""
        return {"objects": list(self), "version": self._version}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self._fill(state["objects"])
        self._version = state["version"]

    def __copy__(self) -> Self:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.fork()

    def subscribe(self, listener: Listener | Any) -> Callable[[], None]:
        """Tell a listener of each change of this cluster (not of forks), after it was made.

        listener: a callable that takes an Event, or an object with such a method `notify`. Returns a function that
        ends the subscription.
        """
        call: Listener = listener.notify if hasattr(listener, "notify") else listener
        self._listeners.append(call)

        def unsubscribe() -> None:
            if call in self._listeners:
                self._listeners.remove(call)

        return unsubscribe

    # Inside the package

    def inventory(self, features: Features) -> Inventory:
        """The pools of the cluster as they are with these features."""
        inventory = self._inventories.get(features)
        if inventory is None:
            inventory = self._inventories[features] = Inventory(self, features)
        return inventory

    def has_node_resources(self) -> bool:
        """Whether some device means something for the CPU, memory or the like of its node (KEP-5517)."""
        return len(self._mapped_pools) > 0

    def claims_owned_by(self, uid: str) -> list[ResourceClaim]:
        """The claims whose managing controller has this UID."""
        return [self._objects["ResourceClaim"][key] for key in self._claims_of_owner.get(uid, ())]

    def pods_on(self, node: str) -> list[Pod]:
        """The pods that are bound to a node, finished ones included."""
        return [self._objects["Pod"][key] for key in self._pods_of_node.get(node, ())]

    def use_of_node(self, node: str) -> NodeUse:
        """What the pods on a node take of it. Kept up to date from the first question on."""
        found = self._use_of_node.get(node)
        if found is None:
            from dra_alloc.features.noderesources import NodeUse

            found = NodeUse()
            for pod in self.pods_on(node):
                found = found.with_pod(pod)
            with self._caches.lock:  # who only reads may come here, from several threads
                self._use_of_node[node] = found
        return found

    def slices_of_pool(self, key: PoolKey) -> tuple[ResourceSlice, ...]:
        """All slices of a pool, of all generations."""
        return self._pool_slices.get(key, ())

    def pools_near(self, node: str) -> tuple[PoolKey, ...]:
        """Pools that may concern a node: those with a slice that names it, and those that name no single node."""
        return (*self._pools_of_node.get(node, ()), *self._wide_pools)

    def rules_of_pool(self, key: PoolKey) -> tuple[DeviceTaintRule, ...]:
        """Taint rules that may select devices of a pool."""
        if self._rules is None:
            self._rules = tuple(self.rules())
        if not self._rules:
            return ()
        return tuple(rule for rule in self._rules if _rule_concerns(rule, key))

    def touched_since(self, position: int) -> list[tuple[str, ...] | None] | None:
        """Names of nodes touched since a position of the log (None entry: all); None if it reaches no further back."""
        if position < self._log_start:
            return None
        return self._log[position - self._log_start :]

    def log_end(self) -> int:
        """Position of the next entry of the log."""
        return self._log_start + len(self._log)

    def _touch(self, nodes: tuple[str, ...] | None) -> None:
        self._log.append(nodes)
        if len(self._log) > _LOG_LIMIT:
            cut = _LOG_LIMIT // 2
            del self._log[:cut]
            self._log_start += cut

    def _claim(self, claim: Any) -> ResourceClaim:
        if isinstance(claim, str):
            found: ResourceClaim | None = self.get("ResourceClaim", claim)
            if found is None:
                raise KeyError(f"there is no ResourceClaim {claim}; claims are named namespace/name")
            return found
        model = self.resolve(claim, ResourceClaim)
        if not model.metadata.name:
            raise DraError("ResourceClaim: metadata.name is missing: a claim without a name cannot be kept")
        known: ResourceClaim | None = self.get("ResourceClaim", model.metadata.key)
        return known or model

    def _put(self, item: Any) -> None:
        kind, key = _identity(item)
        objects = self._objects.get(kind)
        if objects is None:
            objects = self._objects[kind] = CowMap()
        old = objects.get(key)
        if old is None:
            other = _other_key(key)
            if other != key and other in objects:
                # The same object, which was given without its namespace before, or with it.
                self._remove(kind, other)
        objects[key] = item
        self._changed(kind, key, old, item)

    def _remove(self, kind: str, key: str) -> None:
        old = self._objects[kind].pop(key)
        self._changed(kind, key, old, None)

    def _changed(self, kind: str, key: str, old: Any, new: Any) -> None:
        self._version += 1
        self._edits += 1
        self._history.append((kind, key, old))
        update = _UPDATES.get(kind)
        if update is not None:
            update(self, old, new)
        if self._listeners:
            if new is None:
                event = Event("deleted", old)
            elif old is None:
                event = Event("added", new)
            else:
                event = Event("updated", new, old=old)
            for listener in tuple(self._listeners):
                listener(event)

    # Indexes, by kind of the object that changed

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]
        if old is None or new is None:
            self._order = None
        for inventory in self._inventories.values():
            inventory.forget_node(name)
        self._touch((name,))

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]
        for key in dict.fromkeys(_pool_key(item) for item in (old, new) if item is not None):
            slices = tuple(each for each in self._pool_slices.get(key, ()) if each.metadata.name != name)
            if new is not None and _pool_key(new) == key:
                slices = (*slices, new)
            self._set_pool(key, slices)

    def _set_pool(self, key: PoolKey, slices: tuple[ResourceSlice, ...]) -> None:
        before = _places(self._pool_slices.get(key, ()))
        after = _places(slices)
        if slices:
            self._pool_slices[key] = slices
        else:
            self._pool_slices.pop(key, None)
        if any(device.node_allocatable_resources for item in slices for device in item.spec.devices):
            self._mapped_pools[key] = True
        else:
            self._mapped_pools.pop(key, None)
        for place in before - after:
            if place == _ANYWHERE:
                self._wide_pools = tuple(other for other in self._wide_pools if other != key)
            elif left := tuple(other for other in self._pools_of_node[place] if other != key):
                self._pools_of_node[place] = left
            else:
                del self._pools_of_node[place]
        for place in after - before:
            if place == _ANYWHERE:
                self._wide_pools = (*self._wide_pools, key)
            else:
                self._pools_of_node[place] = (*self._pools_of_node.get(place, ()), key)
        self._pool_changed(key, before | after)

    def _pool_changed(self, key: PoolKey, places: frozenset[str]) -> None:
        for inventory in self._inventories.values():
            inventory.forget_pool(key)
            if _ANYWHERE in places:
                inventory.forget_nodes()
            else:
                for name in places:
                    inventory.forget_node(name)
        self._touch(None if _ANYWHERE in places else tuple(places))

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        self._rules = None
        concerned = [
            key
            for key in self._pool_slices
            if any(rule is not None and _rule_concerns(rule, key) for rule in (old, new))
        ]
        for key in concerned:
            self._pool_changed(key, _places(self._pool_slices[key]))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        key = (new or old).metadata.key  # type: ignore[union-attr]
        before, after = (item.spec.node_name if item is not None else None for item in (old, new))
        if before != after:
            _move(self._pods_of_node, key, before, after)
        for item, sign in ((old, -1), (new, 1)):
            known = self._use_of_node.get(item.spec.node_name or "") if item is not None else None
            if item is not None and item.spec.node_name and known is not None:
                self._use_of_node[item.spec.node_name] = known.with_pod(item, sign)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        owner_before, owner_after = _owner(old), _owner(new)
        if owner_before != owner_after:
            _move(self._claims_of_owner, (new or old).metadata.key, owner_before, owner_after)  # type: ignore[union-attr]
        before, after = _results(old), _results(new)
        if before == after:
            return
        key = (new or old).metadata.key  # type: ignore[union-attr]
        touched: dict[PoolKey, tuple[list[str], list[DeviceRequestAllocationResult]]] = {}
        for result in before:
            touched.setdefault((result.driver, result.pool), ([], []))[0].append(result.device)
        for result in after:
            touched.setdefault((result.driver, result.pool), ([], []))[1].append(result)
        for pool, (given_up, taken) in touched.items():
            self._hold(pool, key, given_up, taken)
            for inventory in self._inventories.values():
                inventory.forget_usage(pool)
            places = _places(self._pool_slices.get(pool, ()))
            self._touch(None if _ANYWHERE in places else tuple(places))

    def _hold(self, pool: PoolKey, claim: str, given_up: list[str], taken: list[DeviceRequestAllocationResult]) -> None:
        """Let a claim give up all that it has of some devices of a pool, then hold others."""
        holdings = dict(self._holdings.get(pool, _NOTHING))
        for name in dict.fromkeys(given_up):
            holding = holdings[name]
            left = Holding(
                tuple([other for other in holding.whole if other != claim]),
                tuple([share for share in holding.shares if share[0] != claim]),
            )
            if left.whole or left.shares:
                holdings[name] = left
            else:
                del holdings[name]
        for result in taken:
            holding = holdings.get(result.device, _FREE)
            if result.share_id is None:
                holding = Holding((*holding.whole, claim), holding.shares)
            else:
                consumed = tuple((name, amount.nano) for name, amount in result.consumed_capacity.items())
                holding = Holding(holding.whole, (*holding.shares, (claim, result.share_id, consumed)))
            holdings[result.device] = holding
        if holdings:
            self._holdings[pool] = holdings
        else:
            self._holdings.pop(pool, None)

    # Commit

    def _commit(
        self,
        pairs: list[tuple[ResourceClaim, AllocationResult]],
        reservations: Iterable[tuple[str, ResourceClaimConsumerReference]],
        others: Iterable[Any] = (),
    ) -> None:
        new: dict[str, ResourceClaim] = {}
        # Several allocations must hold together: each is tried on a fork that has those before it.
        trial = self.fork() if len(pairs) > 1 else self
        for claim, result in pairs:
            key = claim.metadata.key
            claim = new.get(key, claim)
            held = claim.status.allocation if claim.status else None
            if held is not None:
                if held != result:
                    raise Conflict(f"claim {key} is allocated already; release it first")
                new[key] = claim
                continue
            trial._check_free(key, result)
            status = attrs.evolve(claim.status or ResourceClaimStatus(), allocation=result)
            new[key] = attrs.evolve(claim, status=status)
            if trial is not self:
                trial._put(new[key])
        for key, consumer in reservations:
            found = new.get(key) or self.get("ResourceClaim", key)
            if found is None or found.status is None or found.status.allocation is None:
                raise Conflict(
                    f"claim {key} is not allocated and cannot be reserved for {consumer.resource} {consumer.name}"
                )
            if any(same_consumer(other, consumer) for other in found.status.reserved_for):
                new.setdefault(key, found)
                continue
            if len(found.status.reserved_for) >= MAX_RESERVED:
                raise Conflict(f"claim {key} is reserved for {MAX_RESERVED} consumers, which is the most it can have")
            status = attrs.evolve(found.status, reserved_for=(*found.status.reserved_for, consumer))
            new[key] = attrs.evolve(found, status=status)
        for key, claim in new.items():
            if self.get("ResourceClaim", key) != claim:
                self._put(claim)
        for item in others:
            self._put(item)

    def _check_free(self, claim: str, allocation: AllocationResult) -> None:
        """Raise Conflict if a device of the allocation is not there any more, or not free enough."""
        for pool in dict.fromkeys((result.driver, result.pool) for result in allocation.devices.results):
            results = [result for result in allocation.devices.results if (result.driver, result.pool) == pool]
            table = self._newest(pool)
            if table is None or table.fault:
                why = table.reason if table is not None else f"there is no pool {pool[0]}/{pool[1]}"
                raise Conflict(f"claim {claim}: {why}")
            holdings = self.holdings(pool)
            for result in results:
                number = table.index.get(result.device)
                where = f"claim {claim}, request {result.request}: device {'/'.join((*pool, result.device))}"
                if number is None:
                    raise Conflict(f"{where} is not in the slices of its pool any more")
                holding = holdings.get(result.device)
                if holding is None or result.admin_access:
                    continue
                if result.share_id is None or holding.whole:
                    raise Conflict(f"{where} is held by claim {', '.join(holding.claims())}")
            self._check_room(claim, table, holdings, results)

    def _check_room(
        self,
        claim: str,
        table: PoolTable,
        holdings: Mapping[str, Holding],
        results: list[DeviceRequestAllocationResult],
    ) -> None:
        """Raise Conflict if counters or capacities of a pool would be exceeded, or a device be taken twice."""
        if not table.sets and all(result.share_id is None for result in results):
            names = [result.device for result in results if not result.admin_access]
            if len(set(names)) == len(names):
                return
        before = compile_state(table, holdings)
        used = {number: dict(amounts) for number, amounts in before.shares.items()}
        remaining = list(before.remaining)
        charged = set(holdings)
        taken: set[str] = set()
        driver = table.key[0]
        for result in results:
            if result.admin_access:
                continue
            where = f"claim {claim}, request {result.request}: device {'/'.join((*table.key, result.device))}"
            if result.share_id is None and result.device in taken:
                raise Conflict(f"{where} is in the allocation twice")
            taken.add(result.device)
            number = table.index[result.device]
            if result.device not in charged:
                charged.add(result.device)
                draws = table.draws[number] if table.draws else ()
                if draws and before.vanished:
                    raise Conflict(f"{where} consumes counters while {before.vanished[0]}, which is allocated, is gone")
                for column, nano in draws:
                    remaining[column] -= nano
                    if remaining[column] < 0:
                        counter = "/".join(table.columns[column])
                        raise Conflict(f"{where}: too little is left of counter {counter}")
            if result.share_id is not None:
                amounts = used.setdefault(number, {})
                for name, amount in result.consumed_capacity.items():
                    amounts[name] = amounts.get(name, 0) + max(0, amount.nano)
                for full, (name, capacity) in published_capacities(table.devices[number], driver).items():
                    total = sum(nano for other, nano in amounts.items() if qualified(other, driver) == full)
                    if total > capacity.value.nano:
                        raise Conflict(f"{where}: too little is left of capacity {name}")

    def _newest(self, pool: PoolKey) -> PoolTable | None:
        """The pool as some allocator of the cluster sees it, else with every feature."""
        for inventory in self._inventories.values():
            table = inventory.table(pool)
            if table is not None:
                return table
        return self.inventory(Features.all()).table(pool)


#: Most entries of `reservedFor` (API field).
MAX_RESERVED = 256

#: Stands for slices that name no single node.
_ANYWHERE = ""

_NOTHING: Mapping[str, Holding] = {}
_FREE = Holding()
_RELEASED = ResourceClaimStatus()

_UPDATES: dict[str, Callable[[Cluster, Any, Any], None]] = {
    "Node": Cluster._node_changed,
    "ResourceSlice": Cluster._slice_changed,
    "DeviceTaintRule": Cluster._rule_changed,
    "ResourceClaim": Cluster._claim_changed,
    "Pod": Cluster._pod_changed,
}


def _model(item: Any) -> Any:
    if hasattr(type(item), "kind") and hasattr(item, "metadata") and attrs.has(type(item)):
        return item
    from dra_alloc.codec import decode

    return decode(item)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _allocation(result: Any) -> AllocationResult:
    if result is None:
        raise TypeError("commit takes a claim and its result; None is no result: it did not fit")
    if isinstance(result, list):
        raise TypeError(
            "commit takes the result of each claim, not the list of all: commit(claim, found[0]), or "
            "commit(zip(claims, found))"
        )
    return result if isinstance(result, AllocationResult) else AllocationResult.from_dict(result)


def _check_kind(kind: str) -> None:
    """A misspelt kind has no objects either, and would pass for one of which there is none."""
    if kind not in _kinds():
        raise ValueError(f"a cluster holds no objects of kind {kind!r}; kinds are {', '.join(sorted(_kinds()))}")


@cache
def _kinds() -> frozenset[str]:
    from dra_alloc.codec.versions import KINDS

    return frozenset(name for _, name in KINDS)


def _identity(item: Any) -> tuple[str, str]:
    return item.kind, item.metadata.key


def _other_key(key: str) -> str:
    """The key of the same object written with, or without, the namespace `default`."""
    namespace, slash, name = key.rpartition("/")
    return f"default/{name}" if not slash else name if namespace == "default" else key


def _pool_key(item: ResourceSlice) -> PoolKey:
    return item.spec.driver, item.spec.pool.name


def _places(slices: Iterable[ResourceSlice]) -> frozenset[str]:
    """The nodes that the slices of a pool name, or `_ANYWHERE` alone if one of them names no single node."""
    places = frozenset(item.spec.node_name or _ANYWHERE for item in slices)
    return frozenset((_ANYWHERE,)) if _ANYWHERE in places else places


def _rule_concerns(rule: DeviceTaintRule, key: PoolKey) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, key[0]) and selector.pool in (None, key[1])


def _owner(claim: ResourceClaim | None) -> str | None:
    """UID of the managing controller of a claim."""
    if claim is None or not claim.metadata.owner_references:
        return None
    return next((owner.uid for owner in claim.metadata.owner_references if owner.controller), None)


def _move(index: CowMap[str, tuple[str, ...]], key: str, before: str | None, after: str | None) -> None:
    """Move the key of an object from one entry of an index to another."""
    if before:
        left = tuple(other for other in index.get(before, ()) if other != key)
        if left:
            index[before] = left
        else:
            index.pop(before, None)
    if after:
        index[after] = (*index.get(after, ()), key)


def same_consumer(one: ResourceClaimConsumerReference, other: ResourceClaimConsumerReference) -> bool:
    """Whether two entries of `reservedFor` are one user of the claim.

    Pods are told apart by UID (those that were never in a cluster may have none), groups by name alone (KEP-5729).
    """
    if one.resource == other.resource == "podgroups":
        return (one.api_group, one.name) == (other.api_group, other.name)
    return one == other if not one.uid else one.uid == other.uid


def _results(claim: ResourceClaim | None) -> tuple[DeviceRequestAllocationResult, ...]:
    if claim is None or claim.status is None or claim.status.allocation is None:
        return ()
    return tuple(result for result in claim.status.allocation.devices.results if not result.admin_access)
