"""Wants: what requests of pending pods demand of a device, each kept once, and which of them a device may concern."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from dra_alloc.api import DeviceClass, DeviceSelector, DeviceSubRequest, DeviceToleration, ExactDeviceRequest
    from dra_alloc.cel import DeviceEnv
    from dra_alloc.cel.necessary import Equality, Path

__all__ = ["Buckets", "Want", "Wants", "is_want"]


_PREFIX = "want "


@attrs.define(eq=False)  # frozen takes longer to make
class Want:
    """What a (sub)request demands of each single device.

    number: its place among the wants. expressions: selectors of the class, then of the request. capacity: nanos by
    name as requested. derived: expressions of derived attributes. every: allocationMode All. admin: adminAccess.
    """

    number: int
    expressions: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, int], ...]
    derived: tuple[str, ...]
    every: bool
    admin: bool
    key: str = attrs.field(init=False)

    @key.default
    def _make_key(self) -> str:
        return f"{_PREFIX}{self.number}"


def is_want(key: str) -> bool:
    """Whether a key is that of a want."""
    return key.startswith(_PREFIX)


class Wants:
    """All wants by number. Equal demands are one want."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Want] = {}
        self._all: list[Want] = []

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Want:
        return self._all[number]

    def since(self, number: int) -> list[Want]:
        """The wants from a number on."""
        return self._all[number:]

    def of(self, device_class: DeviceClass, body: ExactDeviceRequest | DeviceSubRequest) -> Want:
        """The want of a request or alternative."""
        derived = body.derived_attributes
        return self._want(
            (*_expressions(device_class.spec.selectors), *_expressions(body.selectors)),
            body.tolerations,
            tuple([(name, amount.nano) for name, amount in body.capacity.requests.items()]) if body.capacity else (),
            tuple([each.expression for each in derived]) if derived else (),
            body.allocation_mode == "All",
            getattr(body, "admin_access", None) is True,
        )

    def of_class(self, device_class: DeviceClass) -> Want:
        """The want of a request for any device of a class."""
        return self._want(tuple(_expressions(device_class.spec.selectors)), (), (), (), False, False)

    def _want(
        self,
        expressions: tuple[str, ...],
        tolerations: tuple[DeviceToleration, ...],
        capacity: tuple[tuple[str, int], ...],
        derived: tuple[str, ...],
        every: bool,
        admin: bool,
    ) -> Want:
        key = (expressions, tolerations, capacity, derived, every, admin)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Want(len(self._all), *key)
            self._all.append(found)
        return found


def _expressions(selectors: Iterable[DeviceSelector]) -> list[str]:
    return [selector.cel.expression for selector in selectors if selector.cel is not None]


@attrs.define(eq=False)
class _ByValue:
    """Numbers of wants that demand a value of one attribute: by type and value, and all of them."""

    of_value: dict[tuple[type, object], list[int]] = attrs.field(factory=dict)
    all: list[int] = attrs.field(factory=list)


@attrs.define(eq=False)
class _OfDriver:
    """Numbers of wants that demand one driver (or none in particular)."""

    plain: list[int] = attrs.field(factory=list)
    by_attribute: dict[Path, _ByValue] = attrs.field(factory=dict)


class Buckets:
    """Wants by what they need to be equal, so that a device meets only those whose driver and value are its own.

    Numbers are added in increasing order.
    """

    def __init__(self) -> None:
        self._by_driver: dict[str | None, _OfDriver] = {}

    def add(self, number: int, needs: Iterable[Equality]) -> None:
        """Put a want where its needs say: under a driver, and under the last of the attributes that it compares."""
        driver: str | None = None
        chosen: Equality | None = None
        for need in needs:
            if need.path == ("", ""):
                driver = str(need.value)
            else:
                chosen = need
        place = self._by_driver.setdefault(driver, _OfDriver())
        if chosen is None:
            place.plain.append(number)
            return
        values = place.by_attribute.setdefault(chosen.path, _ByValue())
        values.of_value.setdefault((type(chosen.value), chosen.value), []).append(number)
        values.all.append(number)

    def find(self, driver: str, env: DeviceEnv, since: int, *, odd: bool = False) -> Iterator[int]:
        """Numbers, from `since` on, of the wants that a device may concern.

        odd: also those that compare an attribute that the device lacks, or has as a version or a list: to compare it
        may be an error.
        """
        for place in (self._by_driver.get(driver), self._by_driver.get(None)):
            if place is None:
                continue
            yield from _tail(place.plain, since)
            for (domain, name), values in place.by_attribute.items():
                value = env.attributes.find(domain).get(name)
                if type(value) in (str, int, bool):
                    yield from _tail(values.of_value.get((type(value), value), ()), since)
                elif odd:
                    yield from _tail(values.all, since)


def _tail(numbers: Sequence[int], since: int) -> Sequence[int]:
    return numbers[bisect_left(numbers, since) :] if since else numbers
