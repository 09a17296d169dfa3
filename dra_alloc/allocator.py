"""`Allocator`: which devices claims get on a node, and on which nodes they get any."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence, Set, ValuesView
from copy import copy
from datetime import UTC, datetime
from operator import is_
from typing import TYPE_CHECKING, Any

from dra_alloc import _core
from dra_alloc.api import AllocationResult, Node, Pod, ResourceClaim
from dra_alloc.attempt import Ask, Attempt, Budget, allocation_of
from dra_alloc.cluster import Cluster
from dra_alloc.errors import BudgetExceeded, DraError
from dra_alloc.feasibility import NODE_ERRORS, Feasibility
from dra_alloc.features.adminaccess import check_admin_access
from dra_alloc.gates import Features
from dra_alloc.preference import Preferred
from dra_alloc.problem import Question, compile_question, question_key

if TYPE_CHECKING:
    from dra_alloc.attempt import Candidates, Passes
    from dra_alloc.explain import Explanation
    from dra_alloc.features.groups import GroupPlan
    from dra_alloc.features.noderesources import Refusal
    from dra_alloc.features.pods import PodPlan
    from dra_alloc.features.pods.planner import Choice, NodeResources, PodPlanner
    from dra_alloc.preference import Prefer
    from dra_alloc.tables import Table
    from dra_alloc.whatif import Preemption, WhatIf, WhatIfBudget

__all__ = ["NODE_ERRORS", "Allocation", "Allocator", "Budget"]

#: Compiled questions that a cluster and its forks keep.
_MAX_QUESTIONS = 256

#: What looking at one answer counts as, in steps of the budget.
_ANSWER_STEPS = 1000


class Allocation(list[AllocationResult]):
    """One AllocationResult for each claim, in order. preferred: what `prefer` came to, None for the first answer."""

    def __init__(self, results: Iterable[AllocationResult] = (), preferred: Preferred | None = None) -> None:
        super().__init__(results)
        self.preferred = preferred

    def table(self) -> Table:
        """One row for each device, for pandas, polars and CSV. `claim` is the place of the claim in the question."""
        from dra_alloc.tables import Table

        rows = [
            (place, each.request, each.driver, each.pool, each.device, each.share_id)
            for place, result in enumerate(self)
            for each in result.devices.results
        ]
        columns = ("claim", "request", "driver", "pool", "device", "share")
        return Table.of(columns, rows, integers=("claim",))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


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
        if not isinstance(cluster, Cluster):
            raise TypeError(f"Allocator takes a Cluster, not {type(cluster).__name__}; Cluster.from_objects makes one")
        if features is not None and not isinstance(features, Features):
            raise TypeError(f"features are Features(…), Features.for_version(…) or Features.all(), not {features!r}")
        if budget is not None and not isinstance(budget, Budget):
            raise TypeError(f"budget is a Budget(…), not {budget!r}")
        self.cluster = cluster
        self.features = features if features is not None else Features()
        self.budget = budget if budget is not None else Budget()
        self._share_ids = share_ids or _random_share_id
        self._clock = clock or _now
        self._suffixes = suffixes or _random_suffix
        # A scheduler asks for the same claims node by node: what they ask for is looked up once.
        self._last_ask: tuple[int, Cluster, tuple[ResourceClaim, ...], Ask] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold no compiled questions. Sources that were given must be picklable themselves."""
        return {**vars(self), "_last_ask": None}

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
            if not ask.reaches(found_node):
                return None
            if ask.question is None:
                return Allocation(ask.kept())
            if ask.is_refused(found_node):
                return None
            attempt = Attempt.at(ask, found_node, self.budget)
        deadline = self.budget.deadline()
        preferred = None
        if prefer == "first":
            answer = attempt.answer(deadline, cancel)
        else:
            answer, preferred = attempt.best(prefer, deadline, cancel)
        if answer is None:
            return None
        return Allocation(attempt.results(answer, self._share_ids, self._clock), preferred)

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
        _refuse_one(nodes)
        if pod is not None:
            if claims is not None:
                raise ValueError("feasible_nodes takes claims or a pod, not both")
            planner = self._planner(pod, node_resources=node_resources, cancel=cancel, parallel=parallel or 1)
            return planner.feasible(nodes, limit)
        with self.cluster._caches.lock:
            ask = self._ask(() if claims is None else claims)
            if limit is not None and limit < 0:
                raise ValueError(f"limit is a number of nodes, not {limit}")
            if parallel is not None and parallel < 1:
                raise ValueError(f"parallel is a number of threads, not {parallel}")
            if limit == 0:
                return []
            names = None if nodes is None else [self._node(name).metadata.name for name in nodes]
            if names is None and len(ask.pending) < len(ask.claims):
                names = list(self.cluster.node_names())
            if names is not None:
                names = [name for name in names if ask.reaches(self._node(name))]
            if ask.question is None:
                return (list(self.cluster.node_names()) if names is None else names)[:limit]
            verdicts = Feasibility(ask, self.budget, parallel or 1, cancel)
            if names is not None:
                return verdicts.among(names, limit)
            return verdicts.everywhere() if limit is None else verdicts.first(limit)

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
        _refuse_one(nodes)
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

        _refuse_one(nodes)
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

        _refuse_one(nodes)
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

        _refuse_one(nodes)
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

        _refuse_one(nodes)
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

        _refuse_one(nodes)
        return preempt(self, pod, nodes=nodes, max_trials=max_trials)

    # From claims to a question

    def _ask(self, claims: Any) -> Ask:
        cluster = self.cluster
        last = self._last_ask
        if last is not None and (last[0] != cluster._edits or last[1] is not cluster):
            last = None
        if last is not None and _same(last[2], claims):
            return last[3]
        found = self._claims(claims)
        if last is not None and _same(last[2], found):
            return last[3]
        strangers = [
            claim
            for claim in found
            if allocation_of(claim) is not None and cluster.get("ResourceClaim", claim.metadata.key) != claim
        ]
        if strangers:
            # Claims that are allocated but not in the cluster hold their devices all the same.
            cluster = cluster.fork()
            cluster.upsert(*strangers)
        pending = tuple(claim for claim in found if allocation_of(claim) is None)
        question = self._question(pending).for_claims(pending) if pending else None
        if question is not None and question.tables.any_privileged:
            check_admin_access(pending, cluster)
        ask = Ask(found, pending, question, cluster.inventory(self.features))
        self._last_ask = self.cluster._edits, self.cluster, found, ask
        return ask

    def _claims(self, claims: Any) -> tuple[ResourceClaim, ...]:
        # Client objects may be iterable, too: only what is plainly a collection holds several claims.
        if not isinstance(claims, (list, tuple, Set, ValuesView, Iterator)):
            claims = (claims,)
        found: dict[str, ResourceClaim] = {}
        for claim in claims:
            model = self.cluster.resolve(claim, ResourceClaim)
            key = model.metadata.key
            if key in found:
                raise DraError(f"claim {key} is asked for twice")
            found[key] = model
        return tuple(found.values())

    def _node(self, node: Any) -> Node:
        return self.cluster.resolve(node, Node)

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

    def _allocate_where(
        self,
        claims: Sequence[ResourceClaim],
        node: Node,
        accepts: Callable[[list[AllocationResult]], bool],
        passes: Passes,
        hopeless: Callable[[Candidates], bool],
        cancel: _core.Cancel | None,
    ) -> list[AllocationResult] | None:
        """As `allocate`, but the first answer that is accepted.

        passes: see `Attempt.at`. hopeless: told all candidates, it says that no answer would be accepted; not asked
        where an error could come first.
        """
        with self.cluster._caches.lock:
            ask = self._ask(claims)
            if not ask.reaches(node):
                return None
            if ask.question is None:
                kept = ask.kept()
                return kept if accepts(kept) else None
            attempt = Attempt.at(ask, node, self.budget, passes)
        attempt.check_before()
        candidates = attempt.candidates()
        if candidates is not None and hopeless(candidates):
            # Only to be able to say why: the first answer there is.
            answer = attempt.first(self.budget.deadline(), cancel)
            if answer is not None:
                accepts(attempt.results(answer, _no_share, self._clock))
            return None
        most = max(1, self.budget.max_steps // _ANSWER_STEPS)
        seen = 0

        def visitor(answer: list[Any]) -> bool:
            nonlocal seen
            seen += 1
            return seen <= most and not accepts(attempt.results(answer, _no_share, self._clock))

        outcome = attempt.search.visit(visitor, self.budget.max_steps, self.budget.deadline(), cancel)
        if seen > most:
            raise BudgetExceeded(
                f"node {node.metadata.name}: {most} answers of the search have been looked at, and none leaves enough "
                "of the node's resources; whether another does is not known",
                steps=attempt.search.steps,
            )
        answer = attempt.conclude(outcome)
        return None if answer is None else attempt.results(answer, self._share_ids, self._clock)


def _same(known: tuple[ResourceClaim, ...], given: Any) -> bool:
    """Whether claims are given as the very same models."""
    if isinstance(given, (list, tuple)):
        return len(known) == len(given) and all(map(is_, known, given))
    return len(known) == 1 and known[0] is given


def _refuse_one(nodes: object) -> None:
    """A name is iterable, too: its letters would be taken for names."""
    if isinstance(nodes, (str, Node)):
        name = nodes if isinstance(nodes, str) else nodes.metadata.name
        raise DraError(f"nodes is a list of names: [{name!r}], not {name!r}")


def _random_share_id() -> str:
    return str(uuid.uuid4())


def _now() -> datetime:
    return datetime.now(UTC)


def _random_suffix() -> str:
    from dra_alloc.features.pods.claims import random_suffix

    return random_suffix()


def _no_share() -> str:
    """Stands for the share IDs of answers that are looked at and may not be given."""
    return ""
