"""Finding the plan of a pod: its claims resolved, node by node what it would get there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from dra_alloc.api import (
    AllocationResult,
    Node,
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodStatus,
    ResourceClaim,
    ResourceClaimStatus,
)
from dra_alloc.attempt import signature
from dra_alloc.cluster import MAX_RESERVED, same_consumer
from dra_alloc.errors import AllocationError
from dra_alloc.feasibility import NODE_ERRORS as _OF_CLAIMS
from dra_alloc.features._placement import placement_fault
from dra_alloc.features.binding import BindingState, claim_readiness
from dra_alloc.features.extended import (
    ClassesByResource,
    ExtendedClaim,
    build_claim,
    is_extended,
    is_special_claim,
    served_by_classes,
    totals,
)
from dra_alloc.features.nodeallocatable import (
    NODE_FEATURE,
    AllocatedClaim,
    claim_statuses,
    pod_level_fault,
    uses_mapping,
)
from dra_alloc.features.nodeoperations import NODE_FEATURE as NODE_OPERATIONS
from dra_alloc.features.nodeoperations import node_supports
from dra_alloc.features.noderesources import Amounts, Refusal, fit, footprint, is_node_allocatable, requested_on
from dra_alloc.features.nodesearch import NodeLimits, search_within
from dra_alloc.features.pods.claims import PodClaim, ResolvedPod, consumer_of, prefixed_name, resolve
from dra_alloc.features.pods.plan import FINALIZER, PodPlan, other_user
from dra_alloc.nodeselection import selector_admits

if TYPE_CHECKING:
    from dra_alloc._core import Cancel
    from dra_alloc.allocator import Allocator

__all__ = ["NODE_ERRORS", "Choice", "NodeResources", "PodPlanner", "pod_of"]

NodeResources = Literal["check", "search"]
Choice = Literal["first", "score"]

#: Errors that concern one node; over many nodes the others go on.
NODE_ERRORS = (*_OF_CLAIMS, "node-resources")

#: Nodes asked at once, at first and at most, when one that fits is looked for.
_FIRST_BATCH = 1
_LARGEST_BATCH = 1024


def pod_of(pod: Any, allocator: Allocator) -> Pod:
    """A pod given as model, dict, client object, or name (`namespace/name`) of one in the cluster.

    Raises DraError for what is no pod or not there.
    """
    return allocator.cluster.resolve(pod, Pod)


@attrs.frozen(eq=False)
class _Shape:
    """What a pod asks of a node: its claims, and the draft of the one for extended resources that devices serve."""

    claims: tuple[PodClaim, ...]
    draft: ExtendedClaim | None
    plugin: frozenset[str]

    @property
    def models(self) -> tuple[ResourceClaim, ...]:
        """The claims, each once."""
        return tuple({each.claim.metadata.key: each.claim for each in self.claims}.values())


class PodPlanner:
    """Plans for one pod over the nodes of a cluster as it is now.

    node_resources: "check" looks at the first answer of the search, as Kubernetes does; "search" goes on to answers
    that the node's CPU, memory and the like are enough for (KEP-5517). declared: with node allocatable resources only
    nodes that declare the feature will do. parallel: threads for asking many nodes.

    Raises ValidationError for claims, templates, groups that are not there, and what the allocator raises.
    """

    def __init__(
        self,
        allocator: Allocator,
        pod: Pod,
        *,
        node_resources: NodeResources = "check",
        declared: bool = False,
        cancel: Cancel | None = None,
        parallel: int = 1,
    ) -> None:
        if node_resources not in ("check", "search"):
            raise ValueError(f"node_resources is 'check' or 'search', not {node_resources!r}")
        self._allocator = allocator
        self._cluster = allocator.cluster
        self._features = allocator.features
        self._search = node_resources == "search"
        self._declared = declared
        self._cancel = cancel
        self._parallel = parallel
        self._known = self._cluster.get("Pod", pod.metadata.key) is not None
        self._resolved: ResolvedPod = resolve(pod, self._cluster, self._features, allocator._suffixes)
        self._pod = self._resolved.pod
        self._extended = totals(self._pod)
        self._classes = ClassesByResource(self._cluster.classes()) if self._extended else ClassesByResource(())
        self._special = self._find_special() if self._extended else None
        self._base = footprint(self._pod)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._last: tuple[str, _Shape | Refusal] | None = None
        self._mapped = self._features.DRANodeAllocatableResources and self._cluster.has_node_resources()

    @property
    def pod(self) -> Pod:
        """The pod with a UID and the claims made for it, not bound yet."""
        return self._pod

    @property
    def looks_at_resources(self) -> bool:
        """Whether devices may take resources of their node, so that devices alone do not tell whether the pod fits."""
        return self._mapped

    @property
    def base(self) -> Amounts:
        """What the pod requests of its node, besides what its claims add, in nanos by resource."""
        return self._base

    @property
    def own_claims(self) -> tuple[ResourceClaim, ...]:
        """The claims that are made for the pod alone, whatever the node."""
        return tuple(each.claim for each in self._resolved.claims if each.made and each.consumer.resource == "pods")

    # Questions

    def models(self) -> tuple[ResourceClaim, ...]:
        """The claims of the pod, each once; the one for extended resources, which depends on the node, aside."""
        return tuple({each.claim.metadata.key: each.claim for each in self._resolved.claims}.values())

    def claims_on(self, node: Node) -> tuple[ResourceClaim, ...] | Refusal:
        """All claims that the pod has on a node, or why it cannot run there whatever the devices."""
        shape = self._judge(node)
        return shape if isinstance(shape, Refusal) else shape.models

    def refusal(self) -> Refusal | None:
        """Why the pod fits on no node, as far as its claims alone tell."""
        for each in self._resolved.claims:
            claim = each.claim
            key = claim.metadata.key
            if claim.metadata.deletion_timestamp is not None:
                return _everywhere(f"claim {key} is being deleted")
            status = claim.status
            if status is None or status.allocation is None:
                continue
            reserved = any(same_consumer(other, each.consumer) for other in status.reserved_for)
            if not reserved and len(status.reserved_for) >= MAX_RESERVED:
                return _everywhere(f"claim {key} is reserved for {MAX_RESERVED} consumers, the most it can have")
            ready = claim_readiness(claim, now=self._allocator._clock(), features=self._features)
            if ready.state in (BindingState.FAILED, BindingState.TIMED_OUT):
                return _everywhere(str(ready))
        if self._special is not None and not self._bound:
            key = self._special.metadata.key
            return _everywhere(f"claim {key} was made for the pod in an earlier attempt and must be deleted first")
        return None

    def on_node(self, where: str | Node) -> PodPlan | Refusal:
        """The plan for the pod on a node, or why it does not fit there. Raises what the allocator raises."""
        node = self._allocator._node(where)
        refused = self.refusal()
        shape = self._judge(node) if refused is None else refused
        if isinstance(shape, Refusal):
            return shape
        found = self._allocate(shape, node)
        if found is None:
            return Refusal("not all devices that the claims ask for can be had on the node")
        if isinstance(found, Refusal):
            return found
        allocations, statuses = found
        return self._plan(node, shape, allocations, statuses)

    def candidates(self, nodes: Iterable[str] | None = None, *, all_wanted: bool = False) -> Iterator[str]:
        """Nodes on which the devices can be had and that the pod may run on, in order, found lazily.

        all_wanted: all of them will be looked at, so that they are better asked together. Whether the resources that
        devices are mapped to suffice is not looked at yet.
        """
        if self.refusal() is not None:
            return
        if self._bound and nodes is None:
            nodes = [self._pod.spec.node_name or ""]
        order: Sequence[str] = self._cluster.node_names() if nodes is None else list(nodes)
        if nodes is None and not self._extended and any(_pending(each.claim) for each in self._resolved.claims):
            yield from self._anywhere(all_wanted)
            return
        size = _LARGEST_BATCH if all_wanted else _FIRST_BATCH
        start = 0
        while start < len(order):
            batch = order[start : start + size]
            yield from self._of_batch(batch)
            start += size
            size = min(_LARGEST_BATCH, 4 * size)

    def plans(self, nodes: Iterable[str] | None = None, skip: Callable[[str], bool] | None = None) -> Iterator[PodPlan]:
        """Plans for the nodes on which the pod fits, in order, found lazily. skip: says which nodes to leave out."""
        for name in self.candidates(nodes):
            if skip is not None and skip(name):
                continue
            try:
                plan = self.on_node(name)
            except AllocationError as error:
                if error.kind not in NODE_ERRORS:
                    raise
                continue
            if isinstance(plan, PodPlan):
                yield plan

    def feasible(self, nodes: Iterable[str] | None, limit: int | None) -> list[str]:
        """Names of the nodes on which the pod fits."""
        whole = limit is None
        names = (plan.node for plan in self.plans(nodes)) if self._mapped else self.candidates(nodes, all_wanted=whole)
        if limit is None:
            return list(names)
        return [name for name, _ in zip(names, range(limit), strict=False)]

    def likeness(self, name: str) -> Hashable:
        """What a node is to the pod: nodes of equal likeness differ for it in nothing but their names.

        Pools that reach beyond the node count as different unless they are the same.
        """
        node = self._allocator._node(name)
        shape = self._judge(node)
        if self._mapped:
            return name  # what devices mean for the node is not in the signatures of the search
        if isinstance(shape, Refusal):
            return shape.reason
        ask = self._allocator._ask(shape.models)
        view = ask.inventory.view(node)
        shared = tuple(
            (table.key, visible, elsewhere)
            for table, visible, elsewhere in zip(view.pools, view.visible, view.elsewhere, strict=True)
            if any(item.spec.node_name != name for item in table.slices)
        )
        return (
            id(shape),
            _reaches(shape.models, node),
            signature(ask, view) if ask.question is not None else (),
            shared,
        )

    # Parts

    @property
    def _bound(self) -> bool:
        return bool(self._pod.spec.node_name)

    def _find_special(self) -> ResourceClaim | None:
        """The claim that was made for the pod's extended resources in an earlier attempt."""
        if not self._features.DRAExtendedResource:
            return None
        if not self._bound and not any(self._classes.get(name) for name in self._extended):
            return None  # where no class serves the pod, the scheduler does not look for it
        owned = self._cluster.claims_owned_by(self._pod.metadata.uid or "")
        return next((claim for claim in owned if is_special_claim(claim, self._pod)), None)

    def _anywhere(self, all_wanted: bool) -> Iterator[str]:
        """Candidates among all nodes for claims that do not depend on the node."""
        claims = self.models()
        seen = 0
        limit = None if all_wanted else _FIRST_BATCH
        while True:
            names = self._allocator.feasible_nodes(claims, limit=limit, parallel=self._parallel, cancel=self._cancel)
            for name in names[seen:]:
                if not isinstance(self._judge(self._allocator._node(name)), Refusal):
                    yield name
            if limit is None or len(names) < limit:
                return
            seen = len(names)
            limit *= 4

    def _of_batch(self, names: Sequence[str]) -> Iterator[str]:
        """Candidates among these nodes, those that ask for the same claims together."""
        shapes: dict[str, _Shape] = {}
        for name in names:
            shape = self._judge(self._allocator._node(name))
            if isinstance(shape, _Shape):
                shapes[name] = shape
        feasible: set[str] = set()
        for shape in dict.fromkeys(shapes.values()):
            members = [name for name in shapes if shapes[name] is shape]
            models = shape.models
            if any(_pending(claim) for claim in models):
                found = self._allocator.feasible_nodes(
                    models, nodes=members, parallel=self._parallel, cancel=self._cancel
                )
                feasible.update(found)
            else:
                feasible.update(name for name in members if _reaches(models, self._allocator._node(name)))
        yield from (name for name in names if name in feasible)

    def _judge(self, node: Node) -> _Shape | Refusal:
        """What the pod asks of a node, unless it cannot run there whatever its devices."""
        name = node.metadata.name
        if self._last is None or self._last[0] != name:
            self._last = name, self._judge_anew(node)
        return self._last[1]

    def _judge_anew(self, node: Node) -> _Shape | Refusal:
        fault = placement_fault(self._pod, node)
        if fault is not None:
            return Refusal(fault, unresolvable=True)
        shape = self._shape(node)
        if isinstance(shape, Refusal):
            return shape
        if not node_supports(node, shape.models):
            reason = f"the node does not declare {NODE_OPERATIONS}, which a device of an allocated claim needs"
            return Refusal(reason, unresolvable=True)
        short = fit(self._needed(shape, self._base), self._requested(node), node, shape.plugin)
        return short if short is not None else shape

    def _shape(self, node: Node) -> _Shape | Refusal:
        if self._special is not None:
            entry = PodClaim("", self._special, consumer_of(self._pod))
            return self._shapes.setdefault((), _Shape((*self._resolved.claims, entry), None, frozenset()))
        served = served_by_classes(self._pod, node, self._classes, self._features) if self._extended else {}
        if isinstance(served, Refusal):
            return served
        key = tuple(served)
        shape = self._shapes.get(key)
        if shape is None:
            claims = self._resolved.claims
            draft = build_claim(self._pod, served) if served else None
            if draft is not None:
                claims = (*claims, PodClaim("", draft.claim, consumer_of(self._pod), made=True))
            shape = self._shapes[key] = _Shape(claims, draft, frozenset(self._extended.keys() - served.keys()))
        return shape

    def _needed(self, shape: _Shape, amounts: Amounts) -> Amounts:
        """Amounts without the extended resources that devices serve."""
        if not self._extended:
            return amounts
        return {name: nano for name, nano in amounts.items() if not is_extended(name) or name in shape.plugin}

    def _requested(self, node: Node) -> Any:
        return requested_on(
            self._cluster,
            node.metadata.name,
            with_claims=self._features.DRANodeAllocatableResources,
            without=(self._pod.metadata.key,) if self._bound else (),
        )

    def _allocate(
        self, shape: _Shape, node: Node
    ) -> tuple[list[AllocationResult], tuple[NodeAllocatableResourceClaimStatus, ...]] | Refusal | None:
        """Allocations for the claims of a shape with what they take of the node."""
        models = shape.models
        judge = self._judge_of_resources(shape, node)
        if self._search and self._mapped:
            limits = NodeLimits.of(self._pod, node, self._requested(node))
            return search_within(self._allocator, models, node, limits, judge, self._cancel)
        found = self._allocator.allocate(models, node, cancel=self._cancel)
        if found is None:
            return None
        statuses = judge(found)
        return statuses if isinstance(statuses, Refusal) else (found, statuses)

    def _judge_of_resources(
        self, shape: _Shape, node: Node
    ) -> Callable[[Sequence[AllocationResult]], tuple[NodeAllocatableResourceClaimStatus, ...] | Refusal]:
        """A function that says what allocations take of the node, or why that is too much (KEP-5517)."""
        if not self._mapped:
            return lambda found: ()
        names = _names_by_key(shape)
        models = shape.models
        requested = self._requested(node)
        consumers = {each.claim.metadata.key: each for each in shape.claims}

        def judge(found: Sequence[AllocationResult]) -> tuple[NodeAllocatableResourceClaimStatus, ...] | Refusal:
            allocated = [AllocatedClaim(key, each, result) for (key, each), result in zip(names, found, strict=True)]
            statuses = claim_statuses(self._pod, allocated, node, self._cluster)
            if not statuses:
                return ()
            if self._declared and NODE_FEATURE not in (node.status.declared_features if node.status else ()):
                return Refusal(f"the node does not declare {NODE_FEATURE}", unresolvable=True)
            for claim in models:
                if uses_mapping(statuses, claim.metadata.name):
                    entry = consumers[claim.metadata.key]
                    other = other_user(self._cluster, self._pod, claim, entry.consumer)
                    if other is not None:
                        return Refusal(
                            f"claim {claim.metadata.key} stands for resources of the node, so that one pod alone may "
                            f"use it, and {other} does",
                            unresolvable=True,
                        )
            fault = pod_level_fault(self._pod, statuses)
            if fault is not None:
                return fault
            needed = self._needed(shape, footprint(self._pod, statuses))
            must_have = [name for name in needed if is_node_allocatable(name)]
            return fit(needed, requested, node, (*must_have, *shape.plugin)) or statuses

        return judge

    def _plan(
        self,
        node: Node,
        shape: _Shape,
        allocations: Sequence[AllocationResult],
        statuses: tuple[NodeAllocatableResourceClaimStatus, ...],
    ) -> PodPlan:
        by_key = dict(zip((claim.metadata.key for claim in shape.models), allocations, strict=True))
        pod = self._pod
        draft_key = None
        names: dict[str, str] = {}
        if shape.draft is not None:
            draft = shape.draft.claim
            draft_key = draft.metadata.key
            names[draft.metadata.name] = prefixed_name(draft.metadata.generate_name or "", self._allocator._suffixes())
            pod = _with_status(
                pod,
                extended_resource_claim_status=PodExtendedResourceClaimStatus(
                    request_mappings=shape.draft.mappings, resource_claim_name=names[draft.metadata.name]
                ),
            )
        if statuses:
            renamed = [
                attrs.evolve(each, resource_claim_name=new) if (new := names.get(each.resource_claim_name)) else each
                for each in statuses
            ]
            renamed.sort(key=lambda each: each.resource_claim_name)
            pod = _with_status(pod, node_allocatable_resource_claim_statuses=tuple(renamed))
        claims: dict[str, ResourceClaim] = {}
        consumers = []
        created = []
        allocated = []
        for each in shape.claims:
            old_key = each.claim.metadata.key
            claim = claims.get(old_key) or each.claim
            if old_key == draft_key:
                claim = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, name=names[claim.metadata.name]))
            claim = _served(claim, by_key[old_key], each)
            if old_key not in claims:
                if each.made:
                    created.append(claim.metadata.key)
                if _pending(each.claim):
                    allocated.append(claim.metadata.key)
            claims[old_key] = claim
            consumers.append((claim.metadata.key, each.consumer))
        needed = self._needed(shape, footprint(pod, statuses) if statuses else self._base)
        return PodPlan(
            pod=attrs.evolve(pod, spec=attrs.evolve(pod.spec, node_name=node.metadata.name)),
            node=node.metadata.name,
            claims=tuple(claims.values()),
            created=tuple(created),
            allocated=tuple(allocated),
            consumers=tuple(dict.fromkeys(consumers)),
            group=self._resolved.group,
            resources=needed,
            features=self._features,
            known=self._known,
        )


def _everywhere(reason: str) -> Refusal:
    return Refusal(reason, unresolvable=True, everywhere=True)


def _pending(claim: ResourceClaim) -> bool:
    return claim.status is None or claim.status.allocation is None


def _reaches(claims: Iterable[ResourceClaim], node: Node) -> bool:
    return all(
        claim.status is None
        or claim.status.allocation is None
        or selector_admits(claim.status.allocation.node_selector, node)
        for claim in claims
    )


def _names_by_key(shape: _Shape) -> list[tuple[str, tuple[str, ...]]]:
    """By claim, what the pod calls it."""
    found: dict[str, tuple[str, ...]] = {}
    for each in shape.claims:
        key = each.claim.metadata.key
        found[key] = (*found.get(key, ()), each.name) if each.name else found.get(key, ())
    return list(found.items())


def _with_status(pod: Pod, **fields: Any) -> Pod:
    return attrs.evolve(pod, status=attrs.evolve(pod.status or PodStatus(), **fields))


def _served(claim: ResourceClaim, allocation: AllocationResult, entry: PodClaim) -> ResourceClaim:
    """The claim with its allocation, its finalizer, and reserved for who uses it."""
    status = attrs.evolve(claim.status or ResourceClaimStatus(), allocation=allocation)
    if not any(same_consumer(other, entry.consumer) for other in status.reserved_for):
        status = attrs.evolve(status, reserved_for=(*status.reserved_for, entry.consumer))
    finalizers = claim.metadata.finalizers
    if FINALIZER not in finalizers:
        claim = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=(*finalizers, FINALIZER)))
    return attrs.evolve(claim, status=status)
