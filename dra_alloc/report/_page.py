"""From status and explanations to the page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dra_alloc.api import Quantity
from dra_alloc.errors import MissingExtra
from dra_alloc.explain._text import Line, lines
from dra_alloc.status import SEVERAL, STATES, ClusterStatus, cluster_status

if TYPE_CHECKING:
    from dra_alloc.allocator import Allocator
    from dra_alloc.explain import Explanation

__all__ = ["render_report"]


def render_report(
    allocator: Allocator,
    explanations: Iterable[Explanation] = (),
    *,
    title: str = "Devices of the cluster",
    now: datetime | None = None,
    partition_attribute: str | None = None,
) -> str:
    """The report as HTML: self-contained, it loads nothing.

    allocator: its cluster is shown, with its features. explanations: shown below the map, pending pods usually. now:
    the time that the page bears, None for none. partition_attribute: see `cluster_status`.

    Raises MissingExtra without the extra `report`.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtra(
            'the report needs the package jinja2; install it with: pip install "dra-alloc[report]"'
        ) from None
    status = cluster_status(allocator.cluster, allocator.features, partition_attribute=partition_attribute)
    folder = files("dra_alloc.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    totals: Counter[str] = Counter(each.state for each in status.devices)
    page: str = template.render(
        title=title,
        now=None if now is None else now.strftime("%Y-%m-%d %H:%M %Z").strip(),
        states=STATES,
        totals=totals,
        devices=len(status.devices),
        nodes=len(allocator.cluster.node_names()),
        drivers=status.usage(("driver",)),
        faults=[pool.fault for pool in status.pools if pool.fault],
        explanations=[_explained(each) for each in explanations],
        # What stands in a script element must not end it.
        data=json.dumps(_data(allocator, status), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        css=(folder / "page.css").read_text(encoding="utf-8"),
        script=(folder / "page.js").read_text(encoding="utf-8"),
    )
    return page


def _explained(found: Explanation) -> dict[str, Any]:
    """The lines of an explanation, the first as its title."""
    said: list[Line] = list(lines(found))
    return {"title": said[0].text, "fits": found.fits, "code": found.code, "lines": said[1:]}


def _data(allocator: Allocator, status: ClusterStatus) -> dict[str, Any]:
    """What the script shows: nodes with their devices and counters, names that repeat as numbers."""
    drivers = sorted({each.driver for each in status.devices})
    number = {driver: place for place, driver in enumerate(drivers)}
    by_node: dict[str, list[list[Any]]] = {name: [] for name in allocator.cluster.node_names()}
    for each in status.devices:
        by_node.setdefault(each.node, []).append(
            [
                number[each.driver],
                each.pool,
                each.device,
                STATES.index(each.state),
                each.type,
                ", ".join(each.claims),
                ", ".join(each.pods),
                ", ".join(each.taints),
            ]
        )
    counters = _counters(allocator)
    return {
        "drivers": drivers,
        "states": list(STATES),
        "nodes": [
            ["several nodes" if name == SEVERAL else name, devices, counters.get(name, [])]
            for name, devices in by_node.items()
        ],
    }


def _counters(allocator: Allocator) -> dict[str, list[list[Any]]]:
    """By node, the shared counters of its pools: name, what is used, what there is, and the share of it in percent."""
    inventory = allocator.cluster.inventory(allocator.features)
    found: dict[str, list[list[Any]]] = {}
    for item in allocator.cluster.slices():
        key = (item.spec.driver, item.spec.pool.name)
        table = inventory.table(key)
        if not item.spec.shared_counters or table is None or table.fault:
            continue
        remaining = dict(zip(table.columns, inventory.state(table).remaining, strict=True))
        for counters in item.spec.shared_counters:
            for name, counter in counters.counters.items():
                total = counter.value
                used = total.nano - remaining.get((counters.name, name), total.nano)
                percent = round(100 * used / total.nano) if total.nano else 0
                shown: Quantity = total.with_nano(used)
                found.setdefault(item.spec.node_name or SEVERAL, []).append(
                    [f"{key[1]}: {counters.name}/{name}", str(shown), str(total), min(100, max(0, percent))]
                )
    return found
