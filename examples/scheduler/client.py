"""The little of the Kubernetes API that a scheduler needs: list, watch, create, update, bind. Standard library only.

`kubectl proxy` gives a real cluster at http://127.0.0.1:8001; the tests use the fake server beside this file.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

__all__ = ["ApiError", "Client", "Watch", "path_of"]

#: Where the objects of each kind are.
_GROUPS = {
    "Node": ("/api/v1", "nodes", False),
    "Namespace": ("/api/v1", "namespaces", False),
    "Pod": ("/api/v1", "pods", True),
    "DeviceClass": ("/apis/resource.k8s.io/v1", "deviceclasses", False),
    "ResourceSlice": ("/apis/resource.k8s.io/v1", "resourceslices", False),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates", True),
}

KINDS = tuple(_GROUPS)

GONE = 410


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    """The path of a collection, or of an object in it."""
    prefix, plural, namespaced = _GROUPS[kind]
    inside = f"/namespaces/{namespace}" if namespaced and namespace else ""
    return f"{prefix}{inside}/{plural}" + (f"/{name}" if name else "")


class ApiError(Exception):
    """The server said no. code: the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Client:
    """Talks to one server; each thread that uses it has a connection of its own, kept open."""

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        self._address = urlsplit(url)
        self._timeout = timeout
        self._local = threading.local()

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        return self._request("GET", path_of(kind, namespace, name))

    def list(self, kind: str) -> tuple[list[dict[str, Any]], str]:
        """All objects of a kind, and the version from which to watch on."""
        found = self._request("GET", path_of(kind))
        version, name = found.get("apiVersion"), kind
        items = [{"apiVersion": version, "kind": name, **item} for item in found["items"]]
        return items, found["metadata"]["resourceVersion"]

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        return self._request("POST", path_of(obj["kind"], obj["metadata"].get("namespace", "")), obj)

    def update(self, obj: dict[str, Any], part: str = "") -> dict[str, Any]:
        """Replace an object, or its `/status`. A conflict (409) means that it has changed meanwhile."""
        metadata = obj["metadata"]
        return self._request("PUT", path_of(obj["kind"], metadata.get("namespace", ""), metadata["name"]) + part, obj)

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Bind a pod to a node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self._request("POST", path_of("Pod", namespace, pod) + "/binding", body)

    def watch(self, kind: str, version: str, stop: threading.Event) -> Iterator[tuple[str, dict[str, Any]]]:
        """Changes of a kind since a version, as ("ADDED", object) and so on, until the server ends the stream."""
        connection = self._connect()
        try:
            connection.request("GET", f"{path_of(kind)}?watch=true&resourceVersion={version}")
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise ApiError(response.status, response.read().decode("utf-8", "replace"))
            while not stop.is_set() and (line := response.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 500), event["object"].get("message", ""))
                yield event["type"], event["object"]
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._address.hostname or "", self._address.port or 80, timeout=self._timeout)

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        for last in (False, True):
            known: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
            connection = known or self._connect()
            self._local.connection = connection
            try:
                connection.request(method, path, content, headers)
                response = connection.getresponse()
                answer = response.read()
            except (http.client.HTTPException, OSError):
                self._local.connection = None
                connection.close()
                # A connection that was kept open may have been closed by the server meanwhile; a new one has not.
                if known is None or last:
                    raise
                continue
            if response.status >= http.client.BAD_REQUEST:
                raise ApiError(response.status, answer.decode("utf-8", "replace"))
            found: dict[str, Any] = json.loads(answer)
            return found
        raise AssertionError("unreachable")


class Watch:
    """Follows a kind in a thread, whatever happens to the connection: lists, watches, and lists again when it must.

    tell: called with ("ADDED" | "MODIFIED" | "DELETED" | "SYNCED", object); "SYNCED" once after each listing, with the
    keys (namespace, name) of all objects that are there, so that what has vanished unseen can be removed.
    """

    def __init__(self, client: Client, kind: str, tell: Callable[[str, str, Any], None]) -> None:
        self._client = client
        self._kind = kind
        self._tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {kind}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End as soon as the next event, or the end of the stream, is seen."""
        self._stop.set()

    def _run(self) -> None:
        pause = 0.05
        while not self._stop.is_set():
            try:
                items, version = self._client.list(self._kind)
                for item in items:
                    self._tell(self._kind, "ADDED", item)
                keys = {(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items}
                self._tell(self._kind, "SYNCED", keys)
                pause = 0.05
                while not self._stop.is_set():
                    for action, item in self._client.watch(self._kind, version, self._stop):
                        version = item["metadata"]["resourceVersion"]
                        if action != "BOOKMARK":
                            self._tell(self._kind, action, item)
            except (ApiError, OSError, ValueError, http.client.HTTPException) as error:
                if not (isinstance(error, ApiError) and error.code == GONE):
                    self._stop.wait(pause)
                    pause = min(2 * pause, 5.0)
