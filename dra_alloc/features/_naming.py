"""Names for objects that leave them to the API server (`metadata.generateName`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import attrs

from dra_alloc.errors import DraError
from dra_alloc.features._objects import key_of

__all__ = ["named"]


def named(objects: Sequence[Any], where: Callable[[int], str] = "objects[{}]".format) -> list[Any]:
    """The objects; those that have only `generateName` get a name that is not taken: the prefix and a number.

    where: tells of the object at a place where it is from. Raises DraError for one with neither name nor prefix.
    """
    found = list(objects)
    taken = {(item.kind, key_of(item.metadata)) for item in found}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
    for place, item in enumerate(found):
        if item.metadata.name:
            continue
        prefix = item.metadata.generate_name
        if not prefix:
            at = f"{where(place)} {item.kind}".strip()
            raise DraError(f"{at}: metadata.name is missing: give a name, or generateName")
        drawn = (attrs.evolve(item.metadata, name=f"{prefix}{number}") for number in numbers[prefix])
        metadata = next(each for each in drawn if (item.kind, key_of(each)) not in taken)
        taken.add((item.kind, key_of(metadata)))
        found[place] = attrs.evolve(item, metadata=metadata)
    return found
