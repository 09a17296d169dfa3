"""`Allocator`: which devices claims get on a node, and on which nodes they get any."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc import _core
from dra_alloc.api import AllocationResult, Node, ResourceClaim
from dra_alloc.cluster import Cluster
from dra_alloc.errors import AllocationError, BudgetExceeded, Cancelled, DraError
from dra_alloc.gates import Features
from dra_alloc.nodeselection import selector_admits
from dra_alloc.problem import MAX_RESULTS, Question, compile_question, question_key
from dra_alloc.results import build_results
from dra_alloc.rules import capacity_fault

if TYPE_CHECKING:
    from dra_alloc._core import Search
    from dra_alloc.api import Device
    from dra_alloc.explain import Explanation
    from dra_alloc.inventory import Inventory, NodeView, PoolTable

__all__ = ["Allocator", "Budget"]

#: Kinds of errors that concern one node; over many nodes the others go on.
NODE_ERRORS = ("pool-all", "invalid-pool")

_NO, _YES, _FAULTY, _UNKNOWN = 0, 1, 2, 255

_MAX_QUESTIONS = 256
_MAX_VERDICTS = 1 << 16


@attrs.frozen
class Budget:
    """What one search may cost. Beyond it, BudgetExceeded is raised.

    max_steps: devices taken in a search. timeout: seconds for a call, None for none. memory: bytes of remembered
    states; beyond them the search goes on without remembering more.
    """

    max_steps: int = 20_000_000
    timeout: float | None = None
    memory: int = 64 << 20


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
    in the order of the results. clock: source of `allocationTimestamp`. budget: bounds of each search.

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
    ) -> None:
        self.cluster = cluster
        self.features = features if features is not None else Features()
        self.budget = budget if budget is not None else Budget()
        self._share_ids = share_ids or (lambda: str(uuid.uuid4()))
        self._clock = clock or (lambda: datetime.now(UTC))
        #: Devices taken before the search turns to its heavier means; for tests of these.
        self._light_steps: int | None = None

    # Public questions

    def allocate(
        self,
        claims: Any,
        node: str | Node,
        *,
        cancel: _core.Cancel | None = None,
    ) -> list[AllocationResult] | None:
        """The devices that the claims get together on a node: one result for each claim in order, or None.

        claims: a claim or several, as api models, dicts, or names (`namespace/name`) of claims in the cluster. Those
        that are allocated already keep what they have. node: its name, or a Node.

        Raises AllocationError (its `kind` is one of docs/errors.md), BudgetExceeded, Cancelled, and DraError for a
        claim or node that is not there. The cluster is not changed: `cluster.commit` does that.
        """
        found_node = self._node(node)
        with self.cluster._caches.lock:
            ask = self._ask(claims)
            if not _reachable(ask, found_node):
                return None
            if ask.question is None:
                return [_kept(claim) for claim in ask.claims]
            place = self._place(ask, found_node)
        answer = self._search(ask, place, cancel)
        if answer is None:
            return None
        fresh = iter(
            build_results(ask.question, ask.pending, found_node, place.pools, answer, self._share_ids, self._clock)
        )
        return [next(fresh) if _allocation(claim) is None else _kept(claim) for claim in ask.claims]

    def feasible_nodes(
        self,
        claims: Any,
        nodes: Iterable[str] | None = None,
        *,
        limit: int | None = None,
        parallel: int | None = None,
        cancel: _core.Cancel | None = None,
    ) -> list[str]:
        """Names of the nodes on which the claims could be allocated, in the order of the cluster.

        nodes: only these, in this order. limit: stop at so many. parallel: threads to search with (default 1); the
        answer is the same. Nodes that look the same to the claims share one search, and answers are remembered until
        something that matters to a node changes.

        Raises as `allocate` does, but for errors that concern one node (`pool-all`, `invalid-pool`): the others go on.
        """
        with self.cluster._caches.lock:
            ask = self._ask(claims)
            return self._feasible(ask, nodes, limit, parallel or 1, cancel)

    def explain(self, claims: Any, node: str | Node | None = None, *, nodes: Iterable[str] | None = None) -> Explanation:
        """Why the claims fit, or do not: on one node, or on many (default: all of the cluster) grouped by reason.

        claims: as for `allocate`. node: explain this one in full. nodes: only these. `fits` is true exactly when
        `allocate` gives an answer on the node, or on some of the nodes. Errors of the attempt and a search that ran out
        of budget are part of the explanation; DraError is raised for a claim or node that is not there.
        """
        from dra_alloc.explain import explain

        with self.cluster._caches.lock:
            return explain(self, claims, node, nodes=nodes)

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
        return _Ask(found, pending, question, cluster.inventory(self.features))

    def _claims(self, claims: Any) -> tuple[ResourceClaim, ...]:
        if isinstance(claims, (str, ResourceClaim, dict)) or not isinstance(claims, Iterable):
            claims = (claims,)
        found: list[ResourceClaim] = []
        for claim in claims:
            model = self._claim(claim)
            if any(model.metadata.key == other.metadata.key for other in found):
                raise DraError(f"claim {model.metadata.key} is asked for twice")
            found.append(model)
        return tuple(found)

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

    def _place(self, ask: _Ask, node: Node) -> _Place:
        assert ask.question is not None
        question, inventory = ask.question, ask.inventory
        view = inventory.view(node)
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

    # Searching

    def _search(self, ask: _Ask, place: _Place, cancel: _core.Cancel | None) -> list[Any] | None:
        """The answer of the search, None if there is none; errors are raised."""
        self._check_before(ask, place)
        return self._conclude(ask, place, self._run(place.search, self._deadline(), cancel))

    def _deadline(self) -> float:
        return 0.0 if self.budget.timeout is None else time.monotonic() + self.budget.timeout

    def _run(self, search: Search, deadline: float, cancel: _core.Cancel | None) -> tuple[str, Any]:
        more = {} if self._light_steps is None else {"light_steps": self._light_steps}
        return search.run(self.budget.max_steps, deadline, self.budget.memory, cancel, **more)

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
        if parallel <= 1:
            for number in numbers:
                if verdicts[number] == _UNKNOWN:
                    node = nodes[order[number]]
                    signature = self._signature(ask, ask.inventory.view(node))
                    verdict = known.get(signature)
                    if verdict is None:
                        verdict = known[signature] = self._verdict(ask, node, deadline, cancel)
                    verdicts[number] = verdict
            return
        waiting: dict[tuple[object, ...], list[int]] = {}
        for number in numbers:
            if verdicts[number] == _UNKNOWN:
                signature = self._signature(ask, ask.inventory.view(nodes[order[number]]))
                if signature in known:
                    verdicts[number] = known[signature]
                else:
                    waiting.setdefault(signature, []).append(number)
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
