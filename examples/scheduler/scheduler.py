"""A scheduler for pods with devices: watches a cluster, decides with `dra_alloc`, writes claims, binds pods.

One thread owns the cluster and the queue: it takes what watches and writers report, and tries pods. Writing goes on
beside it, as in the scheduler of Kubernetes: a decision is assumed to hold as soon as it is made (`cluster.commit`), so
that the next pod does not wait for the API server; if writing fails, what the server has is taken back.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import attrs

import dra_alloc as dra
from dra_alloc.api import Pod, ResourceClaim
from dra_alloc.features.binding import BindingState, pod_readiness, retry_plan
from dra_alloc.features.pods import PodPlan
from examples.scheduler.client import KINDS, ApiError, Client, Watch

__all__ = ["Scheduler"]

#: Seconds between looks at pods that wait for binding conditions.
_POLL = 0.05

NOT_FOUND = 404


@attrs.define(eq=False)
class _Waiting:
    """A pod whose devices are not ready yet."""

    plan: PodPlan
    since: datetime


class Scheduler:
    """Schedules the pods of a cluster that name this scheduler.

    name: `spec.schedulerName` of the pods to take. writers: threads that write. features: gates.
    bound, failed: numbers of pods so far; on_bound is called with each pod's key.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str = "dra-example",
        features: dra.Features | None = None,
        writers: int = 4,
        on_bound: Callable[[str], object] = lambda key: None,
    ) -> None:
        self.cluster = dra.Cluster()
        self.allocator = dra.Allocator(self.cluster, features)
        self.queue = dra.PendingQueue(dra.RequeueIndex(self.cluster))
        self.cluster.subscribe(self.queue)
        self.bound = 0
        self.failed = 0
        self._client = client
        self._name = name
        self._features = self.allocator.features
        self._on_bound = on_bound
        self._news: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="writer")
        self._unsynced = set(KINDS)
        self._in_flight: dict[tuple[str, str], int] = {}
        self._meanwhile: dict[tuple[str, str], tuple[str, Any]] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._stopped = False

    # The loop

    def run(self) -> None:
        """Work until `stop` is called."""
        watches = [Watch(self._client, kind, self._report) for kind in KINDS]
        try:
            while not self._stopped:
                self._take_news()
                pod = None if self._unsynced else self.queue.pop()
                if pod is not None:
                    self._try(pod)
        finally:
            for watch in watches:
                watch.stop()
            self._writers.shutdown()

    def stop(self) -> None:
        """End the loop; may be called from any thread."""
        self._news.put(self._stop)

    def _stop(self) -> None:
        self._stopped = True

    def _take_news(self) -> None:
        """What has been reported. Waits for it if no pod is to be tried."""
        idle = self._unsynced or not self.queue.active()
        try:
            if idle:
                self._news.get(timeout=_POLL)()
            while not self._stopped:
                self._news.get_nowait()()
        except queue.Empty:
            self._look_at_waiting()

    # What the cluster is like

    def _report(self, kind: str, action: str, item: Any) -> None:
        """From a watch, in its thread."""
        self._news.put(lambda: self._observe(kind, action, item))

    def _observe(self, kind: str, action: str, item: Any) -> None:
        if action == "SYNCED":
            there = {f"{namespace}/{name}".lstrip("/") for namespace, name in item}
            for key in [each.metadata.key for each in self.cluster.objects(kind)]:
                if key not in there and (kind, key) not in self._in_flight:
                    self.cluster.delete(kind, key)
            self._unsynced.discard(kind)
            return
        obj = dra.decode(item)
        # What is being written is known better here until it is written; what comes meanwhile is looked at then.
        if (kind, obj.metadata.key) in self._in_flight:
            self._meanwhile[kind, obj.metadata.key] = action, obj
        else:
            self._take_in(kind, action, obj)

    def _take_in(self, kind: str, action: str, obj: Any) -> None:
        key = obj.metadata.key
        known = self.cluster.get(kind, key)
        # Of two states the newer counts, in whatever order they come.
        if known is not None and _version(known) > _version(obj):
            return
        if action == "DELETED":
            if known is not None:
                self.cluster.delete(kind, key)
            return
        self.cluster.upsert(obj)
        if isinstance(obj, Pod):
            self._enqueue(obj)

    def _enqueue(self, pod: Pod) -> None:
        mine = (pod.spec.scheduler_name or "default-scheduler") == self._name
        finished = pod.status is not None and pod.status.phase in ("Succeeded", "Failed")
        if finished:
            self.cluster.release(pod)
        elif mine and _is_to_be_placed(pod) and pod.metadata.key not in self._waiting and pod not in self.queue:
            self.queue.add(pod)

    # Deciding

    def _try(self, pod: Pod) -> None:
        reason: dra.DraError | None = None
        try:
            plan = self.allocator.allocate_pod(pod)
            if plan is not None and any(_is_made_by_controller(claim, plan) for claim in plan.claims):
                plan = None  # the controller has yet to make its claims; their events wake the pod
            if plan is not None:
                self.cluster.commit(plan)
        except dra.DraError as error:
            plan, reason = None, error
        if plan is None:
            self.failed += 1
            self.queue.failed(pod, reason)
            return
        self.queue.done(pod)
        for item in _touched(plan):
            self._in_flight[item] = self._in_flight.get(item, 0) + 1
        self._writers.submit(self._write, plan)

    # Writing, in threads of its own

    def _write(self, plan: PodPlan) -> None:
        pod = plan.pod.metadata
        written: list[dict[str, Any]] = []
        try:
            written += [self._write_claim(claim, plan) for claim in plan.claims]
            if plan.pod.status is not None and plan.pod.status.extended_resource_claim_status is not None:
                written.append(self._client.update(_unbound(plan.pod).to_dict(), "/status"))
            ready = plan.readiness(datetime.now(UTC)).state is BindingState.READY
            if ready:
                self._client.bind(pod.namespace, pod.name, plan.node)
        except (ApiError, OSError) as error:
            fault = error
            self._news.put(lambda: self._undo(plan, fault))
            return
        self._news.put(lambda: self._settled(plan, written, ready))

    def _write_claim(self, claim: ResourceClaim, plan: PodPlan) -> dict[str, Any]:
        """Finalizer first, then the status: a claim that has devices can no longer vanish."""
        body = claim.to_dict()
        status = body.pop("status")
        if claim.metadata.key in plan.created:
            stored = self._client.create(body)
        else:
            stored = self._client.get("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
            if stored.get("status", {}).get("allocation") not in (None, status["allocation"]):
                raise ApiError(409, f"claim {claim.metadata.key} has another allocation")
            if set(stored["metadata"].get("finalizers", ())) < set(body["metadata"].get("finalizers", ())):
                stored["metadata"]["finalizers"] = body["metadata"]["finalizers"]
                stored = self._client.update(stored)
        reserved = {each["uid"]: each for each in stored.get("status", {}).get("reservedFor", ())}
        for consumer in status.get("reservedFor", ()):
            reserved.setdefault(consumer["uid"], consumer)
        old = stored.get("status", {})
        stored["status"] = {**old, "allocation": status["allocation"], "reservedFor": list(reserved.values())}
        return self._client.update(stored, "/status")

    # After writing, in the loop again

    def _settled(self, plan: PodPlan, written: list[dict[str, Any]], ready: bool) -> None:
        self._landed(plan)
        for obj in written:
            self._observe(obj["kind"], "MODIFIED", obj)
        self._catch_up(plan)
        if ready:
            self.bound += 1
            self._on_bound(plan.pod.metadata.key)
        else:
            self._waiting[plan.pod.metadata.key] = _Waiting(plan, datetime.now(UTC))

    def _undo(self, plan: PodPlan, fault: Exception) -> None:
        """Take what the server has for what was assumed, and try the pod again."""
        self.failed += 1
        self._landed(plan)
        for kind, key in _touched(plan):
            namespace, _, name = key.partition("/")
            known = self.cluster.get(kind, key)
            try:
                stored = dra.decode(self._client.get(kind, namespace, name))
            except (ApiError, OSError):
                stored = None
            if known is not None:
                self.cluster.delete(kind, key)
            if stored is not None:
                self.cluster.upsert(stored)
                if isinstance(stored, Pod):
                    self._enqueue(stored)
        self._catch_up(plan)

    def _landed(self, plan: PodPlan) -> None:
        for item in _touched(plan):
            self._in_flight[item] -= 1
            if not self._in_flight[item]:
                del self._in_flight[item]

    def _catch_up(self, plan: PodPlan) -> None:
        """Look at what came while it was being written: what was written itself, or what others did since then."""
        for kind, key in _touched(plan):
            if (kind, key) not in self._in_flight and (news := self._meanwhile.pop((kind, key), None)):
                known = self.cluster.get(kind, key)
                if known is None or _version(known) < _version(news[1]):
                    self._take_in(kind, *news)

    # Binding conditions (KEP-5007)

    def _look_at_waiting(self) -> None:
        for key, waiting in list(self._waiting.items()):
            found = [self.cluster.get("ResourceClaim", claim.metadata.key) for claim in waiting.plan.claims]
            claims: list[ResourceClaim] = [claim for claim in found if claim is not None]
            now = datetime.now(UTC)
            if len(claims) < len(found):
                state = BindingState.FAILED
            else:
                state = pod_readiness(claims, now=now, waiting_since=waiting.since, features=self._features).state
            if state is BindingState.PENDING:
                continue
            del self._waiting[key]
            metadata = waiting.plan.pod.metadata
            try:
                if state is BindingState.READY:
                    self._client.bind(metadata.namespace, metadata.name, waiting.plan.node)
                    self.bound += 1
                    self._on_bound(key)
                    continue
                self._retry(waiting.plan, claims, now)
            except (ApiError, OSError):
                self.failed += 1
            self._refresh(waiting.plan.pod)

    def _retry(self, plan: PodPlan, claims: list[ResourceClaim], now: datetime) -> None:
        """Give back the devices that did not get ready, so that the pod can have others."""
        self.failed += 1
        given_back = retry_plan(plan.pod, claims, now=now, features=self._features)
        changed = given_back.deallocated
        for claim in given_back.unreserved:
            update = changed if changed is not None and changed.metadata.key == claim.metadata.key else claim
            stored = self._client.update(update.to_dict(), "/status")
            self._observe("ResourceClaim", "MODIFIED", stored)

    def _refresh(self, pod: Pod) -> None:
        """The pod as the server has it, not bound, back in the queue; if it is gone, out of the cluster."""
        metadata = pod.metadata
        try:
            stored = dra.decode(self._client.get("Pod", metadata.namespace, metadata.name))
        except ApiError as error:
            if error.code == NOT_FOUND and self.cluster.get("Pod", metadata.key) is not None:
                self.cluster.delete("Pod", metadata.key)
            return
        assert isinstance(stored, Pod)
        self.cluster.upsert(stored)
        self._enqueue(stored)


def _version(obj: Any) -> int:
    """Resource versions of one object grow as numbers do (guaranteed since Kubernetes 1.35)."""
    text = obj.metadata.resource_version or "0"
    return int(text) if text.isdigit() else 0


def _is_to_be_placed(pod: Pod) -> bool:
    """Whether schedulers look at a pod: it has no node yet, nothing holds it back, and it is not on its way out."""
    return not pod.spec.node_name and not pod.spec.scheduling_gates and pod.metadata.deletion_timestamp is None


def _touched(plan: PodPlan) -> list[tuple[str, str]]:
    return [("Pod", plan.pod.metadata.key), *(("ResourceClaim", claim.metadata.key) for claim in plan.claims)]


def _is_made_by_controller(claim: ResourceClaim, plan: PodPlan) -> bool:
    """Claims of templates are made by a controller; only the one for extended resources is made by the scheduler."""
    annotation = "resource.kubernetes.io/pod-claim-name"
    return claim.metadata.key in plan.created and annotation in claim.metadata.annotations


def _unbound(pod: Pod) -> Pod:
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, node_name=None))
