# distutils: language = c++
# cython: language_level=3
"""The search, on tables of integers. Nothing about Kubernetes in here.

A *question* asks for slots in order (`Tables`). A slot has alternatives, tried in order; an alternative takes n devices
in increasing order. What a device means to the question is its `Row`: a code for each type of alternative, sets of
values for the constraints, amounts of its own columns for each type. Devices come in pools (`PoolRows`); devices of a
pool may draw on common columns. `Search` answers one question over the pools of one place: depth first, the first
complete answer is the answer. How it avoids the work of the plain search, and why that is sound, stands at each
shortcut; `docs/how-the-search-works.md` tells the whole.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.atomic cimport atomic
from libcpp.deque cimport deque
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.utility cimport move, pair
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector

import time

# What a device is to a type of alternative. The order of the checks of a device decides which of these shows.
cdef enum:
    NO = 0  # not wanted
    OK = 1
    BROKEN = 2  # looking at it ends the attempt with an error
    MALFORMED = 3  # wanted, and then an error
    BARRED = 4  # wanted, but may not be had
    SMALL = 5  # wanted, but too small by itself: shows last
    USELESS = 6  # both

# What an attempt at a part of the search came to.
cdef enum:
    FAIL = 0
    FOUND = 1
    ERROR = 2
    FULL = 3  # more results than a claim may hold
    SPENT = 4  # out of budget
    RESTART = 5  # the light search gives way to the heavy one

# Why the attempt ended with ERROR, or with SPENT.
cdef enum:
    NOTHING = 0
    BROKEN_SELECTOR = 1
    MALFORMED_REQUEST = 2
    BROKEN_VALUE = 3
    ALL_CONSTRAINED = 4
    OUT_OF_STEPS = 10
    OUT_OF_TIME = 11
    OUT_OF_DEPTH = 12
    CANCELLED = 13
    INTERRUPTED = 14

cdef enum:
    MATCH = 0
    DISTINCT = 1

cdef int64_t HUGE = INT64_MAX // 4
#: The search recurses once a chosen device and once a slot, at less than 500 bytes each; this bounds its stack.
cdef int MAX_DEPTH = 2000
cdef int MAX_BOUND_KINDS = 64
cdef int MAX_BOUND_GROUPS = 256
cdef int MAX_BOUND_VALUES = 64

ctypedef vector[int32_t]* Values

cdef struct Row:
    int32_t id
    cbool multi
    cbool wanted  # by some type, or an error to one
    vector[uint8_t] code  # by type
    vector[Values] values  # by value table: distinct numbers in order; NULL: the device has no such values
    vector[cbool] broken  # by value table: looking at the values is an error
    vector[int64_t] room  # by own column, before use
    vector[int64_t] amounts  # by type × own column

cdef struct Alternative:
    int32_t type
    int64_t n  # devices to take; for `every`, set for the place
    cbool every
    cbool privileged
    int32_t list  # of its candidates
    vector[int32_t] constraints
    vector[int32_t] tables  # value table for each of these

cdef struct Slot:
    int32_t claim
    vector[Alternative] alternatives

cdef struct Constraint:
    int32_t kind
    int32_t claim

cdef struct Membership:  # of a device in a set of common columns whose members must agree on a group
    int32_t set
    vector[int32_t] groups

cdef struct Device:
    Row* row
    int32_t pool
    int32_t index  # in its pool
    int32_t block  # common columns are divided into blocks that no device straddles; -1: draws on none
    int32_t twin  # equal for devices that nothing in this search can tell apart
    int32_t shape  # equal for devices that differ only in the block they stand in
    cbool busy
    cbool charged
    cbool elsewhere
    cbool barred
    int32_t last  # last slot, in the order of the search, that may look at it
    int32_t room  # start of its own columns in the state
    vector[int32_t] columns
    vector[int64_t] draws
    vector[Membership] memberships

cdef struct Agreement:  # state of a set of common columns
    int32_t members
    cbool empty
    vector[int32_t] groups

cdef struct Block:
    int32_t shape  # equal for blocks of equal devices, columns and use
    int32_t last
    vector[int32_t] columns
    vector[int32_t] sets
    vector[int32_t] devices

cdef struct Choice:
    int32_t slot
    int32_t alternative
    int32_t device


cdef class Interner:
    """Numbers for byte strings, in order of first appearance."""

    cdef unordered_map[string, int32_t] numbers

    cdef int32_t number(self, const string& key) noexcept nogil:
        cdef unordered_map[string, int32_t].iterator found = self.numbers.find(key)
        cdef int32_t value
        if found != self.numbers.end():
            return cython.operator.dereference(found).second
        value = <int32_t>self.numbers.size()
        self.numbers[key] = value
        return value


cdef inline void put(string& key, int64_t value) noexcept nogil:
    key.append(<const char*>&value, sizeof(int64_t))


cdef class Tables:
    """A question: its slots, constraints, and the rows met so far. Grows by rows; what it holds never moves."""

    cdef deque[Row] rows  # deques: what they hold stays where it is
    cdef deque[vector[int32_t]] value_sets
    cdef vector[Slot] slots
    cdef vector[Constraint] constraints
    cdef vector[int32_t] value_counts  # by constraint: values known so far
    cdef unordered_map[string, int32_t] lists  # by what an alternative looks for: number of its list of candidates
    cdef readonly int types
    cdef readonly int value_tables
    cdef readonly int limit
    cdef readonly int claims
    cdef readonly bint any_every
    cdef readonly bint any_privileged

    def __cinit__(self, int types, int value_tables, int claims, int limit):
        self.types = types
        self.value_tables = value_tables
        self.claims = claims
        self.limit = limit

    def add_constraint(self, int claim, bint distinct):
        """A constraint over devices of one claim. Returns its number."""
        cdef Constraint constraint
        constraint.kind = DISTINCT if distinct else MATCH
        constraint.claim = claim
        self.constraints.push_back(constraint)
        return self.constraints.size() - 1

    def add_slot(self, int claim, alternatives):
        """A slot of a claim.

        alternatives: (type, n, every, privileged, [(constraint, value table), …]) each; n is at most 2^62.
        """
        cdef Slot slot
        cdef Alternative alternative
        cdef string key
        slot.claim = claim
        for kind, n, every, privileged, constraints in alternatives:
            alternative.type = kind
            alternative.n = n
            alternative.every = every
            alternative.privileged = privileged
            alternative.constraints.clear()
            alternative.tables.clear()
            for constraint, table in constraints:
                alternative.constraints.push_back(constraint)
                alternative.tables.push_back(table)
            key.clear()
            put(key, alternative.type)
            put(key, (1 if every else 0) | (2 if privileged else 0) | (4 if alternative.constraints.size() > 0 else 0))
            for table in alternative.tables:
                put(key, table)
            alternative.list = <int32_t>self.lists.size()
            if self.lists.count(key):
                alternative.list = self.lists[key]
            self.lists[key] = alternative.list
            self.any_every = self.any_every or every
            self.any_privileged = self.any_privileged or privileged
            slot.alternatives.push_back(alternative)
        self.slots.push_back(slot)
        return self.slots.size() - 1

    def add_values(self, values):
        """A set of values, as distinct numbers ≥ 0. Returns its number."""
        cdef vector[int32_t] numbers
        for value in sorted(values):
            numbers.push_back(value)
        self.value_sets.push_back(numbers)
        return self.value_sets.size() - 1

    def add_row(self, codes, values, bint multi, room, amounts):
        """A row. Returns its number.

        codes: by type. values: by value table, the number of a value set, -1 for absent, -2 for an error. room: amount
        of each own column; amounts: by type, what each own column gives.
        """
        cdef Row row
        row.id = <int32_t>self.rows.size()
        row.multi = multi
        row.wanted = False
        for code in codes:
            row.code.push_back(code)
            row.wanted = row.wanted or row.code.back() != NO
        for value in values:
            row.values.push_back(&self.value_sets[<size_t>value] if value >= 0 else <Values>NULL)
            row.broken.push_back(value == -2)
        for amount in room:
            row.room.push_back(amount)
        for by_column in amounts:
            for amount in by_column:
                row.amounts.push_back(amount)
        self.rows.push_back(row)
        return row.id

    def is_wanted(self, int row):
        """Whether a device of this row is anything but useless to every slot."""
        return bool(self.rows[row].wanted)


cdef Device plain_device() noexcept:
    """A device that draws on nothing and can be had; what it is the caller says."""
    cdef Device device
    device.row = NULL
    device.index = -1
    device.pool = 0
    device.block = -1
    device.twin = 0
    device.shape = 0
    device.busy = False
    device.charged = False
    device.elsewhere = False
    device.barred = False
    device.last = -1
    device.room = 0
    return device


@cython.no_gc  # holds Tables alone, which hold no object
cdef class PoolRows:
    """The devices of one pool that mean something to a question, with their draws on the pool's common columns."""

    cdef readonly Tables tables
    cdef vector[Device] devices
    cdef vector[int32_t] slice_of
    cdef vector[int32_t] block_of_column
    cdef vector[int32_t] block_of_set
    cdef readonly int columns
    cdef readonly int sets
    cdef readonly int blocks

    def __cinit__(self, Tables tables, block_of_column, block_of_set, int blocks):
        self.tables = tables
        self.columns = len(block_of_column)
        self.sets = len(block_of_set)
        self.blocks = blocks
        for block in block_of_column:
            self.block_of_column.push_back(block)
        for block in block_of_set:
            self.block_of_set.push_back(block)

    cpdef add(self, int index, int slice_index, int row, int block, draws, memberships, bint impossible):
        """A device.

        draws: (column, amount) …; memberships: (set, [group, …]) …; block: -1 where it draws on nothing. impossible:
        nothing can take it anew.
        """
        cdef Device device = plain_device()
        cdef Membership membership
        device.row = &self.tables.rows[row]
        device.index = index
        device.block = block
        device.barred = impossible
        for column, amount in draws:
            device.columns.push_back(column)
            device.draws.push_back(amount)
        for set_, groups in memberships:
            membership.set = set_
            membership.groups.clear()
            for group in sorted(groups):
                membership.groups.push_back(group)
            device.memberships.push_back(membership)
        self.devices.push_back(device)
        self.slice_of.push_back(slice_index)

    def add_plain(self, list rows, tuple slice_of):
        """The devices of a pool where none draws on anything: rows and slices of all. Those not wanted are left out."""
        cdef Device device = plain_device()
        cdef size_t row
        cdef Py_ssize_t index
        self.devices.reserve(len(rows))
        self.slice_of.reserve(len(rows))
        for index in range(len(rows)):
            row = rows[index]
            device.row = &self.tables.rows[row]
            if device.row.wanted:
                device.index = <int32_t>index
                self.devices.push_back(device)
                self.slice_of.push_back(slice_of[index])

    def __len__(self):
        return self.devices.size()

    def signature(self, const uint8_t[::1] visible, const uint8_t[::1] elsewhere, const uint8_t[::1] held):
        """What the pool is to the question at a place, as bytes: equal bytes, equal answers.

        visible: by slice, or None for all. elsewhere, held: by device, or None. Devices held whole are left out where
        nobody asks for them anyway. Use of shares and common columns is not in it.
        """
        cdef vector[int32_t] out
        cdef size_t i
        cdef Device* device
        cdef int32_t flags
        cdef bint keep = self.tables.any_every or self.tables.any_privileged
        for i in range(self.devices.size()):
            device = &self.devices[i]
            if visible is not None and not visible[self.slice_of[i]]:
                continue
            flags = 0
            if held is not None and held[device.index]:
                if held[device.index] == 1 and not keep:
                    continue
                flags = held[device.index]
            if elsewhere is not None and elsewhere[device.index]:
                flags |= 4
            out.push_back(device.row.id * 8 + flags)
            if device.block >= 0 or (flags & 2 and device.row.multi):
                out.push_back(-1 - device.index)  # what is in use of it is told by index
        if out.empty():
            return b""
        return PyBytes_FromStringAndSize(<char*>out.data(), out.size() * sizeof(int32_t))


@cython.final
cdef class Cancel:
    """A flag that ends searches from another thread."""

    # One thread sets what another one reads without the GIL, or where there is none.
    cdef atomic[cbool] flag

    def __cinit__(self):
        self.flag.store(False)

    def __reduce__(self):
        raise TypeError("a Cancel cannot be copied or pickled: who sets it and who looks must hold the same one")

    def set(self):
        """End the searches that were given this flag, as soon as they look."""
        self.flag.store(True)

    def is_set(self):
        """Whether `set` was called."""
        return self.flag.load()


cdef struct Flow:
    vector[vector[int32_t]] edges  # by node
    vector[int32_t] to
    vector[int64_t] left  # edge e and its reverse e ^ 1


cdef void flow_edge(Flow& flow, int32_t start, int32_t end, int64_t capacity) noexcept nogil:
    cdef size_t nodes = <size_t>max(start, end) + 1
    if flow.edges.size() < nodes:
        flow.edges.resize(nodes)
    flow.edges[start].push_back(<int32_t>flow.to.size())
    flow.to.push_back(end)
    flow.left.push_back(capacity)
    flow.edges[end].push_back(<int32_t>flow.to.size())
    flow.to.push_back(start)
    flow.left.push_back(0)


cdef int64_t flow_maximum(Flow& flow, int32_t source, int32_t sink, int64_t enough) noexcept nogil:
    """Maximum flow by shortest augmenting paths, up to `enough`."""
    cdef vector[int32_t] came, queue
    cdef size_t head
    cdef int32_t node, edge
    cdef int64_t pushed = 0
    cdef int64_t amount
    while pushed < enough:
        came.assign(flow.edges.size(), -1)
        queue.clear()
        queue.push_back(source)
        head = 0
        while head < queue.size() and came[sink] < 0:
            node = queue[head]
            head += 1
            for edge in flow.edges[node]:
                if flow.left[edge] > 0 and came[flow.to[edge]] < 0 and flow.to[edge] != source:
                    came[flow.to[edge]] = edge
                    queue.push_back(flow.to[edge])
        if came[sink] < 0:
            return pushed
        amount = enough - pushed
        node = sink
        while node != source:
            amount = min(amount, flow.left[came[node]])
            node = flow.to[came[node] ^ 1]
        node = sink
        while node != source:
            flow.left[came[node]] -= amount
            flow.left[came[node] ^ 1] += amount
            node = flow.to[came[node] ^ 1]
        pushed += amount
    return pushed


cdef int32_t find(vector[int32_t]& parent, int32_t s) noexcept nogil:
    while parent[s] != s:
        parent[s] = parent[parent[s]]
        s = parent[s]
    return s


cdef void join(vector[int32_t]& parent, vector[int32_t]& first, int32_t key, int32_t s) noexcept nogil:
    """Put s into the part of whoever met `key` first."""
    if first[key] < 0:
        first[key] = s
        return
    cdef int32_t x = find(parent, first[key])
    cdef int32_t y = find(parent, s)
    if x != y:
        parent[max(x, y)] = min(x, y)


@cython.final
cdef class Search:
    """One question at one place. Add the pools in order, then `run` once."""

    cdef readonly Tables tables
    cdef vector[Device] devices
    cdef vector[int64_t] available  # by common column
    cdef vector[int64_t] room  # own columns of all devices
    cdef vector[int64_t] room_before
    cdef vector[Agreement] agreements
    cdef vector[Block] blocks
    cdef int32_t pools
    cdef size_t last_sets
    # The state of the attempt
    cdef vector[int32_t] owners  # by device: how often chosen whole
    cdef vector[int32_t] shares  # by device: how often chosen as a share
    cdef vector[vector[vector[int32_t]]] matches  # by constraint: values in common, after each device
    cdef vector[vector[int32_t]] taken  # by constraint: how often each value is taken
    cdef vector[int32_t] counts  # by claim: devices chosen
    cdef vector[Choice] choices
    cdef vector[int32_t] selected  # by slot
    # What the place makes of the question
    cdef vector[Slot] slots
    cdef vector[vector[int32_t]] candidates  # by number of the list, in order; alternatives that ask alike share one
    cdef vector[cbool] clean  # by slot: cannot end in an error
    cdef vector[cbool] limited  # by claim: may come to more devices than allowed
    # The order of the search, and what holds from a place in it on
    cdef vector[int32_t] order
    cdef vector[int32_t] clean_until  # first position ≥ i that is not clean
    cdef vector[int32_t] first_of_claim  # by claim: positions of its slots are between these
    cdef vector[int32_t] last_of_claim
    cdef bint heavy
    cdef bint enumerate
    cdef object visitor
    cdef object failure  # an exception on its way out
    cdef unordered_set[string] failed_states
    cdef size_t failed_bytes
    # Wide amounts: exact, outside 64 bits
    cdef dict wide
    cdef list wide_available
    # Budget
    cdef readonly int64_t steps
    cdef int64_t max_steps
    cdef int64_t light_steps
    cdef double deadline
    cdef size_t max_memory
    cdef Cancel cancel
    cdef vector[int64_t] steps_by_slot
    cdef int reason
    cdef Choice culprit
    cdef int32_t culprit_constraint
    # Bounds: kinds of demand
    cdef vector[int32_t] kind_of_slot
    cdef vector[uint64_t] kinds_of_device
    cdef vector[Row*] rows_of_lists  # by list of candidates: the only row among them, or NULL
    cdef int kinds

    def __cinit__(self, Tables tables):
        self.tables = tables
        self.slots = tables.slots
        self.wide = None
        self.wide_available = []
        self.reason = NOTHING

    def add_pool(
        self,
        PoolRows rows,
        const uint8_t[::1] visible,
        const uint8_t[::1] elsewhere,
        const uint8_t[::1] held,
        available,
        bint vanished,
        shares,
        wide,
    ):
        """The next pool in the order of the search.

        visible: by slice, or None for all. elsewhere: by device, whether it is out of reach here, or None. held: by
        device: 0 free, 1 held whole, 2 held in shares; None where nothing is in use. available: amount of each common
        column. vanished: a device that is held is not among these. shares: {device: amounts in use of its own columns}.
        wide: None, or (available, {device: [(column, amount)]}, {device: (room, {type: [(column, amount)]})}) of the
        columns whose amounts need more than 64 bits.
        """
        cdef size_t i
        cdef int32_t first_column = <int32_t>self.available.size()
        cdef int32_t first_set = <int32_t>self.agreements.size()
        cdef int32_t first_block = <int32_t>self.blocks.size()
        cdef Device device
        cdef Agreement agreement
        cdef Block block
        cdef size_t j
        agreement.members = 0
        agreement.empty = False
        block.shape = 0
        block.last = -1
        for amount in available:
            self.available.push_back(amount)
        for i in range(<size_t>rows.sets):
            self.agreements.push_back(agreement)
        for i in range(<size_t>rows.blocks):
            self.blocks.push_back(block)
        for i in range(<size_t>rows.columns):
            if rows.block_of_column[i] >= 0:
                self.blocks[first_block + rows.block_of_column[i]].columns.push_back(first_column + <int32_t>i)
        for i in range(<size_t>rows.sets):
            if rows.block_of_set[i] >= 0:
                self.blocks[first_block + rows.block_of_set[i]].sets.push_back(first_set + <int32_t>i)
        cdef bint keep = self.tables.any_every or self.tables.any_privileged
        cdef uint8_t hold
        for i in range(rows.devices.size()):
            if visible is not None and not visible[rows.slice_of[i]]:
                continue
            device = rows.devices[i]
            hold = held[device.index] if held is not None else 0
            if hold == 1 and not keep:
                continue
            device.pool = self.pools
            device.busy = hold == 1 or (hold == 2 and not device.row.multi)
            device.charged = hold == 2
            device.elsewhere = elsewhere is not None and elsewhere[device.index]
            device.barred = (device.barred or (vanished and device.memberships.size() > 0)) and not (
                device.charged and device.row.multi
            )
            for j in range(device.columns.size()):
                device.columns[j] += first_column
            for j in range(device.memberships.size()):
                device.memberships[j].set += first_set
            if device.block >= 0:
                device.block += first_block
                self.blocks[device.block].devices.push_back(<int32_t>self.devices.size())
            device.room = <int32_t>self.room.size()
            used = shares.get(device.index) if shares else None
            for j in range(device.row.room.size()):
                self.room.push_back(device.row.room[j] if used is None else <int64_t>used[j])
            if wide is not None:
                self._add_wide(<int32_t>self.devices.size(), device.index, wide)
            self.devices.push_back(device)
        if wide is not None:
            base = len(self.wide_available)
            self.wide_available.extend(wide[0])
            self._shift_wide(base)
        self.last_sets = rows.sets
        self.pools += 1

    def join_groups(self, int set_index, groups):
        """A device in use is a member of a set of the pool added last; groups: the groups that it declares."""
        cdef vector[int32_t] numbers
        for group in sorted(groups):
            numbers.push_back(group)
        self._join(self.agreements.size() - self.last_sets + set_index, numbers)

    # -- wide amounts ------------------------------------------------------------------------------------------------

    cdef void _add_wide(self, int32_t device, int32_t index, wide):
        # Until `_shift_wide`, columns are those of the pool.
        draws = wide[1].get(index)
        own = wide[2].get(index)
        if draws is None and own is None:
            return
        if self.wide is None:
            self.wide = {}
        if draws is not None:
            self.wide[device, -1] = ["pool", draws]
        if own is not None:
            room, by_type = own
            start = len(self.wide_available)
            self.wide_available.extend(room)
            for kind, amounts in by_type.items():
                self.wide[device, kind] = ["own", [(start + column, amount) for column, amount in amounts]]

    cdef void _shift_wide(self, base):
        if self.wide is None:
            return
        for key, entry in self.wide.items():
            if entry[0] == "pool":
                self.wide[key] = ["done", [(base + column, amount) for column, amount in entry[1]]]

    cdef bint _wide_fits(self, int32_t device, int32_t kind) noexcept with gil:
        entry = self.wide.get((device, kind))
        return entry is None or all(self.wide_available[column] >= amount for column, amount in entry[1])

    cdef void _wide_take(self, int32_t device, int32_t kind, int sign) noexcept with gil:
        entry = self.wide.get((device, kind))
        if entry is not None:
            for column, amount in entry[1]:
                self.wide_available[column] -= sign * amount

    cdef void _put_wide(self, string& key) noexcept with gil:
        """What is left of all wide columns, as text of one length."""
        cdef string left = repr(self.wide_available).encode()
        put(key, <int64_t>left.size())
        key.append(left)

    # -- preparation -------------------------------------------------------------------------------------------------

    cdef void _prepare(self) noexcept nogil:
        cdef size_t s, a, c
        cdef Alternative* alternative
        cdef cbool ok
        cdef int64_t most
        cdef vector[vector[int32_t]] no_values
        self.owners.assign(self.devices.size(), 0)
        self.shares.assign(self.devices.size(), 0)
        self.counts.assign(self.tables.claims, 0)
        self.selected.assign(self.slots.size(), -1)
        self.steps_by_slot.assign(self.slots.size(), 0)
        self.matches.assign(self.tables.constraints.size(), no_values)
        self.taken.resize(self.tables.constraints.size())
        self.limited.assign(self.tables.claims, False)
        self.room_before = self.room
        cdef vector[int64_t] totals
        cdef vector[int8_t] safe  # by list; -1: not made yet
        safe.assign(self.tables.lists.size(), -1)
        self.candidates.resize(self.tables.lists.size())
        totals.assign(self.tables.claims, 0)
        for s in range(self.slots.size()):
            ok = True
            most = 0
            for a in range(self.slots[s].alternatives.size()):
                alternative = &self.slots[s].alternatives[a]
                if safe[alternative.list] < 0:
                    safe[alternative.list] = self._list_candidates(alternative, self.candidates[alternative.list])
                ok = ok and safe[alternative.list] == 1
                if alternative.every:
                    alternative.n = self.candidates[alternative.list].size()
                most = max(most, alternative.n)
            self.clean.push_back(ok)
            totals[self.slots[s].claim] += most
        for c in range(totals.size()):
            self.limited[c] = totals[c] > self.tables.limit

    cdef cbool _list_candidates(self, Alternative* alternative, vector[int32_t]& found) noexcept nogil:
        """Devices that an alternative may look at in earnest. Whether none of them can end in an error."""
        cdef size_t i
        cdef uint8_t code
        cdef Device* device
        cdef cbool ok = True
        found.clear()
        for i in range(self.devices.size()):
            device = &self.devices[i]
            code = device.row.code[alternative.type]
            if code == NO or code == USELESS or (device.elsewhere and code != BROKEN):
                continue
            if code == SMALL and (alternative.every or not self._may_break(device, alternative)):
                continue
            if not alternative.every and (code == BARRED or (device.busy and not alternative.privileged)):
                continue
            if (
                code == BROKEN
                or code == MALFORMED
                or self._may_break(device, alternative)
                or (alternative.every and alternative.constraints.size() > 0)
            ):
                ok = False
            found.push_back(<int32_t>i)
        return ok

    cdef bint _may_break(self, Device* device, Alternative* alternative) noexcept nogil:
        cdef size_t c
        for c in range(alternative.tables.size()):
            if device.row.broken[alternative.tables[c]]:
                return True
        return False

    def every_list(self, int slot, int alternative):
        """The devices that an alternative which takes every device must have: (pool, index, code) in order.

        With a code other than 1 the caller decides whether that is an error before the search. Call `prepare` before.
        """
        result = []
        cdef int32_t kind = self.slots[slot].alternatives[alternative].type
        cdef int32_t i
        for i in self.candidates[self.slots[slot].alternatives[alternative].list]:
            result.append((self.devices[i].pool, self.devices[i].index, self.devices[i].row.code[kind]))
        return result

    def prepare(self):
        """Make ready what depends on the devices. Call once, after the last pool."""
        with nogil:
            self._prepare()

    cdef void _set_order(self, vector[int32_t] order) noexcept nogil:
        cdef int32_t i
        cdef int32_t until = <int32_t>order.size()
        cdef size_t a, d
        self.order = order
        self.clean_until.assign(order.size() + 1, until)
        for i in range(<int32_t>order.size() - 1, -1, -1):
            if not self.clean[order[i]]:
                until = i
            self.clean_until[i] = until
        for d in range(self.devices.size()):
            self.devices[d].last = -1
        for d in range(self.blocks.size()):
            self.blocks[d].last = -1
        cdef int32_t device, number, claim
        cdef vector[cbool] done
        done.assign(self.candidates.size(), False)
        self.first_of_claim.assign(self.tables.claims, 0)
        self.last_of_claim.assign(self.tables.claims, -1)
        for i in range(<int32_t>order.size() - 1, -1, -1):
            claim = self.slots[order[i]].claim
            self.first_of_claim[claim] = i
            if self.last_of_claim[claim] < 0:
                self.last_of_claim[claim] = i
            for a in range(self.slots[order[i]].alternatives.size()):
                number = self.slots[order[i]].alternatives[a].list
                if done[number]:
                    continue
                done[number] = True
                for device in self.candidates[number]:
                    if self.devices[device].last < 0:
                        self.devices[device].last = i
                    if self.devices[device].block >= 0 and self.blocks[self.devices[device].block].last < 0:
                        self.blocks[self.devices[device].block].last = i

    cdef inline bint _clean_from(self, int32_t i) noexcept nogil:
        return self.clean_until[i] == <int32_t>self.order.size()

    cdef void _number_twins(self):
        # Two devices are twins if they have the same row (which holds all that any slot can see of them), the same
        # draws on the same columns, the same memberships and the same flags. They have the same *shape* if that holds
        # once columns and sets are counted from the start of their block. A device with wide amounts, which its row and
        # draws do not tell of, has no twin.
        cdef set wide = set() if self.wide is None else {number for number, _ in self.wide}
        cdef vector[cbool] alone
        alone.assign(self.devices.size(), False)
        for number in wide:
            alone[<size_t>number] = True
        cdef Interner twins = Interner()
        cdef Interner shapes = Interner()
        cdef Interner block_shapes = Interner()
        cdef string key, local
        cdef size_t d, j, b
        cdef Device* device
        cdef Block* block
        cdef unordered_map[int32_t, int32_t] column_place, set_place
        cdef int32_t group
        with nogil:
            for b in range(self.blocks.size()):
                for j in range(self.blocks[b].columns.size()):
                    column_place[self.blocks[b].columns[j]] = <int32_t>j
                for j in range(self.blocks[b].sets.size()):
                    set_place[self.blocks[b].sets[j]] = <int32_t>j
            for d in range(self.devices.size()):
                device = &self.devices[d]
                key.clear()
                put(key, device.row.id)
                put(key, (1 if device.busy else 0) | (2 if device.charged else 0)
                    | (4 if device.elsewhere else 0) | (8 if device.barred else 0))
                put(key, <int64_t>d if alone[d] else -1)
                put(key, <int64_t>device.columns.size())
                put(key, <int64_t>device.memberships.size())
                local = key
                for j in range(device.columns.size()):
                    put(key, device.columns[j])
                    put(key, device.draws[j])
                    put(local, column_place[device.columns[j]])
                    put(local, device.draws[j])
                for j in range(device.memberships.size()):
                    put(key, device.memberships[j].set)
                    put(local, set_place[device.memberships[j].set])
                    put(key, <int64_t>device.memberships[j].groups.size())
                    put(local, <int64_t>device.memberships[j].groups.size())
                    for group in device.memberships[j].groups:
                        put(key, group)
                        put(local, group)
                device.twin = twins.number(key)
                device.shape = shapes.number(local)
            for b in range(self.blocks.size()):
                block = &self.blocks[b]
                key.clear()
                put(key, <int64_t>block.columns.size())
                for j in range(block.columns.size()):
                    put(key, self.available[block.columns[j]])
                put(key, <int64_t>block.sets.size())
                for j in range(block.sets.size()):
                    self._put_agreement(key, block.sets[j])
                for j in range(block.devices.size()):
                    device = &self.devices[block.devices[j]]
                    put(key, device.shape)
                    self._put_room(key, block.devices[j])
                block.shape = block_shapes.number(key)

    cdef void _put_agreement(self, string& key, int32_t s) noexcept nogil:
        cdef int32_t group
        put(key, self.agreements[s].members)
        put(key, 1 if self.agreements[s].empty else 0)
        put(key, <int64_t>self.agreements[s].groups.size())
        for group in self.agreements[s].groups:
            put(key, group)

    cdef void _put_room(self, string& key, int32_t d) noexcept nogil:
        cdef size_t j
        cdef Device* device = &self.devices[d]
        for j in range(device.row.room.size()):
            put(key, self.room[device.room + j])

    # -- taking a device ---------------------------------------------------------------------------------------------

    cdef inline int64_t _amount(self, Device* device, int32_t kind, size_t column) noexcept nogil:
        return device.row.amounts[kind * device.row.room.size() + column]

    cdef bint _admits(self, Device* device) noexcept nogil:
        # All members of a set declare no groups, or all do and one group is common to all.
        cdef size_t j, x, y
        cdef Agreement* agreement
        cdef vector[int32_t]* groups
        cdef bint common
        for j in range(device.memberships.size()):
            agreement = &self.agreements[device.memberships[j].set]
            groups = &device.memberships[j].groups
            if agreement.members == 0:
                continue
            if groups.empty() or agreement.empty:
                if not (groups.empty() and agreement.empty):
                    return False
                continue
            common = False
            x = 0
            y = 0
            while x < groups.size() and y < agreement.groups.size():
                if groups[0][x] == agreement.groups[y]:
                    common = True
                    break
                if groups[0][x] < agreement.groups[y]:
                    x += 1
                else:
                    y += 1
            if not common:
                return False
        return True

    cdef void _join(self, size_t s, vector[int32_t]& groups) noexcept nogil:
        cdef Agreement* agreement = &self.agreements[s]
        cdef vector[int32_t] common
        cdef size_t x = 0, y = 0
        if agreement.members == 0:
            agreement.empty = groups.empty()
            agreement.groups = groups
        elif groups.empty() or agreement.empty:
            if not (groups.empty() and agreement.empty):
                # Only devices in use can be so at odds; nothing may join them.
                agreement.empty = False
                agreement.groups.clear()
        else:
            while x < groups.size() and y < agreement.groups.size():
                if groups[x] == agreement.groups[y]:
                    common.push_back(groups[x])
                    x += 1
                    y += 1
                elif groups[x] < agreement.groups[y]:
                    x += 1
                else:
                    y += 1
            agreement.groups = common
        agreement.members += 1

    cdef bint _agrees(self, int32_t c, Values new) noexcept nogil:
        # Whether a device with this value set may be added to constraint c.
        cdef Values old
        cdef size_t x = 0, y = 0
        cdef int32_t v
        if new == NULL:
            return False
        if self.tables.constraints[c].kind == DISTINCT:
            for v in new[0]:
                if <size_t>v < self.taken[c].size() and self.taken[c][v] > 0:
                    return False
            return True
        if self.matches[c].empty():
            return not new.empty()
        old = &self.matches[c].back()
        while x < new.size() and y < old.size():
            if new[0][x] == old[0][y]:
                return True
            if new[0][x] < old[0][y]:
                x += 1
            else:
                y += 1
        return False

    cdef void _constrain(self, int32_t c, Values new) noexcept nogil:
        cdef Values old
        cdef vector[int32_t] common
        cdef size_t x = 0, y = 0
        cdef int32_t v
        if self.tables.constraints[c].kind == DISTINCT:
            for v in new[0]:
                if <size_t>v >= self.taken[c].size():
                    self.taken[c].resize(v + 1, 0)
                self.taken[c][v] += 1
            return
        if self.matches[c].empty():
            self.matches[c].push_back(new[0])
            return
        old = &self.matches[c].back()
        while x < new.size() and y < old.size():
            if new[0][x] == old[0][y]:
                common.push_back(new[0][x])
                x += 1
                y += 1
            elif new[0][x] < old[0][y]:
                x += 1
            else:
                y += 1
        self.matches[c].push_back(common)

    cdef bint _chosen_by_claim(self, int32_t d, int32_t claim) noexcept nogil:
        cdef int64_t i
        cdef int64_t left = self.counts[claim]
        for i in range(<int64_t>self.choices.size() - 1, -1, -1):
            if left == 0:
                return False
            if self.slots[self.choices[i].slot].claim == claim:
                if self.choices[i].device == d:
                    return True
                left -= 1
        return False

    cdef inline bint _in_use(self, int32_t d, int32_t s, Alternative* alternative) noexcept nogil:
        if alternative.privileged:
            return not self.devices[d].row.multi and self._chosen_by_claim(d, self.slots[s].claim)
        return self.devices[d].busy or self.owners[d] > 0

    cdef int _take(self, int32_t d, int32_t s, int32_t a) noexcept nogil:
        """Check the device for the alternative, in the order of the rules, and take it. FOUND, FAIL or ERROR."""
        cdef Device* device = &self.devices[d]
        cdef Alternative* alternative = &self.slots[s].alternatives[a]
        cdef size_t j
        cdef uint8_t code
        cdef bint charge
        if self._in_use(d, s, alternative):
            return FAIL
        code = device.row.code[alternative.type]
        if code == BROKEN:
            return self._blame(BROKEN_SELECTOR, s, a, d, -1)
        if code == NO or device.elsewhere:
            return FAIL
        if code == MALFORMED:
            return self._blame(MALFORMED_REQUEST, s, a, d, -1)
        charge = not alternative.privileged and not (device.row.multi and (device.charged or self.shares[d] > 0))
        if charge:
            if device.barred:
                return FAIL
            for j in range(device.columns.size()):
                if self.available[device.columns[j]] < device.draws[j]:
                    return FAIL
            if self.wide is not None and not self._wide_fits(d, -1):
                return FAIL
            if not self._admits(device):
                return FAIL
        if code == BARRED or code == USELESS:
            return FAIL
        for j in range(alternative.constraints.size()):
            if device.row.broken[alternative.tables[j]]:
                return self._blame(BROKEN_VALUE, s, a, d, alternative.constraints[j])
            if not self._agrees(alternative.constraints[j], device.row.values[alternative.tables[j]]):
                if alternative.every:
                    return self._blame(ALL_CONSTRAINED, s, a, d, alternative.constraints[j])
                return FAIL
        if code == SMALL:
            return FAIL
        if not alternative.privileged:
            for j in range(device.row.room.size()):
                if self.room[device.room + j] < self._amount(device, alternative.type, j):
                    return FAIL
            if self.wide is not None and not self._wide_fits(d, alternative.type):
                return FAIL
        self._apply(d, s, a, charge)
        return FOUND

    cdef void _apply(self, int32_t d, int32_t s, int32_t a, bint charge) noexcept nogil:
        cdef Device* device = &self.devices[d]
        cdef Alternative* alternative = &self.slots[s].alternatives[a]
        cdef size_t j
        cdef Choice choice
        if charge:
            for j in range(device.columns.size()):
                self.available[device.columns[j]] -= device.draws[j]
            if self.wide is not None:
                self._wide_take(d, -1, 1)
            for j in range(device.memberships.size()):
                self._join(device.memberships[j].set, device.memberships[j].groups)
        for j in range(alternative.constraints.size()):
            self._constrain(alternative.constraints[j], device.row.values[alternative.tables[j]])
        if not device.row.multi:
            self.owners[d] += 1
        elif not alternative.privileged:
            self.shares[d] += 1
        if not alternative.privileged:
            for j in range(device.row.room.size()):
                self.room[device.room + j] -= self._amount(device, alternative.type, j)
            if self.wide is not None:
                self._wide_take(d, alternative.type, 1)
        self.counts[self.slots[s].claim] += 1
        choice.slot = s
        choice.alternative = a
        choice.device = d
        self.choices.push_back(choice)
        self.steps += 1
        self.steps_by_slot[s] += 1

    cdef void _give_back(self, vector[Agreement]& agreements) noexcept nogil:
        """Undo the last `_apply`. agreements: the states of the device's sets before it, in the order of its memberships."""
        cdef Choice choice = self.choices.back()
        cdef int32_t d = choice.device
        cdef Device* device = &self.devices[d]
        cdef Alternative* alternative = &self.slots[choice.slot].alternatives[choice.alternative]
        cdef size_t j
        cdef int32_t c, v
        self.choices.pop_back()
        self.counts[self.slots[choice.slot].claim] -= 1
        if not alternative.privileged:
            for j in range(device.row.room.size()):
                self.room[device.room + j] += self._amount(device, alternative.type, j)
            if self.wide is not None:
                self._wide_take(d, alternative.type, -1)
        if not device.row.multi:
            self.owners[d] -= 1
        elif not alternative.privileged:
            self.shares[d] -= 1
        for j in range(alternative.constraints.size()):
            c = alternative.constraints[j]
            if self.tables.constraints[c].kind == DISTINCT:
                for v in device.row.values[alternative.tables[j]][0]:
                    self.taken[c][v] -= 1
            else:
                self.matches[c].pop_back()
        if not alternative.privileged and not (device.row.multi and (device.charged or self.shares[d] > 0)):
            for j in range(device.columns.size()):
                self.available[device.columns[j]] += device.draws[j]
            if self.wide is not None:
                self._wide_take(d, -1, -1)
            for j in range(device.memberships.size()):
                self.agreements[device.memberships[j].set] = agreements[j]

    cdef int _blame(self, int reason, int32_t s, int32_t a, int32_t d, int32_t c) noexcept nogil:
        self.reason = reason
        self.culprit.slot = s
        self.culprit.alternative = a
        self.culprit.device = d
        self.culprit_constraint = c
        return ERROR

    cdef int _spend(self) noexcept nogil:
        """Called now and then: FOUND to go on, else SPENT or RESTART."""
        if self.steps >= self.max_steps:
            self.reason = OUT_OF_STEPS
            return SPENT
        if not self.heavy and not self.enumerate and self.steps >= self.light_steps:
            return RESTART
        if self.steps & 255 == 255:
            if self.cancel is not None and self.cancel.flag.load():
                self.reason = CANCELLED
                return SPENT
            with gil:
                try:
                    PyErr_CheckSignals()
                except BaseException as error:
                    return self._interrupt(error)
                if self.deadline > 0 and time.monotonic() > self.deadline:
                    self.reason = OUT_OF_TIME
                    return SPENT
        return FOUND

    cdef int _interrupt(self, error) noexcept:
        """Keep an exception of Python code that the search called, to be raised when the search has wound up."""
        self.failure = error
        self.reason = INTERRUPTED
        return SPENT

    # -- the search --------------------------------------------------------------------------------------------------

    cdef int _enter(self, int32_t i, int depth) noexcept nogil:
        """All slots from position i of the order on."""
        cdef int32_t s
        cdef int result
        cdef size_t a
        cdef cbool all_full = True
        cdef string key
        cdef bint remember
        if i >= <int32_t>self.order.size():
            return self._complete()
        s = self.order[i]
        result = self._spend()
        if result != FOUND:
            return result
        if depth > MAX_DEPTH:
            self.reason = OUT_OF_DEPTH
            return SPENT
        # Memo of failed states. What lies ahead depends on nothing but the state that `_state` writes down; where no
        # error can be met ahead, devices that no slot can tell apart may be exchanged for one another in it.
        remember = self.heavy and not self.enumerate and i > 0
        if remember:
            self._state(key, i)
            if self.failed_states.count(key) > 0:
                return FAIL
            if self._clean_from(i) and self._hopeless(i, -1, 0):
                return FAIL
        if self.slots[s].alternatives.size() == 1:
            result = self._take_devices(i, 0, 0, 0, depth)
            if result == FOUND:
                self.selected[s] = 0
        else:
            result = FULL
            for a in range(self.slots[s].alternatives.size()):
                result = self._take_devices(i, <int32_t>a, 0, 0, depth)
                if result == FULL:
                    continue
                all_full = False
                if result == FOUND:
                    self.selected[s] = <int32_t>a
                if result != FAIL:
                    break
            if result == FULL and not all_full:
                result = FAIL
        if remember and result == FAIL and self.failed_bytes < self.max_memory:
            self.failed_states.insert(key)
            self.failed_bytes += key.size() + 64
        return result

    cdef int _complete(self) noexcept nogil:
        cdef bint go_on
        if not self.enumerate:
            return FOUND
        with gil:
            try:
                go_on = self.visitor(self._answer())
            except BaseException as error:
                return self._interrupt(error)
        return FAIL if go_on else FOUND

    cdef int _next(self, int32_t i, int depth) noexcept nogil:
        """The slots after position i. At the border of a claim, "too many results" is an ordinary failure."""
        cdef int result = self._enter(i + 1, depth + 1)
        if result == FULL and (
            i + 1 >= <int32_t>self.order.size()
            or self.slots[self.order[i + 1]].claim != self.slots[self.order[i]].claim
        ):
            return FAIL
        return result

    cdef int _take_devices(self, int32_t i, int32_t a, int64_t k, size_t start, int depth) noexcept nogil:
        """The devices of one alternative from the k-th on, from place `start` of its candidates on; then what follows."""
        cdef int32_t s = self.order[i]
        cdef Alternative* alternative = &self.slots[s].alternatives[a]
        cdef vector[int32_t]* candidates = &self.candidates[alternative.list]
        cdef size_t place, end
        cdef int32_t d
        cdef int result
        cdef vector[int32_t] failed
        cdef vector[Agreement] agreements
        cdef vector[cbool] enough
        cdef int32_t counted = -1
        cdef bint clean
        cdef size_t j
        if alternative.every and alternative.n == 0:
            return FAIL
        if k >= alternative.n:
            return self._next(i, depth)
        if self.counts[self.slots[s].claim] + alternative.n - k > self.tables.limit:
            return FULL
        if depth > MAX_DEPTH:
            self.reason = OUT_OF_DEPTH
            return SPENT
        clean = self._clean_from(i)
        end = start + 1 if alternative.every else candidates.size()
        if k == 0 and alternative.n > 1 and not alternative.every and self.clean[s]:
            counted = self._count_values(s, a, enough)
        for place in range(start, end):
            d = candidates[0][place]
            # A device all of whose values are too rare for the devices that this alternative still needs. The subtree
            # would look only at candidates of this slot before it fails, and none of these is an error.
            if counted >= 0 and not self._any_enough(d, alternative.tables[counted], enough):
                continue
            # Twins: take an answer with this device. Its twin, which failed here, is not in it (devices of an
            # alternative come in increasing order, and the twin came earlier). Exchange the two: the result is an
            # answer with the twin, later devices still following it. There is none, so there is none with this one.
            if clean and self.heavy and not failed.empty() and self._twin_failed(d, failed):
                continue
            if self.devices[d].memberships.size() > 0:
                agreements.clear()
                for j in range(self.devices[d].memberships.size()):
                    agreements.push_back(self.agreements[self.devices[d].memberships[j].set])
            result = self._take(d, s, a)
            if result == ERROR:
                return ERROR
            if result == FAIL:
                continue
            result = self._spend()
            if result == FOUND and self.heavy and clean and self._hopeless(i, a, k + 1):
                result = FAIL
            if result == FOUND:
                result = self._take_devices(i, a, k + 1, place + 1, depth + 1)
            if result == FOUND:
                return FOUND
            self._give_back(agreements)
            if result != FAIL:
                return result
            if clean:
                failed.push_back(d)
        return FAIL

    cdef bint _twin_failed(self, int32_t d, vector[int32_t]& failed) noexcept nogil:
        cdef int32_t f
        cdef Device* device = &self.devices[d]
        cdef Device* other
        cdef size_t j
        cdef bint same
        for f in failed:
            other = &self.devices[f]
            if device.row != other.row or device.shape != other.shape:
                continue
            # Who has chosen a device matters to privileged requests; exchange only devices that nobody has.
            if self.owners[d] > 0 or (self.tables.any_privileged and (self.shares[d] > 0 or self.shares[f] > 0)):
                continue
            if device.twin != other.twin:
                # Equal but for the block: then the blocks must be in equal states too, and the exchange is of blocks.
                if device.block < 0 or other.block < 0:
                    continue
                if not self._blocks_alike(device.block, other.block):
                    continue
            if not device.row.multi:
                return True
            if (self.shares[d] > 0) != (self.shares[f] > 0):
                continue
            same = True
            for j in range(device.row.room.size()):
                if self.room[device.room + j] != self.room[other.room + j]:
                    same = False
                    break
            if same and self.wide is None:
                return True
        return False

    cdef bint _blocks_alike(self, int32_t x, int32_t y) noexcept nogil:
        cdef string left, right
        if self.blocks[x].shape != self.blocks[y].shape:
            return False
        self._put_block(left, x)
        self._put_block(right, y)
        return left == right

    cdef void _put_block(self, string& key, int32_t b) noexcept nogil:
        """The state of a block, independent of which block it is: what is left, and which shapes are taken."""
        cdef Block* block = &self.blocks[b]
        cdef size_t j
        cdef int32_t d
        cdef vector[string] taken
        cdef string one
        put(key, block.shape)
        for j in range(block.columns.size()):
            put(key, self.available[block.columns[j]])
        for j in range(block.sets.size()):
            self._put_agreement(key, block.sets[j])
        for d in block.devices:
            if self.owners[d] > 0 or self.shares[d] > 0:
                one.clear()
                put(one, self.devices[d].shape)
                put(one, self.owners[d])
                put(one, 1 if self.shares[d] > 0 else 0)
                self._put_room_change(one, d)
                taken.push_back(one)
        sort(taken.begin(), taken.end())
        put(key, <int64_t>taken.size())
        for one in taken:
            key.append(one)

    cdef void _put_room_change(self, string& key, int32_t d) noexcept nogil:
        cdef size_t j
        cdef Device* device = &self.devices[d]
        for j in range(device.row.room.size()):
            put(key, self.room_before[device.room + j])
            put(key, self.room[device.room + j])

    cdef void _state(self, string& key, int32_t i) noexcept nogil:
        """Write down all that the search from position i on depends on.

        Where errors may lie ahead, every device counts by itself. Where none can, only how many of each kind of twins
        are taken, and which states blocks of equal shape are in: exchanging equals turns an answer into an answer.
        """
        cdef bint clean = self._clean_from(i)
        cdef int32_t claim = self.slots[self.order[i]].claim
        cdef size_t d, b, c
        cdef vector[string] parts
        cdef string one
        cdef int32_t v
        cdef int32_t value
        key.clear()
        put(key, i)
        put(key, self.counts[claim] if self.limited[claim] or not clean else -1)
        if self.wide is not None:
            self._put_wide(key)
        for d in range(self.devices.size()):
            if self.owners[d] == 0 and self.shares[d] == 0:
                continue
            if self.devices[d].block >= 0:
                continue
            if self.devices[d].last < i:
                continue
            one.clear()
            put(one, self.devices[d].twin if clean else <int64_t>d)
            put(one, self.owners[d])
            put(one, 1 if self.shares[d] > 0 else 0)
            self._put_room_change(one, <int32_t>d)
            if self.tables.any_privileged:
                # Requests with privileges care for who took a device, too.
                put(one, 1 if self._chosen_by_claim(<int32_t>d, claim) else 0)
                put(one, <int64_t>d)
            parts.push_back(one)
        for b in range(self.blocks.size()):
            if self.blocks[b].last < i:
                continue
            one.clear()
            put(one, -1)
            if not clean or self.tables.any_privileged:
                put(one, <int64_t>b)
            self._put_block(one, <int32_t>b)
            if not clean or self.tables.any_privileged:
                for v in self.blocks[b].devices:
                    if self.owners[v] > 0 or self.shares[v] > 0:
                        put(one, v)
                        put(one, 1 if self._chosen_by_claim(v, claim) else 0)
            parts.push_back(one)
        sort(parts.begin(), parts.end())
        put(key, <int64_t>parts.size())
        for one in parts:
            key.append(one)
        for c in range(self.tables.constraints.size()):
            if self.tables.constraints[c].claim != claim:
                continue
            if self.tables.constraints[c].kind == MATCH:
                put(key, <int64_t>self.matches[c].size() if self.matches[c].empty() else 1)
                if not self.matches[c].empty():
                    put(key, <int64_t>self.matches[c].back().size())
                    for v in self.matches[c].back():
                        put(key, v)
            else:
                value = 0
                for v in range(<int32_t>self.taken[c].size()):
                    if self.taken[c][v] > 0:
                        put(key, v)
                        value += 1
                put(key, -1 - value)

    # -- bounds ------------------------------------------------------------------------------------------------------

    cdef int32_t _count_values(self, int32_t s, int32_t a, vector[cbool]& enough) noexcept nogil:
        """For a MATCH that has no device yet: which values enough free candidates have. Its place in the alternative, or -1."""
        cdef Alternative* alternative = &self.slots[s].alternatives[a]
        cdef size_t j
        cdef int32_t c, d, v
        cdef Values values
        cdef vector[int64_t] counts
        cdef int32_t best = -1
        for j in range(alternative.constraints.size()):
            c = alternative.constraints[j]
            if self.tables.constraints[c].kind == MATCH and self.matches[c].empty():
                best = <int32_t>j
                break
        if best < 0:
            return -1
        for d in self.candidates[alternative.list]:
            if self._in_use(d, s, alternative):
                continue
            values = self.devices[d].row.values[alternative.tables[best]]
            if values == NULL:
                continue
            for v in values[0]:
                if <size_t>v >= counts.size():
                    counts.resize(v + 1, 0)
                counts[v] += 1
        enough.assign(counts.size(), False)
        for j in range(counts.size()):
            enough[j] = counts[j] >= alternative.n
        return best

    cdef bint _any_enough(self, int32_t d, int32_t table, vector[cbool]& enough) noexcept nogil:
        cdef Values values = self.devices[d].row.values[table]
        cdef int32_t v
        if values == NULL:
            return False
        for v in values[0]:
            if <size_t>v < enough.size() and enough[v]:
                return True
        return False

    cdef void _number_kinds(self):
        """Slots that ask for the same, but for the number, are of one kind; kinds_of_device says whom a device could serve."""
        cdef Interner interner = Interner()
        cdef string key
        cdef size_t s, a, c
        cdef Alternative* alternative
        cdef int32_t d
        self.rows_of_lists.assign(self.candidates.size(), NULL)
        for s in range(self.candidates.size()):
            for a in range(self.candidates[s].size()):
                if self.devices[self.candidates[s][a]].row != self.devices[self.candidates[s][0]].row:
                    break
            else:
                if not self.candidates[s].empty():
                    self.rows_of_lists[s] = self.devices[self.candidates[s][0]].row
        self.kind_of_slot.assign(self.slots.size(), -1)
        self.kinds_of_device.assign(self.devices.size(), 0)
        for s in range(self.slots.size()):
            key.clear()
            for a in range(self.slots[s].alternatives.size()):
                alternative = &self.slots[s].alternatives[a]
                put(key, alternative.type)
                put(key, 1 if alternative.every else 0)
                for c in range(alternative.constraints.size()):
                    put(key, alternative.constraints[c])
                    put(key, alternative.tables[c])
                put(key, -1)
            self.kind_of_slot[s] = interner.number(key)
        self.kinds = <int>interner.numbers.size()
        if self.kinds > MAX_BOUND_KINDS:
            return
        cdef uint64_t done = 0
        for s in range(self.slots.size()):
            if done >> self.kind_of_slot[s] & 1:
                continue
            done |= <uint64_t>1 << self.kind_of_slot[s]
            for a in range(self.slots[s].alternatives.size()):
                for d in self.candidates[self.slots[s].alternatives[a].list]:
                    self.kinds_of_device[d] |= <uint64_t>1 << self.kind_of_slot[s]

    cdef bint _hopeless(self, int32_t i, int32_t a, int64_t k) noexcept nogil:
        """Whether a relaxed problem shows that the slots from position i on cannot all be had.

        a, k: the slot at i is at work on alternative a, k devices of it are taken; a < 0: it has not begun. Called only
        where no error can be met ahead. The relaxation keeps: each device serves one request (a shared one as many as
        its room allows), a block of common columns as many devices as its smallest draws allow, and one MATCH at a time
        (some value must do for all its slots), and that a DISTINCT needs a value for each device. Every answer of the
        search satisfies it, so where it has no answer the search has none.
        """
        cdef size_t j
        cdef int32_t p, s
        cdef vector[int64_t] demand
        cdef vector[int64_t] needs
        cdef int64_t need
        cdef Alternative* alternative
        cdef size_t x
        cdef bint privileged
        if self.kinds > MAX_BOUND_KINDS or self.wide is not None:
            return False
        demand.assign(self.kinds, 0)
        needs.assign(self.order.size(), 0)
        for p in range(i, <int32_t>self.order.size()):
            s = self.order[p]
            privileged = False
            if p == i and a >= 0:
                need = self.slots[s].alternatives[a].n - k
                privileged = self.slots[s].alternatives[a].privileged
            else:
                need = HUGE
                for x in range(self.slots[s].alternatives.size()):
                    alternative = &self.slots[s].alternatives[x]
                    need = min(need, alternative.n)
                    privileged = privileged or alternative.privileged
            if privileged or need <= 0:
                continue
            needs[p] = need
            demand[self.kind_of_slot[s]] += need
        cdef vector[uint64_t] masks
        masks = self.kinds_of_device
        if not self._flow_suffices(demand, masks):
            return True
        for j in range(self.tables.constraints.size()):
            if self._constraint_hopeless(<int32_t>j, i, needs, demand):
                return True
        return self._room_hopeless(i, needs)

    cdef bint _covered(self, int32_t s, int32_t c, int32_t& table) noexcept nogil:
        """Whether constraint c applies to every alternative of the slot, through one value table."""
        cdef size_t a, j
        cdef int32_t found = -1
        cdef bint here
        for a in range(self.slots[s].alternatives.size()):
            here = False
            for j in range(self.slots[s].alternatives[a].constraints.size()):
                if self.slots[s].alternatives[a].constraints[j] == c:
                    if found >= 0 and found != self.slots[s].alternatives[a].tables[j]:
                        return False
                    found = self.slots[s].alternatives[a].tables[j]
                    here = True
            if not here:
                return False
        (&table)[0] = found
        return found >= 0

    cdef bint _free(self, int32_t d) noexcept nogil:
        # Whether the device could be taken by an unprivileged request, as far as it alone decides.
        cdef size_t j
        cdef Device* device = &self.devices[d]
        if device.busy or self.owners[d] > 0:
            return False
        if not (device.row.multi and (device.charged or self.shares[d] > 0)):
            if device.barred:
                return False
            for j in range(device.columns.size()):
                if self.available[device.columns[j]] < device.draws[j]:
                    return False
        return True

    cdef bint _constraint_hopeless(
        self, int32_t c, int32_t i, vector[int64_t]& needs, vector[int64_t]& demand
    ) noexcept nogil:
        cdef int32_t p, s, d, v
        cdef Values values
        cdef int32_t table = -1
        cdef vector[int32_t] covered, tables
        cdef vector[vector[int64_t]] counts
        cdef size_t q, x
        cdef int64_t total = 0
        cdef int32_t values_seen = 0
        cdef int32_t claim = self.tables.constraints[c].claim
        for p in range(max(i, self.first_of_claim[claim]), self.last_of_claim[claim] + 1):
            s = self.order[p]
            if needs[p] > 0 and self.slots[s].claim == claim and self._covered(s, c, table):
                covered.push_back(p)
                tables.push_back(table)
                total += needs[p]
        if covered.empty():
            return False
        cdef uint64_t kinds = 0
        for q in range(covered.size()):
            kinds |= <uint64_t>1 << self.kind_of_slot[self.order[covered[q]]]
        counts.resize(covered.size())
        cdef vector[cbool] allowed
        cdef bint limited = self.tables.constraints[c].kind == MATCH and not self.matches[c].empty()
        if limited:
            for v in self.matches[c].back():
                if <size_t>v >= allowed.size():
                    allowed.resize(v + 1, False)
                allowed[v] = True
        cdef vector[cbool] seen
        for d in range(<int32_t>self.devices.size()):
            if self.kinds_of_device[d] & kinds == 0 or not self._free(d):
                continue
            for q in range(covered.size()):
                if self.kinds_of_device[d] >> self.kind_of_slot[self.order[covered[q]]] & 1 == 0:
                    continue
                values = self.devices[d].row.values[tables[q]]
                if values == NULL:
                    continue
                for v in values[0]:
                    if self.tables.constraints[c].kind == DISTINCT:
                        if <size_t>v < self.taken[c].size() and self.taken[c][v] > 0:
                            continue
                        if <size_t>v >= seen.size():
                            seen.resize(v + 1, False)
                        if not seen[v]:
                            seen[v] = True
                            values_seen += 1
                        continue
                    if limited and (<size_t>v >= allowed.size() or not allowed[v]):
                        continue
                    if <size_t>v >= counts[q].size():
                        counts[q].resize(v + 1, 0)
                    counts[q][v] += 1
        if self.tables.constraints[c].kind == DISTINCT:
            return values_seen < total
        cdef vector[int32_t] left
        cdef bint ok
        for v in range(<int32_t>counts[0].size()):
            ok = True
            for q in range(covered.size()):
                if <size_t>v >= counts[q].size() or counts[q][v] < needs[covered[q]]:
                    ok = False
                    break
            if ok:
                left.push_back(v)
        if left.empty():
            return True
        if left.size() > <size_t>MAX_BOUND_VALUES or covered.size() == 1:
            return False
        cdef vector[uint64_t] masks
        for v in left:
            masks = self.kinds_of_device
            for d in range(<int32_t>self.devices.size()):
                if masks[d] & kinds == 0:
                    continue
                for q in range(covered.size()):
                    s = self.order[covered[q]]
                    values = self.devices[d].row.values[tables[q]]
                    if values == NULL or not self._has(values, v):
                        masks[d] &= ~(<uint64_t>1 << self.kind_of_slot[s])
            if self._flow_suffices(demand, masks):
                return False
        return True

    cdef bint _has(self, Values values, int32_t v) noexcept nogil:
        cdef int32_t x
        for x in values[0]:
            if x == v:
                return True
        return False

    cdef bint _room_hopeless(self, int32_t i, vector[int64_t]& needs) noexcept nogil:
        """Sums of shares: over slots that only devices of one own column in one unit can serve, amounts against room."""
        # Own columns are in units of their row; they are comparable only between devices of equal rows.
        cdef int32_t p, s, d, number
        cdef size_t a, j
        cdef Row* row = NULL
        cdef vector[int64_t] wanted
        cdef vector[int64_t] there
        cdef vector[cbool] counted, done
        cdef int64_t least
        if i >= <int32_t>self.order.size():
            return False
        # The row of the first candidate ahead; slots with any other row among their candidates are left out.
        for p in range(i, <int32_t>self.order.size()):
            if needs[p] > 0:
                row = self._only_row(self.order[p])
                if row != NULL:
                    break
        if row == NULL or not row.multi or row.room.empty():
            return False
        wanted.assign(row.room.size(), 0)
        there.assign(row.room.size(), 0)
        counted.assign(self.devices.size(), False)
        done.assign(self.candidates.size(), False)
        for p in range(i, <int32_t>self.order.size()):
            s = self.order[p]
            if needs[p] <= 0 or self._only_row(s) != row:
                continue
            for j in range(row.room.size()):
                least = HUGE
                for a in range(self.slots[s].alternatives.size()):
                    least = min(least, row.amounts[self.slots[s].alternatives[a].type * row.room.size() + j])
                if least > 0 and needs[p] < HUGE // (least + 1) and wanted[j] < HUGE:
                    wanted[j] += needs[p] * least
            for a in range(self.slots[s].alternatives.size()):
                number = self.slots[s].alternatives[a].list
                if done[number]:
                    continue
                done[number] = True
                for d in self.candidates[number]:
                    if counted[d]:
                        continue
                    counted[d] = True
                    if self._free(d):
                        for j in range(row.room.size()):
                            if there[j] < HUGE:
                                there[j] += max(<int64_t>0, self.room[self.devices[d].room + j])
        for j in range(row.room.size()):
            if wanted[j] < HUGE and there[j] < HUGE and wanted[j] > there[j]:
                return True
        return False

    cdef Row* _only_row(self, int32_t s) noexcept nogil:
        """The row that all candidates of a slot have in common, NULL if there is none."""
        cdef size_t a
        cdef Row* row = NULL
        for a in range(self.slots[s].alternatives.size()):
            if self.rows_of_lists[self.slots[s].alternatives[a].list] == NULL:
                return NULL
            if row == NULL:
                row = self.rows_of_lists[self.slots[s].alternatives[a].list]
            elif row != self.rows_of_lists[self.slots[s].alternatives[a].list]:
                return NULL
        return row

    cdef int64_t _servings(self, int32_t d) noexcept nogil:
        # How many requests a shared device could serve, by the smallest amount any type asks of a column.
        cdef Device* device = &self.devices[d]
        cdef size_t j
        cdef int32_t t
        cdef int64_t most = HUGE
        cdef int64_t least
        for j in range(device.row.room.size()):
            least = HUGE
            for t in range(self.tables.types):
                if device.row.code[t] == OK:
                    least = min(least, self._amount(device, t, j))
            if least > 0 and least < HUGE:
                most = min(most, max(<int64_t>0, self.room[device.room + j]) // least)
        return most

    cdef bint _flow_suffices(self, vector[int64_t]& demand, vector[uint64_t]& masks) noexcept nogil:
        """Whether supply meets demand: a maximum flow from kinds of demand over groups of devices, capped by block.

        Devices with the same mask and block form a group. True also where the network would be too large to look at.
        """
        cdef vector[uint64_t] group_mask
        cdef vector[int32_t] group_block
        cdef vector[int64_t] supply
        cdef unordered_map[int32_t, int32_t] block_node
        cdef size_t g
        cdef int32_t d, block, node
        cdef int64_t amount
        cdef int64_t total = 0
        cdef uint64_t wanted = 0
        cdef int kind
        cdef bint found
        cdef Flow flow
        for kind in range(self.kinds):
            if demand[kind] > 0:
                wanted |= <uint64_t>1 << kind
                total += demand[kind]
        if total == 0:
            return True
        for d in range(<int32_t>self.devices.size()):
            if masks[d] & wanted == 0 or not self._free(d):
                continue
            amount = 1
            if self.devices[d].row.multi:
                amount = self._servings(d)
                if amount == 0:
                    continue
            # Shares of one device draw on the common columns once, so a block does not bound them.
            block = -1 if self.devices[d].row.multi else self.devices[d].block
            found = False
            for g in range(group_mask.size()):
                if group_mask[g] == masks[d] & wanted and group_block[g] == block:
                    supply[g] = min(HUGE, supply[g] + amount)
                    found = True
                    break
            if not found:
                if group_mask.size() >= <size_t>MAX_BOUND_GROUPS:
                    return True
                group_mask.push_back(masks[d] & wanted)
                group_block.push_back(block)
                supply.push_back(min(HUGE, amount))
        # Nodes: source, sink, kinds, groups, blocks.
        cdef int32_t first_group = 2 + self.kinds
        node = first_group + <int32_t>group_mask.size()
        for kind in range(self.kinds):
            if demand[kind] > 0:
                flow_edge(flow, 0, 2 + kind, demand[kind])
        for g in range(group_mask.size()):
            for kind in range(self.kinds):
                if group_mask[g] >> kind & 1:
                    flow_edge(flow, 2 + kind, first_group + <int32_t>g, HUGE)
            block = group_block[g]
            if block < 0:
                flow_edge(flow, first_group + <int32_t>g, 1, supply[g])
                continue
            if block_node.count(block) == 0:
                block_node[block] = node
                flow_edge(flow, node, 1, self._block_cap(block, wanted, masks))
                node += 1
            flow_edge(flow, first_group + <int32_t>g, block_node[block], supply[g])
        return flow_maximum(flow, 0, 1, total) >= total

    cdef int64_t _block_cap(self, int32_t b, uint64_t wanted, vector[uint64_t]& masks) noexcept nogil:
        """How many devices of a block fit at most, looking at one column at a time: the smallest draws first.

        A column may be overdrawn by devices in use: that concerns those alone that draw on it, be it nothing.
        """
        cdef Block* block = &self.blocks[b]
        cdef vector[int64_t] draws
        cdef size_t c, j
        cdef int32_t d
        cdef int64_t cap = HUGE
        cdef int64_t count, left, draw
        cdef bint drawing
        for c in range(block.columns.size()):
            draws.clear()
            count = 0
            for d in block.devices:
                if self.devices[d].row.multi or masks[d] & wanted == 0 or not self._free(d):
                    continue
                drawing = False
                for j in range(self.devices[d].columns.size()):
                    if self.devices[d].columns[j] == block.columns[c]:
                        draws.push_back(self.devices[d].draws[j])
                        drawing = True
                if not drawing:
                    count += 1
            sort(draws.begin(), draws.end())
            left = self.available[block.columns[c]]
            for draw in draws:
                if draw > left:
                    break
                left -= draw
                count += 1
            cap = min(cap, count)
        return cap

    # -- parts that have nothing in common ---------------------------------------------------------------------------

    cdef void _parts(self, vector[vector[int32_t]]& parts) noexcept nogil:
        """Divide the slots into parts that share no device, no block, no constraint, and no limit that could bind.

        Where no error can be met, the first answer of the whole is made of the first answers of the parts: choices in
        one part change nothing for another, so the depth-first search meets the first combination when each part is at
        its own first answer, and there is none where one part has none.
        """
        cdef vector[int32_t] parent
        cdef int32_t s, root
        cdef size_t a, c, d
        cdef vector[int32_t] of_device, of_block, of_constraint, of_claim, of_list
        cdef int32_t device, number
        cdef unordered_map[int32_t, int32_t] place
        cdef vector[int32_t] none
        parent.resize(self.slots.size())
        for s in range(<int32_t>self.slots.size()):
            parent[s] = s
        of_device.assign(self.devices.size(), -1)
        of_block.assign(self.blocks.size(), -1)
        of_constraint.assign(self.tables.constraints.size(), -1)
        of_claim.assign(self.tables.claims, -1)
        of_list.assign(self.candidates.size(), -1)
        for s in range(<int32_t>self.slots.size()):
            for a in range(self.slots[s].alternatives.size()):
                number = self.slots[s].alternatives[a].list
                if of_list[number] >= 0 and not self.candidates[number].empty():
                    join(parent, of_list, number, s)  # who came first has met all its devices
                else:
                    of_list[number] = s
                    for device in self.candidates[number]:
                        join(parent, of_device, device, s)
                        if self.devices[device].block >= 0:
                            join(parent, of_block, self.devices[device].block, s)
                for c in range(self.slots[s].alternatives[a].constraints.size()):
                    join(parent, of_constraint, self.slots[s].alternatives[a].constraints[c], s)
            if self.limited[self.slots[s].claim]:
                join(parent, of_claim, self.slots[s].claim, s)
        for s in range(<int32_t>self.slots.size()):
            root = find(parent, s)
            if place.count(root) == 0:
                place[root] = <int32_t>parts.size()
                parts.push_back(none)
            parts[place[root]].push_back(s)

    # -- running -----------------------------------------------------------------------------------------------------

    cdef int _run_light(self) noexcept nogil:
        cdef vector[int32_t] order
        cdef int32_t s
        for s in range(<int32_t>self.slots.size()):
            order.push_back(s)
        self._set_order(order)
        return self._last_border(self._enter(0, 0))

    cdef int _last_border(self, int result) noexcept nogil:
        return FAIL if result == FULL else result

    cdef int _run_heavy(self) noexcept nogil:
        cdef vector[vector[int32_t]] parts
        cdef vector[int32_t] whole
        cdef int32_t s
        cdef int result = FOUND
        cdef size_t p
        cdef bint clean = True
        self.heavy = True
        for s in range(<int32_t>self.slots.size()):
            whole.push_back(s)
            clean = clean and self.clean[s]
        if clean:
            self._parts(parts)
        else:
            parts.push_back(whole)
        for p in range(parts.size()):
            self._set_order(parts[p])
            self.failed_states.clear()
            self.failed_bytes = 0
            if clean and self._hopeless(0, -1, 0):
                return FAIL
            result = self._last_border(self._enter(0, 0))
            if result != FOUND:
                return result
        return result

    def _answer(self):
        """The choices so far: per slot in order (alternative, [(pool, index), …])."""
        found = [(alternative, []) for alternative in self.selected]
        cdef Choice choice
        for choice in self.choices:
            if found[choice.slot][0] != choice.alternative:
                found[choice.slot] = (choice.alternative, [])
            found[choice.slot][1].append((self.devices[choice.device].pool, self.devices[choice.device].index))
        return [(max(0, alternative), devices) for alternative, devices in found]

    def run(
        self,
        int64_t max_steps=HUGE,
        double deadline=0,
        size_t max_memory=1 << 26,
        Cancel cancel=None,
        int64_t light_steps=256,
    ):
        """Search. `prepare` must have been called.

        max_steps: devices taken at most. deadline: on the monotonic clock, 0 for none. max_memory: bytes of remembered
        states. light_steps: devices taken before the search turns heavy.

        Returns ("found", [(alternative, [(pool, index), …]) by slot]), ("none", None),
        ("error", (reason, slot, alternative, pool, index, constraint)), or ("spent", reason).
        """
        cdef int result
        self.max_steps = max_steps
        self.deadline = deadline
        self.max_memory = max_memory
        self.cancel = cancel
        self.light_steps = light_steps
        self.heavy = False
        self.enumerate = False
        with nogil:
            result = RESTART
            if light_steps > 0:
                result = self._run_light()
        if result == RESTART:
            self._number_twins()
            self._number_kinds()
            with nogil:
                result = self._run_heavy()
        return self._outcome(result)

    def visit(self, visitor, int64_t max_steps=HUGE, double deadline=0, Cancel cancel=None):
        """Hand each complete answer, in the order of the search, to `visitor(answer)` until it returns False.

        Returns as `run` does: "found" if the visitor stopped, "none" if all answers were seen.
        """
        cdef int result
        self.max_steps = max_steps
        self.deadline = deadline
        self.cancel = cancel
        self.heavy = False
        self.enumerate = True
        self.visitor = visitor
        with nogil:
            result = self._run_light()
        return self._outcome(result)

    def _outcome(self, int result):
        if result == FOUND:
            return "found", self._answer()
        if result == ERROR:
            return "error", (
                _REASONS[self.reason],
                self.culprit.slot,
                self.culprit.alternative,
                self.devices[self.culprit.device].pool,
                self.devices[self.culprit.device].index,
                self.culprit_constraint,
            )
        if result == SPENT:
            if self.failure is not None:
                raise self.failure
            return "spent", _REASONS[self.reason]
        return "none", None

    def hard_slots(self):
        """Slots with the number of devices taken for them, the hardest first."""
        order = sorted(range(self.steps_by_slot.size()), key=lambda slot: -self.steps_by_slot[slot])
        return [(slot, self.steps_by_slot[slot]) for slot in order if self.steps_by_slot[slot] > 0]


_REASONS = {
    BROKEN_SELECTOR: "broken-selector",
    MALFORMED_REQUEST: "malformed-request",
    BROKEN_VALUE: "broken-value",
    ALL_CONSTRAINED: "all-constrained",
    OUT_OF_STEPS: "steps",
    OUT_OF_TIME: "time",
    OUT_OF_DEPTH: "depth",
    CANCELLED: "cancelled",
}

#: Codes of `Tables.add_row`.
CODE_NO = NO
CODE_OK = OK
CODE_BROKEN = BROKEN
CODE_MALFORMED = MALFORMED
CODE_BARRED = BARRED
CODE_SMALL = SMALL
CODE_USELESS = USELESS


include "_index.pxi"
