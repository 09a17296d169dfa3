"""Findings as SARIF 2.1.0."""

from __future__ import annotations

from pathlib import Path

from dra_alloc import load
from dra_alloc.lint import RULES, check, first_lines, split_origin, to_sarif
from tests.docs.pages import ROOT
from tests.lint.building import claim, request


def test_a_log_has_what_the_format_asks_for() -> None:
    path = ROOT / "examples" / "lint" / "rule-hits-nothing.yaml"
    log = to_sarif(check(load(path)), lines={str(path): first_lines(str(path))})
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "dra-alloc"
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert {rule["defaultConfiguration"]["level"] for rule in driver["rules"]} == {"error", "warning", "note"}
    first, second = run["results"]
    assert first["ruleId"] == driver["rules"][first["ruleIndex"]]["id"] == "rule-hits-nothing"
    assert first["level"] == "warning"
    assert first["message"]["text"].startswith(
        "DeviceTaintRule broken-gpu: spec.deviceSelector: no published device has "
    )
    (location,) = first["locations"]
    assert location["logicalLocations"] == [
        {"fullyQualifiedName": "DeviceTaintRule broken-gpu: spec.deviceSelector", "kind": "object"}
    ]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": path.as_posix()},
        "region": {"startLine": 12},
    }
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 20}


def test_objects_without_a_file_have_no_place() -> None:
    (result,) = to_sarif(check([claim(request("gpu", count=33))]))["runs"][0]["results"]
    assert "physicalLocation" not in result["locations"][0]


def test_no_findings_are_a_run_without_results() -> None:
    assert to_sarif([])["runs"][0]["results"] == []


def test_origins_name_file_and_document() -> None:
    assert split_origin("a.yaml") == ("a.yaml", 1)
    assert split_origin("dir/a.yaml[3]") == ("dir/a.yaml", 3)
    assert split_origin("a.json items[7]") == ("a.json", 1)
    assert split_origin("a.yaml[2] items[7]") == ("a.yaml", 2)
    assert split_origin("a.yaml[2][0]") == ("a.yaml", 2)
    assert split_origin("") == ("", 1)


def test_first_lines_of_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("# licence\n---\n# one\na: 1\n---\n---\nb: 2\n", encoding="utf-8")
    assert first_lines(str(path)) == [4, 7]
    path.write_text("{broken", encoding="utf-8")
    assert first_lines(str(path)) == []
    assert first_lines(str(tmp_path / "none.yaml")) == []
