"""`dra-alloc check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dra_alloc.cli import main
from dra_alloc.lint import RULES
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples" / "lint"
ERROR, WARNING = str(EXAMPLES / "too-many-devices.yaml"), str(EXAMPLES / "rule-hits-everything.yaml")


def out(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_exit_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    clean = tmp_path / "clean.yaml"
    clean.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n", encoding="utf-8")
    assert main(["check", "-f", str(clean)]) == 0
    assert out(capsys) == "nothing found\n"
    assert main(["check", "-f", WARNING]) == 0
    assert main(["check", "-f", ERROR]) == 1
    clean.write_text("apiVersion: v1\nkind: [", encoding="utf-8")
    assert main(["check", "-f", str(clean)]) == 2
    assert "no valid YAML" in capsys.readouterr().err


def test_a_field_that_does_not_exist_is_a_finding_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-f", str(EXAMPLES / "unknown-field.yaml")]) == 0
    printed = capsys.readouterr()
    assert "warning unknown-field at spec.devices.request\n" in printed.out
    assert printed.err == ""


def test_files_are_judged_together(capsys: pytest.CaptureFixture[str]) -> None:
    claim, slices = str(EXAMPLES / "too-many-devices.yaml"), str(EXAMPLES / "too-few-devices.yaml")
    assert main(["check", "-f", claim, "-f", slices, "-o", "json"]) == 1
    assert {item["code"] for item in json.loads(out(capsys))} >= {"too-many-devices", "too-few-devices"}


def test_rules_and_severities_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["check", "-o", "json", "-f", ERROR, "-f", WARNING]

    def codes(*options: str) -> list[str]:
        main([*both, *options])
        return [item["code"] for item in json.loads(out(capsys))]

    assert codes() == ["too-many-devices", "rule-hits-everything"]
    assert codes("--severity", "error") == ["too-many-devices"]
    assert codes("--select", "rule-hits-everything") == ["rule-hits-everything"]
    assert codes("--ignore", "rule-hits-everything") == ["too-many-devices"]
    assert main([*both, "--ignore", "nonsense"]) == 2
    assert "there is no rule 'nonsense'" in capsys.readouterr().err


def test_output_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-f", ERROR, "-o", "sarif"]) == 1
    log = json.loads(out(capsys))
    assert log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert main(["check", "-f", ERROR, "-o", "yaml"]) == 1
    assert out(capsys).startswith("- code: too-many-devices\n")


def test_the_list_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list-rules"]) == 0
    lines = out(capsys).splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)


def test_text_is_folded_to_100_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    main(["check", "-f", str(EXAMPLES / "vendor-attribute.yaml")])
    remarks = [line for line in out(capsys).splitlines() if line.startswith("    ")]
    assert len(remarks) > 4
    assert max(map(len, remarks)) <= 100


def test_fix_writes_the_file_and_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "slice.yaml"
    path.write_bytes((EXAMPLES / "deprecated-api-version.yaml").read_bytes())
    assert main(["check", "--fix", "-f", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "nothing found\n"
    assert printed.err == (
        f"{path}: ResourceSlice node-1-gpus: deprecated-api-version: write it in resource.k8s.io/v1\n"
    )
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Written for Kubernetes 1.32.")
    assert "apiVersion: resource.k8s.io/v1\n" in text
    assert "basic:" not in text
    assert main(["check", "-f", str(path)]) == 0


def test_fix_tells_what_it_leaves(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "slice.json"
    path.write_text(
        '{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "a"}}', encoding="utf-8"
    )
    before = path.read_bytes()
    assert main(["check", "--fix", "-f", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == "not fixed: DeviceClass a: deprecated-api-version: the file is JSON\n"
    assert "1 warning" in printed.out
    assert path.read_bytes() == before
