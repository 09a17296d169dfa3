"""Explanations never contradict the allocator: they say "fits" when it does, and the rules they name are the ones."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import event, given

import dra_alloc as dra
from bench import workloads
from dra_alloc import api
from dra_alloc.errors import AllocationError, BudgetExceeded
from dra_alloc.explain import REASONS, Explanation, RequestExplanation
from dra_alloc.explain._judge import Judge, offers
from dra_alloc.testing._plain.pools import Offer, gather_pools
from dra_alloc.testing._plain.requests import Want, count_devices, read_claims
from dra_alloc.testing._plain.rules import Rules
from dra_alloc.testing._plain.search import Search
from dra_alloc.testing.outcomes import Outcome
from dra_alloc.testing.scenario import Scenario
from dra_alloc.testing.strategies import clusters
from tests.properties.asking import allocator


def test_devices_that_cannot_be_had_tell_nodes_apart() -> None:
    """What is on node-0 alone is in the way there and nowhere else: one answer for both nodes was wrong for one."""
    gpus = [
        api.Device(name=f"dev-{number}", attributes={workloads.ROOT: api.DeviceAttribute(string="r")})
        for number in range(3)
    ]
    tainted = api.Device(name="other", taints=(api.DeviceTaint(key="health", value="bad", effect="NoSchedule"),))
    root = workloads.match(workloads.ROOT)
    for other, constraints, code in ((api.Device(name="other"), [root], "constraint"), (tainted, [], "taint")):
        here = {"node-0": [other, *gpus], "node-1": gpus}
        cluster = dra.Cluster.from_objects(
            [
                *workloads.CLASSES,
                api.DeviceClass(metadata=api.ObjectMeta(name="any")),
                *map(workloads.node, here),
                *(
                    workloads.pool_slice(workloads.GPU, f"pool-{name}", devices, on=name, name=f"slice-{name}")
                    for name, devices in here.items()
                ),
            ]
        )
        claims = [
            workloads.claim(f"c-{count}", [workloads.request("r", "any", count)], constraints) for count in (3, 1)
        ]
        asker = dra.Allocator(cluster)
        alone = [asker.explain(claims, node=name).only for name in here]
        assert [each.code for each in alone if each] == [code, "conflict"]
        groups = asker.explain(claims).groups
        assert {name: group.code for group in groups for name in group.nodes} == {"node-0": code, "node-1": "conflict"}


@given(clusters(gates=True))
def test_fits_exactly_when_the_allocator_has_an_answer(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    for node in scenario.nodes:
        name = node.metadata.name
        found = alloc.explain(scenario.claims, node=name)
        answer = Outcome.of(lambda name=name: alloc.allocate(scenario.claims, name))
        if answer.error is not None:
            event(answer.error.kind)
            assert not found.fits
            assert found.failure is not None
            failed = answer.error
            shown = (found.failure.code, found.failure.claim, found.failure.request, found.failure.device)
            assert shown == (failed.kind, failed.claim, failed.request, failed.device)
            continue
        results = answer.results
        event(found.code or "fits")
        assert found.fits == (results is not None)
        assert found.failure is None
        if results is not None:
            assert found.only is not None
            assert [each.device for each in found.only.chosen] == [
                f"{each.driver}/{each.pool}/{each.device}" for result in results for each in result.devices.results
            ]
        else:
            assert found.code in REASONS
            check_text(found)


@given(clusters())
def test_over_all_nodes_it_says_what_it_says_of_each(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    found = alloc.explain(scenario.claims)
    if found.failure is not None:
        with pytest.raises(AllocationError) as raised:
            alloc.feasible_nodes(scenario.claims)
        assert raised.value.kind == found.failure.code
        return
    feasible = alloc.feasible_nodes(scenario.claims)
    assert list(found.fitting) == feasible
    members = [name for group in found.groups for name in group.nodes]
    assert sorted([*feasible, *members]) == sorted(alloc.cluster.node_names())
    for group in found.groups:
        for name in group.nodes:
            alone = alloc.explain(scenario.claims, node=name).only
            assert alone is not None
            assert (alone.code, alone.summary) == (group.code, group.summary)
    check_text(found)


@given(clusters(gates=True))
def test_a_pod_with_the_claims_fits_exactly_when_it_can_be_planned(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    entries = tuple(
        api.PodResourceClaim(name=f"c{number}", resource_claim_name=claim.metadata.name)
        for number, claim in enumerate(scenario.claims)
    )
    pod = api.Pod(
        metadata=api.ObjectMeta(name="p", namespace="default"),
        spec=api.PodSpec(resource_claims=entries, containers=(api.Container(name="main"),)),
    )
    alloc.cluster.upsert(*scenario.claims, pod)
    fitting = []
    for node in scenario.nodes:
        name = node.metadata.name
        found = alloc.explain(pod="default/p", node=name)
        try:
            plan = alloc.allocate_pod("default/p", name)
        except AllocationError as error:
            plan = None
            kind = error.kind
            assert found.failure is not None
        else:
            kind = ""
        assert (found.failure.code if found.failure is not None else "") == kind
        assert found.fits == (plan is not None)
        if plan is not None:
            fitting.append(name)
    event(f"{len(fitting)} of {len(scenario.nodes)}")
    everywhere_found = alloc.explain(pod="default/p")
    if everywhere_found.failure is None:
        assert list(everywhere_found.fitting) == fitting
        check_text(everywhere_found)


def check_text(found: Explanation) -> None:
    """The text names the code, and its lines keep to the width unless a single word is longer."""
    text = found.text(80)
    assert found.fits or f"[{found.code}]" in text
    for line in text.splitlines():
        assert len(line) <= 80 or line.startswith(" | ") or " " not in line.strip()


@given(clusters(gates=True))
def test_candidates_are_the_devices_that_the_plain_model_would_take(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    for node in scenario.nodes:
        try:
            ask = alloc._ask(scenario.claims)
        except AllocationError:
            return
        assert ask.question is not None
        view = ask.inventory.view(node)
        judge = Judge(ask.question, ask.inventory)
        pools = gather_pools(node, list(scenario.slices), scenario.features)
        rules = Rules(node, scenario.features, pools, list(scenario.taint_rules), list(scenario.allocated_claims))
        try:
            plans = count_devices(read_claims(list(scenario.claims), list(scenario.classes), rules), rules)
        except AllocationError:
            continue
        plain = Search(plans, rules, None)
        places = {"/".join(offer.id): offer for offer in rules.offers}
        asks = [(claim, plan_ask) for claim, plan in enumerate(plans) for plan_ask in plan.asks]
        for number, (claim, plan_ask) in enumerate(asks):
            for position, want in enumerate(plan_ask.wants):
                for offer in offers(view, ask.inventory):
                    blockers = judge.blockers(offer, number, position, view)
                    if offer.elsewhere == 1:
                        assert offer.name not in places
                        continue
                    kind, taken = attempt(plain, claim, want, places[offer.name])
                    if kind == "all-violates-constraint":
                        # The model asks this of every device, the search only of those that All is about.
                        assert "constraint-attribute" in {blocker.code for blocker in blockers}
                        continue
                    if kind:
                        event(f"error {kind}")
                        assert blockers[0].code == ERRORS[kind]
                        continue
                    event(blockers[0].code if blockers else "candidate")
                    assert taken == (not blockers), (offer.name, want, blockers)


def attempt(plain: Search, claim: int, want: Want, offer: Offer) -> tuple[str, bool]:
    """Take a device as the first of all in the plain model: the kind of the error, and whether it was taken."""
    try:
        return "", plain._take(claim, want, offer, ()) is not None
    except AllocationError as error:
        return error.kind, False


#: The reason that a device is named with where the search would end with an error.
ERRORS = {"cel": "selector-error", "capacity": "capacity-request"}


@given(clusters(gates=True))
def test_a_named_blocker_removed_makes_the_device_a_candidate(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    for node in scenario.nodes:
        found = alloc.explain(scenario.claims, node=node).only
        if found is None:
            return
        for request in found.requests:
            for miss in request.near_misses:
                changed = without(scenario, request, miss.device, miss.blocker.code, node)
                if changed is None:
                    continue
                event(miss.blocker.code)
                again = allocator(changed).explain(changed.claims, node=changed.nodes[0]).only
                assert again is not None
                now = next(
                    each for each in again.requests if (each.claim, each.request) == (request.claim, request.request)
                )
                assert miss.device in now.candidates, (miss, now)


def without(scenario: Scenario, request: RequestExplanation, device: str, code: str, node: api.Node) -> Scenario | None:
    """The scenario on this node without the one rule that speaks against a device; None for rules that cannot go."""
    scenario = attrs.evolve(scenario, nodes=(node,))
    driver, pool, name = device.split("/")
    if code == "in-use":
        return without_holders(scenario, device)
    if code == "taint":
        return attrs.evolve(edited(scenario, device, taints=()), taint_rules=())
    if code == "class-selector":
        return attrs.evolve(
            scenario,
            classes=tuple(
                attrs.evolve(each, spec=attrs.evolve(each.spec, selectors=()))
                if each.metadata.name == request.device_class
                else each
                for each in scenario.classes
            ),
        )
    if code == "request-selector":
        return with_request(scenario, request, selectors=())
    if code == "constraint-attribute":
        return attrs.evolve(
            scenario,
            claims=tuple(
                attrs.evolve(
                    claim,
                    spec=attrs.evolve(claim.spec, devices=attrs.evolve(claim.spec.devices, constraints=())),
                )
                for claim in scenario.claims
            ),
        )
    if code in ("counters", "groups"):
        return edited(scenario, device, consumes_counters=())
    if code == "capacity-short":
        # Without amount and policy, and beside shares that consume nothing, a request takes all of what the device has.
        # What selectors read stays as it is, and shared devices stay charged for their counters.
        plain = with_request(consuming_nothing(scenario), request, capacity=None)
        (model,) = [
            each
            for item in scenario.slices
            if (item.spec.driver, item.spec.pool.name) == (driver, pool)
            for each in item.spec.devices
            if each.name == name
        ]
        free = {key: attrs.evolve(value, request_policy=None) for key, value in model.capacity.items()}
        return edited(plain, device, capacity=free)
    if code == "not-on-node":
        return everywhere(edited(scenario, device, all_nodes=True, node_name=None, node_selector=None), device)
    if code == "node-operations":
        return everywhere(scenario, device, skip_node_operations=())
    if code == "feature-off":
        return attrs.evolve(scenario, features=dra.Features.all())
    return None


def without_holders(scenario: Scenario, device: str) -> Scenario:
    """The scenario without the claims that hold a device."""
    name = tuple(device.split("/"))
    return attrs.evolve(
        scenario,
        allocated_claims=tuple(
            claim
            for claim in scenario.allocated_claims
            if claim.status is not None
            and claim.status.allocation is not None
            and all((each.driver, each.pool, each.device) != name for each in claim.status.allocation.devices.results)
        ),
    )


def consuming_nothing(scenario: Scenario) -> Scenario:
    """The scenario with holders that have their devices, but consume no capacity of them."""
    holders = []
    for claim in scenario.allocated_claims:
        assert claim.status is not None
        assert claim.status.allocation is not None
        held = claim.status.allocation.devices
        results = tuple(attrs.evolve(each, consumed_capacity={}) for each in held.results)
        allocation = attrs.evolve(claim.status.allocation, devices=attrs.evolve(held, results=results))
        holders.append(attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=allocation)))
    return attrs.evolve(scenario, allocated_claims=tuple(holders))


def everywhere(scenario: Scenario, device: str, **fields: object) -> Scenario:
    """The scenario with the slice of a device on all nodes, unless it leaves that to its devices."""
    driver, pool, name = device.split("/")
    slices = []
    for item in scenario.slices:
        mine = any(each.name == name for each in item.spec.devices)
        if mine and (item.spec.driver, item.spec.pool.name) == (driver, pool):
            if not item.spec.per_device_node_selection:
                fields = {**fields, "all_nodes": True, "node_name": None, "node_selector": None}
            item = attrs.evolve(item, spec=attrs.evolve(item.spec, **fields))  # type: ignore[arg-type]
        slices.append(item)
    return attrs.evolve(scenario, slices=tuple(slices))


def edited(scenario: Scenario, device: str, **fields: object) -> Scenario:
    """The scenario with some fields of a device changed."""
    driver, pool, name = device.split("/")
    slices = []
    for item in scenario.slices:
        if (item.spec.driver, item.spec.pool.name) == (driver, pool):
            devices = tuple(
                attrs.evolve(each, **fields) if each.name == name else each  # type: ignore[arg-type]
                for each in item.spec.devices
            )
            item = attrs.evolve(item, spec=attrs.evolve(item.spec, devices=devices))
        slices.append(item)
    return attrs.evolve(scenario, slices=tuple(slices))


def with_request(scenario: Scenario, found: RequestExplanation, **fields: object) -> Scenario:
    """The scenario with some fields of a request, or of an alternative, changed."""
    name, _, sub = found.request.partition("/")
    claims = []
    for claim in scenario.claims:
        requests = []
        for request in claim.spec.devices.requests:
            if claim.metadata.key == found.claim and request.name == name:
                if sub:
                    alternatives = tuple(
                        attrs.evolve(each, **fields) if each.name == sub else each  # type: ignore[arg-type]
                        for each in request.first_available
                    )
                    request = attrs.evolve(request, first_available=alternatives)
                else:
                    assert request.exactly is not None
                    exactly = attrs.evolve(request.exactly, **fields)  # type: ignore[arg-type]
                    request = attrs.evolve(request, exactly=exactly)
            requests.append(request)
        devices = attrs.evolve(claim.spec.devices, requests=tuple(requests))
        claims.append(attrs.evolve(claim, spec=attrs.evolve(claim.spec, devices=devices)))
    return attrs.evolve(scenario, claims=tuple(claims))


@given(clusters())
def test_a_conflict_is_least_and_its_partial_set_can_be_had(scenario: Scenario) -> None:
    alloc = allocator(scenario)
    for node in scenario.nodes:
        found = alloc.explain(scenario.claims, node=node).only
        if found is None or found.conflict is None:
            continue
        conflict = found.conflict
        event(conflict.code)
        assert conflict.requests
        assert conflict.got < conflict.wanted or not conflict.request
        for request in conflict.requests:
            rest = kept(scenario, [other for other in conflict.requests if other != request])
            if rest:
                assert fits(alloc, rest, node) is not False
        devices = [each.device for each in conflict.partial]
        inventory = alloc.cluster.inventory(alloc.features)
        for device in devices:
            driver, pool, name = device.split("/")
            table = inventory.table((driver, pool))
            assert table is not None
            assert name in table.index


def kept(scenario: Scenario, names: list[str]) -> list[api.ResourceClaim]:
    """The claims with these requests (`namespace/name/request`) alone; constraints narrowed to them."""
    claims = []
    for claim in scenario.claims:
        devices = claim.spec.devices
        requests = tuple(each for each in devices.requests if f"{claim.metadata.key}/{each.name}" in names)
        if not requests:
            continue
        left = {each.name for each in requests}
        constraints = []
        for constraint in devices.constraints:
            if constraint.requests:
                of = tuple(each for each in constraint.requests if each.partition("/")[0] in left)
                if not of:
                    continue
                constraint = attrs.evolve(constraint, requests=of)
            constraints.append(constraint)
        part = attrs.evolve(devices, requests=requests, constraints=tuple(constraints))
        claims.append(attrs.evolve(claim, spec=attrs.evolve(claim.spec, devices=part)))
    return claims


def fits(alloc: dra.Allocator, claims: list[api.ResourceClaim], node: api.Node) -> bool | None:
    try:
        return alloc.allocate(claims, node) is not None
    except (AllocationError, BudgetExceeded):
        return None


def test_a_search_out_of_budget_is_never_called_not_fitting() -> None:
    scenario_claim = api.ResourceClaim.from_dict(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any", "count": 2}}]}},
        }
    )
    devices = tuple(api.Device(name=f"d-{number}") for number in range(4))
    pool = api.ResourcePool(name="p", generation=1, resource_slice_count=1)
    cluster = dra.Cluster.from_objects(
        [
            api.Node(metadata=api.ObjectMeta(name="n")),
            api.DeviceClass(metadata=api.ObjectMeta(name="any")),
            api.ResourceSlice(
                metadata=api.ObjectMeta(name="s"),
                spec=api.ResourceSliceSpec(driver="d.example.com", pool=pool, all_nodes=True, devices=devices),
            ),
        ]
    )
    alloc = dra.Allocator(cluster, budget=dra.Budget(max_steps=1))
    with pytest.raises(BudgetExceeded):
        alloc.allocate(scenario_claim, "n")
    found = alloc.explain(scenario_claim, node="n")
    assert found.code == "budget-exceeded"
    assert "whether the claims fit is not known" in found.text(400)
