"""Printing: tables for people, JSON and YAML for programs, progress on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

if TYPE_CHECKING:
    from dra_alloc import tables
    from dra_alloc.errors import DraError

__all__ = [
    "console",
    "emit",
    "emit_csv",
    "error_form",
    "new_table",
    "note",
    "output_forms",
    "output_option",
    "progress",
]

#: Columns of output that goes into a file or pipe, where no terminal says how wide it is.
_PIPED_WIDTH = 100

Function = TypeVar("Function", bound=Callable[..., object])
Item = TypeVar("Item")


def output_forms(*forms: str, text: str = "Form of the output.") -> Callable[[Function], Function]:
    """The option `-o` with these forms, the first by default, passed as `output`."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help=text)


#: The option `-o` of most commands.
output_option = output_forms("table", "json", "yaml")


def console(*, stderr: bool = False) -> Console:
    """A console of standard output (or error): as wide as the terminal, 100 columns and without colour when piped."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def emit(value: object, output: str) -> None:
    """Print plain data as `output`, "json" or "yaml"."""
    if output == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        from dra_alloc.codec import dump_yaml

        click.echo(dump_yaml(value), nl=False)


def error_form(error: DraError) -> dict[str, str]:
    """An error as plain data."""
    return {"kind": error.kind, "message": str(error)}


def emit_csv(found: Iterable[tables.Table]) -> None:
    """Print tables of the same columns as one CSV, with one line of names."""
    for number, table in enumerate(found):
        text = table.to_csv()
        click.echo(text.partition("\n")[2] if number else text, nl=False)


def new_table(*columns: str) -> Table:
    """A table in the manner of kubectl: no lines, headings in capitals; where it is too wide, the last column folds."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column.upper(), overflow="fold", no_wrap=column != columns[-1])
    return table


def note(text: str) -> None:
    """A remark on standard error, out of the way of what programs read."""
    click.echo(text, err=True)


def progress(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    """The items, with a progress bar on standard error if that is a terminal."""
    bar = console(stderr=True)
    yield from track(items, description=label, total=total, console=bar, transient=True, disable=not bar.is_terminal)
