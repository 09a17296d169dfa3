"""A dict that forks in constant time."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, Generic, TypeVar, overload

__all__ = ["CowMap"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_T = TypeVar("_T")

_GONE: object = object()

#: Changes that a fork copies rather than merges.
_SMALL = 16


class CowMap(MutableMapping[_K, _V], Generic[_K, _V]):
    """A mapping whose `fork` is cheap: both sides go on from a common base and keep their changes apart.

    Until the first fork it is a plain dict. After it, the base is shared and never changed again; changes go to a
    small dict of their own, which is merged into a new base when it has grown to a fraction of the base, or at the
    next fork, so that a change costs amortised O(1), and one more fork of an unchanged map O(1) in time and memory.
    Order is that of first insertion.
    """

    __slots__ = ("_base", "_delta", "_length", "_shared")

    def __init__(self) -> None:
        self._base: dict[_K, _V] = {}
        self._delta: dict[_K, object] = {}
        self._shared = False
        self._length = 0

    def fork(self) -> CowMap[_K, _V]:
        """A copy that is independent from now on."""
        if len(self._delta) > _SMALL:
            self._merge()
        self._shared = True
        other: CowMap[_K, _V] = CowMap()
        other._base = self._base
        other._delta = self._delta.copy()
        other._shared = True
        other._length = self._length
        return other

    def _merge(self) -> None:
        self._base = dict(self.items())
        self._delta = {}
        self._shared = False

    def _merge_if_large(self) -> None:
        if len(self._delta) > _SMALL + len(self._base) // 8:
            self._merge()

    def __getitem__(self, key: _K) -> _V:
        if self._delta:
            value = self._delta.get(key, self)
            if value is _GONE:
                raise KeyError(key)
            if value is not self:
                return value  # type: ignore[return-value]
        return self._base[key]

    @overload
    def get(self, key: _K, /) -> _V | None: ...
    @overload
    def get(self, key: _K, /, default: _V) -> _V: ...
    @overload
    def get(self, key: _K, /, default: _T) -> _V | _T: ...
    def get(self, key: _K, /, default: Any = None) -> Any:
        """The value of a key, or the default."""
        if self._delta:
            value = self._delta.get(key, self)
            if value is _GONE:
                return default
            if value is not self:
                return value
        return self._base.get(key, default)

    def __setitem__(self, key: _K, value: _V) -> None:
        if not self._shared:
            self._base[key] = value
            self._length = len(self._base)
            return
        if key not in self:
            self._length += 1
        self._delta[key] = value
        self._merge_if_large()

    def __delitem__(self, key: _K) -> None:
        if not self._shared:
            del self._base[key]
            self._length = len(self._base)
            return
        if key not in self:
            raise KeyError(key)
        self._length -= 1
        if key in self._base:
            self._delta[key] = _GONE
            self._merge_if_large()
        else:
            del self._delta[key]

    def __contains__(self, key: object) -> bool:
        if self._delta:
            value = self._delta.get(key, self)  # type: ignore[arg-type]
            if value is not self:
                return value is not _GONE
        return key in self._base

    def __iter__(self) -> Iterator[_K]:
        if not self._delta:
            yield from self._base
            return
        for key in self._base:
            if self._delta.get(key) is not _GONE:
                yield key
        for key in self._delta:
            if key not in self._base:
                yield key

    def __len__(self) -> int:
        return self._length
