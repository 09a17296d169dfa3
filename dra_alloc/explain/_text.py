"""An explanation in words, line by line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from dra_alloc.explain.model import (
        Conflict,
        Explanation,
        NodeExplanation,
        NodeGroup,
        RequestExplanation,
        RuledOut,
    )

__all__ = ["Line", "lines", "render", "short_names"]

#: Names in a list before "and n more".
_NODES, _DEVICES, _EXAMPLES = 5, 4, 3


@attrs.frozen
class Line:
    """One line before it is folded. style: "", "good", "bad", "head", "dim": for those who can show it."""

    text: str
    indent: int = 0
    style: str = ""

    def folded(self, width: int) -> list[str]:
        """The line in pieces of at most `width` columns; words that are longer stay whole."""
        before = "  " * self.indent
        found = []
        for part in self.text.split("\n"):
            found += (
                textwrap.wrap(
                    part,
                    width,
                    initial_indent=before,
                    subsequent_indent=before + "    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                    drop_whitespace=True,
                )
                if not _is_drawing(part)
                else [before + part]
            )
        return found or [""]


def _is_drawing(text: str) -> bool:
    """Whether a line shows an expression or the caret below it, which must not be folded."""
    return text.startswith(" | ")


def render(found: Explanation, width: int) -> str:
    """The whole text, folded."""
    return "\n".join(piece for line in lines(found) for piece in line.folded(max(20, width)))


def lines(found: Explanation) -> Iterator[Line]:
    """The lines of an explanation."""
    if found.failure is not None and found.only is None:
        yield Line(f"{found.subject}: error", style="bad")
        yield Line(str(found.failure), 1, "bad")
        return
    if found.only is not None:
        state = "fits" if found.fits else "error" if found.failure is not None else "does not fit"
        yield Line(f"{found.subject} on node {found.only.node}: {state}", style="good" if found.fits else "bad")
        yield from _node(found.only, 1)
        return
    count = f"{len(found.fitting)}/{found.nodes} nodes"
    if found.fits:
        yield Line(f"{found.subject}: fits on {count}: {_some(found.fitting, _NODES)}", style="good")
    else:
        yield Line(f"{found.subject}: fits on {count}", style="bad")
    for group in found.groups:
        yield Line(f"{_nodes(len(group.nodes))} [{group.code}] {group.summary}", 1, "head")
        yield Line(_some(group.nodes, _NODES), 2, "dim")
    for group in found.groups[:_EXAMPLES]:
        yield Line("")
        yield from _example(group)


def _example(group: NodeGroup) -> Iterator[Line]:
    more = len(group.nodes) - 1
    yield Line(f"node {group.example.node}{f', as {more} more' if more else ''}:", style="head")
    yield from _node(group.example, 1)


def _node(found: NodeExplanation, indent: int) -> Iterator[Line]:
    if found.failure is not None:
        yield Line(str(found.failure), indent, "bad")
    elif not found.fits and found.conflict is None:
        yield Line(f"[{found.code}] {found.summary}", indent, "bad")
    for each in found.chosen:
        yield Line(f"{each.claim}/{each.request}: {each.device}", indent)
    for note in found.notes:
        yield Line(f"note: {note}", indent)
    if found.conflict is not None:
        yield from _conflict(found, found.conflict, indent)
    if not found.fits:
        for request in found.requests:
            yield from _request(request, indent)


def _request(found: RequestExplanation, indent: int) -> Iterator[Line]:
    wanted = "all devices" if found.wanted is None else _devices(found.wanted)
    got = _devices(len(found.candidates)) if found.candidates else "none"
    names = f": {_some(short_names(found.candidates), _DEVICES)}" if found.candidates else ""
    yield Line(
        f"request {found.claim}/{found.request} wants {wanted} of class {found.device_class}, "
        f"by itself could have {got}{names}",
        indent,
    )
    for entry in found.ruled_out:
        yield from _ruled_out(entry, indent + 1)
    if not found.enough:
        for miss in found.near_misses:
            detail = f": {miss.blocker.detail}" if miss.blocker.detail else ""
            yield Line(f"nearest miss: {miss.device}, ruled out by [{miss.blocker.code}] alone{detail}", indent + 1)


def _ruled_out(entry: RuledOut, indent: int) -> Iterator[Line]:
    yield Line(f"{entry.count} [{entry.code}] {entry.what}", indent)
    by_detail: dict[str, list[str]] = {}
    for name, detail in entry.devices:
        by_detail.setdefault(detail, []).append(name)
    for detail, names in by_detail.items():
        shown = _some(short_names(names), _DEVICES)
        yield Line(f"{shown}: {detail}" if detail else shown, indent + 1, "dim")
    more = entry.count - len(entry.devices)
    if more:
        yield Line(f"and {more} more", indent + 1, "dim")


def _conflict(node: NodeExplanation, found: Conflict, indent: int) -> Iterator[Line]:
    yield Line(f"[{found.code}] {node.summary}", indent, "bad")
    if not found.request:
        return
    if found.partial:
        yield Line(
            f"at best request {found.request} gets {found.got} of {_devices(found.wanted)}, in the set:", indent + 1
        )
        by_request: dict[str, list[str]] = {}
        for each in found.partial:
            by_request.setdefault(f"{each.claim}/{each.request}", []).append(each.device)
        for name, devices in by_request.items():
            yield Line(f"{name}: {_some(short_names(devices), 8)}", indent + 2, "dim")
    for split in found.splits:
        have = _counted(split.chosen) or "no value"
        left = _counted(split.others) or "none left"
        yield Line(
            f"{split.constraint} {split.attribute}: the set has {have}; the other candidates: {left}", indent + 1
        )
    if found.rest:
        yield Line(f"with that set taken, request {found.request} finds:", indent + 1)
        for entry in found.rest:
            yield from _ruled_out(entry, indent + 2)


def _counted(values: Sequence[tuple[str, int]]) -> str:
    return _some([f"{value} on {_devices(count)}" for value, count in values], _DEVICES)


def short_names(names: Sequence[str]) -> list[str]:
    """Names of devices; the driver and pool that they all share are said once."""
    if len(names) < 2:
        return list(names)
    heads = {name.rpartition("/")[0] for name in names}
    if len(heads) > 1:
        return list(names)
    return [names[0], *(name.rpartition("/")[2] for name in names[1:])]


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"
