# cython: language_level=3
"""The inner loop of compiling rows: what a question sees of each device of a pool, as a key.

Values are compared by identity first and by content once: readers share equal values, but nobody has to.
"""

cdef class Reader:
    """Makes keys of devices for one question. Equal keys, equal meaning to the question.

    names: by driver, the two spellings of each attribute that is read. reads_all: whether expressions may read anything.
    """

    cdef dict _names
    cdef tuple _columns
    cdef bint _reads_all
    cdef dict _numbers  # by identity of a value: its number
    cdef dict _contents  # by content of a value: its number
    cdef list _alive  # what is known by identity
    cdef object _is_sound
    cdef set _unsound

    def __init__(self, columns, bint reads_all, is_sound):
        self._columns = tuple(columns)
        self._reads_all = reads_all
        self._is_sound = is_sound
        self._names = {}
        self._numbers = {}
        self._contents = {}
        self._alive = []
        self._unsound = set()

    def __len__(self):
        return len(self._alive)

    cdef object _number(self, value):
        """A number for a value, the same for equal ones."""
        cdef object identity = <size_t><void*>value
        found = self._numbers.get(identity)
        if found is None:
            found = self._contents.setdefault(value, len(self._contents))
            self._numbers[identity] = found
            self._alive.append(value)
            if not self._is_sound(value):
                self._unsound.add(identity)
        return found

    cdef tuple _spellings(self, driver):
        found = self._names.get(driver)
        if found is None:
            found = tuple(
                [
                    (f"{domain}/{name}" if domain else name, name if domain == driver else None)
                    for domain, name in self._columns
                ]
            )
            self._names[driver] = found
        return found

    def keys(self, driver, devices, taints):
        """A key for each device of a pool."""
        cdef list out = []
        cdef tuple spellings = self._spellings(driver)
        cdef dict attributes, capacity
        cdef list parts
        cdef bint sound
        cdef object value
        cdef Py_ssize_t i
        for i in range(len(devices)):
            device = devices[i]
            attributes = device.attributes
            capacity = device.capacity
            sound = True
            for value in attributes.values():
                # Strings, ints and bools cannot be malformed; versions and lists are looked at once each.
                if value.string is None and value.int is None and value.bool is None:
                    self._number(value)
                    if <size_t><void*>value in self._unsound:
                        sound = False
                        break
            parts = [
                driver,
                sound,
                device.allow_multiple_allocations is True,
                len(device.binding_conditions) > 0,
                len(device.consumes_counters) > 0,
            ]
            if self._reads_all:
                self._alive.append(device)
                parts.append(<size_t><void*>device)
            else:
                for full, bare in spellings:
                    value = attributes.get(full)
                    if value is None and bare is not None:
                        value = attributes.get(bare)
                    parts.append(-1 if value is None else self._number(value))
            for name, value in capacity.items():
                parts.append(name)
                parts.append(self._number(value))
            if taints[i]:
                parts.append(taints[i])
            out.append(tuple(parts))
        return out
