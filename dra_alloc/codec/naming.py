"""Names for objects that leave them to the API server (`metadata.generateName`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import attrs

from dra_alloc.errors import DraError

__all__ = ["named"]


def named(objects: Sequence[Any], where: Callable[[int], str] = "objects[{}]".format) -> list[Any]:
    """The objects; those that have only `generateName` get a name that is not taken: the prefix and a number.

    where: tells of the object at a place where it is from. Raises DraError for one with neither name nor prefix.
    """
    found = list(objects)
    taken = {_identity(item) for item in found}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
    for place, item in enumerate(found):
        if item.metadata.name:
            continue
        prefix = item.metadata.generate_name
        if not prefix:
            at = f"{where(place)} {item.kind}".strip()
            raise DraError(f"{at}: metadata.name is missing: give a name, or generateName")
        drawn = (_renamed(item, f"{prefix}{number}") for number in numbers[prefix])
        found[place] = next(each for each in drawn if _identity(each) not in taken)
        taken.add(_identity(found[place]))
    return found


def _renamed(item: Any, name: str) -> Any:
    return attrs.evolve(item, metadata=attrs.evolve(item.metadata, name=name))


def _identity(item: Any) -> tuple[str, str]:
    """Kind and `namespace/name`, where no namespace is `default`."""
    return item.kind, f"{item.metadata.namespace or 'default'}/{item.metadata.name}"
