"""KEP-5018: admin access only in labelled namespaces."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import dra_alloc as dra
from dra_alloc.api import Namespace, ResourceClaim
from dra_alloc.features.adminaccess import admits_admin_access, check_admin_access
from tests.features.scenes import a_pod, asking, devices, gpu_class, gpu_node, pending, scene, template

LABEL = "resource.kubernetes.io/admin-access"


def namespace(name: str = "default", **labels: str) -> Namespace:
    return Namespace.from_dict({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def monitor() -> ResourceClaim:
    spec = asking()
    spec["devices"]["requests"].append({"name": "all", "exactly": {"deviceClassName": "gpu", "adminAccess": True}})
    return pending("monitor", spec)


def world(*more: Any, **options: Any) -> tuple[dra.Cluster, dra.Allocator]:
    return scene(gpu_node("n1", "gpu-0", "gpu-1"), gpu_class(), monitor(), *more, **options)


def test_worked_example_a() -> None:
    _, allocator = world(namespace())
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate("default/monitor", node="n1")
    assert (caught.value.kind, caught.value.claim, caught.value.request) == ("forbidden", "default/monitor", "all")
    assert "spec.devices.requests[1].exactly.adminAccess" in str(caught.value)
    assert f'{LABEL}: "true"' in str(caught.value)
    with pytest.raises(dra.AllocationError, match="namespace default lacks"):
        allocator.feasible_nodes("default/monitor")


def test_worked_example_b() -> None:
    held = pending("x")
    admin = pending("admin", asking(adminAccess=True))
    cluster, allocator = scene(
        gpu_node("n1", "gpu-0"), gpu_class(), namespace(**{LABEL: "true"}), held, admin, pending("y")
    )
    for name in ("x", "admin"):
        found = allocator.allocate(f"default/{name}", node="n1")
        assert found is not None
        assert [result.device for result in found[0].devices.results] == ["gpu-0"]
        cluster.commit(f"default/{name}", found[0])
    assert allocator.allocate("default/y", node="n1") is None
    cluster.release("default/x")
    # The admin claim still holds gpu-0, and takes nothing from others.
    assert allocator.allocate("default/y", node="n1") is not None


@pytest.mark.parametrize(
    ("labels", "admitted"),
    [({LABEL: "true"}, True), ({LABEL: "True"}, False), ({LABEL: ""}, False), ({}, False), ({"other": "true"}, False)],
)
def test_the_label_must_be_exactly_true(labels: dict[str, str], admitted: bool) -> None:
    assert admits_admin_access(namespace(**labels)) is admitted


def test_without_the_namespace_object_nothing_is_known_of_its_labels() -> None:
    _, allocator = world(namespace("other"))
    assert allocator.allocate("default/monitor", node="n1") is not None


def test_only_the_first_request_that_asks_is_named_and_false_does_not_ask() -> None:
    spec = asking(adminAccess=False)
    cluster, allocator = world(namespace(), pending("plain", spec))
    assert allocator.allocate("default/plain", node="n1") is not None
    check_admin_access([pending("plain", spec)], cluster)


def test_what_is_allocated_stays_when_the_label_goes() -> None:
    cluster, allocator = world(namespace(**{LABEL: "true"}))
    found = allocator.allocate("default/monitor", node="n1")
    assert found is not None
    cluster.commit("default/monitor", found[0])
    cluster.upsert(namespace())
    assert allocator.allocate("default/monitor", node="n1") == found


def test_a_template_is_judged_when_its_claim_is_made() -> None:
    watching = template("watch", asking(adminAccess=True))
    cluster, allocator = world(namespace(), watching)
    pod = a_pod("p", templates={"gpu": "watch"})
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate_pod(pod)
    assert caught.value.kind == "forbidden"
    cluster.upsert(namespace(**{LABEL: "true"}))
    plan = allocator.allocate_pod(pod)
    assert plan is not None
    assert devices(plan) == ["gpu-0"]
    assert plan.allocations[0].devices.results[0].admin_access is True


def test_with_the_gate_off_the_field_is_refused_whatever_the_namespace() -> None:
    _, allocator = world(namespace(**{LABEL: "true"}), features=dra.Features(DRAAdminAccess=False))
    with pytest.raises(dra.AllocationError) as caught:
        allocator.allocate("default/monitor", node="n1")
    assert caught.value.kind == "unsupported"


def test_a_claim_without_namespace_is_in_default() -> None:
    claim = monitor()
    bare = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, namespace=""))
    cluster, _ = world(namespace())
    with pytest.raises(dra.AllocationError, match="namespace default lacks"):
        check_admin_access([bare], cluster)
