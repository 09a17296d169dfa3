"""Which changes could help on a node: read off from what rules out its devices, and from its conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from dra_alloc.api import (
    CELDeviceSelector,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceToleration,
    Node,
    ObjectMeta,
    Pod,
    Quantity,
    ResourceClaim,
    ResourceSlice,
)
from dra_alloc.explain._conflicts import rule_text
from dra_alloc.explain._judge import Judge, Offer, offers
from dra_alloc.explain._terms import conjuncts
from dra_alloc.explain._values import quantity_like
from dra_alloc.features.noderesources import is_finished
from dra_alloc.rules import qualified, tolerated
from dra_alloc.whatif.model import COSTS, Change

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.explain import NodeExplanation, RequestExplanation
    from dra_alloc.explain._nodes import Subject
    from dra_alloc.whatif._trial import Body, Trial

__all__ = ["priority_of", "proposals"]

#: Most rules that a device may fail for changes to be made on its behalf, and most devices that are added.
_MOST_BLOCKERS = 3
_MOST_ADDED = 4


def priority_of(pod: Pod) -> int:
    """The priority of a pod; without one it is 0, as Kubernetes has it."""
    return pod.spec.priority or 0


def proposals(subject: Subject, node: Node, explained: NodeExplanation, pod: Pod | None) -> list[Change]:
    """Changes that could help on a node, each once."""
    found: dict[Change, None] = {}
    proposer = _Proposer(subject, node, explained, pod)
    for change in proposer.all():
        found.setdefault(change)
    return list(found)


class _Proposer:
    def __init__(self, subject: Subject, node: Node, explained: NodeExplanation, pod: Pod | None) -> None:
        self.subject = subject
        self.cluster: Cluster = subject.inventory.cluster
        self.node = node
        self.explained = explained
        self.pod = pod
        self.view = subject.inventory.view(node)
        self.offers = list(offers(self.view, subject.inventory))

    def all(self) -> Iterator[Change]:
        judge, question = self.subject.judge, self.subject.question
        if judge is not None and question is not None and self.explained.requests:
            wanted = self._in_question()
            place = 0
            for number, slot in enumerate(question.slots):
                for position in range(len(slot.alternatives)):
                    entry = self.explained.requests[place]
                    place += 1
                    if (entry.claim, entry.request.partition("/")[0]) in wanted:
                        yield from self._for_request(judge, entry, number, position)
        yield from self._for_conflict()
        if self.pod is not None:
            yield from self._for_node_resources()
        yield from self._add_node()

    def _in_question(self) -> set[tuple[str, str]]:
        """The requests (claim, name) that cannot be had by themselves, or that are in conflict."""
        found = set()
        for entry in self.explained.requests:
            if not entry.enough:
                found.add((entry.claim, entry.request.partition("/")[0]))
        if self.explained.conflict is not None:
            for name in self.explained.conflict.requests:
                claim, _, request = name.rpartition("/")
                found.add((claim, request))
        return found

    # What speaks against single devices

    def _for_request(self, judge: Judge, entry: RequestExplanation, number: int, position: int) -> Iterator[Change]:
        alternative = judge.question.slots[number].alternatives[position]
        for offer in self.offers:
            blockers = judge.blockers(offer, number, position, self.view)
            if not blockers:
                continue
            if len(blockers) <= _MOST_BLOCKERS:
                codes = {blocker.code for blocker in blockers}
                if codes & {"class-selector", "request-selector"} and any(
                    "device.driver ==" in blocker.what for blocker in blockers
                ):
                    continue  # a device of another driver is no substitute
                yield from self._lift(judge, entry, offer, codes, number, position)
        if not alternative.every:
            fewer = len(entry.candidates)
            if 0 < fewer < alternative.count:
                yield _fewer(entry, alternative.count, fewer)
        yield from self._add_devices(judge, entry, number, position)

    def _lift(
        self, judge: Judge, entry: RequestExplanation, offer: Offer, codes: set[str], number: int, position: int
    ) -> Iterator[Change]:
        kind = judge.question.slots[number].alternatives[position].type
        if "taint" in codes:
            for taint in offer.table.taints[offer.index]:
                if not tolerated(taint, kind.tolerations):
                    toleration = DeviceToleration(
                        key=taint.key,
                        operator="Equal" if taint.value else "Exists",
                        value=taint.value or None,
                        effect=taint.effect,
                    )
                    shown = f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
                    yield Change(
                        "toleration",
                        COSTS["toleration"],
                        f"tolerate the taint {shown} in request {entry.request} of claim {entry.claim}",
                        entry.claim,
                        entry.request,
                        apply=_body_edit(entry, partial(_tolerate, toleration)),
                    )
        if codes & {"request-selector", "selector-error"}:
            yield from self._request_terms(judge, entry, offer, kind.expressions[kind.class_selectors :])
        if codes & {"class-selector", "selector-error"}:
            yield from self._class_terms(judge, entry, offer, kind.device_class)
        if codes & {"in-use", "counters", "groups", "capacity-short"}:
            yield from self._preempt_holders(offer, codes)
        if "capacity-short" in codes:
            yield from self._less_capacity(entry, offer, kind.capacity)
        if "constraint-attribute" in codes:
            yield from self._without_constraints(judge, entry, offer, number, position)

    def _request_terms(
        self, judge: Judge, entry: RequestExplanation, offer: Offer, expressions: Sequence[str]
    ) -> Iterator[Change]:
        for expression in expressions:
            for term in judge.false_terms(expression, offer):
                yield Change(
                    "selector-term",
                    COSTS["selector-term"],
                    f"drop {term} from the selectors of request {entry.request} of claim {entry.claim}",
                    entry.claim,
                    entry.request,
                    apply=_body_edit(entry, partial(_without_term_of_body, expression, term)),
                )

    def _class_terms(
        self, judge: Judge, entry: RequestExplanation, offer: Offer, device_class: DeviceClass
    ) -> Iterator[Change]:
        for selector in device_class.spec.selectors:
            if selector.cel is None:
                continue
            for term in judge.false_terms(selector.cel.expression, offer):
                yield Change(
                    "class-term",
                    COSTS["class-term"],
                    f"drop {term} from the selectors of DeviceClass {device_class.metadata.name}",
                    entry.claim,
                    entry.request,
                    apply=partial(_edit_class, device_class.metadata.name, selector.cel.expression, term),
                )

    def _less_capacity(
        self, entry: RequestExplanation, offer: Offer, asked: Sequence[tuple[str, int]]
    ) -> Iterator[Change]:
        driver = offer.table.key[0]
        used: dict[str, int] = {}
        for name, nano in offer.state.shares.get(offer.index, {}).items():
            full = qualified(name, driver)
            used[full] = used.get(full, 0) + nano
        for name, nano in asked:
            for published, capacity in offer.device.capacity.items():
                full = qualified(published, driver)
                left = capacity.value.nano - used.get(full, 0)
                if qualified(name, driver) == full and 0 < left < nano:
                    amount = capacity.value.with_nano(left)
                    before = quantity_like(capacity.value, nano)
                    yield Change(
                        "capacity",
                        COSTS["capacity"],
                        f"ask for {amount} instead of {before} of {name} in request {entry.request} of {entry.claim}",
                        entry.claim,
                        entry.request,
                        apply=_body_edit(entry, partial(_ask_for, name, amount)),
                    )

    def _without_constraints(
        self, judge: Judge, entry: RequestExplanation, offer: Offer, number: int, position: int
    ) -> Iterator[Change]:
        slot = judge.question.slots[number]
        claim = judge.question.claims[slot.claim]
        for place, constraint in enumerate(claim.spec.devices.constraints):
            attribute = constraint.match_attribute or constraint.distinct_attribute or ""
            if any(
                blocker.code == "constraint-attribute" and f" {attribute}:" in blocker.what
                for blocker in judge.blockers(offer, number, position, self.view)
            ):
                yield _without_constraint(claim, place)

    # Conflicts

    def _for_conflict(self) -> Iterator[Change]:
        failure = self.explained.failure
        if failure is not None and failure.code == "all-violates-constraint":
            for claim in self.subject.claims:
                if claim.metadata.key == failure.claim:
                    yield from (
                        _without_constraint(claim, place) for place in range(len(claim.spec.devices.constraints))
                    )
        conflict = self.explained.conflict
        if conflict is None:
            return
        for claim in self.subject.claims:
            for place, constraint in enumerate(claim.spec.devices.constraints):
                if rule_text(claim, constraint) in conflict.constraints:
                    yield _without_constraint(claim, place)
        if conflict.got > 0:
            name = conflict.request.rpartition("/")
            for entry in self.explained.requests:
                if (entry.claim, entry.request) == (name[0], name[2]) and entry.wanted is not None:
                    yield _fewer(entry, entry.wanted, conflict.got)

    # Others have to give way

    def _preempt_holders(self, offer: Offer, codes: set[str]) -> Iterator[Change]:
        """The claims that hold the device, or others of its pool that take its counters, and their pods."""
        table = offer.table
        holdings = self.cluster.holdings(table.key)
        names = [offer.device.name] if codes & {"in-use", "capacity-short"} else []
        if codes & {"counters", "groups"} and offer.table.draws:
            mine = {number for number, _ in table.memberships[offer.index]}
            for name in holdings:
                index = table.index.get(name)
                if index is None or mine & {number for number, _ in table.memberships[index]}:
                    names.append(name)
        keys = dict.fromkeys(key for name in names if name in holdings for key in holdings[name].claims())
        for key in keys:
            change = self._preempt(key)
            if change is not None:
                yield change

    def _preempt(self, key: str) -> Change | None:
        """Take a claim away from its pods, all of them, if each has a lower priority than the pod that asks."""
        claim: ResourceClaim | None = self.cluster.get("ResourceClaim", key)
        if claim is None or any(claim.metadata.key == asked.metadata.key for asked in self.subject.claims):
            return None
        pods = [
            pod
            for reference in (claim.status.reserved_for if claim.status is not None else ())
            if reference.resource == "pods"
            and (pod := self.cluster.get("Pod", f"{claim.metadata.namespace}/{reference.name}")) is not None
        ]
        if self.pod is not None:
            mine = priority_of(self.pod)
            if self.pod.spec.preemption_policy == "Never" or any(priority_of(pod) >= mine for pod in pods):
                return None
        highest = max(map(priority_of, pods), default=0)
        who = f"pod {', '.join(pod.metadata.key for pod in pods)}" if pods else f"claim {key}"
        said = f"preempt {who}, which has claim {key}" if pods else f"release claim {key}"
        return Change(
            "preempt", COSTS["preempt"] + 5 * self._rank(highest), said, apply=partial(_release, tuple(pods), key)
        )

    def _rank(self, priority: int) -> int:
        """How many different priorities the pods of the cluster have below this one."""
        return len({priority_of(pod) for pod in self.cluster.pods() if priority_of(pod) < priority})

    def _for_node_resources(self) -> Iterator[Change]:
        if self.explained.code != "node-resources" or self.pod is None:
            return
        mine = priority_of(self.pod)
        if self.pod.spec.preemption_policy == "Never":
            return
        for pod in self.cluster.pods_on(self.node.metadata.name):
            if priority_of(pod) < mine and not is_finished(pod):
                yield Change(
                    "preempt",
                    COSTS["preempt"] + 5 * self._rank(priority_of(pod)),
                    f"preempt pod {pod.metadata.key}",
                    apply=partial(_release, (pod,), ""),
                )

    # More hardware

    def _add_devices(self, judge: Judge, entry: RequestExplanation, number: int, position: int) -> Iterator[Change]:
        """Copies of a device that would do if it were free, in its slice."""
        if entry.wanted is None:
            return
        missing = entry.wanted - len(entry.candidates)
        conflict = self.explained.conflict
        if conflict is not None and conflict.request == f"{entry.claim}/{entry.request}":
            missing = conflict.wanted - conflict.got
        if not 0 < missing <= _MOST_ADDED:
            return
        for offer in self.offers:
            if (
                judge.matches(offer, number, position)
                and not offer.device.consumes_counters
                and not any(blocker.code != "in-use" for blocker in judge.blockers(offer, number, position, self.view))
            ):
                part = offer.table.slices[offer.table.slice_of[offer.index]]
                plural = "" if missing == 1 else "s"
                yield Change(
                    "add-devices",
                    COSTS["add-devices"] * missing,
                    f"add {missing} device{plural} such as {offer.name}",
                    apply=partial(_add_devices, part.metadata.name, offer.device, missing),
                )
                return

    def _add_node(self) -> Iterator[Change]:
        """A node like this one, with its devices, and nothing in use."""
        own = [
            item
            for table in self.view.pools
            if all(item.spec.node_name == self.node.metadata.name for item in table.slices)
            for item in table.slices
        ]
        if own:
            yield Change(
                "add-node",
                COSTS["add-node"],
                f"add a node like {self.node.metadata.name}",
                apply=partial(_add_node, self.node, tuple(own)),
            )


# How changes are made: by functions of the module, so that what holds them can be pickled


def _body_edit(entry: RequestExplanation, edit: Callable[[Body], Body]) -> Callable[[Trial], None]:
    return partial(_edit_body, entry.claim, entry.request, edit)


def _edit_body(claim: str, request: str, edit: Callable[[Body], Body], trial: Trial) -> None:
    trial.edit_body(claim, request, edit)


def _fewer(entry: RequestExplanation, wanted: int, got: int) -> Change:
    return Change(
        "fewer-devices",
        COSTS["fewer-devices"] * (wanted - got),
        f"ask for {got} instead of {wanted} devices in request {entry.request} of claim {entry.claim}",
        entry.claim,
        entry.request,
        apply=_body_edit(entry, partial(_counting, got)),
    )


def _without_constraint(claim: ResourceClaim, place: int) -> Change:
    constraint = claim.spec.devices.constraints[place]
    kind = "matchAttribute" if constraint.match_attribute is not None else "distinctAttribute"
    attribute = constraint.match_attribute or constraint.distinct_attribute
    key = claim.metadata.key
    return Change(
        "constraint",
        COSTS["constraint"],
        f"drop the constraint {kind} {attribute} from claim {key}",
        key,
        apply=partial(_edit_claim, key, partial(_without, constraint)),
    )


def _edit_claim(key: str, edit: Callable[[ResourceClaim], ResourceClaim], trial: Trial) -> None:
    trial.edit_claim(key, edit)


def _without(constraint: DeviceConstraint, claim: ResourceClaim) -> ResourceClaim:
    devices = claim.spec.devices
    left = tuple(other for other in devices.constraints if other != constraint)
    return attrs.evolve(claim, spec=attrs.evolve(claim.spec, devices=attrs.evolve(devices, constraints=left)))


def _counting(count: int, body: Body) -> Body:
    return attrs.evolve(body, count=count)


def _tolerate(toleration: DeviceToleration, body: Body) -> Body:
    return attrs.evolve(body, tolerations=(*body.tolerations, toleration))


def _ask_for(name: str, amount: Quantity, body: Body) -> Body:
    assert body.capacity is not None
    return attrs.evolve(body, capacity=attrs.evolve(body.capacity, requests={**body.capacity.requests, name: amount}))


def _without_term_of_body(expression: str, term: str, body: Body) -> Body:
    return attrs.evolve(body, selectors=_without_term(body.selectors, expression, term))


def _without_term(selectors: Iterable[DeviceSelector], expression: str, term: str) -> tuple[DeviceSelector, ...]:
    """The selectors without a term. Of an expression that other changes have shortened, the rest is looked at."""
    found = []
    wanted = set(conjuncts(expression))
    for selector in selectors:
        text = selector.cel.expression if selector.cel is not None else ""
        terms = conjuncts(text)
        if selector.cel is None or term not in terms or not wanted.issuperset(terms):
            found.append(selector)
            continue
        left = [other for other in terms if other != term]
        if left:
            joined = " && ".join(other if len(left) == 1 else f"({other})" for other in left)
            found.append(DeviceSelector(cel=CELDeviceSelector(expression=joined)))
    return tuple(found)


def _edit_class(name: str, expression: str, term: str, trial: Trial) -> None:
    found: DeviceClass = trial.cluster.get("DeviceClass", name)  # type: ignore[assignment]
    selectors = _without_term(found.spec.selectors, expression, term)
    trial.cluster.upsert(attrs.evolve(found, spec=attrs.evolve(found.spec, selectors=selectors)))


def _release(pods: tuple[Pod, ...], claim: str, trial: Trial) -> None:
    for pod in pods:
        if trial.cluster.get("Pod", pod.metadata.key) is not None:
            trial.cluster.release(pod)
    if claim and trial.cluster.get("ResourceClaim", claim) is not None:
        trial.cluster.release(claim)


def _add_devices(name: str, device: Device, count: int, trial: Trial) -> None:
    found: ResourceSlice = trial.cluster.get("ResourceSlice", name)  # type: ignore[assignment]
    taken = {each.name for each in found.spec.devices}
    names = (f"{device.name}-new-{number}" for number in range(count + len(taken)))
    fresh = [name for name in names if name not in taken][:count]
    copies = tuple(attrs.evolve(device, name=name) for name in fresh)
    trial.cluster.upsert(attrs.evolve(found, spec=attrs.evolve(found.spec, devices=(*found.spec.devices, *copies))))


def _add_node(node: Node, slices: tuple[ResourceSlice, ...], trial: Trial) -> None:
    name = f"{node.metadata.name}-new"
    while trial.cluster.get("Node", name) is not None:
        name += "-new"
    labels = {key: name if value == node.metadata.name else value for key, value in node.metadata.labels.items()}
    metadata = attrs.evolve(node.metadata, name=name, labels=labels, uid=None)
    trial.cluster.upsert(attrs.evolve(node, metadata=metadata))
    for item in slices:
        spec = attrs.evolve(
            item.spec, node_name=name, pool=attrs.evolve(item.spec.pool, name=f"{item.spec.pool.name}-new")
        )
        trial.cluster.upsert(ResourceSlice(metadata=ObjectMeta(name=f"{item.metadata.name}-new"), spec=spec))
    trial.added.append(name)
