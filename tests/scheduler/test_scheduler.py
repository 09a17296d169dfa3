"""The example scheduler against a fake API server on loopback: what it writes, and what it does when things fail."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import dra_alloc as dra
from examples.scheduler.client import ApiError, Client
from examples.scheduler.fakeserver import FakeServer, Refused
from examples.scheduler.scheduler import Scheduler
from examples.scheduler.workload import Workload, read_workload

ROOT = Path(__file__).parents[2]
NAME = "dra-example"


@contextmanager
def running(server: FakeServer, **options: Any) -> Iterator[Scheduler]:
    """A scheduler at work on the server."""
    scheduler = Scheduler(Client(server.url), name=NAME, **options)
    thread = threading.Thread(target=scheduler.run, daemon=True)
    thread.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()
        thread.join(30)
        assert not thread.is_alive()


def until(condition: Callable[[], object], timeout: float = 30.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


def start(server: FakeServer, workload: Workload, nodes: int, pods: int = 0) -> Client:
    client = Client(server.url)
    for obj in (*workload.cluster(nodes), *workload.pods(0, pods, NAME)):
        client.create(obj)
    return client


def objects(client: Client, kind: str) -> list[dict[str, Any]]:
    return client.list(kind)[0]


def bound(client: Client) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in objects(client, "Pod")
        if pod["spec"].get("nodeName")
    }


def held(client: Client) -> list[tuple[str, str]]:
    """Node and device of everything allocated."""
    return sorted(
        (result["pool"], result["device"])
        for claim in objects(client, "ResourceClaim")
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    )


@pytest.mark.parametrize("name", ["claim-template", "extended-resource", "matched-pair"])
def test_pods_are_bound_with_devices_of_their_own(server: FakeServer, name: str) -> None:
    client = start(server, read_workload(name), nodes=3, pods=12)
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 12)
    nodes = bound(client)
    assert len(nodes) == 12
    devices = held(client)
    assert len(devices) == len(set(devices)) == (24 if name == "matched-pair" else 12)
    claims = {claim["metadata"]["name"]: claim for claim in objects(client, "ResourceClaim")}
    for pod in objects(client, "Pod"):
        status = pod["status"]
        (claim_name,) = (
            [status["extendedResourceClaimStatus"]["resourceClaimName"]]
            if name == "extended-resource"
            else [entry["resourceClaimName"] for entry in status["resourceClaimStatuses"]]
        )
        claim = claims[claim_name]
        (consumer,) = claim["status"]["reservedFor"]
        assert (consumer["resource"], consumer["uid"]) == ("pods", pod["metadata"]["uid"])
        assert {result["pool"] for result in claim["status"]["allocation"]["devices"]["results"]} == {
            nodes[pod["metadata"]["name"]]
        }
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    # What is stored is valid, and another reader of the server finds nothing amiss.
    stored = [item for kind in ("ResourceSlice", "ResourceClaim", "Pod") for item in objects(client, kind)]
    assert [problem for item in stored for problem in dra.validate(dra.decode(item))] == []


def test_a_pod_that_does_not_fit_waits_for_what_helps_it(server: FakeServer) -> None:
    workload = read_workload("claim-template")
    client = start(server, workload, nodes=1, pods=12)
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 10 and len(scheduler.queue.unschedulable()) == 2)
        tried = scheduler.failed
        for obj in list(workload.cluster(2))[-2:]:
            client.create(obj)
        until(lambda: scheduler.bound == 12)
        assert scheduler.failed <= tried + 2
    assert sorted(bound(client).values()) == ["node-00000"] * 10 + ["node-00001"] * 2


def test_pods_of_other_schedulers_are_left_alone_but_their_devices_count(server: FakeServer) -> None:
    workload = read_workload("claim-template")
    client = start(server, workload, nodes=1, pods=1)
    for pod in workload.pods(1, 1, "somebody-else"):
        client.create(pod)
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 1)
        time.sleep(0.2)
    assert list(bound(client)) == ["pod-00000"]


def test_a_pod_with_gates_is_tried_when_they_are_gone(server: FakeServer) -> None:
    workload = read_workload("claim-template")
    client = start(server, workload, nodes=1, pods=1)
    (gated,) = workload.pods(1, 1, "dra-example")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    client.create(gated)
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 1)
        time.sleep(0.2)
        assert list(bound(client)) == ["pod-00000"]
        name = gated["metadata"]["name"]
        stored = client.get("Pod", gated["metadata"]["namespace"], name)
        del stored["spec"]["schedulingGates"]
        client.update(stored)
        until(lambda: scheduler.bound == 2)
    assert name in bound(client)


def test_a_finished_pod_makes_room(server: FakeServer) -> None:
    workload = read_workload("claim-template")
    client = start(server, workload, nodes=1, pods=11)
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 10)
        name = next(iter(bound(client)))
        pod = client.get("Pod", "test", name)
        # As the controllers do: the pod has ended, its claim is given back and removed.
        pod["status"]["phase"] = "Succeeded"
        client.update(pod, "/status")
        claim = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        with server.store.changed:
            server.store.remove(("resourceclaims", "test", claim))
        until(lambda: scheduler.bound == 11)
    devices = held(client)
    assert len(devices) == len(set(devices)) == 10


def test_conflicts_are_undone_and_tried_again(server: FakeServer) -> None:
    """Every third write is refused; in the end all pods run, and no device is given twice."""
    client = start(server, read_workload("claim-template"), nodes=2, pods=15)
    calls = iter(range(10**6))

    def interfere(method: str, key: tuple[str, str, str], part: str) -> None:
        if part in ("status", "binding") and next(calls) % 3 == 0:
            raise Refused(409, "somebody was faster")

    server.store.interfere = interfere
    with running(server) as scheduler:
        until(lambda: len(bound(client)) == 15, 60)
        assert scheduler.failed > 0
    devices = held(client)
    assert len(devices) == len(set(devices)) == 15


def test_a_claim_that_somebody_else_allocates_first_is_used_as_it_is(server: FakeServer) -> None:
    client = start(server, read_workload("claim-template"), nodes=1, pods=1)
    rival = {"request": "req-0", "driver": "test-driver.example.com", "pool": "node-00000", "device": "device-7"}
    rivals = iter([rival])

    def interfere(method: str, key: tuple[str, str, str], part: str) -> None:
        if key[0] == "resourceclaims" and part == "status" and (result := next(rivals, None)):
            claim = server.store.objects[key]
            allocation = {"devices": {"results": [result]}}
            server.store.put(key, {**claim, "metadata": {**claim["metadata"]}, "status": {"allocation": allocation}})

    server.store.interfere = interfere
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 1)
        assert scheduler.failed == 1
        for pod in read_workload("claim-template").pods(1, 8, NAME):
            client.create(pod)
        until(lambda: scheduler.bound == 9)
    assert [device for _, device in held(client)] == [f"device-{number}" for number in range(9)]
    (claim,) = [claim for claim in objects(client, "ResourceClaim") if "device-7" in str(claim)]
    assert [consumer["name"] for consumer in claim["status"]["reservedFor"]] == ["pod-00000"]


def test_watches_go_on_after_the_server_has_dropped_them(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stream ends after a few events; what happened between is listed anew, what vanished is removed."""
    real = Client.watch

    def short(self: Client, kind: str, version: str, stop: threading.Event) -> Iterator[Any]:
        for number, event in enumerate(real(self, kind, version, stop)):
            yield event
            if number == 2:
                raise ApiError(410, "too old")

    monkeypatch.setattr(Client, "watch", short)
    workload = read_workload("claim-template")
    client = start(server, workload, nodes=2, pods=5)
    with running(server) as scheduler:
        until(lambda: scheduler.bound == 5)
        for pod in workload.pods(5, 10, NAME):
            client.create(pod)
        until(lambda: scheduler.bound == 15)
        with server.store.changed:
            for key in [key for key in server.store.objects if key[0] == "pods"]:
                server.store.remove(key)
        until(lambda: not scheduler.cluster.pods())


def waiting_device(server: FakeServer) -> Client:
    """One node whose two devices must be attached before a pod may be bound."""
    client = start(server, read_workload("claim-template"), nodes=1)
    item = objects(client, "ResourceSlice")[0]
    conditions = {"bindingConditions": ["example.com/attached"], "bindingFailureConditions": ["example.com/broken"]}
    item["spec"]["devices"] = [{**device, **conditions} for device in item["spec"]["devices"][:2]]
    client.update(item)
    for pod in read_workload("claim-template").pods(0, 1, NAME):
        client.create(pod)
    return client


def report(client: Client, condition: str) -> None:
    """What the driver says about the allocated device."""
    (claim,) = objects(client, "ResourceClaim")
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    when = "2026-01-01T00:00:00Z"
    entry = {"type": condition, "status": "True", "reason": "x", "message": "", "lastTransitionTime": when}
    device = {name: result[name] for name in ("driver", "pool", "device")}
    claim["status"]["devices"] = [{**device, "conditions": [entry]}]
    client.update(claim, "/status")


def test_a_pod_is_bound_when_its_devices_are_ready(server: FakeServer) -> None:
    client = waiting_device(server)
    with running(server) as scheduler:
        until(lambda: len(held(client)) == 1)
        time.sleep(0.2)
        assert bound(client) == {}
        report(client, "example.com/attached")
        until(lambda: scheduler.bound == 1)
    assert list(bound(client)) == ["pod-00000"]


def test_devices_that_fail_are_given_back_and_the_pod_is_tried_again(server: FakeServer) -> None:
    client = waiting_device(server)
    with running(server) as scheduler:
        until(lambda: len(held(client)) == 1)
        report(client, "example.com/broken")
        until(lambda: scheduler.failed >= 1 and len(held(client)) == 1)
        until(lambda: "devices" not in objects(client, "ResourceClaim")[0]["status"])
        until(lambda: len(held(client)) == 1)
        report(client, "example.com/attached")
        until(lambda: scheduler.bound == 1)
    assert list(bound(client)) == ["pod-00000"]


def test_what_is_reported_before_a_write_has_landed_is_not_lost(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is quicker than the answer to the scheduler's own write."""
    update = Client.update

    def slow(self: Client, *arguments: Any) -> dict[str, Any]:
        stored = update(self, *arguments)
        if threading.current_thread().name.startswith("writer"):
            time.sleep(0.5)
        return stored

    client = waiting_device(server)
    monkeypatch.setattr(Client, "update", slow)
    with running(server) as scheduler:
        until(lambda: len(held(client)) == 1)
        report(client, "example.com/attached")
        until(lambda: scheduler.bound == 1)
    assert list(bound(client)) == ["pod-00000"]


@pytest.mark.slow
def test_it_measures_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.scheduler", "claim-template", "small"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("claim-template small: ")
    assert done.stdout.endswith(" pods/s\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense", "small"], "there is no workload 'nonsense'"),
        (["claim-template", "huge"], "there is no size 'huge'"),
    ],
)
def test_unknown_workloads_and_sizes_are_told(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.scheduler", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert message in done.stderr
