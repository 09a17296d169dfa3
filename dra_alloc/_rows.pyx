# distutils: language = c++
"""The loop over the devices of a pool that tells what a question sees of each."""

from libc.stdint cimport int32_t, int64_t
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from cpython.bytes cimport PyBytes_FromStringAndSize
from cython.operator cimport dereference


cdef inline void put(string& key, int64_t value) noexcept:
    key.append(<char*>&value, sizeof(int64_t))


cdef class Reader:
    """Makes keys of devices for one question. Equal keys, equal meaning to the question.

    A key is a row of numbers, as bytes. Values are numbered by identity first and by content once: readers share equal
    values, but nobody has to. `len` is the number of objects that are kept alive because their identity is known.
    """

    cdef dict _names  # by driver: the two spellings of each attribute that is read
    cdef tuple _columns
    cdef bint _reads_all
    cdef unordered_map[size_t, int32_t] _numbers  # by identity of a value: its number
    cdef dict _contents  # by content: its number
    cdef list _alive  # what is known by identity
    cdef object _is_sound
    cdef set _unsound  # numbers of attributes that make every selector fail

    def __init__(self, columns, bint reads_all, is_sound):
        self._columns = tuple(columns)
        self._reads_all = reads_all
        self._is_sound = is_sound
        self._names = {}
        self._contents = {}
        self._alive = []
        self._unsound = set()

    def __len__(self):
        return len(self._alive)

    cdef int32_t _number(self, content) except -1:
        """A number for a content, the same for equal ones."""
        found = self._contents.get(content)
        if found is None:
            found = self._contents[content] = len(self._contents)
        return found

    cdef int32_t _attribute(self, value) except -1:
        cdef unordered_map[size_t, int32_t].iterator known = self._numbers.find(<size_t><void*>value)
        if known != self._numbers.end():
            return dereference(known).second
        cdef bint simple = True  # strings, ints and bools cannot be malformed
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
        cdef bint fresh = content not in self._contents
        cdef int32_t number = self._number(content)
        if fresh and not simple and not self._is_sound(value):
            self._unsound.add(number)
        self._numbers[<size_t><void*>value] = number
        self._alive.append(value)
        return number

    cdef int32_t _capacity(self, value) except -1:
        cdef unordered_map[size_t, int32_t].iterator known = self._numbers.find(<size_t><void*>value)
        if known != self._numbers.end():
            return dereference(known).second
        cdef int32_t number = self._number(
            value if value.request_policy is not None else ("capacity", value.value.nano)
        )
        self._numbers[<size_t><void*>value] = number
        self._alive.append(value)
        return number

    cdef tuple _spellings(self, driver):
        found = self._names.get(driver)
        if found is None:
            found = self._names[driver] = tuple(
                [
                    (f"{domain}/{name}" if domain else name, name if domain == driver else None)
                    for domain, name in self._columns
                ]
            )
        return found

    cdef int _put_device(self, string& key, device, taints, tuple spellings) except -1:
        cdef dict attributes = device.attributes
        cdef dict capacity = device.capacity
        cdef int64_t flags = 1
        for value in attributes.values():
            # Versions and lists are looked at once each.
            if value.string is None and value.int is None and value.bool is None:
                if self._attribute(value) in self._unsound:
                    flags = 0
                    break
        if device.allow_multiple_allocations is True:
            flags |= 2
        if device.binding_conditions:
            flags |= 4
        if device.consumes_counters:
            flags |= 8
        put(key, flags)
        put(key, self._number(("taints", taints)) if taints else -1)
        if self._reads_all:
            self._alive.append(device)
            put(key, <int64_t><size_t><void*>device)
        else:
            for full, bare in spellings:
                value = attributes.get(full)
                if value is None and bare is not None:
                    value = attributes.get(bare)
                put(key, -1 if value is None else self._attribute(value))
        for name, value in capacity.items():
            put(key, self._number(name))
            put(key, self._capacity(value))
        return 0

    def keys(self, driver, devices, taints):
        """A key for each device of a pool."""
        cdef tuple spellings = self._spellings(driver)
        cdef int64_t whose = self._number(("driver", driver))
        cdef list out = []
        cdef string key
        cdef Py_ssize_t i
        for i in range(len(devices)):
            key.clear()
            put(key, whose)
            self._put_device(key, devices[i], taints[i], spellings)
            out.append(PyBytes_FromStringAndSize(key.data(), key.size()))
        return out

    def rows(self, driver, devices, taints, dict known, compile_row):
        """The rows of the devices of a pool, from those that are known by key; `compile_row` makes new ones."""
        cdef list out = self.keys(driver, devices, taints)
        cdef Py_ssize_t i
        for i in range(len(out)):
            row = known.get(out[i])
            if row is None:
                row = known[out[i]] = compile_row(driver, devices[i], taints[i])
            out[i] = row
        return out
