"""A dict that forks in constant time."""

cimport cython

from collections.abc import MutableMapping

__all__ = ["CowMap"]

cdef object GONE = object()

#: Changes that a fork copies rather than merges.
cdef Py_ssize_t SMALL = 16


cdef class Cow:
    """What CowMap does itself; all else is common to mappings.

    The critical sections count where Python has no GIL: a fork may merge the map that another thread reads.
    """

    cdef dict _base
    cdef dict _delta
    cdef bint _shared
    cdef Py_ssize_t _length

    def __cinit__(self):
        self._base = {}
        self._delta = {}
        self._shared = False
        self._length = 0

    @cython.critical_section
    def fork(self):
        """A copy that is independent from now on."""
        if len(self._delta) > SMALL:
            self._merge()
        self._shared = True
        cdef Cow other = type(self)()
        other._base = self._base
        other._delta = self._delta.copy()
        other._shared = True
        other._length = self._length
        return other

    cdef _merge(self):
        cdef dict base = self._base.copy()
        for key, value in self._delta.items():
            if value is GONE:
                del base[key]
            else:
                base[key] = value
        self._base = base
        self._delta = {}
        self._shared = False

    cdef _merge_if_large(self):
        if len(self._delta) > SMALL + len(self._base) // 8:
            self._merge()

    cdef _find(self, key):
        """The value of a key, or GONE."""
        if self._delta:
            value = self._delta.get(key, self)
            if value is not self:
                return value
        return self._base.get(key, GONE)

    @cython.critical_section
    def __getitem__(self, key):
        value = self._find(key)
        if value is GONE:
            raise KeyError(key)
        return value

    @cython.critical_section
    def get(self, key, default=None):
        """The value of a key, or the default."""
        value = self._find(key)
        return default if value is GONE else value

    def pop(self, key, *default):
        """Take out a key: its value, or the default if there is one; else KeyError."""
        if len(default) > 1:
            raise TypeError("pop takes one default")
        value = self.get(key, GONE)
        if value is not GONE:
            del self[key]
            return value
        if default:
            return default[0]
        raise KeyError(key)

    @cython.critical_section
    def __setitem__(self, key, value):
        if not self._shared:
            self._base[key] = value
            self._length = len(self._base)
            return
        if self._find(key) is GONE:
            self._length += 1
        self._delta[key] = value
        self._merge_if_large()

    @cython.critical_section
    def __delitem__(self, key):
        if not self._shared:
            del self._base[key]
            self._length = len(self._base)
            return
        if self._find(key) is GONE:
            raise KeyError(key)
        self._length -= 1
        if key in self._base:
            self._delta[key] = GONE
            self._merge_if_large()
        else:
            del self._delta[key]

    @cython.critical_section
    def __contains__(self, key):
        return self._find(key) is not GONE

    @cython.critical_section
    cdef tuple _parts(self):
        return self._base, self._delta

    def __iter__(self):
        base, delta = self._parts()
        if not delta:
            yield from base
            return
        for key in base:
            if delta.get(key) is not GONE:
                yield key
        for key in delta:
            if key not in base:
                yield key

    def __len__(self):
        return self._length


class CowMap(Cow, MutableMapping):
    """A mapping whose `fork` is cheap: both sides go on from a common base and keep their changes apart.

    Until the first fork it is a plain dict. After it, the base is shared and never changed again; changes go to a
    small dict of their own, which is merged into a new base when it has grown to a fraction of the base, or at the
    next fork, so that a change costs amortised O(1), and one more fork of an unchanged map O(1) in time and memory.
    Order is that of first insertion.
    """

    __slots__ = ()
