"""Reading a running cluster: from a server on the loopback that answers as an API server does."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from kubernetes.client import ApiClient, Configuration

import dra_alloc as dra
from dra_alloc import live
from tests.cli.conftest import Run, run  # noqa: F401

REASONS = Path(__file__).parents[2] / "examples" / "reasons"

PLURALS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/pods",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules",
}


class Server:
    """Answers lists in pages; what it was asked is in `asked`."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]]] = {path: [] for path in PLURALS.values()}
        self.asked: list[tuple[str, str]] = []
        self.status: dict[str, int] = {}
        self.page = 500
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is logged."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        self.asked.append((request.command, parts.path))
        status = self.status.get(parts.path, 200 if parts.path in self.lists else 404)
        body: dict[str, Any] = {"kind": "Status", "code": status}
        if status == 200:
            start = int(query.get("continue", ["0"])[0])
            items = self.lists[parts.path]
            more = {"continue": str(start + self.page)} if start + self.page < len(items) else {}
            kind = next(kind for kind, path in PLURALS.items() if path == parts.path)
            version = "v1" if parts.path.startswith("/api/") else "resource.k8s.io/v1"
            shown = [
                {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
                for item in items[start : start + self.page]
            ]
            body = {"kind": f"{kind}List", "apiVersion": version, "metadata": more, "items": shown}
        text = json.dumps(body).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def hold(self, path: Path) -> None:
        for item in yaml.safe_load_all(path.read_text()):
            self.lists[PLURALS[item["kind"]]].append(json.loads(json.dumps(item, default=lambda d: d.isoformat())))


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.http.serve_forever, daemon=True)
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()


def client(server: Server) -> ApiClient:
    return ApiClient(Configuration(host=server.address))


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.address}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def test_all_kinds_are_read_and_nothing_is_written(server: Server) -> None:
    server.hold(REASONS / "taint" / "objects.yaml")
    found = live.fetch(client=client(server))
    assert [item.kind for item in found] == [
        "Node", "DeviceClass", "ResourceSlice", "ResourceClaim", "DeviceTaintRule",
    ]  # fmt: skip
    alloc = dra.Allocator(dra.Cluster.from_objects(found))
    assert alloc.explain("default/wanted").code == "taint"
    assert {method for method, _ in server.asked} == {"GET"}


def test_lists_come_in_pages(server: Server) -> None:
    path = PLURALS["Node"]
    server.lists[path] = [{"metadata": {"name": f"n-{number}"}} for number in range(7)]
    server.page = 3
    found = live.fetch(client=client(server))
    assert [item.metadata.name for item in found] == [f"n-{number}" for number in range(7)]
    assert server.asked.count(("GET", path)) == 3


def test_older_versions_are_tried(server: Server) -> None:
    path = PLURALS["DeviceTaintRule"]
    server.status[path] = 404
    live.fetch(client=client(server))
    asked = [each for _, each in server.asked if each.endswith("/devicetaintrules")]
    assert asked == [path.replace("/v1/", f"/{version}/") for version in ("v1", "v1beta2", "v1alpha3")]


def test_a_list_that_is_refused_is_named(server: Server) -> None:
    server.status[PLURALS["ResourceSlice"]] = 403
    with pytest.raises(dra.DraError, match=r"list resourceslices.resource.k8s.io: 403 .*; the verb list is needed"):
        live.fetch(client=client(server))


def test_a_server_that_is_not_there() -> None:
    settings = Configuration(host="http://127.0.0.1:9")
    settings.retries = False
    with pytest.raises(dra.DraError, match="cannot be reached for nodes"):
        live.fetch(client=ApiClient(settings))


def test_no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(dra.DraError, match="no cluster to read"):
        live.fetch()


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(dra.MissingExtra, match=r'pip install "dra-alloc\[live\]"'):
        live.fetch()


@pytest.mark.usefixtures("kubeconfig")
def test_commands_read_the_current_context(server: Server, run: Run) -> None:  # noqa: F811
    server.hold(REASONS / "taint" / "objects.yaml")
    ran = run("explain", "--live")
    assert (ran.status, ran.out) == (1, (REASONS / "taint" / "explanation.txt").read_text())
    ran = run("status", "--live", "--context", "here", "-o", "csv")
    assert ran.out.count("tainted") == 2
    assert {method for method, _ in server.asked} == {"GET"}
    ran = run("status", "--live", "--context", "elsewhere")
    assert ran.status == 2
    assert "no cluster to read" in ran.err


def test_files_or_a_cluster_are_needed(run: Run) -> None:  # noqa: F811
    ran = run("status")
    assert ran.status == 2
    assert "--live" in ran.err
    assert run("status", "--context", "here", "-f", REASONS / "taint").status == 2
