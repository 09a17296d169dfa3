# The index of the requeue room, included by `_core.pyx`: who waits for what, by interned keys.

from libc.stdint cimport uint32_t


cdef enum:
    NOWHERE = -1


cdef struct Cell:
    uint32_t hash
    int32_t number  # NOWHERE if nothing is here


cdef struct Posting:  # an item or shape under a key; the postings of a key are a list in both directions
    int32_t key
    int32_t place  # of the item; ~place of the shape
    int32_t before
    int32_t after
    int32_t next  # of the same item or shape


cdef struct Item:
    uint64_t turn  # grows with every addition
    int32_t posting  # the first under a key of its own
    int32_t shape
    int32_t before  # the others of its shape
    int32_t after


cdef struct Shape:
    int32_t posting
    int32_t member  # the first item that has it


cdef struct Turn:
    uint64_t turn
    int32_t place


cdef inline cbool comes_first(const Turn& one, const Turn& other) noexcept nogil:
    return one.turn < other.turn


@cython.final
cdef class Interned:
    """Numbers for strings, from 0 on; those of strings that are gone are given again.

    A dict would touch a string for each cell that it looks at, and needs an object for each number. This is a table with
    open addressing, half of it empty at least.
    """

    cdef vector[Cell] cells
    cdef list texts  # by number; None where it is free
    cdef vector[int32_t] free
    cdef size_t used

    def __cinit__(self):
        self.cells.assign(16, Cell(0, NOWHERE))
        self.texts = []
        self.used = 0

    cdef size_t _cell(self, str text, uint32_t hashed):
        """Where a string is, or else would be put."""
        cdef size_t mask = self.cells.size() - 1
        cdef size_t i = hashed & mask
        while self.cells[i].number != NOWHERE:
            if self.cells[i].hash == hashed and <str>self.texts[self.cells[i].number] == text:
                break
            i = (i + 1) & mask
        return i

    cdef int32_t find(self, str text):
        """The number of a string, or NOWHERE."""
        return self.cells[self._cell(text, <uint32_t>hash(text))].number

    cdef int32_t add(self, str text, bint* new):
        """The number of a string, and whether it has been given it just now."""
        cdef uint32_t hashed = <uint32_t>hash(text)
        cdef size_t i = self._cell(text, hashed)
        cdef int32_t number = self.cells[i].number
        new[0] = number == NOWHERE
        if number != NOWHERE:
            return number
        if self.free.empty():
            number = <int32_t>len(self.texts)
            self.texts.append(text)
        else:
            number = self.free.back()
            self.free.pop_back()
            self.texts[number] = text
        self.cells[i] = Cell(hashed, number)
        self.used += 1
        if 2 * self.used > self.cells.size():
            self._grow()
        return number

    cdef void drop(self, int32_t number):
        """Forget a string. Those behind it move up, so that no search ends too early."""
        cdef str text = self.texts[number]
        cdef size_t mask = self.cells.size() - 1
        cdef size_t gap = self._cell(text, <uint32_t>hash(text))
        cdef size_t i = gap
        while True:
            i = (i + 1) & mask
            if self.cells[i].number == NOWHERE:
                break
            if ((i - self.cells[i].hash) & mask) >= ((i - gap) & mask):  # it is as far from where it belongs
                self.cells[gap] = self.cells[i]
                gap = i
        self.cells[gap].number = NOWHERE
        self.texts[number] = None
        self.free.push_back(number)
        self.used -= 1

    cdef void _grow(self):
        cdef vector[Cell] cells
        cdef size_t mask = 2 * self.cells.size() - 1
        cdef size_t i, k
        cells.assign(mask + 1, Cell(0, NOWHERE))
        for k in range(self.cells.size()):
            if self.cells[k].number != NOWHERE:
                i = self.cells[k].hash & mask
                while cells[i].number != NOWHERE:
                    i = (i + 1) & mask
                cells[i] = self.cells[k]
        self.cells.swap(cells)


@cython.final
cdef class Postings:
    """Items under names, each posted under any number of keys; found by key in the order in which they were added.

    An item has keys of its own, and keys that it shares with others. These are the *shape* of the item: the shape is
    posted once under each of them, whatever the number of its items, and is gone with the last of these.

    All lists go through a few arrays, so that nothing is allocated for a single item. Finding costs time for what is
    found, putting and removing for the own keys of the item, however many others there are. Callers lock; nothing here
    does.
    """

    cdef Interned _names  # the number of a name is the place of its item
    cdef list _objects  # by place: the item
    cdef vector[Item] _items  # by place
    cdef dict _places  # by shared keys: place of the shape
    cdef list _shared  # by place of the shape: its keys
    cdef vector[Shape] _shapes  # by place
    cdef vector[int32_t] _free_shapes
    cdef Interned _keys
    cdef vector[int32_t] _lists  # by number of the key: the first posting
    cdef vector[Posting] _postings
    cdef vector[int32_t] _free_postings
    cdef uint64_t _turn

    def __cinit__(self):
        self._names = Interned()
        self._objects = []
        self._places = {}
        self._shared = []
        self._keys = Interned()
        self._turn = 0

    def __len__(self):
        return self._names.used

    def __contains__(self, str name):
        return self._names.find(name) != NOWHERE

    def shapes(self):
        """How many shapes the items have."""
        return len(self._places)

    def names(self):
        """All names in order of addition."""
        cdef vector[Turn] turns
        cdef Turn turn
        cdef int32_t place
        for place in range(<int32_t>self._items.size()):
            if self._names.texts[place] is not None:
                turns.push_back(Turn(self._items[place].turn, place))
        sort(turns.begin(), turns.end(), comes_first)
        return [self._names.texts[turn.place] for turn in turns]

    def get(self, str name):
        """The item of a name, or None."""
        cdef int32_t place = self._names.find(name)
        return None if place == NOWHERE else self._objects[place]

    def put(self, str name, item, list own, tuple shared):
        """Post an item under keys (strings, each once). One of the same name is replaced and keeps its turn."""
        cdef bint new
        cdef int32_t place = self._names.add(name, &new)
        cdef str key
        if not new:
            self._objects[place] = item
            self._withdraw(self._items[place].posting)
            self._items[place].posting = NOWHERE
            if self._shared[self._items[place].shape] != shared:
                self._leave(place)
                self._join(place, shared)
        else:
            if place == <int32_t>self._items.size():
                self._objects.append(item)
                self._items.resize(<size_t>place + 1)
            else:
                self._objects[place] = item
            self._items[place] = Item(self._turn, NOWHERE, NOWHERE, NOWHERE, NOWHERE)
            self._turn += 1
            self._join(place, shared)
        for key in own:
            self._items[place].posting = self._post(place, key, self._items[place].posting)

    def remove(self, str name):
        """Take an item out. Returns whether it was there."""
        cdef int32_t place = self._names.find(name)
        if place == NOWHERE:
            return False
        self._withdraw(self._items[place].posting)
        self._leave(place)
        self._objects[place] = None
        self._names.drop(place)
        return True

    def has(self, str key):
        """Whether any item is posted under a key."""
        return self._keys.find(key) != NOWHERE

    def find(self, keys):
        """The items under any of the keys, each once, in order of addition."""
        cdef vector[Turn] turns
        cdef int32_t number, posting, place
        cdef size_t i
        for key in keys:
            number = self._keys.find(key)
            if number == NOWHERE:
                continue
            posting = self._lists[number]
            while posting != NOWHERE:
                place = self._postings[posting].place
                if place >= 0:
                    turns.push_back(Turn(self._items[place].turn, place))
                else:
                    place = self._shapes[~place].member
                    while place != NOWHERE:
                        turns.push_back(Turn(self._items[place].turn, place))
                        place = self._items[place].after
                posting = self._postings[posting].after
        if turns.size() == 1:
            return [self._objects[turns[0].place]]
        sort(turns.begin(), turns.end(), comes_first)
        cdef list out = []
        for i in range(turns.size()):
            if i == 0 or turns[i].place != turns[i - 1].place:
                out.append(self._objects[turns[i].place])
        return out

    # Shapes

    cdef void _join(self, int32_t place, tuple shared):
        found = self._places.get(shared)
        cdef int32_t shape = self._new_shape(shared) if found is None else found
        cdef int32_t first = self._shapes[shape].member
        self._items[place].shape = shape
        self._items[place].before = NOWHERE
        self._items[place].after = first
        if first != NOWHERE:
            self._items[first].before = place
        self._shapes[shape].member = place

    cdef int32_t _new_shape(self, tuple shared):
        cdef int32_t shape
        cdef str key
        if self._free_shapes.empty():
            shape = <int32_t>self._shapes.size()
            self._shapes.push_back(Shape(NOWHERE, NOWHERE))
            self._shared.append(shared)
        else:
            shape = self._free_shapes.back()
            self._free_shapes.pop_back()
            self._shapes[shape] = Shape(NOWHERE, NOWHERE)
            self._shared[shape] = shared
        self._places[shared] = shape
        for key in shared:
            self._shapes[shape].posting = self._post(~shape, key, self._shapes[shape].posting)
        return shape

    cdef void _leave(self, int32_t place):
        """Take an item out of its shape. A shape without items is forgotten."""
        cdef Item item = self._items[place]
        if item.after != NOWHERE:
            self._items[item.after].before = item.before
        if item.before != NOWHERE:
            self._items[item.before].after = item.after
            return
        self._shapes[item.shape].member = item.after
        if item.after == NOWHERE:
            self._withdraw(self._shapes[item.shape].posting)
            del self._places[self._shared[item.shape]]
            self._shared[item.shape] = None
            self._free_shapes.push_back(item.shape)

    # Keys

    cdef int32_t _post(self, int32_t place, str key, int32_t next):
        """Put an item, or a shape, under a key, in front of the others there."""
        cdef bint new
        cdef int32_t number = self._keys.add(key, &new)
        cdef int32_t posting, after
        if number == <int32_t>self._lists.size():
            self._lists.push_back(NOWHERE)
        if self._free_postings.empty():
            posting = <int32_t>self._postings.size()
            self._postings.resize(<size_t>posting + 1)
        else:
            posting = self._free_postings.back()
            self._free_postings.pop_back()
        after = self._lists[number]
        if after != NOWHERE:
            self._postings[after].before = posting
        self._postings[posting] = Posting(number, place, NOWHERE, after, next)
        self._lists[number] = posting
        return posting

    cdef void _withdraw(self, int32_t posting):
        """Take all postings of an item or shape out of the lists. A key with an empty list is forgotten."""
        cdef Posting gone
        while posting != NOWHERE:
            gone = self._postings[posting]
            self._free_postings.push_back(posting)
            if gone.after != NOWHERE:
                self._postings[gone.after].before = gone.before
            if gone.before != NOWHERE:
                self._postings[gone.before].after = gone.after
            else:
                self._lists[gone.key] = gone.after
                if gone.after == NOWHERE:
                    self._keys.drop(gone.key)
            posting = gone.next
