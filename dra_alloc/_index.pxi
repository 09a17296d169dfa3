# The index of the requeue room, included by `_core.pyx`: who waits for what, by interned keys.

from cpython.unicode cimport PyUnicode_AsUTF8AndSize


cdef struct Posted:  # from an item to its entry in the list of a key, and back
    int32_t which  # in a waiter: number of the key; in the list of a key: place of the waiter
    int32_t at  # in a waiter: position in the list of the key; in the list: position among the keys of the waiter


cdef struct Waiter:
    uint64_t turn  # grows with every addition
    vector[Posted] keys


cdef struct Turn:
    uint64_t turn
    int32_t place


cdef inline cbool comes_first(const Turn& one, const Turn& other) noexcept nogil:
    return one.turn < other.turn


cdef inline string text_of(str key):
    cdef Py_ssize_t size
    cdef const char* data = PyUnicode_AsUTF8AndSize(key, &size)
    return string(data, <size_t>size)


@cython.final
cdef class Postings:
    """Items under names, each posted under any number of keys; found by key in the order in which they were added.

    Keys are interned: an item has a list of numbers, a key a list of places, and each entry knows its counterpart. So
    finding costs time for what is found, putting and removing for the keys of the item, however many others there are.
    Callers lock; nothing here does.
    """

    cdef dict _places  # by name: place of the item
    cdef list _items
    cdef vector[Waiter] _waiters  # by place
    cdef vector[int32_t] _free_places
    cdef unordered_map[string, int32_t] _numbers
    cdef vector[const string*] _texts  # by number: the key, where the map has it; maps do not move what they hold
    cdef vector[vector[Posted]] _lists  # by number
    cdef vector[int32_t] _free_numbers
    cdef uint64_t _turn

    def __cinit__(self):
        self._places = {}
        self._items = []
        self._turn = 0

    def __len__(self):
        return len(self._places)

    def __contains__(self, name):
        return name in self._places

    def names(self):
        """All names in order of addition."""
        return list(self._places)

    def get(self, name):
        """The item of a name, or None."""
        place = self._places.get(name)
        return None if place is None else self._items[place]

    def put(self, str name, item, list keys):
        """Post an item under keys (strings, each once). One of the same name is replaced and keeps its turn."""
        cdef int32_t place
        cdef Waiter* waiter
        cdef Posted entry, counterpart
        cdef vector[Posted]* posted
        cdef str key
        found = self._places.get(name)
        if found is not None:
            place = found
            self._withdraw(place)
            self._items[place] = item
        else:
            if self._free_places.empty():
                place = <int32_t>len(self._items)
                self._items.append(item)
                self._waiters.resize(<size_t>place + 1)
            else:
                place = self._free_places.back()
                self._free_places.pop_back()
                self._items[place] = item
            self._places[name] = place
            self._waiters[place].turn = self._turn
            self._turn += 1
        waiter = &self._waiters[place]
        waiter.keys.reserve(len(keys))
        for key in keys:
            entry.which = self._number(key)
            posted = &self._lists[entry.which]
            entry.at = <int32_t>posted.size()
            counterpart.which = place
            counterpart.at = <int32_t>waiter.keys.size()
            waiter.keys.push_back(entry)
            posted.push_back(counterpart)

    def remove(self, name):
        """Take an item out. Returns whether it was there."""
        place = self._places.pop(name, None)
        if place is None:
            return False
        self._withdraw(place)
        self._waiters[<int32_t>place].keys.shrink_to_fit()
        self._items[place] = None
        self._free_places.push_back(place)
        return True

    def has(self, str key):
        """Whether any item is posted under a key."""
        return self._numbers.count(text_of(key)) > 0

    def find(self, keys):
        """The items under any of the keys, each once, in order of addition."""
        cdef vector[Turn] turns
        cdef unordered_map[string, int32_t].iterator found
        cdef Turn turn
        cdef Posted entry
        cdef size_t i
        for key in keys:
            found = self._numbers.find(text_of(key))
            if found == self._numbers.end():
                continue
            for entry in self._lists[cython.operator.dereference(found).second]:
                turn.place = entry.which
                turn.turn = self._waiters[turn.place].turn
                turns.push_back(turn)
        if turns.size() == 1:
            return [self._items[turns[0].place]]
        sort(turns.begin(), turns.end(), comes_first)
        cdef list out = []
        for i in range(turns.size()):
            if i == 0 or turns[i].place != turns[i - 1].place:
                out.append(self._items[turns[i].place])
        return out

    cdef int32_t _number(self, str text):
        cdef string key = text_of(text)
        cdef unordered_map[string, int32_t].iterator found = self._numbers.find(key)
        cdef int32_t number
        if found != self._numbers.end():
            return cython.operator.dereference(found).second
        if self._free_numbers.empty():
            number = <int32_t>self._lists.size()
            self._lists.resize(<size_t>number + 1)
            self._texts.push_back(NULL)
        else:
            number = self._free_numbers.back()
            self._free_numbers.pop_back()
        found = self._numbers.insert(pair[string, int32_t](move(key), number)).first
        self._texts[number] = &cython.operator.dereference(found).first
        return number

    cdef void _withdraw(self, int32_t place):
        """Take a place out of the lists of its keys. A key with an empty list is forgotten."""
        cdef Posted entry, last
        for entry in self._waiters[place].keys:
            last = self._lists[entry.which].back()
            self._lists[entry.which][entry.at] = last
            self._waiters[last.which].keys[last.at].at = entry.at
            self._lists[entry.which].pop_back()
            if self._lists[entry.which].empty():
                self._lists[entry.which].shrink_to_fit()
                self._numbers.erase(self._numbers.find(cython.operator.dereference(self._texts[entry.which])))
                self._free_numbers.push_back(entry.which)
        self._waiters[place].keys.clear()
