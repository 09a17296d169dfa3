"""Each kind of event, and which of the pending pods it wakes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import (
    Container,
    Counter,
    CounterSet,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    Namespace,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
    PodGroupSpec,
    PodGroupStatus,
    PodStatus,
    Quantity,
    ResourceRequirements,
)
from tests.requeue.objects import (
    CLASSES,
    GPU,
    NIC,
    claim,
    device,
    device_class,
    holding,
    model,
    node,
    owned_by,
    pod,
    request,
    reserved,
    slice_of,
    template,
)

IN_ZONE = NodeSelector(
    node_selector_terms=(
        NodeSelectorTerm(
            match_expressions=(NodeSelectorRequirement(key="zone", operator="In", values=("z",)),),
        ),
    )
)

BROKEN = DeviceTaint(key="broken", effect="NoSchedule")


def index_of(*objects: object, pods: tuple[Pod, ...] = ()) -> dra.RequeueIndex:
    """An index over a cluster of two classes, a node and these objects."""
    index = dra.RequeueIndex(dra.Cluster.from_objects([*CLASSES, node("node-1"), *objects]))
    for waiting in pods:
        index.add(waiting)
    return index


def happens(index: dra.RequeueIndex, action: str, item: object, old: object = None) -> list[str]:
    """The pods that an event wakes: the same before and after the cluster has followed it."""
    event = dra.Event(action, item, old=old)
    before = index.affected(event)
    if action == "deleted":
        index.cluster.delete(item)
    else:
        index.cluster.upsert(item)
    assert index.affected(event) == before
    return before


class TestPods:
    def test_is_a_collection_of_keys_in_order_of_addition(self) -> None:
        index = index_of()
        for name in ("b", "a", "c"):
            index.add(pod(name, "x"))
        index.add(pod("b", "y"))
        assert list(index) == ["default/b", "default/a", "default/c"]
        assert len(index) == 3
        assert "default/a" in index
        assert pod("a") in index
        assert "default/d" not in index
        index.remove("default/a")
        index.remove(pod("b"))
        assert list(index) == ["default/c"]

    def test_takes_dicts_and_names(self) -> None:
        index = index_of(pod("a", "x"))
        index.add("default/a")
        index.add(pod("b", "x").to_dict())
        assert list(index) == ["default/a", "default/b"]

    def test_takes_many_at_once_or_none(self) -> None:
        index = index_of(pod("a", "x"), claim("x", request("gpu")))
        with pytest.raises(dra.DraError, match="a Pod is needed here, not a Node"):
            index.add_all([pod("b", "x"), node("n")])
        assert list(index) == []
        index.add_all(iter(["default/a", pod("b", "y").to_dict(), pod("c", "x")]))
        one_by_one = index_of(claim("x", request("gpu")), pods=(pod("a", "x"), pod("b", "y"), pod("c", "x")))
        assert list(index) == list(one_by_one) == ["default/a", "default/b", "default/c"]
        comes = dra.Event("added", slice_of(device("gpu-0"), on="node-1"))
        assert index.affected(comes) == one_by_one.affected(comes) == ["default/a", "default/c"]

    def test_pods_that_ask_for_the_same_have_claims_of_their_own(self) -> None:
        index = index_of(*(claim(name, request("gpu")) for name in "xyz"))
        comes = dra.Event("added", slice_of(device("gpu-0"), on="node-1"))
        for name, used in zip("abc", "xyz", strict=True):
            index.add(pod(name, used))
        assert index.affected(comes) == ["default/a", "default/b", "default/c"]
        changed = dra.Event("updated", reserved(claim("y"), "p"), old=claim("y"))
        assert index.affected(changed) == ["default/b"]
        index.remove("default/b")
        assert index.affected(changed) == []
        assert index.affected(comes) == ["default/a", "default/c"]
        index.cluster.upsert(claim("x", request("nic")))  # from now on it is not like the other
        assert index.affected(comes) == ["default/c"]
        index.remove("default/c")
        assert index.affected(comes) == []
        index.add(pod("b", "y"))
        index.add(pod("a", "y"))
        assert index.affected(comes) == ["default/a", "default/b"]
        assert index.affected(changed) == ["default/a", "default/b"]

    def test_what_sets_pods_apart_is_not_lost_where_claims_are_alike(self) -> None:
        """An error, a choice of nodes, a group, a reason."""
        index = index_of(claim("x", request("gpu")), slice_of(device("d")), device_class("unused", GPU))
        choosy = pod("choosy", "x")
        index.add(pod("plain", "x"))
        index.add(attrs.evolve(choosy, spec=attrs.evolve(choosy.spec, node_selector={"disk": "ssd"})))
        index.add(pod("failed", "x"), dra.DraError("out of steps"))
        index.add(pod("grouped", "x", group="g"))
        index.add(pod("told", "x"), {"default/x": ["r"]})
        every = [f"default/{name}" for name in ("plain", "choosy", "failed", "grouped", "told")]
        assert list(index) == every
        unrelated = dra.Event("added", slice_of(device("n"), driver=NIC, name="nic"))
        assert index.affected(unrelated) == ["default/failed"]
        group = PodGroup(metadata=ObjectMeta(name="g", namespace="default"), spec=PodGroupSpec())
        assert index.affected(dra.Event("added", group)) == ["default/failed", "default/grouped"]
        labelled = dra.Event("updated", node("node-1", disk="ssd"), old=node("node-1"))
        assert index.affected(labelled) == ["default/choosy", "default/failed"]
        assert index.affected(dra.Event("added", slice_of(device("e"), name="other", pool="other"))) == every

    @pytest.mark.parametrize("name", ["\ud800", "ä", "a b/c"])
    def test_takes_whatever_is_called_a_name(self, name: str) -> None:
        index = index_of(pods=(pod(name, name), pod("other", "x")))
        first, _ = index
        assert happens(index, "added", claim(name)) == [first]
        index.remove(pod(name))
        assert list(index) == ["default/other"]

    def test_refuses_what_is_no_pod(self) -> None:
        index = index_of()
        with pytest.raises(dra.DraError, match="a Pod is needed here, not a Node"):
            index.add(node("n"))
        with pytest.raises(dra.DraError, match="no Pod 'default/a'"):
            index.add("default/a")
        with pytest.raises(KeyError, match="default/a is not in the index"):
            index.remove("default/a")
        with pytest.raises(dra.DraError, match="an Event is needed"):
            index.affected(node("n"))  # type: ignore[arg-type]

    def test_does_not_outlive_its_use(self) -> None:
        cluster = dra.Cluster()
        gone = weakref.ref(dra.RequeueIndex(cluster))
        gc.collect()
        assert gone() is None
        cluster.upsert(claim("x"))


class TestClaims:
    def test_a_new_claim_wakes_the_pods_that_name_it(self) -> None:
        index = index_of(pods=(pod("a", "x"), pod("b", "y"), pod("c", "x")))
        assert happens(index, "added", claim("x")) == ["default/a", "default/c"]

    def test_a_pod_waits_for_all_of_its_claims(self) -> None:
        index = index_of(pods=(pod("a", "x", "y"),))
        assert happens(index, "added", claim("x")) == []
        assert happens(index, "added", claim("y")) == ["default/a"]

    def test_an_allocated_claim_wakes_its_users(self) -> None:
        index = index_of(claim("x"), claim("y"), slice_of(device("d")), pods=(pod("a", "x"), pod("b", "y")))
        assert happens(index, "updated", holding(claim("x"), "d"), claim("x")) == ["default/a"]

    def test_a_reservation_wakes_its_users(self) -> None:
        held = reserved(holding(claim("x"), "d"), "p", "q")
        index = index_of(held, claim("y"), slice_of(device("d")), pods=(pod("a", "x"), pod("b", "y")))
        assert happens(index, "updated", reserved(held, "p"), held) == ["default/a"]

    def test_labels_and_finalizers_wake_nobody(self) -> None:
        old = holding(claim("x"), "d")
        index = index_of(old, slice_of(device("d")), pods=(pod("a", "x"),))
        new = attrs.evolve(old, metadata=attrs.evolve(old.metadata, labels={"a": "b"}, finalizers=("f",)))
        assert happens(index, "updated", new, old) == []

    @pytest.mark.parametrize("action", ["updated", "deleted"])
    def test_a_freed_device_wakes_those_that_it_serves(self, action: str) -> None:
        held = holding(claim("other"), "d1")
        index = index_of(
            held,
            claim("a", request("gpu", model("a"))),
            claim("b", request("gpu", model("b"))),
            claim("any"),
            claim("nic", request("nic")),
            slice_of(device("d1", "a"), device("d2", "b")),
            pods=(pod("a", "a"), pod("b", "b"), pod("any", "any"), pod("nic", "nic"), pod("missing", "missing")),
        )
        new, old = (claim("other"), held) if action == "updated" else (held, None)
        assert happens(index, action, new, old) == ["default/a", "default/any"]

    def test_a_freed_partition_wakes_those_that_its_counters_serve(self) -> None:
        def part(name: str, kind: str, counters: str) -> object:
            draws = DeviceCounterConsumption(counter_set=counters, counters={"c": Counter(value=Quantity.parse("1"))})
            return device(name, kind, consumes_counters=(draws,))

        sets = tuple(
            CounterSet(name=name, counters={"c": Counter(value=Quantity.parse("1"))}) for name in ("one", "two")
        )
        held = holding(claim("other"), "small")
        index = index_of(
            held,
            claim("large", request("gpu", model("large"))),
            claim("elsewhere", request("gpu", model("elsewhere"))),
            slice_of(name="counters", count=2, shared_counters=sets),
            slice_of(
                part("small", "small", "one"),
                part("large", "large", "one"),
                part("elsewhere", "elsewhere", "two"),
                count=2,
            ),
            pods=(pod("large", "large"), pod("elsewhere", "elsewhere")),
        )
        assert happens(index, "updated", claim("other"), held) == ["default/large"]

    def test_a_share_that_nobody_could_be_given_lends_to_others(self) -> None:
        """Its counters are overdrawn, and a shared device is charged once."""
        draws = DeviceCounterConsumption(counter_set="s", counters={"c": Counter(value=Quantity.parse("2"))})
        sets = (CounterSet(name="s", counters={"c": Counter(value=Quantity.parse("1"))}),)
        shared = device("d", consumes_counters=(draws,), allow_multiple_allocations=True)
        index = index_of(
            slice_of(name="counters", count=2, shared_counters=sets),
            slice_of(shared, count=2),
            claim("x"),
            pods=(pod("a", "x"),),
        )
        assert happens(index, "added", holding(claim("other"), "d", share="1")) == ["default/a"]
        assert happens(index, "added", holding(claim("another"), "d", share="2")) == []

    def test_admin_access_neither_frees_nor_waits_for_the_free(self) -> None:
        held = holding(claim("other"), "d")
        index = index_of(held, claim("a", request(admin_access=True)), slice_of(device("d")), pods=(pod("a", "a"),))
        assert happens(index, "updated", claim("other"), held) == []

    def test_a_claim_that_holds_is_known_by_the_cluster_if_the_event_does_not_tell(self) -> None:
        held = holding(claim("other"), "d")
        index = index_of(held, claim("x"), slice_of(device("d")), pods=(pod("a", "x"),))
        assert index.affected(dra.Event("updated", claim("other"))) == ["default/a"]

    def test_a_terminating_claim_holds_its_pods_back(self) -> None:
        held = holding(claim("other"), "d")
        going = claim("x")
        going = attrs.evolve(
            going,
            metadata=ObjectMeta.from_dict(
                {"name": "x", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}
            ),
        )
        index = index_of(held, going, slice_of(device("d")), pods=(pod("a", "x"),))
        assert happens(index, "updated", claim("other"), held) == []


class TestTemplates:
    def test_the_claim_made_for_a_pod_wakes_it(self) -> None:
        index = index_of(pods=(pod("a", templates=["t"]), pod("b", templates=["t"])))
        assert happens(index, "added", claim("a-t-1", owner=owned_by("a"), entry="t")) == ["default/a"]
        assert happens(index, "added", claim("b-t-1", owner=owned_by("someone"), entry="t")) == []

    def test_a_pod_that_learns_of_its_claim_is_woken_and_followed(self) -> None:
        index = index_of(claim("a-t-1", owner=owned_by("a"), entry="t"), slice_of(device("d")))
        index.add(pod("a", templates=["t"]))
        known = pod("a", templates=["t"], made={"t": "a-t-1"})
        assert index.affected(dra.Event("updated", known)) == ["default/a"]
        assert index.affected(dra.Event("updated", known, old=known)) == []
        assert index.affected(dra.Event("updated", pod("z", templates=["t"]))) == []

    def test_a_template_serves_until_the_claim_is_made(self) -> None:
        held = holding(claim("other"), "d")
        index = index_of(held, slice_of(device("d")), pods=(pod("a", templates=["t"]),))
        assert index.affected(dra.Event("updated", claim("other"), old=held)) == []
        assert happens(index, "added", template("t")) == ["default/a"]
        assert happens(index, "updated", template("t"), template("t")) == []
        assert happens(index, "updated", claim("other"), held) == ["default/a"]

    def test_a_claim_made_for_another_pod_does_not_count(self) -> None:
        index = index_of(pods=(pod("a", templates=["t"], made={"t": "x"}),))
        assert happens(index, "added", claim("x", owner=owned_by("b"), entry="t")) == []

    def test_a_claim_that_is_not_needed_is_not_waited_for(self) -> None:
        index = index_of(slice_of(device("d")))
        index.add(
            attrs.evolve(
                pod("a", templates=["t"]), status=PodStatus.from_dict({"resourceClaimStatuses": [{"name": "t"}]})
            )
        )
        assert happens(index, "added", node("node-2")) == ["default/a"]

    def test_the_claim_of_a_group_wakes_its_pods(self) -> None:
        def group(made: str | None) -> PodGroup:
            statuses = (PodGroupResourceClaimStatus(name="t", resource_claim_name=made),) if made else ()
            return PodGroup(
                metadata=ObjectMeta(name="g", namespace="default", uid="uid-g"),
                spec=PodGroupSpec(resource_claims=(PodGroupResourceClaim(name="t", resource_claim_template_name="t"),)),
                status=PodGroupStatus(resource_claim_statuses=statuses),
            )

        index = index_of(
            group(None), pods=(pod("a", templates=["t"], group="g"), pod("b", templates=["t"], group="other"))
        )
        assert happens(index, "added", claim("g-t-1", owner=owned_by("g", "PodGroup"), entry="t")) == ["default/a"]
        assert happens(index, "updated", group("g-t-1"), group(None)) == ["default/a"]
        assert happens(index, "updated", group("g-t-1"), group("g-t-1")) == []


class TestSlices:
    def waiting(self, *slices: object) -> dra.RequeueIndex:
        return index_of(
            *slices,
            claim("a", request("gpu", model("a"))),
            claim("b", request("gpu", model("b"))),
            claim("nic", request("nic")),
            pods=(pod("a", "a"), pod("b", "b"), pod("nic", "nic")),
        )

    def test_new_devices_wake_those_that_they_serve(self) -> None:
        index = self.waiting()
        assert happens(index, "added", slice_of(device("d1", "a"), device("d2", "c"))) == ["default/a"]

    def test_a_list_that_nothing_asks_for_keeps_nobody_asleep(self) -> None:
        """With list attributes off, as by default, a list matches nothing; the device can be had all the same."""
        listed = device("d", "a")
        listed = attrs.evolve(listed, attributes={**listed.attributes, "roots": DeviceAttribute(strings=("x", "y"))})
        index = self.waiting()
        assert happens(index, "added", slice_of(listed)) == ["default/a"]
        assert dra.Allocator(index.cluster).feasible_nodes("default/a") == ["node-1"]

    def test_only_devices_that_changed_count(self) -> None:
        old = slice_of(device("d1", "a"))
        index = self.waiting(old)
        assert happens(index, "updated", slice_of(device("d1", "a"), device("d2", "b")), old) == ["default/b"]

    def test_a_taint_that_goes_helps_and_one_that_comes_does_not(self) -> None:
        tainted, clean = slice_of(device("d", "a", taints=(BROKEN,))), slice_of(device("d", "a"))
        index = self.waiting(clean)
        assert happens(index, "updated", tainted, clean) == []
        assert happens(index, "updated", clean, tainted) == ["default/a"]

    def test_a_larger_device_helps_and_a_smaller_one_does_not(self) -> None:
        def sized(size: str) -> object:
            return slice_of(device("d", "a", capacity={"memory": DeviceCapacity(value=Quantity.parse(size))}))

        index = self.waiting(sized("1Gi"))
        assert happens(index, "updated", sized("2Gi"), sized("1Gi")) == ["default/a"]
        assert happens(index, "updated", sized("1Gi"), sized("2Gi")) == []

    def test_a_device_in_use_helps_nobody(self) -> None:
        old, new = slice_of(device("d", "b")), slice_of(device("d", "a"))
        index = self.waiting(old, holding(claim("other"), "d"))
        assert happens(index, "updated", new, old) == []

    def test_a_slice_that_completes_its_pool_brings_all_of_it(self) -> None:
        index = self.waiting(slice_of(device("d1", "a"), count=2))
        assert happens(index, "added", slice_of(device("d2", "c"), name="second", count=2)) == ["default/a"]

    def test_more_counters_help_those_that_draw_on_them(self) -> None:
        def counters(amount: str) -> object:
            sets = (CounterSet(name="s", counters={"c": Counter(value=Quantity.parse(amount))}),)
            return slice_of(name="counters", count=2, shared_counters=sets)

        draws = DeviceCounterConsumption(counter_set="s", counters={"c": Counter(value=Quantity.parse("2"))})
        index = self.waiting(
            counters("1"), slice_of(device("d1", "a", consumes_counters=(draws,)), device("d2", "b"), count=2)
        )
        assert happens(index, "updated", counters("2"), counters("1")) == ["default/a"]
        assert happens(index, "updated", counters("1"), counters("2")) == []

    def test_a_slice_that_goes_helps_who_wants_all_of_it_and_nobody_else(self) -> None:
        gone = slice_of(device("d1", "a"), name="gone", pool="gone")
        index = self.waiting(gone, slice_of(device("d2", "a")), claim("all", request("gpu", allocation_mode="All")))
        index.add(pod("all", "all"))
        assert happens(index, "deleted", gone) == ["default/all"]

    def test_a_faulty_pool_that_goes_or_is_mended_helps_who_wants_all(self) -> None:
        """Whatever is in it, a faulty pool of its nodes ends a request for all devices with an error."""
        faulty = slice_of(device("n", "x"), driver=NIC, name="faulty", pool="faulty", count=2)
        index = self.waiting(slice_of(device("d", "a")), faulty, claim("all", request("gpu", allocation_mode="All")))
        index.add(pod("all", "all"))
        assert index.affected(dra.Event("deleted", faulty)) == ["default/all"]
        elsewhere = slice_of(device("n", "x"), driver=NIC, name="faulty", pool="faulty", count=2, on="node-9")
        assert index.affected(dra.Event("updated", elsewhere, old=faulty)) == ["default/all"]
        assert index.affected(dra.Event("updated", attrs.evolve(faulty, metadata=ObjectMeta(name="faulty")))) == []
        mended = slice_of(device("n", "x"), driver=NIC, name="faulty", pool="faulty")
        assert happens(index, "updated", mended, faulty) == ["default/nic", "default/all"]

    def test_a_device_in_use_that_comes_back_unlocks_the_counters(self) -> None:
        """Not only those of the counter set that it draws on."""
        amount = {"c": Counter(value=Quantity.parse("9"))}
        sets = (CounterSet(name="s", counters=amount), CounterSet(name="t", counters=amount))
        draws = DeviceCounterConsumption(counter_set="s", counters={"c": Counter(value=Quantity.parse("1"))})
        other = attrs.evolve(draws, counter_set="t")
        free, used = device("free", "a", consumes_counters=(draws,)), device("used", "z", consumes_counters=(other,))
        index = self.waiting(
            slice_of(name="counters", count=2, shared_counters=sets),
            slice_of(free, count=2),
            holding(claim("other"), "used"),
        )
        assert happens(index, "updated", slice_of(free, used, count=2), slice_of(free, count=2)) == ["default/a"]
        assert happens(index, "updated", slice_of(free, count=2), slice_of(free, used, count=2)) == []
        assert happens(index, "updated", claim("other"), holding(claim("other"), "used")) == ["default/a"]

    def test_a_device_in_use_that_draws_less_leaves_more(self) -> None:
        def state(amount: str, group: str) -> object:
            groups = (group,)
            mine = DeviceCounterConsumption(
                counter_set="s", counters={"c": Counter(value=Quantity.parse("1"))}, compatibility_groups=("g",)
            )
            other = attrs.evolve(
                mine, counters={"c": Counter(value=Quantity.parse(amount))}, compatibility_groups=groups
            )
            return slice_of(
                device("free", "a", consumes_counters=(mine,)), device("used", "z", consumes_counters=(other,)), count=2
            )

        sets = (CounterSet(name="s", counters={"c": Counter(value=Quantity.parse("2"))}),)
        counters = slice_of(name="counters", count=2, shared_counters=sets)
        objects = (*CLASSES, node("node-1"), counters, state("2", "g"), claim("a", request("gpu", model("a"))))
        cluster = dra.Cluster.from_objects([*objects, holding(claim("other"), "used")])
        index = dra.RequeueIndex(cluster, dra.Features.all())
        index.add(pod("a", "a"))
        assert happens(index, "updated", state("1", "g"), state("2", "g")) == ["default/a"]
        assert happens(index, "updated", state("2", "g"), state("1", "g")) == []
        assert happens(index, "updated", state("2", "h"), state("2", "g")) == ["default/a"]

    def test_a_device_that_was_an_error_is_out_of_the_way_when_it_changes(self) -> None:
        fragile = 'device.attributes["gpu.example.com"].size > 1'
        old = slice_of(device("d", "a"))
        index = self.waiting(old, claim("x", request("gpu", fragile)))
        index.add(pod("x", "x"))
        assert index.affected(dra.Event("deleted", old)) == ["default/x"]
        assert happens(index, "updated", slice_of(device("d", "c")), old) == ["default/x"]
        assert happens(index, "deleted", slice_of(device("d", "c"))) == ["default/x"]

    def test_a_new_resource_version_wakes_nobody(self) -> None:
        old = slice_of(device("d", "a"))
        index = self.waiting(old)
        assert happens(index, "updated", attrs.evolve(old, metadata=ObjectMeta(name="slice", generation=2)), old) == []


class TestTaintRules:
    def test_a_rule_that_goes_helps_where_it_was_not_tolerated(self) -> None:
        rule = DeviceTaintRule(
            metadata=ObjectMeta(name="rule"),
            spec=DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(driver=GPU, device="d1"), taint=BROKEN),
        )
        index = index_of(
            slice_of(device("d1", "a"), device("d2", "b")),
            claim("a", request("gpu", model("a"))),
            claim("b", request("gpu", model("b"))),
            pods=(pod("a", "a"), pod("b", "b")),
        )
        assert happens(index, "added", rule) == []
        assert (
            happens(index, "updated", attrs.evolve(rule, metadata=ObjectMeta(name="rule", labels={"a": "b"})), rule)
            == []
        )
        other = attrs.evolve(rule, spec=attrs.evolve(rule.spec, device_selector=DeviceTaintSelector(driver=NIC)))
        assert happens(index, "updated", other, rule) == ["default/a"]
        assert happens(index, "deleted", other) == []


class TestClasses:
    def test_a_class_wakes_those_that_name_it(self) -> None:
        index = index_of(
            claim("x", request("new")), claim("y"), slice_of(device("d")), pods=(pod("a", "x"), pod("b", "y"))
        )
        held = holding(claim("other"), "d")
        assert index.affected(dra.Event("deleted", held)) == ["default/b"]
        new = device_class("new", GPU)
        assert happens(index, "added", new) == ["default/a"]
        assert index.affected(dra.Event("deleted", held)) == ["default/a", "default/b"]
        assert happens(index, "updated", device_class("new", NIC), new) == ["default/a"]
        assert index.affected(dra.Event("deleted", held)) == ["default/b"]
        labelled = attrs.evolve(device_class("new", NIC), metadata=ObjectMeta(name="new", labels={"a": "b"}))
        assert happens(index, "updated", labelled, device_class("new", NIC)) == []
        assert happens(index, "deleted", labelled) == []

    def test_extended_resources_wait_for_class_and_devices(self) -> None:
        requests = {"example.com/gpu": Quantity.parse("1"), "cpu": Quantity.parse("1")}
        waiting = pod("a")
        container = Container(name="c", resources=ResourceRequirements(requests=requests))
        waiting = attrs.evolve(waiting, spec=attrs.evolve(waiting.spec, containers=(container,)))
        index = index_of(slice_of(device("d")), pods=(waiting,))
        serving = device_class("serving", GPU)
        serving = attrs.evolve(serving, spec=attrs.evolve(serving.spec, extended_resource_name="example.com/gpu"))
        assert happens(index, "added", device_class("unrelated", GPU)) == []
        assert happens(index, "added", serving) == ["default/a"]
        assert index.affected(dra.Event("deleted", holding(claim("other"), "d"))) == ["default/a"]
        plugin = attrs.evolve(node("node-1"), status=NodeStatus(allocatable={"example.com/gpu": Quantity.parse("1")}))
        assert happens(index, "updated", plugin, node("node-1")) == ["default/a"]

    def test_a_claim_that_an_earlier_attempt_left_goes(self) -> None:
        """It was never allocated, and no claim of the pod's spec: it stands in the way of the pod that owns it."""
        amounts = {"example.com/gpu": Quantity.parse("1")}
        waiting = pod("a")
        container = Container(name="c", resources=ResourceRequirements(requests=amounts))
        waiting = attrs.evolve(waiting, spec=attrs.evolve(waiting.spec, containers=(container,)))
        serving = device_class("gpu", GPU)
        serving = attrs.evolve(serving, spec=attrs.evolve(serving.spec, extended_resource_name="example.com/gpu"))
        left = claim("left", owner=owned_by("a"))
        annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
        left = attrs.evolve(left, metadata=attrs.evolve(left.metadata, annotations=annotations))
        index = index_of(serving, slice_of(device("d")), left, pods=(waiting, pod("b")))
        assert dra.Allocator(index.cluster).allocate_pod(waiting) is None
        assert happens(index, "deleted", left) == ["default/a"]
        assert dra.Allocator(index.cluster).allocate_pod(waiting) is not None


class TestNodes:
    def test_a_node_wakes_those_that_find_a_device_there(self) -> None:
        index = index_of(
            slice_of(device("d"), on="node-2"),
            claim("x"),
            claim("y", request("nic")),
            pods=(pod("a", "x"), pod("b", "y")),
        )
        assert happens(index, "added", node("node-2")) == ["default/a"]
        assert happens(index, "added", node("node-3")) == []
        assert happens(index, "deleted", node("node-2")) == []

    def test_labels_bring_devices_within_reach(self) -> None:
        wide = slice_of(device("d"), all_nodes=None, node_selector=IN_ZONE)
        index = index_of(
            wide,
            slice_of(device("n"), driver=NIC, name="nic"),
            claim("x"),
            claim("y", request("nic")),
            pods=(pod("a", "x"), pod("b", "y")),
        )
        assert happens(index, "updated", node("node-1", rack="1"), node("node-1")) == []
        assert happens(index, "updated", node("node-1", zone="z"), node("node-1", rack="1")) == ["default/a"]

    def test_labels_put_what_is_in_the_way_out_of_reach(self) -> None:
        fragile = 'device.attributes["gpu.example.com"].size > 1'
        faulty = slice_of(
            device("f"), name="faulty", pool="faulty", driver=NIC, count=2, all_nodes=None, node_selector=IN_ZONE
        )
        index = index_of(
            slice_of(device("d"), all_nodes=None, node_selector=IN_ZONE),
            slice_of(device("e"), name="other", pool="other", driver=NIC),
            faulty,
            claim("x", request("gpu", fragile)),
            claim("y", request("nic", allocation_mode="All")),
            claim("z"),
            pods=(pod("a", "x"), pod("b", "y"), pod("c", "z")),
        )
        index.cluster.upsert(node("node-1", zone="z"))
        assert happens(index, "updated", node("node-1"), node("node-1", zone="z")) == ["default/a", "default/b"]

    def test_labels_wake_a_pod_that_chooses_nodes_by_them(self) -> None:
        choosy = pod("b", "x")
        choosy = attrs.evolve(choosy, spec=attrs.evolve(choosy.spec, node_selector={"disk": "ssd"}))
        index = index_of(slice_of(device("d")), claim("x"), pods=(pod("a", "x"), choosy))
        assert happens(index, "updated", node("node-1", disk="ssd"), node("node-1")) == ["default/b"]

    def test_more_allocatable_opens_a_node(self) -> None:
        def sized(cpu: str) -> object:
            return attrs.evolve(node("node-1"), status=NodeStatus(allocatable={"cpu": Quantity.parse(cpu)}))

        index = index_of(
            slice_of(device("d")), claim("x"), claim("y", request("nic")), pods=(pod("a", "x"), pod("b", "y"))
        )
        assert happens(index, "updated", sized("2"), node("node-1")) == ["default/a"]
        assert happens(index, "updated", sized("1"), sized("2")) == []

    def test_what_a_node_can_do_and_what_it_does_not_publish_any_more_opens_it(self) -> None:
        def able(*features: str, **allocatable: str) -> object:
            amounts = {name: Quantity.parse(amount) for name, amount in allocatable.items()}
            status = NodeStatus(declared_features=features, allocatable=amounts)
            return attrs.evolve(node("node-1"), status=status)

        index = index_of(holding(claim("x"), "d", on="node-1"), pods=(pod("a", "x"),))
        assert happens(index, "updated", able("DRAOptionalNodeOperations"), able()) == ["default/a"]
        assert happens(index, "updated", able(cpu="1"), able(cpu="1")) == []
        assert happens(index, "updated", able(), able(cpu="1")) == ["default/a"]

    def test_a_pod_whose_claims_are_allocated_waits_for_their_nodes(self) -> None:
        index = index_of(
            holding(claim("x"), "d", on="node-2"),
            holding(claim("y"), "e", on="node-3"),
            pods=(pod("a", "x"), pod("b", "y")),
        )
        assert happens(index, "added", node("node-2")) == ["default/a"]


class TestNodeResources:
    """KEP-5517: only the first answer is judged, so that a pod is helped by what takes its first device away."""

    GREEDY = device(
        "d1",
        node_allocatable_resources={
            "cpu": NodeAllocatableResource(overhead=NodeAllocatableOverhead(per_pod=Quantity.parse("2")))
        },
    )
    BOTH = slice_of(GREEDY, device("d2"))
    TAINT = DeviceTaint(key="k", effect="NoSchedule")
    RULE = DeviceTaintRule(
        metadata=ObjectMeta(name="rule"),
        spec=DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(device="d1"), taint=TAINT),
    )
    EVENTS = (
        dra.Event("updated", slice_of(device("d2")), old=BOTH),
        dra.Event("updated", slice_of(device("d2"), GREEDY), old=BOTH),
        dra.Event("updated", slice_of(attrs.evolve(GREEDY, taints=(TAINT,)), device("d2")), old=BOTH),
        dra.Event("added", RULE),
        dra.Event("added", holding(claim("rival"), "d1")),
    )

    @pytest.mark.parametrize("event", EVENTS, ids=["gone", "after-another", "tainted", "by-rule", "taken"])
    @pytest.mark.parametrize("followed", [False, True])
    def test_what_takes_the_first_device_away_helps(self, event: dra.Event, followed: bool) -> None:
        host = attrs.evolve(node("node-1"), status=NodeStatus(allocatable={"cpu": Quantity.parse("1")}))
        cluster = dra.Cluster.from_objects([*CLASSES, host, self.BOTH, claim("x"), claim("y", request("nic"))])
        waiting, other = pod("waiting", "x"), pod("other", "y")
        features = dra.Features(DRANodeAllocatableResources=True)
        allocator = dra.Allocator(cluster, features)
        index = dra.RequeueIndex(cluster, features)
        index.add_all([waiting, other])
        assert allocator.allocate_pod(waiting) is None
        if followed:
            cluster.upsert(event.object)
            assert allocator.allocate_pod(waiting) is not None
        assert index.affected(event) == ["default/waiting"]

    def test_what_an_allocated_device_takes_of_its_node_may_change(self) -> None:
        held = holding(claim("x"), "d1")
        other = holding(claim("y"), "e", pool="elsewhere")
        cluster = dra.Cluster.from_objects([*CLASSES, node("node-1"), self.BOTH, held, other])
        for gate in (True, False):
            index = dra.RequeueIndex(cluster, dra.Features(DRANodeAllocatableResources=gate))
            index.add_all([pod("waiting", "x"), pod("other", "y")])
            event = dra.Event("updated", slice_of(device("d1"), device("d2")), old=self.BOTH)
            assert index.affected(event) == (["default/waiting"] if gate else [])

    def test_without_such_devices_it_does_not(self) -> None:
        cluster = dra.Cluster.from_objects([*CLASSES, node("node-1"), claim("x")])
        index = dra.RequeueIndex(cluster, dra.Features(DRANodeAllocatableResources=True))
        index.add(pod("waiting", "x"))
        both = slice_of(device("d1"), device("d2"))
        assert index.affected(dra.Event("updated", slice_of(device("d2")), old=both)) == []


class TestOthers:
    def test_a_namespace_that_admits_admin_access(self) -> None:
        def namespace(**labels: str) -> Namespace:
            return Namespace(metadata=ObjectMeta(name="default", labels=labels))

        admits = namespace(**{"resource.kubernetes.io/admin-access": "true"})
        index = index_of(
            namespace(), claim("x", request(admin_access=True)), claim("y"), pods=(pod("a", "x"), pod("b", "y"))
        )
        assert happens(index, "updated", admits, namespace()) == ["default/a"]
        assert happens(index, "updated", namespace(), admits) == []

    def test_a_pod_that_ends_leaves_its_devices(self) -> None:
        mine, shared = reserved(holding(claim("mine"), "d1"), "p"), reserved(holding(claim("shared"), "d2"), "p", "q")
        index = index_of(
            mine,
            shared,
            slice_of(device("d1", "a"), device("d2", "b")),
            claim("a", request("gpu", model("a"))),
            claim("b", request("gpu", model("b"))),
            pods=(pod("a", "a"), pod("b", "b")),
        )
        ended = attrs.evolve(pod("p", "mine", "shared"), status=PodStatus(phase="Succeeded"))
        assert index.affected(dra.Event("updated", ended, old=pod("p", "mine", "shared"))) == ["default/a"]
        assert index.affected(dra.Event("updated", ended, old=ended)) == []
        assert index.affected(dra.Event("deleted", pod("p", "mine", "shared"))) == ["default/a"]

    def test_a_waiting_pod_that_is_gone_or_placed_leaves(self) -> None:
        index = index_of(pods=(pod("a", "x"), pod("b", "x")))
        index.affected(dra.Event("deleted", pod("a", "x")))
        placed = pod("b", "x")
        index.affected(dra.Event("updated", attrs.evolve(placed, spec=attrs.evolve(placed.spec, node_name="node-1"))))
        assert list(index) == []

    def test_kinds_that_decide_nothing_wake_nobody(self) -> None:
        from dra_alloc.api import Workload

        index = index_of(claim("x"), pods=(pod("a", "x"),))
        assert index.affected(dra.Event("added", Workload(metadata=ObjectMeta(name="w")))) == []

    def test_a_cluster_tells_the_index_of_its_changes(self) -> None:
        index = index_of(claim("x"), claim("y", request("nic")), pods=(pod("a", "x"), pod("b", "y")))
        unsubscribe = index.cluster.subscribe(index)
        index.cluster.upsert(slice_of(device("n"), driver=NIC, name="nic"), slice_of(device("d")))
        assert index.drain() == ["default/b", "default/a"]
        assert index.drain() == []
        index.cluster.upsert(slice_of(device("e"), name="other", pool="other"))
        index.remove("default/a")
        assert index.drain() == []
        unsubscribe()
        index.cluster.upsert(slice_of(device("f"), driver=NIC, name="third", pool="third"))
        assert index.drain() == []

    def test_without_features_it_has_those_of_the_allocators(self) -> None:
        old = slice_of(device("d"))
        groups = DeviceCounterConsumption(counter_set="s", compatibility_groups=("g",))
        new = slice_of(device("d"), device("e", consumes_counters=(groups,)), count=2)
        counters = slice_of(name="counters", count=2, shared_counters=(CounterSet(name="s", counters={}),))
        index = index_of(old, counters, claim("x"), pods=(pod("a", "x"),))
        assert index.affected(dra.Event("updated", new, old=old)) == []  # such a slice is not seen
        dra.Allocator(index.cluster, features=dra.Features.all()).feasible_nodes("default/x")
        assert index.affected(dra.Event("updated", new, old=old)) == ["default/a"]

    def test_many_threads_add_and_ask(self) -> None:
        index = index_of(claim("x"), slice_of(device("d")))
        freed = dra.Event("deleted", holding(claim("other"), "d"))
        wrong: list[object] = []

        def work(number: int) -> None:
            for turn in range(100):
                mine = pod(f"p-{number}-{turn}", "x")
                index.add(mine)
                if mine.metadata.key not in index.affected(freed):
                    wrong.append(mine)
                if turn % 2:
                    index.remove(mine)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(index) == 200 == len(list(index)) == len(index.affected(freed))

    def test_wants_of_pods_that_are_gone_are_forgotten(self) -> None:
        index = index_of(slice_of(device("d", "m-5999")))
        for number in range(6000):
            index.cluster.upsert(claim("x", request("gpu", model(f"m-{number}"))))
            index.add(pod("a", "x"))
        assert len(index._demands.wants) < 5000
        assert index.affected(dra.Event("deleted", holding(claim("other"), "d"))) == ["default/a"]


RESIDENT = """
import resource, dra_alloc as dra
from tests.requeue.objects import *
cluster = dra.Cluster.from_objects([*CLASSES, *(claim(f"claim-{i}") for i in range(20000))])
index = dra.RequeueIndex(cluster)
index.add(pod("first", "claim-0"))
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
def add():
    for i in range(20000):
        index.add(pod(f"pod-{i}", f"claim-{i}"))
"""


def run(program: str) -> int:
    """What a program prints that can ask for its `resident` memory, in bytes, and `add` 20,000 pods."""
    done = subprocess.run([sys.executable, "-c", RESIDENT + program], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.plain_build
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
def test_a_pod_takes_at_most_a_kilobyte() -> None:
    assert run("before = resident(); add(); print((resident() - before) // 20000)") <= 1024


@pytest.mark.plain_build
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
def test_pods_that_come_and_go_leave_no_kilobyte_behind() -> None:
    """Each wants something else than all before it; some stay."""
    program = """
def live(turn):
    for i in range(2000):
        want = request("gpu", model(f"{turn}-{i}"))
        cluster.upsert(claim(f"claim-{i}", want))
        index.add(pod(f"pod-{turn}-{i}", f"claim-{i}"))
    for i in range(2000):
        index.remove(f"default/pod-{turn}-{i}")
for turn in range(12):
    live(turn)
before = resident()
for turn in range(12, 24):
    live(turn)
print((resident() - before) // 24000)
"""
    assert run("add()" + program) < 100
