"""Pools as the allocator sees them: which slices count, what is wrong with a pool, its devices in search order.

A `PoolTable` is compiled from the slices of one pool and does not change; a `PoolState` says what of it is in use; a
`NodeView` lists the pools of one node in search order. The `Inventory` of a cluster keeps all three and compiles them
anew, pool by pool, when something that they are made of changes. It is compiled because every first question goes
through here device by device; what is special about a pool is told in `pools.py`.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize

from dra_alloc._fields cimport Field, field_of, prefetch, read

from dra_alloc._cow import CowMap
from dra_alloc.api import Device
from dra_alloc.nodeselection import device_concerns, slice_concerns
from dra_alloc.pools import (
    NARROW,
    Holding,
    PoolKey,
    compile_counters,
    incomplete_reason,
    newest,
    rule_selects,
    taints_by_rules,
)

__all__ = [
    "Holding",
    "Inventory",
    "NodeView",
    "PoolKey",
    "PoolState",
    "PoolTable",
    "compile_pool",
    "compile_state",
    "rule_selects",
]

#: The feature of a node that must be declared for slices with `skipNodeOperations` (KEP-5945).
cdef str NODE_OPERATIONS = "DRAOptionalNodeOperations"

cdef Field NAME = field_of(Device, "name")
cdef Field CONDITIONS = field_of(Device, "binding_conditions")
cdef Field COUNTERS = field_of(Device, "consumes_counters")
cdef Field TAINTS = field_of(Device, "taints")

#: No shares in use, and no room of them; nobody writes into it.
cdef dict NONE = {}


# None of the three below is ever reached from what it holds, so that the garbage collector need not look for cycles: a
# large cluster has tens of thousands of them.


@cython.no_gc
cdef class PoolTable:
    """The newest generation of a pool.

    slices: by name. fault: "" or "incomplete" or "invalid", `reason` says why. devices: of all slices that offer any,
    in search order; slice_of, taints: by device (taints of slice and rules). index: place of a device by name. waits:
    by device, whether it has binding conditions, None if none has. selective: whether devices must be looked at one by
    one for whether a node can use them. columns: (counter set, counter); supply: nanos by column; draws: by device
    (column, nanos). scales: divisor of each column; wide: whether amounts of it need more than 64 bits. blocks: by
    counter set. rows: by question, see problem.py. results: see results.py.
    """

    cdef readonly tuple key
    cdef readonly tuple slices
    cdef public str fault
    cdef public str reason
    cdef public tuple devices
    cdef public tuple slice_of
    cdef public tuple taints
    cdef public dict index
    cdef readonly bytes waits
    cdef readonly bint selective
    cdef public tuple columns
    cdef public tuple sets
    cdef public tuple supply
    cdef public tuple draws
    cdef public tuple memberships
    cdef public tuple scales
    cdef public tuple wide
    cdef public tuple blocks
    cdef public long long layout
    cdef readonly dict rows
    cdef readonly dict results

    def __cinit__(self, tuple key, tuple slices, str fault="", str reason=""):
        self.key = key
        self.slices = slices
        self.fault = fault
        self.reason = reason
        self.devices = self.slice_of = self.taints = ()
        self.index = {}
        self.waits = None
        self.selective = False
        self.columns = self.sets = self.supply = self.draws = self.memberships = ()
        self.scales = self.wide = self.blocks = ()
        self.layout = 0
        self.rows = {}
        self.results = {}

    @property
    def has_wide(self):
        """Whether some column is wide."""
        return True in self.wide

    def narrow(self, column, nano):
        """An amount available of a column in its unit, rounded down: every draw is a whole number of units."""
        return max(-NARROW, min(NARROW, nano // self.scales[column]))

    def unit_draws(self, device):
        """Draws of a device on columns that are not wide, in units; one that exceeds all supply counts as just that."""
        return tuple([
            (column, min(nano // self.scales[column], self.supply[column] // self.scales[column] + 1))
            for column, nano in self.draws[device]
            if not self.wide[column]
        ])


@cython.no_gc
cdef class PoolState:
    """What of a pool is in use.

    held: by device 0 free, 1 held whole, 2 held in shares; None where nothing is in use. remaining: nanos left of each
    column; available: the same in units (0 for wide columns). shares: by device, nanos consumed by capacity name.
    vanished: names of devices that are held and not in the slices. members: (counter set, groups) of devices in use.
    digest: what `held` does not tell, for comparing pools. rooms: what is left of shared devices, by question.
    """

    cdef readonly tuple available
    cdef readonly tuple remaining
    cdef readonly bytes held
    cdef readonly dict shares
    cdef readonly tuple vanished
    cdef readonly tuple members
    cdef readonly object digest
    cdef readonly dict rooms  # see problem.py; only where there are shares

    def __cinit__(self):
        self.available = self.remaining = self.vanished = self.members = ()
        self.held = None
        self.digest = None
        self.shares = self.rooms = NONE


#: The state of every pool without counters of which nothing is in use.
cdef PoolState NOTHING_IN_USE = PoolState()


@cython.no_gc
cdef class NodeView:
    """The pools of a node in search order, faulty ones apart.

    visible: by pool, None or a byte for each slice, whether it concerns the node. elsewhere: by pool, None or a byte
    for each device, whether it is out of the node's reach for a reason that shows after the selectors. late: number of
    the first pool with binding conditions, which come after all others. refused: by question, the states of the pools
    with which it had no answer here, see attempt.py.
    """

    cdef readonly object node
    cdef readonly tuple pools
    cdef readonly tuple visible
    cdef readonly tuple elsewhere
    cdef readonly tuple faulty
    cdef readonly Py_ssize_t late
    cdef readonly dict refused

    def __cinit__(self, node, tuple pools, tuple visible, tuple elsewhere, tuple faulty, Py_ssize_t late):
        self.node = node
        self.pools = pools
        self.visible = visible
        self.elsewhere = elsewhere
        self.faulty = faulty
        self.late = late
        self.refused = {}

    def without(self, tuple elsewhere):
        """The same with other devices out of reach."""
        return NodeView(self.node, self.pools, self.visible, elsewhere, self.faulty, self.late)


# Compiling


def compile_pool(tuple key, slices, rules, features):
    """The table of a pool, or None if none of its slices counts with these features."""
    cdef bint partitionable = features.DRAPartitionableDevices
    cdef bint groups = features.DRADeviceCompatibilityGroups
    cdef list known = [item for item in slices if is_known(item.spec, groups)]
    if not known:
        return None
    cdef tuple whole = newest(known) if len(known) > 1 else tuple(known)
    cdef tuple current = whole if partitionable else tuple([item for item in whole if is_plain(item.spec)])
    if not current:
        return None
    cdef PoolTable table = PoolTable(key, current)
    wanted = len(whole)
    for item in whole:
        if item.spec.pool.resource_slice_count != wanted:
            table.fault = "incomplete"
            table.reason = incomplete_reason(key, whole)
            return table
    cdef bint counting = False
    cdef bint selective = False
    cdef list devices = []
    cdef list slice_of = []
    cdef object number = 0
    for item in current:
        spec = item.spec
        if spec.shared_counters:
            counting = True
        else:
            devices += spec.devices
            slice_of += [number] * len(spec.devices)
        if spec.per_device_node_selection or spec.skip_node_operations:
            selective = True
        number += 1
    cdef dict index = {}
    cdef list taints = []
    cdef bytearray waits = None
    cdef bint tainted = features.DRADeviceTaints
    cdef bint drawing = False
    cdef Py_ssize_t i
    for device in devices:
        prefetch(read(&NAME, device))
    for i in range(len(devices)):
        device = devices[i]
        index[read(&NAME, device)] = i
        if read(&CONDITIONS, device):
            if waits is None:
                waits = bytearray(len(devices))
            waits[i] = 1
        if read(&COUNTERS, device):
            drawing = True
        taints.append(read(&TAINTS, device) if tainted else ())
    if len(index) < len(devices):
        table.fault = "invalid"
        table.reason = f"pool {key[0]}/{key[1]} has two devices named {first_duplicate(devices)!r}"
        return table
    table.devices = tuple(devices)
    table.slice_of = tuple(slice_of)
    table.index = index
    table.selective = selective
    table.waits = None if waits is None else bytes(waits)
    if tainted and rules and features.DRADeviceTaintRules:
        table.taints = taints_by_rules(key, table.devices, rules)
    else:
        table.taints = tuple(taints)
    if partitionable and (counting or drawing):
        compile_counters(table)
    return table


cdef bint is_known(spec, bint groups) except -1:
    """Slices with groups that are off are not seen at all, which leaves their pool incomplete."""
    for device in spec.devices:
        prefetch(device)  # this is the first look at them
    if groups:
        return True
    for device in spec.devices:
        for consumption in read(&COUNTERS, device):
            if consumption.compatibility_groups:
                return False
    return True


cdef bint is_plain(spec) except -1:
    """Without partitionable devices all other slices offer nothing to any node; they count for their pool."""
    return not spec.per_device_node_selection and not spec.shared_counters


cdef str first_duplicate(list devices):
    cdef set seen = set()
    for device in devices:
        if device.name in seen:
            return device.name
        seen.add(device.name)
    raise AssertionError("no name is there twice")


def compile_state(PoolTable table, holdings):
    """What of a pool the holdings use up. A shared device is charged for its counters once."""
    cdef PoolState state = PoolState()
    cdef list vanished = None
    cdef bytes held = PyBytes_FromStringAndSize(NULL, len(table.devices))
    cdef char* marks = held  # of bytes that nobody has seen yet
    cdef dict shares = None
    cdef list numbers = []
    cdef Py_ssize_t place
    for place in range(len(table.devices)):
        marks[place] = 0
    for name, holding in holdings.items():
        number = table.index.get(name)
        if number is None:
            if vanished is None:
                vanished = []
            vanished.append(name)
            continue
        place = number
        marks[place] = 1 if holding.whole else 2
        if holding.shares:
            if shares is None:
                shares = {}
            shares[number] = shares_used(holding.shares)
        numbers.append(number)
    state.held = held
    if vanished is not None:
        vanished.sort()
        state.vanished = tuple(vanished)
    if shares is not None:
        state.shares = shares
        state.rooms = {}
    if table.sets or shares is not None:
        charge(table, state, numbers)
    return state


cdef dict shares_used(tuple shares):
    """Nanos consumed by capacity name. Negative amounts in a stored allocation never make room."""
    cdef dict used = {}
    for _, _, consumed in shares:
        for capacity, nano in consumed:
            used[capacity] = used.get(capacity, 0) + max(0, nano)
    return used


cdef charge(PoolTable table, PoolState state, list numbers):
    """What devices in use leave of the common columns."""
    cdef list remaining = list(table.supply)
    cdef list members = []
    if table.sets:
        for number in numbers:
            for column, nano in table.draws[number]:
                remaining[column] -= nano
            members.extend(table.memberships[number])
    members.sort()
    state.remaining = tuple(remaining)
    state.available = available(table, remaining)
    state.members = tuple(members)
    state.digest = (
        state.remaining,
        bool(state.vanished),
        tuple(sorted([(number, *sorted(used.items())) for number, used in state.shares.items()])),
        state.members,
    )


cdef tuple available(PoolTable table, remaining):
    """Nanos of each column in units."""
    return tuple([
        0 if table.wide[column] else table.narrow(column, nano) for column, nano in enumerate(remaining)
    ])


cdef class Inventory:
    """Tables, states and views of one cluster for one set of features."""

    cdef readonly object cluster
    cdef readonly object features
    cdef object _tables  # CowMap[PoolKey, PoolTable | None]
    cdef object _states  # CowMap[PoolKey, PoolState]
    cdef object _views  # CowMap[str, NodeView]

    def __cinit__(self, cluster, features):
        self.cluster = cluster
        self.features = features
        self._tables = CowMap()
        self._states = CowMap()
        self._views = CowMap()

    def fork(self, cluster):
        """The same for a fork of the cluster."""
        cdef Inventory other = Inventory.__new__(Inventory, cluster, self.features)
        other._tables = self._tables.fork()
        other._states = self._states.fork()
        other._views = self._views.fork()
        return other

    # What changed

    def forget_pool(self, key):
        """Slices of a pool, or taint rules that concern it, have changed."""
        self._tables.pop(key, None)
        self._states.pop(key, None)

    def forget_usage(self, key):
        """Devices of a pool were taken or given back."""
        self._states.pop(key, None)

    def forget_node(self, name):
        """A node, or which pools it sees, has changed."""
        self._views.pop(name, None)

    def forget_nodes(self):
        """Which pools nodes see has changed, for who knows which nodes."""
        self._views = CowMap()

    # What is there

    cpdef PoolTable table(self, tuple key):
        """The table of a pool, None if none of its slices counts."""
        known = self._tables.get(key, self)
        if known is not self:
            return known
        cluster = self.cluster
        table = compile_pool(key, cluster.slices_of_pool(key), cluster.rules_of_pool(key), self.features)
        self._tables[key] = table
        return table

    cpdef PoolState state(self, PoolTable table):
        """What of a pool is in use."""
        cdef PoolState state = self._states.get(table.key)
        if state is not None:
            return state
        holdings = self.cluster.holdings(table.key)
        if holdings:
            state = compile_state(table, holdings)
        elif table.supply:
            state = PoolState()
            state.remaining = table.supply
            state.available = available(table, table.supply)
        else:
            state = NOTHING_IN_USE
        self._states[table.key] = state
        return state

    cpdef NodeView view(self, node):
        """The pools of a node of the cluster."""
        name = node.metadata.name
        cdef NodeView view = self._views.get(name)
        if view is None or view.node is not node:
            view = self._compile_view(node, name)
            self._views[name] = view
        return view

    cdef NodeView _compile_view(self, node, str name):
        cdef list seen = []
        cdef list faulty = []
        cdef Py_ssize_t late = 0
        cdef PoolTable table
        cdef bytes visible
        for key in self.cluster.pools_near(name):
            table = self.table(key)
            if table is None:
                continue
            visible = slices_in_reach(table, node, name)
            if visible is not None and not any(visible):
                continue
            if table.fault:
                faulty.append((key, table))
                continue
            if visible is not None and all(visible):
                visible = None
            # Pools with binding conditions come last; keys are unique, so that nothing after them is compared.
            waits = table.waits is not None and has_waiting(table, visible)
            if not waits:
                late += 1
            seen.append((waits, key, table, visible))
        seen.sort()
        faulty.sort()
        return NodeView(
            node,
            tuple([entry[2] for entry in seen]),
            tuple([entry[3] for entry in seen]),
            tuple([self._elsewhere(entry[2], node) for entry in seen]),
            tuple([entry[1] for entry in faulty]),
            late,
        )

    cdef bytes _elsewhere(self, PoolTable table, node):
        """Devices that other nodes alone can use, and those that the node cannot do without node operations."""
        if not table.selective:
            return None
        declared = node.status.declared_features if node.status else ()
        skipping = self.features.DRAOptionalNodeOperations and NODE_OPERATIONS in declared
        barred = [bool(item.spec.skip_node_operations) and not skipping for item in table.slices]
        by_device = [bool(item.spec.per_device_node_selection) for item in table.slices]
        return bytes([
            barred[number] or (by_device[number] and not device_concerns(device, node))
            for device, number in zip(table.devices, table.slice_of)
        ])


cdef bytes slices_in_reach(PoolTable table, node, str name):
    """A byte for each slice, whether it concerns the node; None if all do because they name it."""
    for item in table.slices:
        if item.spec.node_name != name:
            return bytes([slice_concerns(item, node) for item in table.slices])
    return None


cdef bint has_waiting(PoolTable table, bytes visible) except -1:
    """Whether a device with binding conditions is in reach."""
    for waits, number in zip(table.waits, table.slice_of):
        if waits and (visible is None or visible[number]):
            return True
    return False
