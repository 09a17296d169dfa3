"""`dra-alloc check`: the linter."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from dra_alloc.cli._input import features_options, raw_input_options
from dra_alloc.cli._output import console, emit, note, output_forms
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.codec import Loaded
    from dra_alloc.lint import Finding

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc check -f manifests/
  kubectl get resourceslices,deviceclasses,nodes -o json | dra-alloc check -f - -f claims.yaml
  dra-alloc check -f manifests/ --ignore vendor-attribute --ignore counter-unused
  dra-alloc check -f manifests/ -o sarif > dra.sarif
  dra-alloc check -f manifests/ --fix
"""

_SEVERITIES = ("error", "warning", "info")
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def _list_rules(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    from dra_alloc.lint import RULES

    if wanted and not context.resilient_parsing:
        width = max(map(len, RULES))
        for rule in RULES.values():
            click.echo(f"{rule.code:{width}}  {rule.severity.value:7}  {rule.title}")
        context.exit()


@click.command("check", epilog=_EXAMPLES)
@raw_input_options
@features_options
@click.option("--select", "selected", metavar="CODE", multiple=True, help="Look for this rule only. Repeatable.")
@click.option("--ignore", "ignored", metavar="CODE", multiple=True, help="Do not look for this rule. Repeatable.")
@click.option(
    "--severity",
    "least",
    type=click.Choice(_SEVERITIES),
    default="info",
    show_default=True,
    help="Leave out what is less severe.",
)
@click.option("--fix", "repair", is_flag=True, help="Repair in the YAML files what is certain; say what was done.")
@click.option(
    "--list-rules",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_rules,
    help="List all rules and exit.",
)
@output_forms("table", "json", "yaml", "sarif")
def command(
    objects: Loaded,
    features: Features,
    selected: tuple[str, ...],
    ignored: tuple[str, ...],
    least: str,
    repair: bool,
    output: str,
) -> int:
    """Find what cannot work in slices, classes, claims, pods and taint rules.

    Kinds that are not in the input are taken as not given: without slices nothing is said about selectors. Each finding
    has a code; docs/lint.md explains them. Exit status: 0 no errors, 1 errors, 2 the input could not be read.
    """
    from dra_alloc.lint import check

    for warning in objects.warnings:
        if not warning.field:  # the others are findings
            note(f"warning: {warning}")
    findings = check(objects, features=features, codes=_codes(selected, ignored))
    findings = [item for item in findings if _SEVERITIES.index(item.severity.value) <= _SEVERITIES.index(least)]
    if repair:
        findings = _repair(objects, findings)
    if output == "sarif":
        from dra_alloc.lint import to_sarif

        emit(to_sarif(findings, lines=_lines(findings)), "json")
    elif output == "table":
        _show(findings)
    else:
        emit([item.to_dict() for item in findings], output)
    return 1 if any(item.severity.value == "error" for item in findings) else 0


def _codes(selected: Sequence[str], ignored: Sequence[str]) -> set[str]:
    from dra_alloc.lint import RULES

    for option, codes in (("--select", selected), ("--ignore", ignored)):
        for code in codes:
            if code not in RULES:
                raise click.BadParameter(f"there is no rule {code!r}; --list-rules shows all", param_hint=option)
    return (set(selected) or set(RULES)) - set(ignored)


def _repair(objects: Loaded, findings: Sequence[Finding]) -> list[Finding]:
    """Write what can be fixed, and give back what is left."""
    from dra_alloc.lint import rewrite_files

    rewritten, unfixed = rewrite_files(objects, findings)
    done = set()
    for file in rewritten:
        Path(file.file).write_bytes(file.text.encode("utf-8", "surrogateescape"))
        for item in file.applied:
            assert item.fix is not None
            note(f"{item.where}: {item.object}: {item.code}: {item.fix.description}")
            done.add(id(item))
        if file.loses_comments:
            note(f"{file.file}: comments inside of what was written anew are gone")
    for left in unfixed:
        note(f"not fixed: {left.finding.object}: {left.finding.code}: {left.reason}")
    return [item for item in findings if id(item) not in done]


def _lines(findings: Iterable[Finding]) -> dict[str, list[int]]:
    """The first line of each document of the YAML files that findings are in."""
    from dra_alloc.lint import first_lines, split_origin

    files = {split_origin(item.where)[0] for item in findings}
    return {file: first_lines(file) for file in files if file and Path(file).is_file()}


def _show(findings: Sequence[Finding]) -> None:
    out = console()
    for (where, name), group in groupby(findings, lambda item: (item.where, item.object)):
        out.print(Text(f"{where} {name}".strip(), style="bold"), soft_wrap=True)
        for item in group:
            for line in _text(item, out.width):
                out.print(line, soft_wrap=True)
    out.print(_summary(findings), soft_wrap=True)


def _text(item: Finding, width: int) -> Iterator[Text]:
    severity = item.severity.value
    place = f" at {item.path}" if item.path else ""
    yield Text.assemble("  ", (severity, _COLOURS[severity]), f" {item.code}{place}")
    remarks = [item.message]
    if item.hint:
        remarks.append(f"hint: {item.hint}")
    if item.fix:
        remarks.append(f"--fix: {item.fix.description}")
    for remark in remarks:
        lines = textwrap.wrap(remark, max(40, width - 4), break_long_words=False, break_on_hyphens=False) or [""]
        for number, line in enumerate(lines):
            yield Text(f"    {'  ' if number else ''}{line}")


def _summary(findings: Sequence[Finding]) -> str:
    if not findings:
        return "nothing found"
    counts = Counter(item.severity.value for item in findings)
    parts = [
        f"{counts[name]} {name}{'s' if counts[name] > 1 and name != 'info' else ''}"
        for name in _SEVERITIES
        if counts[name]
    ]
    fixable = sum(item.fix is not None for item in findings)
    return ", ".join(parts) + (f"; {fixable} can be fixed with --fix" if fixable else "")
