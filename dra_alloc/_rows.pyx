# cython: language_level=3
"""The inner loops over the devices of a pool: what is special about them, and what a question sees of each."""


def scan(devices):
    """Places of devices by name; whether each has binding conditions, or None if none has; whether any draws counters."""
    cdef dict index = {}
    cdef bytearray waits = None
    cdef bint draws = False
    cdef Py_ssize_t i = 0
    for device in devices:
        index[device.name] = i
        if device.binding_conditions:
            if waits is None:
                waits = bytearray(len(devices))
            waits[i] = 1
        if device.consumes_counters:
            draws = True
        i += 1
    return index, None if waits is None else bytes(waits), draws


def has_groups(devices):
    """Whether any device declares compatibility groups."""
    for device in devices:
        for consumption in device.consumes_counters:
            if consumption.compatibility_groups:
                return True
    return False


cdef class Reader:
    """Makes keys of devices for one question. Equal keys, equal meaning to the question.

    Values are compared by identity first and by content once: readers share equal values, but nobody has to.

    names: by driver, the two spellings of each attribute that is read. reads_all: whether expressions may read anything.
    """

    cdef dict _names
    cdef tuple _columns
    cdef bint _reads_all
    cdef dict _numbers  # by identity of a value: its number
    cdef dict _contents  # by content of a value: its number
    cdef list _alive  # what is known by identity
    cdef object _is_sound
    cdef set _unsound  # numbers of attributes that make every selector fail

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

    cdef object _attribute(self, value):
        """A number for the value of an attribute, the same for equal ones."""
        cdef object identity = <size_t><void*>value
        cdef bint simple
        found = self._numbers.get(identity)
        if found is None:
            simple = True  # strings, ints and bools cannot be malformed
            if value.string is not None:
                content = ("string", value.string)
            elif value.int is not None:
                content = ("int", value.int)
            elif value.bool is not None:
                content = ("bool", value.bool)
            elif value.version is not None:
                content = ("version", value.version)
                simple = False
            else:
                content = value
                simple = False
            found = self._contents.get(content)
            if found is None:
                found = self._contents[content] = len(self._contents)
                if not simple and not self._is_sound(value):
                    self._unsound.add(found)
            self._numbers[identity] = found
            self._alive.append(value)
        return found

    cdef object _capacity(self, value):
        """A number for a capacity, the same for equal ones."""
        cdef object identity = <size_t><void*>value
        found = self._numbers.get(identity)
        if found is None:
            content = value if value.request_policy is not None else ("capacity", value.value.nano)
            found = self._contents.setdefault(content, len(self._contents))
            self._numbers[identity] = found
            self._alive.append(value)
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
                # Versions and lists are looked at once each.
                if value.string is None and value.int is None and value.bool is None:
                    if self._attribute(value) in self._unsound:
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
                    parts.append(-1 if value is None else self._attribute(value))
            for name, value in capacity.items():
                parts.append(name)
                parts.append(self._capacity(value))
            if taints[i]:
                parts.append(taints[i])
            out.append(tuple(parts))
        return out
