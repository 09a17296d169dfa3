"""Findings about standard attributes (KEP-6072): other spellings of them, malformed values, and how to bridge them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from dra_alloc.api import DeviceAttribute
from dra_alloc.features.standard import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, attribute_problems
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._world import Item, Row, World, finding

__all__ = ["bridge_hint", "check_standard", "standard_name"]

#: How vendors spell the standard attributes, in lower case without separators.
_SPELLINGS = {
    NUMA_NODE: ("numa", "numanode", "numanodeid", "numaid", "numadomain"),
    PCIE_ROOT: ("pcieroot", "pciroot", "pcierootcomplex", "pcirootcomplex", "pcierootid", "rootcomplex"),
    PCI_BUS_ID: ("pcibusid", "pcibusaddress", "pciaddress", "pciaddr", "pcibdf", "busid", "bdf"),
}
_STANDARD = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}


@lru_cache(maxsize=4096)
def standard_name(name: str) -> str | None:
    """The standard attribute that a name stands for; None if it stands for none."""
    return _STANDARD.get(re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].lower()))


def check_standard(world: World) -> Iterator[Finding]:
    """Vendor spellings of standard attributes where the standard one is missing, and malformed standard attributes."""
    told: set[tuple[str, str]] = set()
    for row in world.rows:
        for name in row.device.attributes:
            standard = standard_name(name)
            if standard is None or name == standard or standard in row.device.attributes or (row.driver, name) in told:
                continue
            told.add((row.driver, name))
            item, path = _place(world, row)
            message = f"says what {standard} is for, which other drivers use, so that claims cannot match the two"
            hint = f"publish {standard} as well; until then claims can derive it: {_bridge(row, name, standard)}"
            yield finding(item, "vendor-attribute", f"{path}.attributes[{name}]", message, hint)
        for problem in attribute_problems(row.device.attributes, world.features):
            item, path = _place(world, row)
            name = next(name for name in row.device.attributes if f"{problem.path}.".startswith(f"{name}."))
            where = f"{path}.attributes[{name}]{problem.path.removeprefix(name)}"
            yield finding(item, "standard-attribute-malformed", where, problem.message, problem.hint)


def _place(world: World, row: Row) -> tuple[Item, str]:
    """Where the first device of a row is published."""
    member = row.members[0]
    for part in world.pools[member.key].slices:
        for index, device in enumerate(part.spec.devices):
            if device is member.device:
                return world.slices[part.metadata.name], f"spec.devices[{index}]"
    raise AssertionError("rows are made of the devices of slices")


def _bridge(row: Row, name: str, standard: str) -> str:
    """The derived attribute that makes the standard one of the vendor's."""
    domain, _, short = name.rpartition("/")
    value = f'device.attributes["{domain or row.driver}"].{short}'
    attribute = row.device.attributes[name]
    if standard == NUMA_NODE and attribute.string is not None:
        value = f"int({value})"
    elif standard == PCI_BUS_ID and attribute.string is not None and _has_upper(attribute):
        value = f"{value}.lowerAscii()"
    return f"{{name: {standard}, expression: '{value}'}}"


def _has_upper(attribute: DeviceAttribute) -> bool:
    return attribute.string is not None and attribute.string != attribute.string.lower()


def bridge_hint(world: World, name: str, reference: str, rows: Sequence[Row]) -> str:
    """What would help a constraint on an attribute that the devices of a request spell in another way."""
    standard = standard_name(name)
    for row in rows if standard else ():
        for own in row.device.attributes:
            if standard_name(own) == standard and standard is not None:
                if own == standard:
                    return f"compare {standard}, which they have"
                gate = "" if world.features.DRADerivedAttributes else " (with the feature gate DRADerivedAttributes)"
                return f"let {reference!r} derive it{gate}: {_bridge(row, own, name)}"
    published = sorted({own if "/" in own else f"{row.driver}/{own}" for row in rows for own in row.device.attributes})
    return f"they have {', '.join(published[:8])}" if published else "they have no attributes"
