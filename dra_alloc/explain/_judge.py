"""What rules out single devices for the requests of a question, with what is in use taken into account.

The rules are those of the search, looked at from outside and to the end: the search stops at the first rule that a
device fails, while here all of them are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from dra_alloc.cel import Program, compile_selector, device_env
from dra_alloc.errors import CelError
from dra_alloc.explain._holders import Holders
from dra_alloc.explain._terms import term_programs
from dra_alloc.explain._values import attribute_text, quantity_like
from dra_alloc.explain.model import Blocker
from dra_alloc.nodeselection import device_concerns
from dra_alloc.pools import AT_ODDS, rule_selects
from dra_alloc.rules import capacity_fault, consumed_amount, published_capacities, qualified, tolerated

if TYPE_CHECKING:
    from dra_alloc.api import Device, DeviceTaint
    from dra_alloc.cel import DeviceEnv
    from dra_alloc.inventory import Inventory, NodeView, PoolState, PoolTable
    from dra_alloc.problem import Question, RequestType

__all__ = ["Judge", "Offer", "offers"]


@attrs.frozen(eq=False)
class Offer:
    """A device of a node's pools. elsewhere: 0 it is within reach, 1 its slice is not, 2 it is not by itself."""

    table: PoolTable
    state: PoolState
    index: int
    elsewhere: int

    @property
    def device(self) -> Device:
        return self.table.devices[self.index]

    @property
    def name(self) -> str:
        """`driver/pool/device`."""
        return "/".join((*self.table.key, self.device.name))


def offers(view: NodeView, inventory: Inventory) -> Iterator[Offer]:
    """The devices of all pools of a node in search order, those that the node cannot use included."""
    for table, visible, elsewhere in zip(view.pools, view.visible, view.elsewhere, strict=True):
        state = inventory.state(table)
        for index, part in enumerate(table.slice_of):
            if visible is not None and not visible[part]:
                yield Offer(table, state, index, 1)
            else:
                yield Offer(table, state, index, 2 if elsewhere is not None and elsewhere[index] else 0)


@attrs.frozen(eq=False)
class _Static:
    """What rules out a device whatever is in use: before use is looked at, by taints, and after.

    taints: with the place of each among those of the device. small: whether it has too little capacity even when
    nothing of it is in use.
    """

    before: tuple[Blocker, ...]
    taints: tuple[tuple[int, Blocker], ...]
    after: tuple[Blocker, ...]
    small: bool


class Judge:
    """Judges devices for one question."""

    def __init__(self, question: Question, inventory: Inventory, own: Iterable[str] = ()) -> None:
        self.question = question
        self.features = question.features
        self._cluster = inventory.cluster
        self.holders = Holders(inventory.cluster, frozenset(own))
        self._kinds: dict[object, int] = {}
        self._of_table: dict[int, tuple[PoolTable, tuple[int, ...]]] = {}
        self._static: dict[tuple[int, int, int], _Static] = {}
        self._first_constraint = [0]
        for claim in question.claims:
            self._first_constraint.append(self._first_constraint[-1] + len(claim.spec.devices.constraints))

    def kinds(self, table: PoolTable) -> tuple[int, ...]:
        """A number for each device of a pool; equal for devices that the same static rules rule out."""
        found = self._of_table.get(id(table))
        if found is None:
            numbers = tuple(self._kinds.setdefault(key, len(self._kinds)) for key in self.question.keys(table))
            found = self._of_table[id(table)] = table, numbers  # the table is kept, so that its id stays its own
        return found[1]

    def blockers(
        self, offer: Offer, slot: int, position: int, view: NodeView, *, details: bool = True
    ) -> list[Blocker]:
        """All rules that a device fails for an alternative of a request, the one to name first in front.

        The order is that of docs/reasons.md, but where an error would end the search (or is hidden from it because the
        device is in use), as the search has it.
        """
        kind = self.question.slots[slot].alternatives[position].type
        static = self._statics(offer, slot, position)
        away = self._away(offer, view)
        taints = self._taints(offer, static, details)
        use = [] if kind.admin else self._use(offer, details)
        room = [] if kind.admin else self._room(offer, kind, details)
        # A slice of another node is never looked at; a device in one of this node is, before its own node selection.
        fails = (
            offer.elsewhere != 1
            and bool(static.before)
            and static.before[0].code in ("selector-error", "capacity-request")
        )
        if fails and use:
            return [*use, *away, *static.before, *taints, *room, *static.after]
        if fails:
            return [*static.before, *away, *taints, *room, *static.after]
        return [*away, *static.before, *use, *taints, *room, *static.after]

    def matches(self, offer: Offer, slot: int, position: int) -> bool:
        """Whether only use, taints, counters and constraints can speak against a device, so that All wants it."""
        static = self._statics(offer, slot, position)
        return not offer.elsewhere and not static.before and not static.small

    def false_terms(self, expression: str, offer: Offer) -> list[str]:
        """The terms of an expression that are false on a device; the whole one if it is no conjunction, or fails."""
        try:
            env = device_env(offer.table.key[0], offer.device)
            lists = self.features.DRAListTypeAttributes
            if compile_selector(expression, list_attributes=lists).evaluate(env) is True:
                return []
        except CelError:
            return [expression]
        return _false_terms(expression, env, lists) or [expression]

    # Rules that use does not change

    def _statics(self, offer: Offer, slot: int, position: int) -> _Static:
        key = (self.kinds(offer.table)[offer.index], slot, position)
        found = self._static.get(key)
        if found is None:
            found = self._static[key] = self._compile(offer, slot, position)
        return found

    def _compile(self, offer: Offer, slot: int, position: int) -> _Static:
        kind = self.question.slots[slot].alternatives[position].type
        driver, device = offer.table.key[0], offer.device
        before: list[Blocker] = []
        if device.binding_conditions and not (
            self.features.DRADeviceBindingConditions and self.features.DRAResourceClaimDeviceStatus
        ):
            gates = "DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"
            before.append(Blocker("feature-off", f"binding conditions need {gates}"))
        before += self._selectors(kind, driver, device)
        fault = capacity_fault(kind.capacity, driver)
        if fault:
            before.append(Blocker("capacity-request", fault))
        taints = [
            (place, Blocker("taint", f"taint {_taint_text(taint)}"))
            for place, taint in enumerate(offer.table.taints[offer.index])
            if not tolerated(taint, kind.tolerations)
        ]
        after: list[Blocker] = []
        if device.consumes_counters and not self.features.DRAPartitionableDevices:
            after.append(Blocker("feature-off", "devices that consume counters need DRAPartitionableDevices"))
        if self.features.DRAConsumableCapacity and not fault:
            after += self._capacities(kind, driver, device)
        small = any(blocker.code == "capacity-short" for blocker in after)
        after += self._constraints(slot, position, driver, device)
        return _Static(tuple(before), tuple(taints), tuple(after), small)

    def _selectors(self, kind: RequestType, driver: str, device: Device) -> Iterator[Blocker]:
        env: DeviceEnv | None = None
        broken: CelError | None = None
        try:
            env = device_env(driver, device)
        except CelError as error:
            broken = error
        for number, (expression, program) in enumerate(zip(kind.expressions, kind.programs, strict=True)):
            of_class = number < kind.class_selectors
            place = number if of_class else number - kind.class_selectors
            origin = f"DeviceClass {kind.device_class.metadata.name}" if of_class else "the request"
            where = f"selector {place} of {origin}"
            verdict = _verdict(program, env, broken)
            if isinstance(verdict, CelError):
                yield Blocker("selector-error", f"{where} fails: {verdict}", attribute_text(device, driver, expression))
            elif not verdict and env is not None:
                terms = _false_terms(expression, env, self.features.DRAListTypeAttributes)
                said = " and ".join(terms) or expression
                part = "" if not terms else "term " if len(terms) == 1 else "terms "
                code = "class-selector" if of_class else "request-selector"
                read = " && ".join(f"({term})" for term in terms) or expression
                yield Blocker(code, f"{where}: {part}{said}", attribute_text(device, driver, read))

    def _capacities(self, kind: RequestType, driver: str, device: Device) -> Iterator[Blocker]:
        asked = {qualified(name, driver): (name, nano) for name, nano in kind.capacity}
        published = published_capacities(device, driver)
        for full, (name, _) in asked.items():
            if full not in published:
                yield Blocker("capacity-short", f"capacity {name} is not published")
        for full, (name, capacity) in published.items():
            _, wanted = asked.get(full, (name, None))
            amount = consumed_amount(wanted, capacity, self.features)
            if amount is None:
                if wanted is None:
                    what = "has no default, and does not allow all there is"
                else:
                    what = f"allows no amount that covers {quantity_like(capacity.value, wanted)}"
                yield Blocker("capacity-short", f"the policy of capacity {name} {what}")
            elif amount > capacity.value.nano:
                shown = quantity_like(capacity.value, amount)
                yield Blocker("capacity-short", f"capacity {name}: {shown} needed", f"it has {capacity.value}")

    def _constraints(self, slot: int, position: int, driver: str, device: Device) -> Iterator[Blocker]:
        claim = self.question.slots[slot].claim
        first = self._first_constraint[claim]
        for number, constraint in enumerate(self.question.claims[claim].spec.devices.constraints):
            match = constraint.match_attribute is not None
            name = constraint.match_attribute or constraint.distinct_attribute
            which = f"{'matchAttribute' if match else 'distinctAttribute'} {name}"
            try:
                values = self.question.constraint_values(slot, position, first + number, driver, device)
            except CelError as error:
                yield Blocker("selector-error", f"the derived attribute for {which} fails: {error}")
                continue
            if values is not None and not values:
                yield Blocker("constraint-attribute", f"{which}: the device has no such attribute")

    # Rules that depend on the node and on use

    def _away(self, offer: Offer, view: NodeView) -> list[Blocker]:
        if not offer.elsewhere:
            return []
        spec = offer.table.slices[offer.table.slice_of[offer.index]].spec
        found = []
        if offer.elsewhere == 1:
            found.append(Blocker("not-on-node", "the slice is not for this node"))
        elif spec.per_device_node_selection and not device_concerns(offer.device, view.node):
            found.append(Blocker("not-on-node", "the device is not for this node"))
        if spec.skip_node_operations and not self._declares(view):
            skipped = ", ".join(spec.skip_node_operations)
            found.append(
                Blocker(
                    "node-operations", f"the driver skips {skipped}, which needs DRAOptionalNodeOperations on the node"
                )
            )
        return found

    def _taints(self, offer: Offer, static: _Static, details: bool) -> list[Blocker]:
        """The taints that are not tolerated; those of rules come after those of the slice, in order."""
        own = len(offer.device.taints)
        found = []
        for place, blocker in static.taints:
            if details and place >= own:
                key, name = offer.table.key, offer.device.name
                rules = [rule for rule in self._cluster.rules_of_pool(key) if rule_selects(rule, key, name)]
                blocker = attrs.evolve(blocker, detail=f"by DeviceTaintRule {rules[place - own].metadata.name}")
            found.append(blocker)
        return found

    def _declares(self, view: NodeView) -> bool:
        declared = view.node.status.declared_features if view.node.status else ()
        return self.features.DRAOptionalNodeOperations and "DRAOptionalNodeOperations" in declared

    def _shared(self, device: Device) -> bool:
        return self.features.DRAConsumableCapacity and bool(device.allow_multiple_allocations)

    def _held(self, offer: Offer) -> int:
        return offer.state.held[offer.index] if offer.state.held is not None else 0

    def _use(self, offer: Offer, details: bool) -> list[Blocker]:
        held = self._held(offer)
        if not held or (held == 2 and self._shared(offer.device)):
            return []
        return [Blocker("in-use", "in use", self.holders.of(offer.table.key, offer.device.name) if details else "")]

    def _room(self, offer: Offer, kind: RequestType, details: bool) -> list[Blocker]:
        """Counters and groups of the pool, and what shares leave of the device's own capacities."""
        found: list[Blocker] = []
        shared = self._shared(offer.device)
        if offer.table.draws and not (shared and self._held(offer) == 2):
            found += self._counters(offer, details)
        if shared:
            found += self._shares(offer, kind, details)
        return found

    def _counters(self, offer: Offer, details: bool) -> Iterator[Blocker]:
        table, state = offer.table, offer.state
        if state.vanished and table.memberships[offer.index]:
            gone = state.vanished[0]
            yield Blocker(
                "counters",
                "a device that is allocated is gone from the slices, so that what is left of counters is not known",
                f"{gone} is gone, {self.holders.of(table.key, gone)}" if details else "",
            )
        for column, nano in table.draws[offer.index]:
            left = state.remaining[column]
            if left < nano:
                counter_set, counter = table.columns[column]
                detail = self._counter_detail(offer, column, nano) if details else ""
                yield Blocker("counters", f"counter {counter_set}/{counter}", detail)
        for number, own in table.memberships[offer.index]:
            members = [groups for other, groups in state.members if other == number]
            if own == AT_ODDS:
                yield Blocker("groups", f"the groups of the device on {table.sets[number]} exclude each other")
            elif (own or any(members)) and not frozenset(own).intersection(*members):
                mine = ", ".join(own) or "none"
                yield Blocker(
                    "groups",
                    f"groups on counter set {table.sets[number]}",
                    f"it declares {mine}, those in use {_groups_text(members)}" if details else "",
                )

    def _counter_detail(self, offer: Offer, column: int, nano: int) -> str:
        table = offer.table
        counter_set, counter = table.columns[column]
        like = next(
            consumption.counters[counter].value
            for consumption in offer.device.consumes_counters
            if consumption.counter_set == counter_set and counter in consumption.counters
        )
        need, left, total = (
            quantity_like(like, amount) for amount in (nano, offer.state.remaining[column], table.supply[column])
        )
        held = offer.state.held or b""
        users = [
            table.devices[index].name
            for index, hold in enumerate(held)
            if hold and any(other == column and amount for other, amount in table.draws[index])
        ]
        by = self.holders.of_many(table.key, users)
        return f"it needs {need}, {left} of {total} is left{'; ' + by if by else ''}"

    def _shares(self, offer: Offer, kind: RequestType, details: bool) -> Iterator[Blocker]:
        used = offer.state.shares.get(offer.index)
        if not used:
            return
        driver = offer.table.key[0]
        asked = {qualified(name, driver): nano for name, nano in kind.capacity}
        taken: dict[str, int] = {}
        for name, nano in used.items():
            full = qualified(name, driver)
            taken[full] = taken.get(full, 0) + nano
        for full, (name, capacity) in published_capacities(offer.device, driver).items():
            amount = consumed_amount(asked.get(full), capacity, self.features)
            if amount is None or amount > capacity.value.nano:
                continue  # too small by itself, which the static rules say
            left = capacity.value.nano - taken.get(full, 0)
            if amount > left:
                need, rest = quantity_like(capacity.value, amount), quantity_like(capacity.value, left)
                by = self.holders.of(offer.table.key, offer.device.name) if details else ""
                detail = f"it has {rest} of {capacity.value} left; {by}" if details else ""
                yield Blocker("capacity-short", f"capacity {name}: {need} needed beside shares in use", detail)


def _verdict(program: Program | CelError, env: DeviceEnv | None, broken: CelError | None) -> bool | CelError:
    """The verdict of a selector. broken: why the device has no environment; then every selector fails on it."""
    if isinstance(program, CelError):
        return program
    if env is None:
        assert broken is not None
        return broken
    try:
        return program.evaluate(env) is True
    except CelError as error:
        return error


def _false_terms(expression: str, env: DeviceEnv, lists: bool) -> list[str]:
    """The terms of a conjunction that are false on a device; empty if the expression is no conjunction."""
    found = []
    for term, program in term_programs(expression, lists):
        try:
            if program.evaluate(env) is not True:
                found.append(term)
        except CelError:
            continue  # an error beside a false term does not count in CEL
    return found


def _taint_text(taint: DeviceTaint) -> str:
    return f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"


def _groups_text(members: list[tuple[str, ...]]) -> str:
    distinct = sorted({", ".join(groups) or "none" for groups in members if groups != AT_ODDS})
    return " and ".join(distinct)
