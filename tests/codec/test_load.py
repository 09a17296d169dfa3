"""`load`: all kinds of sources, lists, what is skipped, what is warned about, and where a fault is."""

from __future__ import annotations

import gc
import io
import json
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

import dra_alloc
from dra_alloc import api
from dra_alloc.codec import DecodeWarning, load
from dra_alloc.errors import DecodeError


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **more}


def names(loaded: list[api.Model]) -> list[str]:
    return [obj.metadata.name for obj in loaded]  # type: ignore[attr-defined]


def text_of(*objects: dict[str, Any]) -> str:
    return yaml.safe_dump_all(objects)


def refused(*sources: Any, **options: Any) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        load(*sources, **options)
    return caught.value


def test_reads_everything_that_holds_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "many.yaml").write_text(text_of(node("a"), node("b")))
    (tmp_path / "one.json").write_text(json.dumps(node("c")))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "2.yml").write_text(text_of(node("e")))
    (folder / "1.json").write_text(json.dumps(node("d")))
    (folder / "notes.md").write_text("# no objects")
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(node("f"))))
    found = load(
        str(tmp_path / "many.yaml"),
        tmp_path / "one.json",
        folder,
        "-",
        io.StringIO(text_of(node("g"))),
        io.BytesIO(json.dumps(node("h")).encode()),
        node("i"),
        api.Node(metadata=api.ObjectMeta(name="j")),
        [node("k"), (node(name) for name in "lm")],
        {"apiVersion": "v1", "kind": "List", "items": [node("n")]},
    )
    assert names(found) == list("abcdefghijklmn")
    assert isinstance(found, list)
    assert load() == []
    assert dra_alloc.load is load


def test_reads_json_in_all_its_shapes() -> None:
    one, two = json.dumps(node("a"), indent=1), json.dumps(node("b"))
    for text in (f"{one}\n{two}\n", f"{two}{one}"):
        assert sorted(names(load(io.StringIO(text)))) == ["a", "b"]
    assert names(load(io.StringIO(f"[{one}, {two}]"))) == ["a", "b"]
    assert names(load(io.StringIO("{apiVersion: v1, kind: Node, metadata: {name: flow}}"))) == ["flow"]
    assert load(io.StringIO("")) == load(io.StringIO("[]")) == load(io.StringIO("---\n# nothing\n")) == []


def test_reads_files_with_byte_order_marks(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text(json.dumps(node("ä"), ensure_ascii=False), encoding=encoding)
        assert names(load(path)) == ["ä"]
    path.write_text(text_of(node("b")), encoding="utf-16")
    assert names(load(path)) == ["b"]
    path.write_bytes(b"\xff\xfa\x00kind")
    assert refused(path).message.startswith("no text")


def test_reads_lists_of_all_kinds() -> None:
    plain = {key: value for key, value in node("b").items() if key not in ("kind", "apiVersion")}
    typed = {
        "apiVersion": "v1",
        "kind": "NodeList",
        "metadata": {},
        "items": [node("a"), plain, {**plain, "kind": None}],
    }
    assert names(load(typed)) == ["a", "b", "b"]
    assert load({"apiVersion": "v1", "kind": "List", "items": None}) == []
    nested = {"apiVersion": "v1", "kind": "List", "items": [typed]}
    assert names(load(nested)) == ["a", "b", "b"]
    other = load({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [plain, plain]})
    assert (other, other.skipped) == ([], {"apps/v1 Deployment": 2})


def test_counts_what_it_skips() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    found = load(io.StringIO(text_of(job, node("a"), job, {"kind": "Expect", "apiVersion": "test/v1"})))
    assert names(found) == ["a"]
    assert found.skipped == {"batch/v1 Job": 2, "test/v1 Expect": 1}
    assert load(job, strict=True).skipped == {"batch/v1 Job": 1}


def test_the_error_of_a_server_is_no_object_to_skip() -> None:
    failure = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "pods is forbidden", "code": 403}
    error = refused(io.StringIO(text_of(node("a"), failure)))
    assert str(error) == "stream[2] Status: the API server has answered with an error: pods is forbidden (ask it again)"
    assert load({**failure, "status": "Success"}).skipped == {"v1 Status": 1}


def test_kinds_whose_pods_have_claims_are_told_unless_there_are_pods() -> None:
    pod_spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    template = {"template": {"spec": pod_spec}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": template}
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"jobTemplate": {"spec": template}},
    }
    plain = {**job, "spec": {"template": {"spec": {"containers": []}}}}
    odd = {**job, "spec": {"template": [pod_spec]}}
    found = load(job, cron, plain, odd, node("a"))
    assert [warning.path for warning in found.warnings] == [
        "Job j: spec.template.spec.resourceClaims",
        "CronJob c: spec.jobTemplate.spec.template.spec.resourceClaims",
    ]
    assert {(warning.index, warning.field) for warning in found.warnings} == {(-1, "")}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec}
    assert load(job, pod).warnings == []


def test_warns_of_unknown_fields_with_file_document_object_and_path(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x", "cuont": 2}}]}},
    }
    path.write_text(text_of(node("a"), claim))
    found = load(path)
    assert found.warnings == [
        DecodeWarning(
            f"{path}[2] ResourceClaim default/c: spec.devices.requests[0].exactly.cuont",
            "unknown field",
            "did you mean count?",
            index=1,
            field="spec.devices.requests[0].exactly.cuont",
        )
    ]
    assert str(found.warnings[0]).endswith("cuont: unknown field (did you mean count?)")
    error = refused(path, strict=True)
    assert error.path == found.warnings[0].path
    assert (error.message, error.hint) == ("unknown field", "did you mean count?")
    assert str(load(node("a", x=1)).warnings[0]) == "Node a: x: unknown field"
    many = load({"apiVersion": "v1", "kind": "List", "items": [node("a", speed=1), node("b"), node("c", speed=2)]})
    assert [warning.path for warning in many.warnings] == ["items[0] Node a: speed", "items[2] Node c: speed"]


def test_faults_say_where(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text_of(node("a"), node("b", spec={"unschedulable": "yes"})))
    assert refused(path).path == f"{path}[2] Node b: spec.unschedulable"
    path.write_text(text_of(node("b", spec={"unschedulable": "yes"})))
    assert refused(path).path == f"{path} Node b: spec.unschedulable"
    path.write_text("a: 1\na: 2\n")
    assert refused(path).path == f"{path} line 2"
    path.write_text('{"a": 1,,}')
    assert refused(path).message.startswith("no valid JSON")
    path.write_text(text_of({"apiVersion": "v1", "kind": "List", "items": [node("a"), {"kind": "Node"}]}))
    assert refused(path).path == f"{path} items[1] Node"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no/such/file.yaml", "cannot be read: No such file"),
        ("bad\0name", "cannot be read"),
        ("kind: Node\napiVersion: v1", "text given where a path is wanted"),
        (3, "cannot read from int"),
        (None, "cannot read from NoneType"),
        (b"kind: Node", "cannot read from bytes"),
        ([["x"] for _ in range(1)], "cannot be read"),
        (io.StringIO("just text"), "expected a Kubernetes object, found 'just text'"),
        (io.StringIO("- 1\n- 2\n"), "expected a Kubernetes object, found 1"),
        (io.StringIO("42"), "expected a Kubernetes object, found 42"),
        (io.StringIO("- name: gpu-0\n"), "this is not a whole object"),
        (io.StringIO("devices: []\n"), "no apiVersion and no kind"),
        ({"apiVersion": "v1", "kind": "List", "items": {}}, "expected a list"),
        ({"apiVersion": "v1", "kind": "List", "items": [1]}, "not a Kubernetes object"),
    ],
)
def test_what_cannot_be_read(source: Any, message: str) -> None:
    assert message in refused(source).message


def test_closed_streams_and_folders_without_access(tmp_path: Path) -> None:
    stream = io.StringIO("")
    stream.close()
    assert "cannot be read" in refused(stream).message
    with (tmp_path / "out").open("w") as handle:
        assert "cannot be read" in refused(handle).message


def test_templates_are_recognized() -> None:
    for text in (
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: node-{{.Index}}\n",
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: {{ .Values.name }}\n",
        "{{- if .Values.enabled }}\napiVersion: v1\n{{- end }}\n",
    ):
        assert "render it first" in refused(io.StringIO(text)).hint


def test_lists_nested_without_end_are_refused() -> None:
    nested: Any = node("a")
    for _ in range(3000):
        nested = {"apiVersion": "v1", "kind": "List", "items": [nested]}
    assert "deep" in refused(nested).message
    assert "deep" in refused(io.StringIO('{"a":' * 100_000 + "1" + "}" * 100_000)).message


def test_leaves_the_collector_as_it_was() -> None:
    assert gc.isenabled()
    refused(3)
    assert gc.isenabled()
    gc.disable()
    try:
        load(node("a"))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_fleet_takes_little_memory() -> None:
    """60,000 devices in 100 MB is at most 1,666 bytes a device; here with eight attributes, one of its own."""

    def device(slice_: int, index: int) -> dict[str, Any]:
        attributes = {f"attribute{number}": {"string": f"value{number}"} for number in range(7)}
        attributes["uuid"] = {"string": f"GPU-{slice_:08d}-{index:08d}"}
        return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}

    def slice_(number: int) -> dict[str, Any]:
        pool = {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1}
        devices = [device(number, index) for index in range(8)]
        spec = {"driver": "gpu.example.com", "nodeName": f"node-{number}", "pool": pool, "devices": devices}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"s{number}"},
            "spec": spec,
        }

    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [slice_(number) for number in range(250)]})
    load(io.StringIO(text))
    tracemalloc.start()
    try:
        found = load(io.StringIO(text))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 250
    assert held / 2000 < 1666


def test_threads_may_load_at_the_same_time() -> None:
    text = text_of(*(node(f"n{number}", status={"capacity": {"cpu": str(number)}}) for number in range(50)))
    alone = load(io.StringIO(text))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: load(io.StringIO(text)), range(20)):
            assert found == alone
    assert gc.isenabled()
