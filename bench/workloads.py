"""The workloads of the benchmarks: clusters and claims of any size, built from api models.

Each function returns a `Workload`; `python -m bench.workloads NAME N` prints one as YAML.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import attrs

from dra_alloc import api
from dra_alloc.api import Quantity

GPU = "gpu.example.com"
NIC = "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"


@attrs.frozen
class Workload:
    """A cluster and the claims that are asked for together; `node` is one on which to ask."""

    objects: list[object]
    claims: list[api.ResourceClaim]
    node: str


def node(name: str) -> api.Node:
    """A node with its host name as label."""
    return api.Node(metadata=api.ObjectMeta(name=name, labels={"kubernetes.io/hostname": name}))


def device_class(name: str, driver: str) -> api.DeviceClass:
    """A class of all devices of a driver."""
    selector = api.DeviceSelector(cel=api.CELDeviceSelector(expression=f'device.driver == "{driver}"'))
    return api.DeviceClass(metadata=api.ObjectMeta(name=name), spec=api.DeviceClassSpec(selectors=(selector,)))


def text(value: str) -> api.DeviceAttribute:
    """A string attribute."""
    return api.DeviceAttribute(string=value)


def number(value: int) -> api.DeviceAttribute:
    """An int attribute."""
    return api.DeviceAttribute(int=value)


def pool_slice(
    driver: str,
    pool: str,
    devices: Iterable[api.Device] = (),
    *,
    on: str | None = None,
    name: str | None = None,
    count: int = 1,
    counters: Iterable[api.CounterSet] = (),
) -> api.ResourceSlice:
    """One slice of a pool, on a node or on all."""
    return api.ResourceSlice(
        metadata=api.ObjectMeta(name=name or f"{pool}-{driver}"),
        spec=api.ResourceSliceSpec(
            driver=driver,
            pool=api.ResourcePool(name=pool, generation=1, resource_slice_count=count),
            node_name=on,
            all_nodes=None if on else True,
            devices=tuple(devices),
            shared_counters=tuple(counters),
        ),
    )


def request(
    name: str, class_name: str, count: int = 1, selector: str | None = None, capacity: dict[str, str] | None = None
) -> api.DeviceRequest:
    """A request for a number of devices of a class."""
    return api.DeviceRequest(
        name=name,
        exactly=api.ExactDeviceRequest(
            device_class_name=class_name,
            count=count,
            selectors=(api.DeviceSelector(cel=api.CELDeviceSelector(expression=selector)),) if selector else (),
            capacity=api.CapacityRequirements(requests={key: Quantity.parse(value) for key, value in capacity.items()})
            if capacity
            else None,
        ),
    )


def claim(
    name: str, requests: Iterable[api.DeviceRequest], constraints: Iterable[api.DeviceConstraint] = ()
) -> api.ResourceClaim:
    """A claim in the namespace `default`."""
    return api.ResourceClaim(
        metadata=api.ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=api.ResourceClaimSpec(devices=api.DeviceClaim(requests=tuple(requests), constraints=tuple(constraints))),
    )


def match(attribute: str, *requests: str) -> api.DeviceConstraint:
    """A matchAttribute constraint."""
    return api.DeviceConstraint(match_attribute=attribute, requests=requests)


def held(name: str, devices: Iterable[tuple[str, str, str]]) -> api.ResourceClaim:
    """A claim that holds devices (driver, pool, name) whole."""
    results = tuple(
        api.DeviceRequestAllocationResult(request="r", driver=driver, pool=pool, device=device)
        for driver, pool, device in devices
    )
    allocation = api.AllocationResult(devices=api.DeviceAllocationResult(results=results))
    return attrs.evolve(claim(name, [request("r", "gpu")]), status=api.ResourceClaimStatus(allocation=allocation))


CLASSES = (device_class("gpu", GPU), device_class("nic", NIC))


def gpu_node(name: str) -> list[object]:
    """A node with 8 GPUs and 4 NICs on two NUMA nodes."""
    gpus = [
        api.Device(
            name=f"gpu-{i}",
            attributes={
                "model": text("H100"),
                "index": number(i),
                "uuid": text(f"GPU-{name}-{i}"),
                "driverVersion": api.DeviceAttribute(version="570.86.15"),
                NUMA: number(i // 4),
                ROOT: text(f"pci{i // 2:04x}:00"),
            },
            capacity={"memory": api.DeviceCapacity(value=Quantity.parse("80Gi"))},
        )
        for i in range(8)
    ]
    nics = [
        api.Device(
            name=f"nic-{i}",
            attributes={
                "ifName": text(f"eth{i}"),
                "rdma": api.DeviceAttribute(bool=True),
                NUMA: number(i // 2),
                ROOT: text(f"pci{i:04x}:00"),
            },
        )
        for i in range(4)
    ]
    return [node(name), pool_slice(GPU, name, gpus, on=name), pool_slice(NIC, name, nics, on=name)]


def gpu_and_nic() -> api.ResourceClaim:
    """Two GPUs and a NIC on one NUMA node."""
    return claim("train", [request("gpu", "gpu", 2), request("nic", "nic")], [match(NUMA)])


def fleet(n: int) -> Workload:
    """n nodes of 8 GPUs and 4 NICs, a part in use: 2 GPUs and a NIC on one NUMA node."""
    objects: list[object] = [*CLASSES]
    for i in range(n):
        name = f"node-{i:05}"
        objects += gpu_node(name)
        used = [(GPU, name, f"gpu-{k}") for k in range(8) if (i * 7 + k * 3) % 5 < 2]
        used += [(NIC, name, f"nic-{k}") for k in range(4) if (i * 5 + k) % 7 == 0]
        if used:
            objects.append(held(f"held-{i}", used))
    return Workload(objects, [gpu_and_nic()], "node-00000")


def full(n: int) -> Workload:
    """Every GPU is in use but on the last node."""
    objects: list[object] = [*CLASSES]
    for i in range(n):
        name = f"node-{i:05}"
        objects += gpu_node(name)
        if i < n - 1:
            objects.append(held(f"held-{i}", [(GPU, name, f"gpu-{k}") for k in range(8)]))
    return Workload(objects, [gpu_and_nic()], f"node-{n - 1:05}")


def pool(n: int, nodes: int = 1) -> Workload:
    """One network-attached pool of n devices, 8 to a root; only in the last racks are 8 free on one root."""
    devices = [
        api.Device(name=f"dev-{i:05}", attributes={ROOT: text(f"root-{i // 8:05}"), "rack": number(i // 64)})
        for i in range(n)
    ]
    size = 64
    chunks = [devices[i : i + size] for i in range(0, n, size)]
    slices = [pool_slice(GPU, "net", chunk, name=f"net-{i:05}", count=len(chunks)) for i, chunk in enumerate(chunks)]
    taken = [(GPU, "net", f"dev-{i:05}") for i in range(n - 16) if i % 8 == 3]
    objects: list[object] = [*CLASSES, *slices, *(node(f"node-{i:05}") for i in range(nodes))]
    objects += [held(f"held-{i}", taken[i : i + 32]) for i in range(0, len(taken), 32)]
    return Workload(objects, [claim("eight", [request("gpu", "gpu", 8)], [match(ROOT)])], "node-00000")


_PROFILES = [("1g", 1, 7), ("2g", 2, 3), ("3g", 4, 2), ("4g", 4, 1), ("7g", 8, 1)]


def mig(n: int = 8, free: int = 1) -> Workload:
    """n cards, each with 18 partitions over 9 counters, in use but for `free` slices of the last card."""
    slices: list[object] = []
    sets = []
    devices = []
    used = []
    for card in range(n):
        slots = {f"slice-{k}": api.Counter(value=Quantity.parse("1")) for k in range(8)}
        sets.append(
            api.CounterSet(name=f"card-{card}", counters={"memory": api.Counter(value=Quantity.parse("80Gi")), **slots})
        )
        starts = [("1g", k, 1) for k in range(8)] + [("2g", k, 2) for k in range(0, 8, 2)]
        starts += [("3g", k, 4) for k in (0, 4)] + [("4g", 0, 4), ("4g", 4, 4), ("7g", 0, 8), ("1gme", 7, 1)]
        for profile, start, size in starts:
            consumed = {"memory": api.Counter(value=Quantity.parse(f"{10 * size}Gi"))}
            consumed |= {f"slice-{k}": api.Counter(value=Quantity.parse("1")) for k in range(start, start + size)}
            devices.append(
                api.Device(
                    name=f"card-{card}-{profile}-{start}",
                    attributes={"profile": text(profile), "parent": text(f"card-{card}")},
                    consumes_counters=(api.DeviceCounterConsumption(counter_set=f"card-{card}", counters=consumed),),
                )
            )
        for k in range(8 - (free if card == n - 1 else 0)):
            used.append((GPU, "node-00000", f"card-{card}-1g-{k}"))
    device_chunks = [devices[i : i + 64] for i in range(0, len(devices), 64)]
    set_chunks = [sets[i : i + 8] for i in range(0, len(sets), 8)]
    count = len(device_chunks) + len(set_chunks)
    for i, chunk in enumerate(set_chunks):
        slices.append(
            pool_slice(GPU, "node-00000", on="node-00000", name=f"a-counters-{i}", count=count, counters=chunk)
        )
    for i, chunk in enumerate(device_chunks):
        slices.append(pool_slice(GPU, "node-00000", chunk, on="node-00000", name=f"b-devices-{i}", count=count))
    objects: list[object] = [*CLASSES, node("node-00000"), *slices]
    objects += [held(f"held-{i}", used[i : i + 32]) for i in range(0, len(used), 32)]
    wanted = request("gpu", "gpu", 1, f'device.attributes["{GPU}"].profile == "1g"')
    return Workload(objects, [claim("one", [wanted])], "node-00000")


def shares(n: int = 64, wanted: int = 8) -> Workload:
    """n NICs of 100G shared by bandwidth, of which parts are in use; `wanted` claims of 25G on distinct NICs."""
    policy = api.CapacityRequestPolicy(
        default=Quantity.parse("1G"),
        valid_range=api.CapacityRequestPolicyRange(min=Quantity.parse("1G"), step=Quantity.parse("1G")),
    )
    nics = [
        api.Device(
            name=f"nic-{i:03}",
            allow_multiple_allocations=True,
            capacity={"bandwidth": api.DeviceCapacity(value=Quantity.parse("100G"), request_policy=policy)},
            attributes={"index": number(i)},
        )
        for i in range(n)
    ]
    objects: list[object] = [*CLASSES, node("node-00000"), pool_slice(NIC, "node-00000", nics, on="node-00000")]
    for i in range(n):
        result = api.DeviceRequestAllocationResult(
            request="r",
            driver=NIC,
            pool="node-00000",
            device=f"nic-{i:03}",
            share_id=f"00000000-0000-4000-8000-{i:012}",
            consumed_capacity={"bandwidth": Quantity.parse(f"{60 + i % 40}G")},
        )
        allocation = api.AllocationResult(devices=api.DeviceAllocationResult(results=(result,)))
        objects.append(
            attrs.evolve(
                claim(f"held-{i}", [request("r", "nic")]), status=api.ResourceClaimStatus(allocation=allocation)
            )
        )
    requests = [request(f"nic-{i}", "nic", 1, capacity={"bandwidth": "25G"}) for i in range(wanted)]
    constraint = api.DeviceConstraint(distinct_attribute=f"{NIC}/index")
    return Workload(objects, [claim("spread", requests, [constraint])], "node-00000")


def trap(n: int) -> Workload:
    """n devices each alone on its root: four of any, then two on one root. There is no answer."""
    devices = [api.Device(name=f"dev-{i:04}", attributes={ROOT: text(f"root-{i}")}) for i in range(n)]
    objects = [*CLASSES, node("node-00000"), pool_slice(GPU, "node-00000", devices, on="node-00000")]
    return Workload(
        objects,
        [claim("trap", [request("any", "gpu", 4), request("pair", "gpu", 2)], [match(ROOT, "pair")])],
        "node-00000",
    )


def toomany(n: int) -> Workload:
    """n equal devices and n + 1 claims of one each. There is no answer."""
    devices = [api.Device(name=f"dev-{i:04}", attributes={"model": text("x")}) for i in range(n)]
    objects = [*CLASSES, node("node-00000"), pool_slice(GPU, "node-00000", devices, on="node-00000")]
    claims = [claim(f"claim-{i:04}", [request("gpu", "gpu")]) for i in range(n + 1)]
    return Workload(objects, claims, "node-00000")


def pigeons(n: int) -> Workload:
    """Two kinds of devices, n of each; n claims of either kind, n + 1 of the first kind. There is no answer."""
    devices = [
        api.Device(name=f"dev-{i:04}", attributes={"model": text("a" if i % 2 else "b"), "i": number(i)})
        for i in range(2 * n)
    ]
    objects = [*CLASSES, node("node-00000"), pool_slice(GPU, "node-00000", devices, on="node-00000")]
    of_a = f'device.attributes["{GPU}"].model == "a"'
    claims = [claim(f"any-{i:04}", [request("gpu", "gpu")]) for i in range(n)]
    claims += [claim(f"a-{i:04}", [request("gpu", "gpu", 1, of_a)]) for i in range(n + 1)]
    return Workload(objects, claims, "node-00000")


def late_pair(n: int) -> Workload:
    """As `trap`, but one root, the first, has two devices: the four must avoid it. There is an answer."""
    roots = [0, 0, *range(1, n - 1)]
    devices = [api.Device(name=f"dev-{i:04}", attributes={ROOT: text(f"root-{r}")}) for i, r in enumerate(roots)]
    objects = [*CLASSES, node("node-00000"), pool_slice(GPU, "node-00000", devices, on="node-00000")]
    return Workload(
        objects,
        [claim("pair", [request("any", "gpu", 4), request("pair", "gpu", 2)], [match(ROOT, "pair")])],
        "node-00000",
    )


def triples(n: int) -> Workload:
    """Three requests that must be on one root, where each root lacks one of the three models. There is no answer."""
    models = ("a", "b", "c")
    devices = [
        api.Device(name=f"dev-{root:04}-{model}-{k}", attributes={ROOT: text(f"root-{root}"), "model": text(model)})
        for root in range(n)
        for model in models
        if model != models[root % 3]
        for k in range(2)
    ]
    chunks = [devices[i : i + 128] for i in range(0, len(devices), 128)]
    objects = [*CLASSES, node("node-00000")] + [
        pool_slice(GPU, "node-00000", chunk, on="node-00000", name=f"slice-{i:04}", count=len(chunks))
        for i, chunk in enumerate(chunks)
    ]
    requests = [request(model, "gpu", 1, f'device.attributes["{GPU}"].model == "{model}"') for model in models]
    return Workload(objects, [claim("three", requests, [match(ROOT)])], "node-00000")


def alternatives(n: int) -> Workload:
    """n requests of eight alternatives each over n equal devices, then one more device. There is no answer."""
    devices = [api.Device(name=f"dev-{i:04}", attributes={"model": text("x")}) for i in range(n)]
    objects = [*CLASSES, node("node-00000"), pool_slice(GPU, "node-00000", devices, on="node-00000")]

    def listed(name: str) -> api.DeviceRequest:
        return api.DeviceRequest(
            name=name,
            first_available=tuple(
                api.DeviceSubRequest(name=f"try-{k}", device_class_name="gpu", count=1 + (7 - k) % 3) for k in range(8)
            ),
        )

    claims = [claim(f"claim-{i:04}", [listed("gpu")]) for i in range(n)] + [claim("last", [request("gpu", "gpu")])]
    return Workload(objects, claims, "node-00000")


def partitions(n: int, wanted: int | None = None) -> Workload:
    """n equal empty cards, partitions of 3 of 7 slices; 2 n + 1 of them are asked for. There is no answer."""
    sets = [
        api.CounterSet(name=f"card-{i:03}", counters={"slices": api.Counter(value=Quantity.parse("7"))})
        for i in range(n)
    ]
    devices = [
        api.Device(
            name=f"card-{i:03}-part-{k}",
            attributes={"size": text("3")},
            consumes_counters=(
                api.DeviceCounterConsumption(
                    counter_set=f"card-{i:03}", counters={"slices": api.Counter(value=Quantity.parse("3"))}
                ),
            ),
        )
        for i in range(n)
        for k in range(4)
    ]
    set_chunks = [sets[i : i + 8] for i in range(0, n, 8)]
    chunks = [devices[i : i + 64] for i in range(0, len(devices), 64)]
    count = len(set_chunks) + len(chunks)
    objects: list[object] = [*CLASSES, node("node-00000")]
    objects += [
        pool_slice(GPU, "node-00000", on="node-00000", name=f"a-{i:03}", count=count, counters=chunk)
        for i, chunk in enumerate(set_chunks)
    ]
    objects += [
        pool_slice(GPU, "node-00000", chunk, on="node-00000", name=f"b-{i:03}", count=count)
        for i, chunk in enumerate(chunks)
    ]
    claims = [claim(f"claim-{i:04}", [request("gpu", "gpu")]) for i in range(wanted or 2 * n + 1)]
    return Workload(objects, claims, "node-00000")


def packing(n: int, seed: int = 1, node_name: str = "node-00000") -> Workload:
    """n parts of nearly equal size for two cards that have room for half of them each: a partition problem.

    All sizes are multiples of 4 and the room of each card is not, though their sum is that of all parts: there is no
    answer, and no bound of the search sees it.
    """
    rng = random.Random(seed)
    odds = [4 * rng.randrange(10**6) for _ in range(n)]
    left = sum(odds) // 8 * 4 + 2
    half = n // 2 * 10**9
    rooms = (half + left, half + sum(odds) - left)

    def units(amount: int) -> dict[str, api.Counter]:
        return {"units": api.Counter(value=Quantity.parse(str(amount)))}

    sets = [api.CounterSet(name=f"card-{card}", counters=units(room)) for card, room in enumerate(rooms)]
    devices = [
        api.Device(
            name=f"card-{card}-part-{part:02}",
            attributes={"part": number(part)},
            consumes_counters=(api.DeviceCounterConsumption(counter_set=f"card-{card}", counters=units(10**9 + odd)),),
        )
        for card in (0, 1)
        for part, odd in enumerate(odds)
    ]
    slices = [
        pool_slice(GPU, node_name, on=node_name, name=f"{node_name}-a", count=2, counters=sets),
        pool_slice(GPU, node_name, devices, on=node_name, name=f"{node_name}-b", count=2),
    ]
    attribute = f'device.attributes["{GPU}"].part'
    claims = [claim(f"claim-{part}", [request("gpu", "gpu", 1, f"{attribute} == {part}")]) for part in range(n)]
    return Workload([*CLASSES, node(node_name), *slices], claims, node_name)


def bins(n: int) -> Workload:
    """n NICs of 100G, 2 n + 1 claims of 40G each: two fit on a NIC. There is no answer, though the sum fits."""
    nics = [
        api.Device(
            name=f"nic-{i:03}",
            allow_multiple_allocations=True,
            capacity={"bandwidth": api.DeviceCapacity(value=Quantity.parse("100G"))},
        )
        for i in range(n)
    ]
    objects = [*CLASSES, node("node-00000"), pool_slice(NIC, "node-00000", nics, on="node-00000")]
    claims = [
        claim(f"claim-{i:04}", [request("nic", "nic", 1, capacity={"bandwidth": "40G"})]) for i in range(2 * n + 1)
    ]
    return Workload(objects, claims, "node-00000")
