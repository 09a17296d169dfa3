"""`Table`: rows and columns that pandas, polars and others take as they are, and CSV.

The Arrow PyCapsule interface is provided through the package `nanoarrow` (extra `arrow`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import attrs

from dra_alloc.errors import MissingExtra

__all__ = ["Table"]


@attrs.frozen(repr=False)
class Table:
    """Named columns of equal length; a column holds text or whole numbers, and None where there is nothing.

    `pandas.DataFrame.from_arrow(table)`, `polars.DataFrame(table)` and `pyarrow.table(table)` take it as it is.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]  # by column
    integers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]], integers: Collection[str] = ()) -> Table:
        """A table of rows. integers: the columns that hold whole numbers of 64 bits; the others hold text."""
        found = list(rows)
        values = tuple(tuple(row[place] for row in found) for place in range(len(columns)))
        return cls(tuple(columns), values, frozenset(integers))

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def __repr__(self) -> str:
        return f"<Table {len(self)} rows: {', '.join(self.columns)}>"

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows in order."""
        return zip(*self.values, strict=True)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows()]

    def to_csv(self) -> str:
        """CSV as of RFC 4180 with a line of names, lines ending in a line feed. Nothing becomes an empty cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows())
        return text.getvalue()

    def __arrow_c_schema__(self) -> object:
        return self._arrow().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._arrow().__arrow_c_stream__(requested_schema)

    def _arrow(self) -> Any:
        try:
            import nanoarrow  # type: ignore[import-untyped,unused-ignore]
        except ModuleNotFoundError:
            raise MissingExtra(
                'Arrow tables need the package nanoarrow; install it with: pip install "dra-alloc[arrow]"'
            ) from None
        types = {name: nanoarrow.int64() if name in self.integers else nanoarrow.string() for name in self.columns}
        children = [
            nanoarrow.c_array(list(column), types[name]) for name, column in zip(self.columns, self.values, strict=True)
        ]
        array = nanoarrow.c_array_from_buffers(
            nanoarrow.struct(types), length=len(self), buffers=[None], children=children
        )
        return nanoarrow.Array(array)

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
