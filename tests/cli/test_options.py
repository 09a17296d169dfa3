"""Options that commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from dra_alloc import Features
from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._questions import selection_options
from tests.cli.conftest import Run

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: default}}
spec: {{devices: {{requests: []{extra}}}}}
"""


def given(option: Any, *arguments: str, stdin: str = "") -> tuple[dict[str, Any], str]:
    """The keyword arguments that a command with the option gets, and what is printed on standard error."""
    caught: dict[str, Any] = {}

    @click.command()
    @option
    def command(**arguments: Any) -> None:
        caught.update(arguments)

    done = CliRunner().invoke(command, list(arguments), input=stdin)
    if done.exit_code:
        assert isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == 2
    return caught, done.stderr


@pytest.mark.parametrize(
    ("arguments", "features"),
    [
        ([], Features()),
        (["--kubernetes-version", "1.34"], Features.for_version("1.34")),
        (["--kubernetes-version", "v1.36.2"], Features.for_version("1.36")),
        (["--features", "all"], Features.all()),
        (["--features", "none,DRADeviceTaints"], Features.none().replace(DRADeviceTaints=True)),
        (["--features", "DRADeviceTaints=false"], Features(DRADeviceTaints=False)),
        (["--features", "DRADerivedAttributes=true", "--features", "all"], Features.all()),
        (["--features", "all", "--features", "DRADeviceTaints=False"], Features.all().replace(DRADeviceTaints=False)),
        (
            ["--kubernetes-version", "1.35", "--features", "DRADeviceTaints, DRAConsumableCapacity"],
            Features.for_version("1.35", enable=["DRADeviceTaints", "DRAConsumableCapacity"]),
        ),
    ],
)
def test_features(arguments: list[str], features: Features) -> None:
    assert given(features_options, *arguments) == ({"features": features}, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kubernetes-version", "1.12"], "no gate table for Kubernetes '1.12'; known are 1.34"),
        (["--features", "DRANonsense"], "unknown feature gate DRANonsense; known are DRAAdminAccess"),
        (["--features", "DRADeviceTaints=maybe"], "'DRADeviceTaints=maybe': a gate is true or false"),
        (["--features", "all=false"], "'all=false': all takes no value"),
    ],
)
def test_features_that_are_not_known(arguments: list[str], message: str) -> None:
    caught, error = given(features_options, *arguments)
    assert caught == {}
    assert message in error


SELECTABLE = """\
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a, namespace: ns}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: b}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}}
"""


def selected(*arguments: str) -> tuple[dict[str, Any], str]:
    """What a command with the options of input and selection gets."""
    return given(lambda command: input_options(selection_options(command)), "-f", "-", *arguments, stdin=SELECTABLE)


@pytest.mark.parametrize(
    ("arguments", "node", "titles"),
    [
        ([], None, ["claim ns/a", "claim default/b"]),
        (["--node", "n"], "n", ["claim ns/a", "claim default/b"]),
        (["--claim", "ns/a", "--claim", "b"], None, ["claims ns/a, default/b"]),
        (["--pod", "p"], None, ["pod default/p"]),
    ],
)
def test_selection(arguments: list[str], node: str | None, titles: list[str]) -> None:
    caught, error = selected(*arguments)
    assert (caught["node"], [question.title for question in caught["asked"]], error) == (node, titles, "")
    assert names(caught) == ["a", "b", "p"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pod", "a", "--claim", "b"], "--claim and --pod exclude each other"),
        (["--pod", "a/b/c"], "'a/b/c' is no NAMESPACE/NAME"),
        (["--pod", "/c"], "'/c' is no NAMESPACE/NAME"),
        (["--claim", "a/"], "'a/' is no NAMESPACE/NAME"),
    ],
)
def test_selection_that_is_none(arguments: list[str], message: str) -> None:
    caught, error = selected(*arguments)
    assert caught == {}
    assert message in error


def names(caught: dict[str, Any]) -> list[str]:
    return [found.metadata.name for found in caught["objects"]]


def test_files_folders_and_standard_input_are_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "file.yaml").write_text(CLAIM.format(name="file", extra=""))
    (folder / "b.yml").write_text(CLAIM.format(name="b", extra=""))
    (folder / "a.yaml").write_text(CLAIM.format(name="a", extra=""))
    (folder / "notes.txt").write_text("no manifest")
    (folder / "deep" / "c.json").write_text(json.dumps(yaml.safe_load(CLAIM.format(name="c", extra=""))))
    stdin = CLAIM.format(name="stdin", extra="")
    flat, error = given(input_options, "-f", str(tmp_path / "file.yaml"), "-f", "-", "-f", str(folder), stdin=stdin)
    assert (names(flat), error) == (["file", "stdin", "a", "b"], "")
    deep, _ = given(input_options, "-R", "-f", str(folder))
    assert names(deep) == ["a", "b", "c"]


def test_an_unknown_field_is_a_warning_or_with_strict_an_error(tmp_path: Path) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM.format(name="a", extra=", colour: red"))
    caught, error = given(input_options, "-f", str(path))
    assert names(caught) == ["a"]
    assert error.startswith("warning: ")
    assert "colour" in error


def test_input_without_any_known_kind_is_told(tmp_path: Path) -> None:
    path = tmp_path / "services.yaml"
    path.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\n")
    caught, error = given(input_options, "-f", str(path))
    assert caught == {"objects": []}
    assert "no object of Dynamic Resource Allocation in the input; skipped: 2 " in error
    assert "Service" in error


@pytest.mark.parametrize(
    "nothing", ["", "# only a comment", "---\n---\n", '{"apiVersion": "v1", "kind": "List", "items": []}']
)
def test_input_without_any_object_is_no_answer(nothing: str, run: Run) -> None:
    for command in ("allocate", "check", "status"):
        ran = run(command, "-f", "-", stdin=nothing)
        assert (ran.status, ran.out, ran.err) == (2, "", "error: there is no object in the input\n")


def test_generated_names_are_made_and_missing_ones_asked_for(run: Run) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "job-"}}
    named = {**pod, "metadata": {"name": "job-1"}}
    text = "\n".join(
        map(json.dumps, [pod, named, pod, {**pod, "metadata": {"generateName": "job-", "namespace": "ns"}}])
    )
    caught, error = given(input_options, "-f", "-", stdin=text)
    assert ([found.metadata.key for found in caught["objects"]], error) == (
        ["job-2", "job-1", "job-3", "ns/job-4"],
        "",
    )
    assert "name: job-1\n" not in run("convert", "-f", "-", stdin=json.dumps(pod)).out
    ran = run("allocate", "-f", "-", stdin=json.dumps([named, {**pod, "metadata": {}}]))
    assert (ran.status, ran.err) == (
        2,
        "error: stream[1] Pod: metadata.name is missing: give a name, or generateName\n",
    )


def test_what_the_server_would_refuse_is_told(run: Run) -> None:
    objects = [yaml.safe_load(CLAIM.format(name=f"c{number}", extra="")) for number in range(8)]
    for each in objects[1:]:
        each["spec"]["devices"]["requests"] = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": -1}}]
    objects[1]["metadata"]["uid"] = "of-a-server"
    ran = run("nodes", "-f", "-", "-o", "json", stdin=json.dumps(objects))
    refused = [line for line in ran.err.splitlines() if "the API server would refuse" in line]
    assert [line.split(": ")[1] for line in refused] == [
        f"the API server would refuse ResourceClaim default/c{number}" for number in range(2, 7)
    ]
    assert refused[0].endswith(": spec.devices.requests[0].exactly.count: -1 is not greater than zero")
    assert "warning: and 1 more; dra-alloc check says all" in ran.err


def test_templates_and_claims_of_a_pod_are_looked_at(run: Run) -> None:
    bad = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": -1}}]}}
    meta = {"namespace": "default"}
    objects = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", **meta},
            "spec": {
                "resourceClaims": [
                    {"name": "a", "resourceClaimTemplateName": "t"},
                    {"name": "b", "resourceClaimName": "c"},
                ]
            },
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t", **meta},
            "spec": {"spec": bad},
        },
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c", **meta}, "spec": bad},
    ]
    ran = run("nodes", "-f", "-", stdin=json.dumps(objects))
    assert [line.split(": ")[1] for line in ran.err.splitlines()] == [
        "the API server would refuse ResourceClaim default/c",
        "the API server would refuse ResourceClaimTemplate default/t",
    ]


def test_a_maker_of_pods_with_claims_is_told(run: Run) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}}},
    }
    for command in ("allocate", "check"):
        ran = run(command, "-f", "-", stdin=json.dumps(job))
        assert ran.status == 0
        assert "Job train: spec.template.spec.resourceClaims: the pods of this would ask for devices" in ran.err


@pytest.mark.parametrize("missing", ["gone.yaml", "empty"])
def test_files_that_are_not_there(missing: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    caught, error = given(input_options, "-f", str(tmp_path / missing))
    assert caught == {}
    assert missing in error


def test_a_file_is_required() -> None:
    caught, error = given(input_options)
    assert caught == {}
    assert "Missing option '-f'" in error
