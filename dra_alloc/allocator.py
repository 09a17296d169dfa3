"""`Allocator`: which devices claims get on a node, and on which nodes they get any."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence, Set, ValuesView
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc import _core
from dra_alloc._collector import paused_collector
from dra_alloc.api import AllocationResult, Node, Pod, ResourceClaim
from dra_alloc.cluster import Cluster
from dra_alloc.errors import AllocationError, BudgetExceeded, Cancelled, DraError
from dra_alloc.features.adminaccess import check_admin_access
from dra_alloc.gates import Features
from dra_alloc.nodeselection import selector_admits
from dra_alloc.preference import Preferred, best_answer
from dra_alloc.problem import MAX_RESULTS, Question, compile_question, question_key
from dra_alloc.results import build_results
from dra_alloc.rules import capacity_fault

if TYPE_CHECKING:
    from dra_alloc._core import Search
    from dra_alloc.api import Device
    from dra_alloc.explain import Explanation
    from dra_alloc.features.groups import GroupPlan
    from dra_alloc.features.noderesources import Refusal
    from dra_alloc.features.pods import PodPlan
    from dra_alloc.features.pods.planner import Choice, NodeResources, PodPlanner
    from dra_alloc.inventory import Inventory, NodeView, PoolTable
    from dra_alloc.preference import Prefer
    from dra_alloc.problem import Alternative
    from dra_alloc.whatif import Preemption, WhatIf, WhatIfBudget

    Passes = Callable[[Device, str, Sequence[Alternative]], bool]

__all__ = ["Allocation", "Allocator", "Budget"]

#: Kinds of errors that concern one node; over many nodes the others go on.
NODE_ERRORS = ("pool-all", "invalid-pool")

_NO, _YES, _FAULTY, _UNKNOWN = 0, 1, 2, 255

_MAX_QUESTIONS = 256
_MAX_VERDICTS = 1 << 16

#: So many nodes make enough objects for the garbage collector to be in the way.
_MANY = 100

#: What looking at one answer counts as, in steps of the budget.
_ANSWER_STEPS = 1000


@attrs.frozen
class Budget:
    """What one search may cost. Beyond it, BudgetExceeded is raised.

    max_steps: devices taken in a search. timeout: seconds for a call, None for none. memory: bytes of remembered
    states; beyond them the search goes on without remembering more. light_steps: devices taken before the search turns
    to means that cost more and prune more (bounds, remembered states, twins); the answer does not depend on it.
    max_answers: complete answers that `prefer` looks at.
    """

    max_steps: int = 20_000_000
    timeout: float | None = None
    memory: int = 64 << 20
    light_steps: int = 256
    max_answers: int = 10_000


class Allocation(list[AllocationResult]):
    """One AllocationResult for each claim, in order. preferred: what `prefer` came to, None for the first answer."""

    def __init__(self, results: Iterable[AllocationResult] = (), preferred: Preferred | None = None) -> None:
        super().__init__(results)
        self.preferred = preferred


@attrs.frozen(eq=False)
class _Answers:
    """Which nodes can serve a question: one byte for each node in order. `upto` is a position in the cluster's log."""

    order: tuple[str, ...]
    verdicts: bytes
    upto: int


@attrs.frozen(eq=False)
class _Place:
    """A question at one node: the search, and which pool of the view each of its pools is."""

    view: NodeView
    search: Search
    pools: tuple[PoolTable, ...]


@attrs.frozen(eq=False)
class _Ask:
    """Claims of one call: those that are allocated already by place, and the rest as a question."""

    claims: tuple[ResourceClaim, ...]
    pending: tuple[ResourceClaim, ...]
    question: Question | None
    inventory: Inventory


class Allocator:
    """Answers over one cluster, with one set of features. It follows the cluster as it changes.

    features: default is `Features()`, Kubernetes 1.37 as released. share_ids: source of share IDs, called once a share
    in the order of the results. clock: source of `allocationTimestamp`. budget: bounds of each search. suffixes: source
    of the last five letters of the names of claims that are made for pods and groups.

    May be used from several threads; the search itself runs without the GIL.
    """

    def __init__(
        self,
        cluster: Cluster,
        features: Features | None = None,
        *,
        share_ids: Callable[[], str] | None = None,
        clock: Callable[[], datetime] | None = None,
        budget: Budget | None = None,
        suffixes: Callable[[], str] | None = None,
    ) -> None:
        self.cluster = cluster
        self.features = features if features is not None else Features()
        self.budget = budget if budget is not None else Budget()
        self._share_ids = share_ids or (lambda: str(uuid.uuid4()))
        self._clock = clock or (lambda: datetime.now(UTC))
        self._suffixes = suffixes or _random_suffix

    # Public questions

    def allocate(
        self,
        claims: Any,
        node: str | Node,
        *,
        prefer: Prefer = "first",
        cancel: _core.Cancel | None = None,
    ) -> Allocation | None:
        """The devices that the claims get together on a node: one result for each claim in order, or None.

        claims: a claim or several, as api models, dicts, or names (`namespace/name`) of claims in the cluster. Those
        that are allocated already keep what they have. node: its name, or a Node.

        prefer: "first" takes the first answer of the search, as Kubernetes does. "pack" takes devices whose neighbours
        (on one card, else in one pool) are in use, "spread" those whose neighbours are free, and a function of
        `Chosen` devices the answer that it values most; of equals the first. They look at up to `budget.max_answers`
        answers; `preferred` of the result says how many it were, and whether the best is proven.

        Raises AllocationError (its `kind` is one of docs/errors.md), BudgetExceeded, Cancelled, and DraError for a
        claim or node that is not there. The cluster is not changed: `cluster.commit` does that.
        """
        found_node = self._node(node)
        with self.cluster._caches.lock:
            ask = self._ask(claims)
            if not _reachable(ask, found_node):
                return None
            if ask.question is None:
                return Allocation(_kept(claim) for claim in ask.claims)
            place = self._place(ask, found_node)
        answer, preferred = self._search(ask, place, cancel, prefer)
        if answer is None:
            return None
        return Allocation(self._results(ask, place, answer, found_node, self._share_ids), preferred)

    def feasible_nodes(
        self,
        claims: Any = None,
        nodes: Iterable[str] | None = None,
        *,
        pod: Any = None,
        node_resources: NodeResources = "check",
        limit: int | None = None,
        parallel: int | None = None,
        cancel: _core.Cancel | None = None,
    ) -> list[str]:
        """Names of the nodes on which the claims could be allocated, in the order of the cluster.

        nodes: only these, in this order. limit: stop at so many. parallel: threads to search with (default 1); the
        answer is the same. Nodes that look the same to the claims share one search, and answers are remembered until
        something that matters to a node changes.

        pod: ask for a pod (model, dict, or name) instead of claims, with all that `allocate_pod` looks at;
        node_resources as there.

        Raises as `allocate` does, but for errors that concern one node (`pool-all`, `invalid-pool`): the others go on.
        """
        if pod is not None:
            if claims is not None:
                raise ValueError("feasible_nodes takes claims or a pod, not both")
            planner = self._planner(pod, node_resources=node_resources, cancel=cancel, parallel=parallel or 1)
            return planner.feasible(nodes, limit)
        with self.cluster._caches.lock:
            ask = self._ask(() if claims is None else claims)
            return self._feasible(ask, nodes, limit, parallel or 1, cancel)

    # Pods and groups

    def allocate_pod(
        self,
        pod: Any,
        node: str | Node | None = None,
        *,
        nodes: Iterable[str] | None = None,
        choose: Choice = "first",
        node_resources: NodeResources = "check",
        declared: bool = False,
        cancel: _core.Cancel | None = None,
    ) -> PodPlan | None:
        """What becomes of a pod: its claims with their devices, and all that is to be written; None: it does not fit.

        The pod's claims are those it names, those of its templates and of its PodGroup (made if they do not exist yet),
        and the one for its extended resources. Besides devices, the pod's node selector, required node affinity and
        tolerations count, and what is left of the resources that the node publishes.

        pod: model, dict, or name (`namespace/name`) of a pod in the cluster. node: plan for this one. nodes: choose
        among these, default all. choose: "first" takes the first node in order on which the pod fits, "score" the one
        with the best score of prioritized lists (KEP-4816). node_resources: "check" judges the first answer of the
        search as Kubernetes does, "search" goes on to one that CPU, memory and the like of the node suffice for
        (KEP-5517). declared: give such resources only on nodes that list DRANodeAllocatableResources in
        `status.declaredFeatures`.

        Raises what `allocate` raises (over many nodes, errors that concern one node let the others go on),
        ValidationError for claims, templates and groups that are not there, AllocationError `node-resources` for a
        device whose part of the node cannot be told. `cluster.commit(plan)` writes the plan.
        """
        if choose not in ("first", "score"):
            raise ValueError(f"choose is 'first' or 'score', not {choose!r}")
        planner = self._planner(pod, node_resources=node_resources, declared=declared, cancel=cancel)
        if node is not None:
            from dra_alloc.features.pods import PodPlan

            found = planner.on_node(node)
            return found if isinstance(found, PodPlan) else None
        plans = planner.plans(nodes)
        return next(plans, None) if choose == "first" else max(plans, key=lambda plan: plan.score, default=None)

    def refusal(self, pod: Any, node: str | Node, *, node_resources: NodeResources = "check") -> Refusal | None:
        """Why a pod does not fit on a node, in words; None if it does. Arguments and errors as of `allocate_pod`."""
        from dra_alloc.features.noderesources import Refusal

        found = self._planner(pod, node_resources=node_resources).on_node(node)
        return found if isinstance(found, Refusal) else None

    def allocate_group(
        self,
        group: Any,
        *,
        nodes: Iterable[str] | None = None,
        min_count: int | None = None,
        max_tries: int = 10_000,
        node_resources: NodeResources = "check",
        cancel: _core.Cancel | None = None,
    ) -> GroupPlan | None:
        """Plan pods as a unit, their nodes chosen together: all of them, or as many as can be had, or none.

        group: a PodGroup (model, dict, or name), whose pods are those of the cluster that name it and have no node yet;
        or pods. min_count: the fewest pods, those of the group that run already included; default is the group's
        `schedulingPolicy.gang.minCount`, otherwise all. max_tries: pods placed at most while nodes are tried; together
        with the budget's timeout it bounds the call.

        Returns None if it is certain that there is no plan; raises BudgetExceeded if that is not known. Else as
        `allocate_pod`. `cluster.commit(plan)` writes the plan in one step.
        """
        from dra_alloc.features.groups import plan_group

        return plan_group(
            self,
            group,
            nodes=nodes,
            min_count=min_count,
            max_tries=max_tries,
            node_resources=node_resources,
            cancel=cancel,
        )

    def score(
        self,
        claims: Any = None,
        nodes: Iterable[str] | None = None,
        *,
        pod: Any = None,
        normalized: bool = False,
    ) -> dict[str, int]:
        """The score of prioritized lists (KEP-4816) of each node on which claims, or a pod, fit; in order of the nodes.

        normalized: from 0 to 100 relative to the best of these nodes. Raises as `feasible_nodes` does.
        """
        from dra_alloc.features.score import normalize, score_allocations

        if pod is not None:
            if claims is not None:
                raise ValueError("score takes claims or a pod, not both")
            scores = {plan.node: plan.score for plan in self._planner(pod).plans(nodes)}
        else:
            models = self._claims(() if claims is None else claims)
            scores = {}
            ranked = any(request.first_available for model in models for request in model.spec.devices.requests)
            for name in self.feasible_nodes(models, nodes):
                found = self.allocate(models, name) if ranked else None
                pairs = () if found is None else zip(models, found, strict=True)
                scores[name] = score_allocations(pairs, self.features)
        return normalize(scores) if normalized else scores

    def _over(self, cluster: Cluster) -> Allocator:
        """The same allocator over another cluster."""
        other = copy(self)
        other.cluster = cluster
        return other

    def _planner(
        self,
        pod: Any,
        *,
        node_resources: NodeResources = "check",
        declared: bool = False,
        cancel: _core.Cancel | None = None,
        parallel: int = 1,
    ) -> PodPlanner:
        from dra_alloc.features.pods.planner import PodPlanner, pod_of

        model = pod_of(pod, self)
        return PodPlanner(
            self, model, node_resources=node_resources, declared=declared, cancel=cancel, parallel=parallel
        )

    def explain(
        self,
        claims: Any = None,
        node: str | Node | None = None,
        *,
        pod: Any = None,
        nodes: Iterable[str] | None = None,
        node_resources: NodeResources = "check",
    ) -> Explanation:
        """Why claims or a pod fit, or do not: on one node, or on many (default: all of the cluster) grouped by reason.

        claims: as for `allocate`. pod: model, dict, or name (`namespace/name`) instead, with all that `allocate_pod`
        looks at; a Pod may be given in the place of claims. node: explain this one in full. nodes: only these.

        `fits` is true exactly when `allocate` or `allocate_pod` gives an answer on the node, or `feasible_nodes` names
        one. Errors of the attempt, claims of the pod that are not there, and a search that ran out of budget are part
        of the explanation; DraError is raised for a claim, pod or node that is not there.
        """
        from dra_alloc.explain import explain, explain_pod

        if isinstance(claims, Pod):
            claims, pod = None, claims
        if (claims is None) == (pod is None):
            raise ValueError("explain takes claims or a pod")
        with self.cluster._caches.lock:
            if pod is not None:
                return explain_pod(self, pod, node, nodes=nodes, node_resources=node_resources)
            return explain(self, claims, node, nodes=nodes)

    def whatif(
        self,
        claims: Any = None,
        node: str | Node | None = None,
        *,
        pod: Any = None,
        nodes: Iterable[str] | None = None,
        budget: WhatIfBudget | None = None,
    ) -> WhatIf:
        """What would make claims or a pod fit: the cheapest changes first, each tried in a fork of the cluster.

        Arguments as of `explain`. budget: bounds of trials, nodes, changes together, remedies and time. No change of a
        remedy can be left out. Costs are in `dra_alloc.whatif.model.COSTS`.
        """
        from dra_alloc.whatif import whatif

        if isinstance(claims, Pod):
            claims, pod = None, claims
        if (claims is None) == (pod is None):
            raise ValueError("whatif takes claims or a pod")
        return whatif(self, claims, node, pod=pod, nodes=nodes, budget=budget)

    def preempt(self, pod: Any, *, nodes: Iterable[str] | None = None, max_trials: int = 10_000) -> Preemption | None:
        """Which pods of lower priority would have to leave a node for a pod; None: no preemption would help.

        Chosen as the scheduler of Kubernetes does: on each node all pods of lower priority but those that can stay, the
        most important first; of the nodes the one with the lowest highest priority among its victims, then the lowest
        sum of priorities, then the fewest victims, then the latest start of the most important victim, then the first.
        Disruption budgets (PodDisruptionBudget) are not looked at. A pod that fits as it is has no victims.

        Raises BudgetExceeded after `max_trials` attempts, and what `allocate_pod` raises.
        """
        from dra_alloc.whatif import preempt

        return preempt(self, pod, nodes=nodes, max_trials=max_trials)

    # From claims to a question

    def _ask(self, claims: Any) -> _Ask:
        found = self._claims(claims)
        cluster = self.cluster
        strangers = [
            claim
            for claim in found
            if _allocation(claim) is not None and cluster.get("ResourceClaim", claim.metadata.key) != claim
        ]
        if strangers:
            # Claims that are allocated but not in the cluster hold their devices all the same.
            cluster = cluster.fork()
            cluster.upsert(*strangers)
        pending = tuple(claim for claim in found if _allocation(claim) is None)
        question = self._question(pending) if pending else None
        if question is not None and question.tables.any_privileged:
            check_admin_access(pending, cluster)
        return _Ask(found, pending, question, cluster.inventory(self.features))

    def _claims(self, claims: Any) -> tuple[ResourceClaim, ...]:
        # Client objects may be iterable, too: only what is plainly a collection holds several claims.
        if not isinstance(claims, (list, tuple, Set, ValuesView, Iterator)):
            claims = (claims,)
        found: dict[str, ResourceClaim] = {}
        for claim in claims:
            model = self._claim(claim)
            key = model.metadata.key
            if key in found:
                raise DraError(f"claim {key} is asked for twice")
            found[key] = model
        return tuple(found.values())

    def _claim(self, claim: Any) -> ResourceClaim:
        if isinstance(claim, ResourceClaim):
            return claim
        if isinstance(claim, str):
            known: ResourceClaim | None = self.cluster.get("ResourceClaim", claim)
            if known is None:
                raise DraError(f"there is no ResourceClaim {claim!r} in the cluster; claims are named namespace/name")
            return known
        from dra_alloc.codec import decode

        model = decode(claim)
        if not isinstance(model, ResourceClaim):
            raise DraError(f"a ResourceClaim is needed here, not a {model.kind}")
        return model

    def _node(self, node: Any) -> Node:
        if isinstance(node, str):
            found: Node | None = self.cluster.get("Node", node)
            if found is None:
                raise DraError(f"there is no node {node!r} in the cluster")
            return found
        if isinstance(node, Node):
            return node
        from dra_alloc.codec import decode

        model = decode(node)
        if not isinstance(model, Node):
            raise DraError(f"a Node is needed here, not a {model.kind}")
        return model

    def _question(self, claims: tuple[ResourceClaim, ...]) -> Question:
        key = question_key(claims, self.cluster, self.features)
        questions = self.cluster._caches.questions
        question = questions.pop(key, None)
        if question is None or question.is_overgrown():
            question = compile_question(claims, self.cluster, self.features)
        questions[key] = question  # the last in the dict is the last used
        if len(questions) > _MAX_QUESTIONS:
            del questions[next(iter(questions))]
        found: Question = question
        return found

    # From a question and a node to a search

    def _place(self, ask: _Ask, node: Node, passes: Passes | None = None) -> _Place:
        """passes: says of a device, its driver and all alternatives of the question whether it is offered at all."""
        assert ask.question is not None
        question, inventory = ask.question, ask.inventory
        view = inventory.view(node)
        if passes is not None and not question.has_every:
            view = attrs.evolve(view, elsewhere=_passed_over(view, question, passes))
        search = _core.Search(question.tables)
        pools = []
        for table, visible, elsewhere in zip(view.pools, view.visible, view.elsewhere, strict=True):
            rows = question.rows(table)
            if not len(rows):
                continue
            state = inventory.state(table)
            shares = None
            if state.shares:
                shares = {index: question.room_left(table, index, used) for index, used in state.shares.items()}
            wide = None
            if table.has_wide or question.any_wide:
                wide = question.wide_amounts(table, state)
            search.add_pool(rows, visible, elsewhere, state.held, state.available, bool(state.vanished), shares, wide)
            for number, groups in state.members:
                search.join_groups(number, question.groups(groups))
            pools.append(table)
        search.prepare()
        return _Place(view, search, tuple(pools))

    def _signature(self, ask: _Ask, view: NodeView) -> tuple[object, ...]:
        """What a node is to the question: equal signatures, equal verdicts."""
        assert ask.question is not None
        question, inventory = ask.question, ask.inventory
        parts: list[object] = []
        for table, visible, elsewhere in zip(view.pools, view.visible, view.elsewhere, strict=True):
            state = inventory.state(table)
            signature = question.rows(table).signature(visible, elsewhere, state.held)
            if signature:
                parts.append(signature)
                if table.sets:
                    parts.append(table.layout)
                    parts.append(bool(state.vanished))
                if state.digest is not None:
                    parts.append(state.digest)
        if view.faulty:
            parts.append(tuple(sorted({table.fault for table in view.faulty})))
        return tuple(parts)

    def _allocate_where(
        self,
        claims: Sequence[ResourceClaim],
        node: Node,
        accepts: Callable[[list[AllocationResult]], bool],
        passes: Passes,
        hopeless: Callable[[list[list[tuple[int, list[tuple[Device, str]], Alternative]]]], bool],
        cancel: _core.Cancel | None,
    ) -> list[AllocationResult] | None:
        """As `allocate`, but the first answer that is accepted.

        passes: see `_place`. hopeless: told by slot the alternatives (count, candidates with drivers, alternative), it
        says that no answer would be accepted; not asked where an error could come first.
        """
        with self.cluster._caches.lock:
            ask = self._ask(claims)
            if not _reachable(ask, node):
                return None
            if ask.question is None:
                kept = [_kept(claim) for claim in ask.claims]
                return kept if accepts(kept) else None
            place = self._place(ask, node, passes)
        question = ask.question
        self._check_before(ask, place)
        candidates = _candidates(question, place)
        if candidates is not None and hopeless(candidates):
            # Only to be able to say why: the first answer there is.
            answer = self._conclude(ask, place, self._run(place.search, self._deadline(), cancel))
            if answer is not None:
                accepts(self._results(ask, place, answer, node, _no_share))
            return None
        most = max(1, self.budget.max_steps // _ANSWER_STEPS)
        seen = 0

        def visitor(answer: list[Any]) -> bool:
            nonlocal seen
            seen += 1
            return seen <= most and not accepts(self._results(ask, place, answer, node, _no_share))

        outcome = place.search.visit(visitor, self.budget.max_steps, self._deadline(), cancel)
        if seen > most:
            raise BudgetExceeded(
                f"node {node.metadata.name}: {most} answers of the search have been looked at, and none leaves enough "
                "of the node's resources; whether another does is not known",
                steps=place.search.steps,
            )
        answer = self._conclude(ask, place, outcome)
        return None if answer is None else self._results(ask, place, answer, node, self._share_ids)

    def _results(
        self, ask: _Ask, place: _Place, answer: list[Any], node: Node, share_ids: Callable[[], str]
    ) -> list[AllocationResult]:
        """One result for each claim that was asked for."""
        assert ask.question is not None
        fresh = iter(build_results(ask.question, ask.pending, node, place.pools, answer, share_ids, self._clock))
        return [next(fresh) if _allocation(claim) is None else _kept(claim) for claim in ask.claims]

    # Searching

    def _search(
        self, ask: _Ask, place: _Place, cancel: _core.Cancel | None, prefer: Prefer = "first"
    ) -> tuple[list[Any] | None, Preferred | None]:
        """The answer of the search, None if there is none, and what a preference has to say; errors are raised."""
        self._check_before(ask, place)
        if prefer == "first":
            return self._conclude(ask, place, self._run(place.search, self._deadline(), cancel)), None
        if isinstance(prefer, str) and prefer not in ("pack", "spread"):
            raise ValueError(f"prefer is 'first', 'pack', 'spread' or a function, not {prefer!r}")
        assert ask.question is not None
        outcome, preferred = best_answer(
            ask.question,
            [claim.metadata.key for claim in ask.pending],
            place.search,
            [(table, ask.inventory.state(table)) for table in place.pools],
            prefer,
            self.budget.max_answers,
            self.budget.max_steps,
            self._deadline(),
            cancel,
        )
        return self._conclude(ask, place, outcome), preferred

    def _deadline(self) -> float:
        return 0.0 if self.budget.timeout is None else time.monotonic() + self.budget.timeout

    def _run(self, search: Search, deadline: float, cancel: _core.Cancel | None) -> tuple[str, Any]:
        budget = self.budget
        return search.run(budget.max_steps, deadline, budget.memory, cancel, budget.light_steps)

    def _check_before(self, ask: _Ask, place: _Place) -> None:
        """Errors that show before the search on this node: what `All` means, and how many devices that makes."""
        question = ask.question
        assert question is not None
        fewest = [0] * len(ask.pending)
        for number, slot in enumerate(question.slots):
            counts = []
            for position, alternative in enumerate(slot.alternatives):
                if alternative.every:
                    counts.append(self._count_every(ask, place, number, position))
                else:
                    counts.append(alternative.count)
            fewest[slot.claim] += min(counts)
            last = number + 1 == len(question.slots) or question.slots[number + 1].claim != slot.claim
            if last and fewest[slot.claim] > MAX_RESULTS:
                raise AllocationError(
                    "too-many-devices",
                    f"at least {fewest[slot.claim]} devices are asked for; a claim can have at most {MAX_RESULTS}",
                    claim=ask.pending[slot.claim].metadata.key,
                )

    def _count_every(self, ask: _Ask, place: _Place, number: int, position: int) -> int:
        assert ask.question is not None
        devices = place.search.every_list(number, position)
        broken = next((each for each in devices if each[2] in (_core.CODE_BROKEN, _core.CODE_MALFORMED)), None)
        faulty = place.view.faulty
        if faulty and (broken is None or _comes_before(faulty[0], place.pools[broken[0]], place.view)):
            slot = ask.question.slots[number]
            raise AllocationError(
                "pool-all",
                f"all devices are asked for, but {faulty[0].reason}",
                claim=ask.pending[slot.claim].metadata.key,
                request=slot.alternatives[position].reference,
                node=place.view.node.metadata.name,
            )
        if broken is not None:
            kind = "broken-selector" if broken[2] == _core.CODE_BROKEN else "malformed-request"
            raise self._error(ask, place, (kind, number, position, broken[0], broken[1], -1))
        return len(devices)

    def _conclude(self, ask: _Ask, place: _Place, outcome: tuple[str, Any]) -> list[Any] | None:
        result, payload = outcome
        if result == "found":
            answer: list[Any] = payload
            return answer
        if result == "error":
            raise self._error(ask, place, payload)
        if result == "spent":
            raise self._spent(ask, place, payload)
        invalid = next((table for table in place.view.faulty if table.fault == "invalid"), None)
        if invalid is not None:
            raise AllocationError(
                "invalid-pool", f"nothing fits, and {invalid.reason}", node=place.view.node.metadata.name
            )
        return None

    def _error(self, ask: _Ask, place: _Place, payload: tuple[str, int, int, int, int, int]) -> AllocationError:
        """The error that a search came to, with its words."""
        question = ask.question
        assert question is not None
        kind, number, position, pool, index, constraint = payload
        slot = question.slots[number]
        alternative = slot.alternatives[position]
        table = place.pools[pool]
        device: Device = table.devices[index]
        driver = table.key[0]
        claim = ask.pending[slot.claim]
        where = {
            "claim": claim.metadata.key,
            "request": alternative.reference,
            "device": "/".join((*table.key, device.name)),
        }
        if kind == "broken-selector":
            which, error = question.selector_error(alternative.type, driver, device)
            of_class = alternative.type.class_selectors
            origin = (
                f"selector {which} of DeviceClass {alternative.type.device_class.metadata.name}"
                if which < of_class
                else f"selector {which - of_class} of the request"
            )
            raised = AllocationError("cel", f"{origin}: {error}", **where)
            raised.__cause__ = error
            return raised
        if kind == "broken-value":
            error = question.derived_error(number, position, constraint, driver, device)
            raised = AllocationError("cel", f"derived attribute: {error}", **where)
            raised.__cause__ = error
            return raised
        if kind == "malformed-request":
            return AllocationError("capacity", capacity_fault(alternative.type.capacity, driver), **where)
        first = sum(len(other.spec.devices.constraints) for other in ask.pending[: slot.claim])
        position = constraint - first
        rule = claim.spec.devices.constraints[position]
        attribute = rule.match_attribute or rule.distinct_attribute
        return AllocationError(
            "all-violates-constraint",
            f"all devices are asked for, but spec.devices.constraints[{position}] ({attribute}) does not allow "
            "this one together with the others",
            **where,
        )

    def _spent(self, ask: _Ask, place: _Place, reason: str) -> DraError:
        assert ask.question is not None
        if reason == "cancelled":
            return Cancelled("the search was cancelled")
        hard = []
        for number, _ in place.search.hard_slots()[:3]:
            slot = ask.question.slots[number]
            hard.append(f"{ask.pending[slot.claim].metadata.key}/{slot.request.name}")
        steps = place.search.steps
        limit = {
            "steps": f"of {self.budget.max_steps} steps",
            "time": f"of {self.budget.timeout} s",
            "depth": "of devices in one question",
        }[reason]
        return BudgetExceeded(
            f"node {place.view.node.metadata.name}: the search ran out of its budget {limit} after {steps} steps, most "
            f"of them for {', '.join(hard) or 'nothing'}; whether the claims fit is not known",
            steps=steps,
            hard=hard,
        )

    # Many nodes

    def _feasible(
        self,
        ask: _Ask,
        nodes: Iterable[str] | None,
        limit: int | None,
        parallel: int,
        cancel: _core.Cancel | None,
    ) -> list[str]:
        order = self.cluster.node_names()
        if limit is not None and limit < 1:
            return []
        held = [claim for claim in ask.claims if _allocation(claim) is not None]
        if nodes is None and not held and ask.question is not None:
            return self._feasible_anywhere(ask, order, limit, parallel, cancel)
        places = {name: number for number, name in enumerate(order)}
        wanted = []
        for name in order if nodes is None else nodes:
            node = self._node(name)
            if all(selector_admits(_kept(claim).node_selector, node) for claim in held):
                wanted.append(places[name])
        if ask.question is None:
            return [order[number] for number in wanted][:limit]
        verdicts = self._known(ask, order)
        found = []
        step = 1 if limit is not None else max(1, len(wanted))
        for start in range(0, len(wanted), step):
            self._judge(ask, order, verdicts, wanted[start : start + step], parallel, cancel)
            found += [order[number] for number in wanted[start : start + step] if verdicts[number] == _YES]
            if limit is not None and len(found) >= limit:
                break
        self._remember(ask, order, verdicts)
        return found

    def _feasible_anywhere(
        self, ask: _Ask, order: tuple[str, ...], limit: int | None, parallel: int, cancel: _core.Cancel | None
    ) -> list[str]:
        verdicts = self._known(ask, order)
        if limit is None:
            unknown = [number for number, verdict in enumerate(verdicts) if verdict == _UNKNOWN]
            if unknown:
                self._judge(ask, order, verdicts, unknown, parallel, cancel)
            self._remember(ask, order, verdicts)
            return [name for name, verdict in zip(order, verdicts, strict=True) if verdict == _YES]
        found: list[str] = []
        place = 0
        while len(found) < limit:
            yes = verdicts.find(_YES, place)
            unknown_at = verdicts.find(_UNKNOWN, place, yes if yes >= 0 else len(verdicts))
            if unknown_at >= 0:
                self._judge(ask, order, verdicts, [unknown_at], 1, cancel)
                place = unknown_at
                continue
            if yes < 0:
                break
            found.append(order[yes])
            place = yes + 1
        self._remember(ask, order, verdicts)
        return found

    def _known(self, ask: _Ask, order: tuple[str, ...]) -> bytearray:
        """The verdicts that still hold, by node."""
        cluster = ask.inventory.cluster
        assert ask.question is not None
        answers: _Answers | None = cluster._answers.get((ask.question.number, self.features))
        if answers is not None and answers.order is order:
            touched = cluster.touched_since(answers.upto)
            if touched is not None and None not in touched:
                verdicts = bytearray(answers.verdicts)
                names = {name for each in touched for name in each or ()}
                if names:
                    places = cluster.node_places()
                    for name in names:
                        number = places.get(name)
                        if number is not None:
                            verdicts[number] = _UNKNOWN
                return verdicts
        return bytearray(b"\xff") * len(order)

    def _remember(self, ask: _Ask, order: tuple[str, ...], verdicts: bytearray) -> None:
        assert ask.question is not None
        answers = ask.inventory.cluster._answers
        answers.pop((ask.question.number, self.features), None)
        answers[ask.question.number, self.features] = _Answers(order, bytes(verdicts), ask.inventory.cluster.log_end())
        if len(answers) > _MAX_QUESTIONS:
            del answers[next(iter(answers))]

    def _judge(
        self,
        ask: _Ask,
        order: tuple[str, ...],
        verdicts: bytearray,
        numbers: Sequence[int],
        parallel: int,
        cancel: _core.Cancel | None,
    ) -> None:
        """Find out the verdicts of nodes that are not known yet. Raises the first error in the order of the nodes."""
        assert ask.question is not None
        known = ask.question.verdicts
        if len(known) > _MAX_VERDICTS:
            known.clear()
        nodes = self.cluster._objects["Node"]
        deadline = self._deadline()
        waiting: dict[tuple[object, ...], list[int]] = {}
        with paused_collector() if len(numbers) > _MANY else nullcontext():
            for number in numbers:
                if verdicts[number] != _UNKNOWN:
                    continue
                node = nodes[order[number]]
                signature = self._signature(ask, ask.inventory.view(node))
                verdict = known.get(signature)
                if verdict is not None:
                    verdicts[number] = verdict
                elif parallel > 1:
                    waiting.setdefault(signature, []).append(number)
                else:
                    verdicts[number] = known[signature] = self._verdict(ask, node, deadline, cancel)
        if not waiting:
            return
        places = {each[0]: self._place(ask, nodes[order[each[0]]]) for each in waiting.values()}
        with ThreadPoolExecutor(parallel) as pool:
            outcomes = {
                number: pool.submit(self._outcome, ask, place, deadline, cancel) for number, place in places.items()
            }
            # In the order of the nodes, so that the first error is the one that a single thread would have met.
            for signature, members in waiting.items():
                verdict = outcomes[members[0]].result()
                known[signature] = verdict
                for number in members:
                    verdicts[number] = verdict

    def _verdict(self, ask: _Ask, node: Node, deadline: float, cancel: _core.Cancel | None) -> int:
        return self._outcome(ask, self._place(ask, node), deadline, cancel)

    def _outcome(self, ask: _Ask, place: _Place, deadline: float, cancel: _core.Cancel | None) -> int:
        try:
            self._check_before(ask, place)
            answer = self._conclude(ask, place, self._run(place.search, deadline, cancel))
        except AllocationError as error:
            if error.kind in NODE_ERRORS:
                return _FAULTY
            raise
        return _NO if answer is None else _YES


def _random_suffix() -> str:
    from dra_alloc.features.pods.claims import random_suffix

    return random_suffix()


def _no_share() -> str:
    """Stands for the share IDs of answers that are looked at and may not be given."""
    return ""


def _passed_over(view: NodeView, question: Question, passes: Passes) -> tuple[bytes | None, ...]:
    """`elsewhere` of a view, with the devices that do not pass."""
    alternatives = [alternative for slot in question.slots for alternative in slot.alternatives]
    found: list[bytes | None] = []
    for table, elsewhere in zip(view.pools, view.elsewhere, strict=True):
        barred = bytes(not passes(device, table.key[0], alternatives) for device in table.devices)
        if elsewhere is not None:
            barred = bytes(one | other for one, other in zip(barred, elsewhere, strict=True))
        found.append(barred if any(barred) else None)
    return tuple(found)


def _candidates(
    question: Question, place: _Place
) -> list[list[tuple[int, list[tuple[Device, str]], Alternative]]] | None:
    """By slot, its alternatives with all devices that could serve them; None where one of them may be an error."""
    if question.has_every or any(table.derived is not None for table in question._value_tables):
        return None
    found = []
    for number, slot in enumerate(question.slots):
        members = []
        for position, alternative in enumerate(slot.alternatives):
            devices = place.search.every_list(number, position)
            if any(code in (_core.CODE_BROKEN, _core.CODE_MALFORMED) for _, _, code in devices):
                return None
            named = [(place.pools[pool].devices[index], place.pools[pool].key[0]) for pool, index, _ in devices]
            members.append((alternative.count, named, alternative))
        found.append(members)
    return found


def _allocation(claim: ResourceClaim) -> AllocationResult | None:
    return claim.status.allocation if claim.status is not None else None


def _kept(claim: ResourceClaim) -> AllocationResult:
    allocation = _allocation(claim)
    assert allocation is not None
    return allocation


def _reachable(ask: _Ask, node: Node) -> bool:
    """Whether all claims that are allocated already can be used on the node."""
    return all(
        selector_admits(allocation.node_selector, node)
        for allocation in map(_allocation, ask.claims)
        if allocation is not None
    )


def _comes_before(faulty: PoolTable, other: PoolTable, view: NodeView) -> bool:
    """Whether a faulty pool is looked at before another; pools with binding conditions come last."""
    return view.pools.index(other) >= view.late or faulty.key < other.key
