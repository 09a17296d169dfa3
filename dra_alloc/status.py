"""What is where: the devices of a cluster, in use, free, or out of reach, by node, driver, pool and partition type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import attrs

from dra_alloc.explain._values import value_text
from dra_alloc.gates import Features
from dra_alloc.pools import AT_ODDS
from dra_alloc.tables import Table

if TYPE_CHECKING:
    from dra_alloc.api import Device, ResourceSlice
    from dra_alloc.cluster import Cluster
    from dra_alloc.inventory import Inventory, PoolState, PoolTable

__all__ = ["STATES", "ClusterStatus", "DeviceState", "PoolSummary", "Usage", "cluster_status"]

#: States of a device, each device being in the first that holds. in-use: held whole; shared: held in shares;
#: tainted: with a taint NoSchedule or NoExecute; blocked: counters or groups of others in use leave nothing for it.
STATES: Final = ("in-use", "shared", "tainted", "blocked", "free")

#: Stands for devices that are not of one node.
SEVERAL: Final = "*"

_KEYS: Final = ("node", "driver", "pool", "type")


@attrs.frozen(kw_only=True)
class DeviceState:
    """A device and what it does.

    node: its node, or `*` if it is not of one node. type: its partition type, empty if it has none. state: one of
    STATES. claims: keys of the claims that hold it; pods: what these are reserved for. taints: `key=value:effect`.
    """

    node: str
    driver: str
    pool: str
    device: str
    type: str
    state: str
    claims: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "node": self.node,
            "driver": self.driver,
            "pool": self.pool,
            "device": self.device,
            "type": self.type or None,
            "state": self.state,
            "claims": list(self.claims),
            "pods": list(self.pods),
            "taints": list(self.taints),
        }


@attrs.frozen(kw_only=True)
class PoolSummary:
    """A pool at its newest generation. fault: why it offers no devices, empty if it does."""

    driver: str
    pool: str
    node: str
    generation: int
    slices: int
    devices: int
    fault: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {**attrs.asdict(self), "fault": self.fault or None}


@attrs.frozen
class Usage:
    """How many devices of a group there are, by state. key: the names that the group is made by, in their order."""

    key: tuple[str, ...]
    states: Counter[str]

    @property
    def total(self) -> int:
        """All devices of the group."""
        return sum(self.states.values())


@attrs.frozen(kw_only=True)
class ClusterStatus:
    """The devices and pools of a cluster at one moment. Shows itself in notebooks."""

    devices: tuple[DeviceState, ...]
    pools: tuple[PoolSummary, ...]

    def usage(self, by: Sequence[str] = ("node", "driver")) -> list[Usage]:
        """Devices counted by any of `node`, `driver`, `pool`, `type`, sorted by these. Raises ValueError for others."""
        wrong = [name for name in by if name not in _KEYS]
        if wrong:
            raise ValueError(f"devices are not counted by {', '.join(wrong)}; there are {', '.join(_KEYS)}")
        groups: dict[tuple[str, ...], Counter[str]] = {}
        for device in self.devices:
            groups.setdefault(tuple(getattr(device, name) for name in by), Counter())[device.state] += 1
        return [Usage(key, groups[key]) for key in sorted(groups)]

    def select(self, *, node: str | None = None, driver: str | None = None) -> ClusterStatus:
        """Only what is of a node, or of a driver. Pools and devices of several nodes are not of one."""
        return ClusterStatus(
            devices=tuple(each for each in self.devices if node in (None, each.node) and driver in (None, each.driver)),
            pools=tuple(each for each in self.pools if node in (None, each.node) and driver in (None, each.driver)),
        )

    def table(self) -> Table:
        """One row for each device: for pandas, polars and CSV. Several claims or pods are joined by spaces."""
        rows = [
            (
                each.node,
                each.driver,
                each.pool,
                each.device,
                each.type or None,
                each.state,
                " ".join(each.claims) or None,
                " ".join(each.pods) or None,
                " ".join(each.taints) or None,
            )
            for each in self.devices
        ]
        return Table.of(("node", "driver", "pool", "device", "type", "state", "claims", "pods", "taints"), rows)

    def usage_table(self, by: Sequence[str] = ("node", "driver")) -> Table:
        """One row for each group of `usage`."""
        rows = [(*each.key, each.total, *(each.states[state] for state in STATES)) for each in self.usage(by)]
        return Table.of((*by, "devices", *STATES), rows, integers=("devices", *STATES))

    def tree(self) -> str:
        """Nodes, their drivers and pools, partition types below, each with its numbers; without colour."""
        return "\n".join(_tree(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: every pool and device, and the totals."""
        totals: Counter[str] = Counter(each.state for each in self.devices)
        return {
            "devices": [each.to_dict() for each in self.devices],
            "pools": [each.to_dict() for each in self.pools],
            "totals": {"devices": len(self.devices), **{state: totals[state] for state in STATES}},
        }

    def _repr_html_(self) -> str:
        return _map(self)


def cluster_status(
    cluster: Cluster, features: Features | None = None, *, partition_attribute: str | None = None
) -> ClusterStatus:
    """The status of a cluster.

    partition_attribute: the qualified attribute that tells partition types apart in slices that declare none
    (`partitionTypeAttribute`, KEP-5677).
    """
    found = features or Features()
    inventory = cluster.inventory(found)
    pods = _consumers(cluster)
    devices: list[DeviceState] = []
    pools = []
    for key in sorted({(item.spec.driver, item.spec.pool.name) for item in cluster.slices()}):
        table = inventory.table(key)
        if table is None:
            continue
        pools.append(
            PoolSummary(
                driver=key[0],
                pool=key[1],
                node=_node_of(table.slices),
                generation=table.slices[0].spec.pool.generation,
                slices=len(table.slices),
                devices=len(table.devices),
                fault=table.reason,
            )
        )
        devices += _devices(inventory, table, pods, partition_attribute)
    devices.sort(key=lambda each: (each.node == SEVERAL, each.node, each.driver, each.pool))
    return ClusterStatus(devices=tuple(devices), pools=tuple(pools))


def _consumers(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """By claim, for whom it is reserved."""
    return {
        claim.metadata.key: tuple(
            consumer.name if consumer.resource == "pods" else f"{consumer.resource}/{consumer.name}"
            for consumer in claim.status.reserved_for
        )
        for claim in cluster.claims()
        if claim.status is not None
    }


def _devices(
    inventory: Inventory, table: PoolTable, pods: dict[str, tuple[str, ...]], partition_attribute: str | None
) -> Iterator[DeviceState]:
    state = inventory.state(table)
    holdings = inventory.cluster.holdings(table.key)
    driver = table.key[0]
    for index, device in enumerate(table.devices):
        spec = table.slices[table.slice_of[index]].spec
        holding = holdings.get(device.name)
        claims = holding.claims() if holding is not None else ()
        blocking = [taint for taint in table.taints[index] if taint.effect in ("NoSchedule", "NoExecute")]
        node = device.node_name if spec.per_device_node_selection else spec.node_name
        yield DeviceState(
            node=node or SEVERAL,
            driver=driver,
            pool=table.key[1],
            device=device.name,
            type=_type(device, driver, spec.partition_type_attribute or partition_attribute),
            state=_state(table, state, index, bool(blocking)),
            claims=claims,
            pods=tuple(dict.fromkeys(pod for claim in claims for pod in pods.get(claim, ()))),
            taints=tuple(f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}" for taint in blocking),
        )


def _state(table: PoolTable, state: PoolState, index: int, tainted: bool) -> str:
    held = state.held[index] if state.held is not None else 0
    if held:
        return "in-use" if held == 1 else "shared"
    if tainted:
        return "tainted"
    return "blocked" if table.draws and _is_blocked(table, state, index) else "free"


def _is_blocked(table: PoolTable, state: PoolState, index: int) -> bool:
    """Whether counters or groups leave nothing for a device that is not in use."""
    if any(state.remaining[column] < nano for column, nano in table.draws[index]):
        return True
    for number, own in table.memberships[index]:
        if state.vanished or own == AT_ODDS:
            return True
        members = [groups for other, groups in state.members if other == number]
        if (own or any(members)) and not frozenset(own).intersection(*members):
            return True
    return False


def _type(device: Device, driver: str, attribute: str | None) -> str:
    if not attribute:
        return ""
    found = device.attributes.get(attribute) or device.attributes.get(attribute.removeprefix(f"{driver}/"))
    if found is None:
        return ""
    return found.string if found.string is not None else value_text(found)


def _node_of(slices: Iterable[ResourceSlice]) -> str:
    names = {item.spec.node_name for item in slices}
    return (names.pop() or SEVERAL) if len(names) == 1 else SEVERAL


# Words


def numbers(states: Counter[str]) -> str:
    """`3/8 free (4 in-use, 1 tainted)`."""
    total = sum(states.values())
    rest = ", ".join(f"{states[state]} {state}" for state in STATES if state != "free" and states[state])
    return f"{states['free']}/{total} free" + (f" ({rest})" if rest else "")


def _tree(status: ClusterStatus) -> Iterator[str]:
    faults: dict[str, list[PoolSummary]] = {}
    for pool in status.pools:
        if pool.fault:
            faults.setdefault(pool.node, []).append(pool)
    counted: dict[str, Counter[str]] = {}
    below: dict[str, dict[tuple[str, str], dict[str, Counter[str]]]] = {}
    for each in status.devices:
        counted.setdefault(each.node, Counter())[each.state] += 1
        types = below.setdefault(each.node, {}).setdefault((each.driver, each.pool), {})
        types.setdefault(each.type, Counter())[each.state] += 1
    for node in sorted({*counted, *faults}, key=lambda name: (name == SEVERAL, name)):
        title = "several nodes" if node == SEVERAL else node
        yield f"{title}: {numbers(counted[node])}" if node in counted else f"{title}: no devices"
        for (driver, name_of_pool), types in below.get(node, {}).items():
            total = sum(types.values(), Counter[str]())
            yield f"  {driver}{'' if name_of_pool == node else ', pool ' + name_of_pool}: {numbers(total)}"
            if set(types) != {""}:
                for name, states in sorted(types.items()):
                    yield f"    {name or 'no type'}: {numbers(states)}"
        for fault in faults.get(node, []):
            yield f"  {fault.fault}; it offers no devices"


_COLOURS = {"in-use": "#4059ad", "shared": "#6b9ac4", "tainted": "#d1495b", "blocked": "#8d99ae", "free": "#97d8c4"}
_MOST_IN_MAP = 200


def _square(each: DeviceState) -> str:
    title = escape(f"{each.driver}/{each.pool}/{each.device}: {each.state}")
    style = f"display:inline-block;width:.8em;height:.8em;margin:1px;background:{_COLOURS[each.state]}"
    return f'<span title="{title}" style="{style}"></span>'


def _map(status: ClusterStatus) -> str:
    """A small map for notebooks: a row for each node, a square for each device."""
    by_node: dict[str, list[DeviceState]] = {}
    for each in status.devices:
        by_node.setdefault(each.node, []).append(each)
    rows = []
    for node, devices in list(by_node.items())[:_MOST_IN_MAP]:
        squares = "".join(map(_square, devices))
        states = Counter(each.state for each in devices)
        name = "several nodes" if node == SEVERAL else node
        rows.append(f"<tr><th>{escape(name)}</th><td>{squares}</td><td>{escape(numbers(states))}</td></tr>")
    more = len(by_node) - _MOST_IN_MAP
    foot = f"<p>and {more} more nodes</p>" if more > 0 else ""
    return f"<table>{''.join(rows)}</table>{foot}"
