"""`make demo`: the cluster of this folder, what wants to run there, what each pod gets, and why.

The decisions come from `dra-alloc allocate -o json`, as any program could have them; this file only tells the story.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.tree import Tree

import dra_alloc as dra
from dra_alloc import api

HERE = Path(__file__).resolve().parent
FILES = [str(HERE / "cluster.yaml"), str(HERE / "workloads.yaml")]
STORY = "example.com/story"

Key = tuple[str, str, str]


def main() -> None:
    """Tell the story from the first line to the last."""
    out = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    objects = list(dra.load(*FILES))
    slices = [found for found in objects if isinstance(found, api.ResourceSlice)]
    stories = {
        found.metadata.key: found.metadata.annotations.get(STORY, "") for found in objects if isinstance(found, api.Pod)
    }

    out.print("\nThe cluster", style="bold underline")
    out.print(cluster_tree(objects, slices))
    out.print("\nPods that want devices, in the order in which they came", style="bold underline")
    answers = decide()
    for number, answer in enumerate(answers, start=1):
        tell(out, number, answer, stories[answer["pod"]])
    out.print("\nWhat is left of what pods share", style="bold underline")
    out.print(leftovers(slices, answers))
    fitting = sum(answer["fits"] for answer in answers)
    out.print(f"\n{fitting} of {len(answers)} pods have got all their devices. To go on:\n")
    for line in (
        "dra-alloc allocate -f examples/demo                     the same as a table",
        "dra-alloc allocate -f examples/demo --pod trainer-0     one pod alone",
        "dra-alloc nodes -f examples/demo                        where each fits if it is the only one",
        "docs/getting-started.md                                 the same from Python",
    ):
        out.print(f"  {line}")


def decide() -> list[dict[str, Any]]:
    """The answers of `dra-alloc allocate`, one a pod."""
    command = [sys.executable, "-m", "dra_alloc", "allocate", "-o", "json"]
    command += [word for file in FILES for word in ("-f", file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode not in (0, 1):  # 1: something does not fit, which is a part of the story
        sys.exit(done.returncode)
    answers: list[dict[str, Any]] = json.loads(done.stdout)["answers"]
    return answers


def cluster_tree(objects: list[Any], slices: list[api.ResourceSlice]) -> Tree:
    """Nodes, and on each what its drivers publish and who uses it already."""
    holders = {
        (result.driver, result.pool, result.device): found.metadata.key
        for found in objects
        if isinstance(found, api.ResourceClaim) and found.status and found.status.allocation
        for result in found.status.allocation.devices.results
    }
    tree = Tree("", hide_root=True, guide_style="dim")
    for node in (found for found in objects if isinstance(found, api.Node)):
        branch = tree.add(f"[bold]{node.metadata.name}[/]")
        for found in (found for found in slices if found.spec.node_name == node.metadata.name):
            for counters in found.spec.shared_counters:
                amounts = ", ".join(f"{name}={counter.value}" for name, counter in counters.counters.items())
                branch.add(f"{found.spec.driver}/{counters.name}: {amounts}, can be cut up")
            ways = [device for device in found.spec.devices if device.consumes_counters]
            if ways:
                branch.add(f"{len(ways)} ways to do so, from whole cards to quarters")
            for device in found.spec.devices:
                if device not in ways:
                    holder = holders.get((found.spec.driver, found.spec.pool.name, device.name))
                    branch.add(f"{found.spec.driver}/{device.name}: {facts(device)}" + remarks(device, holder))
        if not branch.children:
            branch.add("[dim]no devices[/]")
    return tree


def facts(device: api.Device) -> str:
    """Attributes and capacities of a device."""
    shown = {name: str(value.string or value.int) for name, value in device.attributes.items() if name != "type"}
    shown |= {name: str(capacity.value) for name, capacity in device.capacity.items()}
    return ", ".join(f"{name.rpartition('/')[2]}={value}" for name, value in shown.items())


def remarks(device: api.Device, holder: str | None) -> str:
    """What hinders or allows its use."""
    shared = " [cyan]shared[/]" if device.allow_multiple_allocations else ""
    held = f" [yellow]in use: {holder}[/]" if holder else ""
    return shared + held + "".join(f" [red]tainted: {taint.key.rpartition('/')[2]}[/]" for taint in device.taints)


def tell(out: Console, number: int, answer: dict[str, Any], story: str) -> None:
    """What a pod wants, and what came of it."""
    out.print(f"\n{number:2}. [bold]{answer['pod']}[/]")
    out.print(Padding(story, (0, 0, 0, 4), expand=False))
    if not answer["fits"]:
        reason = answer["error"]["message"] if answer["error"] else "it fits on no node, and waits"
        out.print(Padding(f"[yellow]✘ {reason}[/]", (0, 0, 0, 4), expand=False))
        return
    out.print(Padding(f"[green]✔ on {answer['node']}:[/]", (0, 0, 0, 4), expand=False))
    for result in results(answer):
        line = f"{result['request']:12} {result['driver']}/{result['device']}"
        for name, amount in result.get("consumedCapacity", {}).items():
            line += f", {amount} of its {name}"
        if result.get("adminAccess"):
            line += " (to look at)"
        out.print(Padding(line, (0, 0, 0, 6), expand=False))


def results(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The devices of an answer, over all its claims."""
    for claim in answer["claims"]:
        yield from claim.get("allocation", {}).get("devices", {}).get("results", ())


def leftovers(slices: list[api.ResourceSlice], answers: list[dict[str, Any]]) -> Table:
    """For each counter set and shared device how much is used, exactly."""
    devices = {
        (found.spec.driver, found.spec.pool.name, device.name): device
        for found in slices
        for device in found.spec.devices
    }
    used: defaultdict[Key, int] = defaultdict(int)
    for result in (result for answer in answers for result in results(answer)):
        device = devices[result["driver"], result["pool"], result["device"]]
        if result.get("adminAccess"):
            continue
        for consumption in device.consumes_counters:
            for name, counter in consumption.counters.items():
                used[result["pool"], consumption.counter_set, name] += counter.value.nano
        for name, amount in result.get("consumedCapacity", {}).items():
            used[result["pool"], device.name, name] += api.Quantity.parse(amount).nano
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("NODE", "OF", "", "LEFT"):
        table.add_column(heading)
    for found in slices:
        rows = [
            (counters.name, name, value.value)
            for counters in found.spec.shared_counters
            for name, value in counters.counters.items()
        ]
        rows += [
            (device.name, name, value.value)
            for device in found.spec.devices
            if device.allow_multiple_allocations
            for name, value in device.capacity.items()
        ]
        for owner, name, value in rows:
            left = value.with_nano(value.nano - used[found.spec.pool.name, owner, name])
            table.add_row(found.spec.node_name, owner, name, f"{left} of {value}")
    return table


if __name__ == "__main__":
    main()
