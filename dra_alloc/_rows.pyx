"""The loop over the devices of a pool that tells what a question sees of each."""

from libc.stdint cimport int32_t, int64_t
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from cpython.bytes cimport PyBytes_FromStringAndSize
from cython.operator cimport dereference

from dra_alloc._fields cimport Field, field_of, read

from dra_alloc.api import Device, DeviceAttribute


cdef Field ATTRIBUTES = field_of(Device, "attributes")
cdef Field CAPACITY = field_of(Device, "capacity")
cdef Field MULTIPLE = field_of(Device, "allow_multiple_allocations")
cdef Field CONDITIONS = field_of(Device, "binding_conditions")
cdef Field COUNTERS = field_of(Device, "consumes_counters")
cdef Field STRING = field_of(DeviceAttribute, "string")
cdef Field INT = field_of(DeviceAttribute, "int")
cdef Field BOOL = field_of(DeviceAttribute, "bool")
cdef Field VERSION = field_of(DeviceAttribute, "version")


cdef inline void put(string& key, int64_t value) noexcept:
    key.append(<char*>&value, sizeof(int64_t))


cdef class Reader:
    """Makes keys of devices for one question. Equal keys, equal meaning to the question.

    A key is a row of numbers, as bytes. What devices publish is numbered by content; lists and capacities with a policy
    first by identity, for readers share equal ones. `len` is the number of objects that are kept alive for that.
    """

    cdef dict _names  # by driver: the two spellings of each attribute that is read
    cdef tuple _columns
    cdef bint _reads_all
    cdef int32_t _last  # number given
    cdef dict _strings  # numbers of attributes that are strings
    cdef dict _ints
    cdef dict _versions
    cdef dict _nanos  # of capacities without a policy
    cdef dict _others  # of all else
    cdef unordered_map[size_t, int32_t] _known  # by identity
    cdef list _alive  # what is known by identity
    cdef object _is_sound
    cdef set _unsound  # numbers of attributes that make every selector fail

    def __init__(self, columns, bint reads_all, is_sound):
        self._columns = tuple(columns)
        self._reads_all = reads_all
        self._is_sound = is_sound
        self._names = {}
        self._last = 0
        self._strings = {}
        self._ints = {}
        self._versions = {}
        self._nanos = {}
        self._others = {}
        self._alive = []
        self._unsound = set()

    def __len__(self):
        return len(self._alive)

    cdef int32_t _number(self, dict numbers, content) except -1:
        """A number for a content, the same for equal ones of a kind, and for no other."""
        found = numbers.get(content)
        if found is not None:
            return found
        self._last += 1
        numbers[content] = self._last
        return self._last

    cdef int32_t _attribute(self, value) except -1:
        string = read(&STRING, value)
        if string is not None:
            return self._number(self._strings, string)
        number = read(&INT, value)
        if number is not None:
            return self._number(self._ints, number)
        boolean = read(&BOOL, value)
        if boolean is not None:
            return self._number(self._others, boolean)
        return self._special(value)

    cdef int32_t _special(self, value) except -1:
        """A version or a list: these alone can be malformed, and each content is looked at once."""
        cdef int32_t before = self._last
        cdef int32_t number
        version = read(&VERSION, value)
        if version is not None:
            number = self._number(self._versions, version)
        else:
            number = self._by_identity(value)
        if number > before and not self._is_sound(value):
            self._unsound.add(number)
        return number

    cdef int32_t _by_identity(self, value) except -1:
        cdef unordered_map[size_t, int32_t].iterator known = self._known.find(<size_t><void*>value)
        if known != self._known.end():
            return dereference(known).second
        cdef int32_t number = self._number(self._others, value)
        self._known[<size_t><void*>value] = number
        self._alive.append(value)
        return number

    cdef int32_t _capacity(self, value) except -1:
        if value.request_policy is None:
            return self._number(self._nanos, value.value.nano)
        return self._by_identity(value)

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
        cdef dict attributes = read(&ATTRIBUTES, device)
        cdef dict capacity = read(&CAPACITY, device)
        cdef int64_t flags = 1
        for value in attributes.values():
            # Versions and lists are looked at once each.
            if read(&STRING, value) is None and read(&INT, value) is None and read(&BOOL, value) is None:
                if self._special(value) in self._unsound:
                    flags = 0
                    break
        if read(&MULTIPLE, device) is True:
            flags |= 2
        if read(&CONDITIONS, device):
            flags |= 4
        if read(&COUNTERS, device):
            flags |= 8
        put(key, flags)
        put(key, self._number(self._others, taints) if taints else -1)
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
            put(key, self._number(self._strings, name))
            put(key, self._capacity(value))
        return 0

    def keys(self, driver, devices, taints):
        """A key for each device of a pool."""
        cdef tuple spellings = self._spellings(driver)
        cdef int64_t whose = self._number(self._strings, driver)
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
