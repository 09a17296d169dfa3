"""A fake API server on loopback: objects with versions, list, watch, conflicts, bindings, and claims from templates.

It stands in for a cluster in tests and measurements. `python -m examples.scheduler.fakeserver PORT` runs it alone.
"""

from __future__ import annotations

import http.server
import json
import re
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["FakeServer"]

_PATH = re.compile(
    r"^/(?:api/v1|apis/resource\.k8s\.io/v1)(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>status|binding))?)?$"
)
_LISTS = {
    "nodes": "NodeList",
    "namespaces": "NamespaceList",
    "pods": "PodList",
    "deviceclasses": "DeviceClassList",
    "resourceslices": "ResourceSliceList",
    "resourceclaims": "ResourceClaimList",
    "resourceclaimtemplates": "ResourceClaimTemplateList",
}

Key = tuple[str, str, str]  # plural, namespace, name


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Store:
    """The objects, and a log of their changes for watches."""

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.log: list[tuple[str, str, bytes]] = []  # plural, version, line
        self.changed = threading.Condition(threading.RLock())
        self.closed = False
        #: Called with method and key before each write; may raise Refused. For tests of what goes wrong.
        self.interfere: Callable[[str, Key, str], None] = lambda method, key, part: None

    @property
    def version(self) -> int:
        return len(self.log)

    def put(self, key: Key, obj: dict[str, Any]) -> dict[str, Any]:
        """Store an object under a new version."""
        action = "MODIFIED" if key in self.objects else "ADDED"
        obj["metadata"]["resourceVersion"] = str(self.version + 1)
        self.objects[key] = obj
        self._tell(key, action, obj)
        return obj

    def remove(self, key: Key) -> dict[str, Any]:
        obj = self.objects.pop(key)
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version + 1)}}
        self._tell(key, "DELETED", obj)
        return obj

    def _tell(self, key: Key, action: str, obj: dict[str, Any]) -> None:
        line = json.dumps({"type": action, "object": obj}).encode() + b"\n"
        self.log.append((key[0], obj["metadata"]["resourceVersion"], line))
        self.changed.notify_all()

    def create(self, key: Key, obj: dict[str, Any]) -> dict[str, Any]:
        if key in self.objects:
            raise Refused(409, f"{key} exists already")
        obj["metadata"].setdefault("uid", str(uuid.uuid4()))
        stored = self.put(key, obj)
        if key[0] == "pods":
            self._claims_of(stored)
        return stored

    def _claims_of(self, pod: dict[str, Any]) -> None:
        """What the claim controller does: a claim for each template that the pod names."""
        metadata, statuses = pod["metadata"], []
        for entry in pod["spec"].get("resourceClaims", ()):
            if "resourceClaimTemplateName" not in entry:
                continue
            namespace = metadata["namespace"]
            template = self.objects.get(("resourceclaimtemplates", namespace, entry["resourceClaimTemplateName"]))
            if template is None:
                continue
            name = f"{metadata['name']}-{entry['name']}-{uuid.uuid4().hex[:5]}"
            owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            claim = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "annotations": {"resource.kubernetes.io/pod-claim-name": entry["name"]},
                    "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                },
                "spec": template["spec"]["spec"],
            }
            self.create(("resourceclaims", namespace, name), claim)
            statuses.append({"name": entry["name"], "resourceClaimName": name})
        if statuses:
            status = {**pod.get("status", {}), "resourceClaimStatuses": statuses}
            self.put(("pods", metadata["namespace"], metadata["name"]), {**pod, "status": status})

    def update(self, key: Key, obj: dict[str, Any], part: str) -> dict[str, Any]:
        known = self._known(key)
        version = obj["metadata"].get("resourceVersion")
        if version not in (None, known["metadata"]["resourceVersion"]):
            raise Refused(409, f"{'/'.join(key)} has changed: {version} is not the newest version")
        if part == "status":
            new = {**known, "metadata": {**known["metadata"]}, "status": obj.get("status", {})}
        else:
            new = {**obj, "metadata": {**obj["metadata"], "uid": known["metadata"]["uid"]}}
            new.pop("status", None)
            if "status" in known:
                new["status"] = known["status"]
        return self.put(key, new)

    def bind(self, key: Key, binding: dict[str, Any]) -> dict[str, Any]:
        pod = self._known(key)
        if pod["spec"].get("nodeName"):
            raise Refused(409, f"pod {key[2]} is bound already")
        spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
        return self.put(key, {**pod, "metadata": {**pod["metadata"]}, "spec": spec})

    def _known(self, key: Key) -> dict[str, Any]:
        if key not in self.objects:
            raise Refused(404, f"there is no {'/'.join(key)}")
        return self.objects[key]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: Store

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _answer(self, method: str) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        found = _PATH.match(url.path)
        if found is None or found["plural"] not in _LISTS:
            self._send(404, {"message": f"no such path {url.path}"})
            return
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if method == "GET" and query.get("watch") == "true":
            self._watch(found["plural"], int(query.get("resourceVersion") or 0))
            return
        name = found["name"] or (body["metadata"]["name"] if body else "")
        key = found["plural"], found["namespace"] or "", name
        try:
            with self.store.changed:
                self._send(200, self._do(method, key, found["part"] or "", body))
        except Refused as refused:
            self._send(refused.code, {"kind": "Status", "message": str(refused)})

    def _do(self, method: str, key: Key, part: str, body: Any) -> dict[str, Any]:
        store = self.store
        if method != "GET":
            store.interfere(method, key, part)
        match method, part:
            case "GET", _ if not key[2]:
                items = [obj for (plural, _, _), obj in store.objects.items() if plural == key[0]]
                group = "v1" if key[0] in ("nodes", "pods", "namespaces") else "resource.k8s.io/v1"
                metadata = {"resourceVersion": str(store.version)}
                return {"apiVersion": group, "kind": _LISTS[key[0]], "metadata": metadata, "items": items}
            case "GET", _:
                return store._known(key)
            case "POST", "binding":
                return store.bind(key, body)
            case "POST", _:
                return store.create(key, body)
            case "PUT", _:
                return store.update(key, body, part)
            case _:
                store._known(key)
                return store.remove(key)

    def _send(self, code: int, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _watch(self, plural: str, version: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        place = version
        store = self.store
        try:
            while not store.closed:
                with store.changed:
                    while place >= len(store.log) and not store.closed:
                        store.changed.wait(1.0)
                    lines = [line for kind, _, line in store.log[place:] if kind == plural]
                    place = len(store.log)
                if lines:
                    self.wfile.write(b"".join(lines))
                    self.wfile.flush()
        except OSError:
            return  # the watcher has gone


class FakeServer:
    """The server in threads of this process; use it in `with`. `store` may be looked into while holding its lock."""

    def __init__(self, port: int = 0) -> None:
        self.store = Store()
        handler = type("Handler", (_Handler,), {"store": self.store})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.store.changed:
            self.store.closed = True
            self.store.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self) -> None:
        """Serve until the process ends."""
        self._thread.join()


if __name__ == "__main__":
    with FakeServer(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as server:
        print(server.url, flush=True)
        server.wait()
