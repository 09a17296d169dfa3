"""Writing fixed objects back into the YAML files they were read from.

Only the documents of fixed objects are replaced; all other text stays byte for byte. What could not be replaced without
losing something is left alone, and said so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dra_alloc.api import KubernetesObject
from dra_alloc.codec import decode, encode
from dra_alloc.codec.sources import Loaded
from dra_alloc.codec.yamldump import dump_yaml
from dra_alloc.codec.yamltext import documents
from dra_alloc.errors import DecodeError
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._fixes import apply_fixes

__all__ = ["Rewritten", "Unfixed", "document_lines", "first_lines", "rewrite_files"]

_ORIGIN = re.compile(
    r"(?P<file>.*?)(?:\[(?P<document>[0-9]+)\])?(?P<items>\[[0-9]+\])?(?P<list>(?: items\[[0-9]+\])*)", re.S
)
_SEPARATOR = re.compile(r"(?:---|\.\.\.)(?:\s|$)|\$ ")
_NOTHING = re.compile(r"\s*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|\s)#")


@attrs.frozen
class Rewritten:
    """The new text of a file, the findings that it repairs, and whether comments in replaced documents are lost."""

    file: str
    text: str
    applied: tuple[Finding, ...]
    loses_comments: bool


@attrs.frozen
class Unfixed:
    """A finding whose fix could not be written back, and why."""

    finding: Finding
    reason: str


def rewrite_files(objects: Loaded, findings: Iterable[Finding]) -> tuple[list[Rewritten], list[Unfixed]]:
    """The files with what can be fixed fixed; nothing is written.

    objects: as `load` gave them, and `check` was given them.
    """
    by_object: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.fix is not None:
            by_object[finding.index].append(finding)
    fixed = apply_fixes(objects, [finding for group in by_object.values() for finding in group])
    unfixed: list[Unfixed] = []
    by_file: dict[str, dict[int, int]] = defaultdict(dict)
    for index, group in by_object.items():
        file, document, reason = _place(objects.origins[index].where)
        if reason:
            unfixed.extend(Unfixed(finding, reason) for finding in group)
        else:
            by_file[file][document] = index
    rewritten = []
    for file, places in by_file.items():
        text = _File(file)
        for document, index in sorted(places.items(), reverse=True):
            reason = text.replace(document, objects[index], fixed.replaced[index])
            if reason:
                unfixed.extend(Unfixed(finding, reason) for finding in by_object[index])
            else:
                text.applied.extend(by_object[index])
        if text.applied:
            rewritten.append(Rewritten(file, "".join(text.lines), tuple(text.applied), text.loses_comments))
    return rewritten, unfixed


def _place(where: str) -> tuple[str, int, str]:
    """File and document of an origin, and why there is nothing to write to."""
    found = _ORIGIN.fullmatch(where)
    file = found["file"] if found else where
    if found is None or not file or not Path(file).is_file():
        return file, 0, "it was not read from a file"
    if found["items"] or found["list"]:
        return file, 0, "it is an item of a list"
    if Path(file).suffix == ".json":
        return file, 0, "the file is JSON"
    return file, int(found["document"] or 1), ""


class _File:
    """The lines of a file, of which documents are replaced from the last to the first."""

    def __init__(self, name: str) -> None:
        text = Path(name).read_bytes().decode("utf-8", "surrogateescape")
        self.lines = text.splitlines(keepends=True)
        self.applied: list[Finding] = []
        self.loses_comments = False
        try:
            self._documents: Sequence[Any] = [document for _, document in documents(text)]
        except DecodeError:
            self._documents = ()  # JSON that is no YAML
        self._spans = document_lines(text) if self._documents else ()

    def replace(self, document: int, old: KubernetesObject, new: Sequence[KubernetesObject]) -> str:
        """Write `new` where the document stands; or say why not."""
        if document > len(self._spans) or len(self._spans) != len(self._documents):
            return "its document cannot be told apart from others"
        start, end = self._spans[document - 1]
        data = self._documents[document - 1]
        if not isinstance(data, Mapping) or self.lines[start].startswith(("{", "---")):
            return "it is written as JSON"
        try:
            if decode(data, strict=True) != old:
                return "the file has changed meanwhile"
        except DecodeError as error:
            return f"it has fields that would be lost ({error.path.rpartition(': ')[2]})"
        self.loses_comments |= any(_COMMENT.search(line) for line in self.lines[start:end])
        self.lines[start:end] = [dump_yaml(*map(encode, new), width=100, compact=True)]
        return ""


def first_lines(file: str) -> list[int]:
    """The first line (from 1) of each document of a YAML file; none for what is no YAML."""
    try:
        return [start + 1 for start, _ in document_lines(Path(file).read_text(encoding="utf-8"))]
    except (DecodeError, OSError, UnicodeError):
        return []


def document_lines(text: str) -> list[tuple[int, int]]:
    """First line and line after the last (from 0) of each document that is not empty, comments around it left out."""
    lines = text.splitlines(keepends=True)
    spans = []
    for number, _ in documents(text):
        start = number - 1
        if lines[start].startswith("---") and _NOTHING.match(lines[start], 3):
            start += 1
        while start < len(lines) - 1 and _NOTHING.match(lines[start]):
            start += 1
        end = start + 1
        while end < len(lines) and not _SEPARATOR.match(lines[end]):
            end += 1
        while end > start + 1 and _NOTHING.match(lines[end - 1]):
            end -= 1
        spans.append((start, end))
    return spans
