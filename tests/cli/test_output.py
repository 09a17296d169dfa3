"""Output for people and programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from dra_alloc.cli._output import console, emit, new_table, progress

VALUE = {"b": [1, "0003:00:02.0", "ä"], "a": {"none": None, "yes": "yes"}}


def test_json_keeps_order_and_letters(capsys: pytest.CaptureFixture[str]) -> None:
    emit(VALUE, "json")
    printed = capsys.readouterr().out
    assert json.loads(printed) == VALUE
    assert printed.index('"b"') < printed.index('"a"')
    assert "ä" in printed


def test_yaml_reads_back_the_same_and_repeats_instead_of_anchors(capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["x"]
    emit({**VALUE, "c": shared, "d": shared}, "yaml")
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed) == {**VALUE, "c": ["x"], "d": ["x"]}
    assert "&" not in printed
    assert "*" not in printed


def test_a_piped_table_is_plain_and_at_most_100_columns_wide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = new_table("name", "text")
    table.add_row("a[b]", "word " * 40)
    console().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "TEXT"]
    assert lines[1].startswith("a[b]   word")
    assert max(map(len, lines)) <= 100
    assert sum(line.count("word") for line in lines) == 40
    assert "\x1b" not in "".join(lines)


def test_progress_passes_all_items_and_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress(range(3), 3, "working")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
def test_progress_shows_on_a_terminal() -> None:
    reader, writer = os.openpty()
    code = "from dra_alloc.cli._output import progress; print(list(progress(range(3), 3, 'working')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=writer,
        env={**os.environ, "TERM": "xterm"},
        check=True,
        timeout=60,
    )
    shown = os.read(reader, 1 << 16).decode()
    os.close(writer)
    os.close(reader)
    assert done.stdout.decode() == "[0, 1, 2]\n"
    assert "working" in shown
    assert "100%" in shown
