"""Tables go into polars, pandas and pyarrow as they are, through the Arrow PyCapsule interface."""

from __future__ import annotations

import sys
from pathlib import Path

import nanoarrow
import polars
import pytest

import dra_alloc as dra
from dra_alloc.status import cluster_status
from dra_alloc.tables import Table

REASONS = Path(__file__).parents[2] / "examples" / "reasons"

TABLE = Table.of(("name", "count"), [("a", 1), ("b", None), (None, 3)], integers=("count",))


def test_polars_takes_a_table() -> None:
    frame = polars.DataFrame(TABLE)
    assert frame.schema == {"name": polars.String, "count": polars.Int64}
    assert frame.to_dicts() == TABLE.to_dicts()


def test_any_consumer_of_arrow_streams_takes_a_table() -> None:
    stream = nanoarrow.ArrayStream(TABLE)
    assert [field.name for field in stream.schema.fields] == ["name", "count"]
    assert [tuple(row.values()) for row in stream.read_all().to_pylist()] == list(TABLE.rows())


def test_an_empty_table_keeps_its_columns() -> None:
    frame = polars.DataFrame(Table.of(("name", "count"), [], integers=("count",)))
    assert (frame.height, frame.columns) == (0, ["name", "count"])


def test_devices_and_reasons_as_tables() -> None:
    cluster = dra.Cluster.from_objects(dra.load(REASONS / "counters" / "objects.yaml"))
    devices = polars.DataFrame(cluster_status(cluster).table())
    assert devices["state"].to_list() == ["in-use", "free", "blocked"]
    reasons = polars.DataFrame(dra.Allocator(cluster).explain("default/wanted").table())
    assert reasons.group_by("code").agg(polars.col("devices").sum()).sort("code").rows() == [
        ("counters", 1),
        ("request-selector", 2),
    ]


def test_csv_quotes_what_must_be_quoted() -> None:
    table = Table.of(("what",), [('say "a, b"',), (None,), ("two\nlines",)])
    assert table.to_csv() == 'what\n"say ""a, b"""\n""\n"two\nlines"\n'


def test_html_escapes() -> None:
    assert "<td>&lt;b&gt;</td>" in Table.of(("what",), [("<b>",)])._repr_html_()


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoarrow", None)
    with pytest.raises(dra.MissingExtra, match=r'pip install "dra-alloc\[arrow\]"'):
        TABLE.__arrow_c_stream__()


def test_an_explanation_shows_itself_and_escapes() -> None:
    cluster = dra.Cluster.from_objects(dra.load(REASONS / "request-selector" / "objects.yaml"))
    html = dra.Allocator(cluster).explain("default/wanted")._repr_html_()
    assert html.count("<details>") == 1
    assert "&gt;= 0" in html
    assert "model == &quot;big&quot;" in html
