"""KEP-5004: what quotas count."""

from __future__ import annotations

import attrs

from dra_alloc.api import PodStatus
from dra_alloc.features.quota import devices_of, quota_usage
from dra_alloc.gates import Features
from tests.features.building import slice_of
from tests.features.scenes import a_pod, asking, container, gpu_class, node, pending, scene

NAME = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def test_the_sample_of_the_kep() -> None:
    """gpu-0 by a plugin, gpu-1 by the explicit name, gpu-2 by the implicit one, gpu-3 and gpu-4 by claims: 5, 4, 4."""
    cluster, allocator = scene(
        node("plugin", {NAME: "1"}),
        node("driver"),
        slice_of("gpu-1", "gpu-2", "gpu-3", "gpu-4", pool="driver", node="driver"),
        gpu_class("gpu", NAME),
        pending("c3"),
        pending("c4"),
    )
    for pod in (
        a_pod("plugin", container("c", {NAME: 1})),
        a_pod("explicit", container("c", {NAME: 1})),
        a_pod("implicit", container("c", {IMPLICIT: 1})),
        a_pod("claims", claims={"a": "c3", "b": "c4"}),
    ):
        plan = allocator.allocate_pod(pod)
        assert plan is not None
        cluster.commit(plan)
    assert cluster.get("Pod", "default/plugin").spec.node_name == "plugin"  # type: ignore[union-attr]
    usage = quota_usage(cluster.pods(), cluster.claims(), cluster.classes(), namespace="default")
    assert usage == {
        "count/resourceclaims.resource.k8s.io": 4,
        "gpu.deviceclass.resource.k8s.io/devices": 4,
        f"requests.{IMPLICIT}": 4,
        f"requests.{NAME}": 5,
    }


def test_requests_count_the_most_that_they_may_get() -> None:
    spec = asking(3)
    requests = spec["devices"]["requests"]
    requests.append({"name": "all", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}})
    requests.append(
        {
            "name": "list",
            "firstAvailable": [
                {"name": "a", "deviceClassName": "gpu", "count": 2},
                {"name": "b", "deviceClassName": "gpu"},
                {"name": "c", "deviceClassName": "disk"},
            ],
        }
    )
    requests.append({"name": "admin", "exactly": {"deviceClassName": "disk", "adminAccess": True}})
    assert devices_of(pending("c", spec)) == {"gpu": 5, "nic": 32, "disk": 2}


def test_other_namespaces_and_finished_pods_count_nothing() -> None:
    waiting = a_pod("p", container("c", {NAME: 2}))
    done = attrs.evolve(a_pod("q", container("c", {NAME: 4})), status=PodStatus(phase="Succeeded"))
    elsewhere = attrs.evolve(pending("c"), metadata=attrs.evolve(pending("c").metadata, namespace="other"))
    usage = quota_usage([waiting, done], [elsewhere], [gpu_class("gpu", NAME)], namespace="default")
    assert usage == {"count/resourceclaims.resource.k8s.io": 0, f"requests.{NAME}": 2}


def test_a_class_that_lost_its_name_counts_only_under_its_implicit_one() -> None:
    lost, won = gpu_class("gpu", NAME), gpu_class("a-gpu", NAME)
    usage = quota_usage([], [pending("c")], [lost, won], namespace="default")
    assert usage == {
        "count/resourceclaims.resource.k8s.io": 1,
        "gpu.deviceclass.resource.k8s.io/devices": 1,
        f"requests.{IMPLICIT}": 1,
    }


def test_with_the_gate_off_claims_count_under_no_name_of_a_resource() -> None:
    usage = quota_usage(
        [a_pod("p", container("c", {NAME: 2}))],
        [pending("c")],
        [gpu_class("gpu", NAME)],
        namespace="default",
        features=Features(DRAExtendedResource=False),
    )
    assert usage == {
        "count/resourceclaims.resource.k8s.io": 1,
        "gpu.deviceclass.resource.k8s.io/devices": 1,
        f"requests.{NAME}": 2,
    }
