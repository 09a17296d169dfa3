"""`dra-alloc taints`: who is evicted for device taints, and what a rule would do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dra_alloc.cli._input import features_options, input_options
from dra_alloc.cli._output import console, emit, new_table, output_option
from dra_alloc.cli._time import now_option, shown
from dra_alloc.gates import Features

if TYPE_CHECKING:
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.taints import EffectiveTaint, EvictionPlan, PodEviction, RuleImpact

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  dra-alloc taints -f dump.json
  dra-alloc taints -f dump.json -f rule.yaml --rule broken-rack
  dra-alloc taints -f dump.json --devices
  dra-alloc taints -f dump.json --now 2026-09-01T12:00:00Z -o json
"""


@click.command("taints", epilog=_EXAMPLES)
@input_options
@click.option("--rule", "rule_name", metavar="NAME", help="What this DeviceTaintRule would do with effect NoExecute.")
@click.option("--devices", "by_device", is_flag=True, help="List the devices with their taints instead.")
@click.option(
    "--as-controller",
    is_flag=True,
    help="Count only tolerations with the effect NoExecute, as the controller of 1.37 does; "
    "the API says that one without effect tolerates all.",
)
@now_option
@features_options
@output_option
def command(
    objects: list[Any],
    rule_name: str | None,
    by_device: bool,
    as_controller: bool,
    now: datetime,
    features: Features,
    output: str,
) -> int:
    """Say which pods are evicted because of taints on their devices, when and why.

    Exit status 1: a pod is to be evicted. With --rule it is a dry run: the rule need not have that effect yet. Taints
    without `timeAdded` count as added now.
    """
    from dra_alloc.cluster import Cluster
    from dra_alloc.features.taints import plan_evictions

    cluster = Cluster.from_objects(objects)
    if by_device:
        return _devices(cluster, features, output)
    if rule_name is not None:
        impact = _impact(cluster, rule_name, now, features, as_controller)
        if output == "table":
            click.echo(impact.message)
            _print_plan(impact.evictions, now)
        else:
            emit({**_impact_form(impact), **_plan_form(impact.evictions, now)}, output)
        return int(bool(len(impact.evictions)))
    plan = plan_evictions(cluster, now=now, features=features, strict=as_controller)
    if output == "table":
        if not len(plan):
            click.echo("No pod is evicted.")
        _print_plan(plan, now)
    else:
        emit(_plan_form(plan, now), output)
    return int(bool(len(plan)))


def _impact(cluster: Cluster, name: str, now: datetime, features: Features, strict: bool) -> RuleImpact:
    from dra_alloc.features.taints import try_rule

    known = {rule.metadata.name: rule for rule in cluster.rules()}
    if name not in known:
        there = f"there are: {', '.join(sorted(known))}" if known else "there is none in the input"
        if Path(name).is_file():
            there = "a file of rules is given with -f, and the rule by its name"
        raise click.BadParameter(f"no DeviceTaintRule {name!r}; {there}", param_hint="--rule")
    return try_rule(known[name], cluster, now=now, features=features, strict=strict)


def _devices(cluster: Cluster, features: Features, output: str) -> int:
    from dra_alloc.features.taints import DeviceTaints, describe

    tainted = list(DeviceTaints(cluster.slices(), cluster.rules(), features))
    if output == "table":
        table = new_table("device", "taint", "from")
        for device, taints in tainted:
            for item in taints:
                table.add_row(str(device), describe(item.taint), f"rule {item.rule}" if item.rule else "slice")
        if tainted:
            console().print(table)
        else:
            click.echo("No device is tainted.")
    else:
        forms = [
            {"device": str(device), "taints": [_taint_form(item) for item in taints]} for device, taints in tainted
        ]
        emit({"devices": forms}, output)
    return 0


def _print_plan(plan: EvictionPlan, now: datetime) -> None:
    for item in plan:
        due = " (due)" if item.when <= now else ""
        click.echo(f"{shown(item.when)}{due} {item.pod} on {item.node}, with {', '.join(item.claims)}:")
        for reason in item.reasons:
            click.echo(f"    {_why(reason)}")


def _why(reason: EffectiveTaint) -> str:
    from dra_alloc.features.taints import describe

    source = f" (rule {reason.rule})" if reason.rule else ""
    return f"{describe(reason.taint)} on {reason.device}{source}"


def _impact_form(impact: RuleImpact) -> dict[str, Any]:
    return {
        "rule": impact.rule,
        "message": impact.message,
        "publishedDevices": [str(device) for device in impact.published],
        "allocatedDevices": [{"claim": claim, "device": str(device)} for claim, device in impact.allocated],
        "namespaces": list(impact.evictions.namespaces),
    }


def _plan_form(plan: EvictionPlan, now: datetime) -> dict[str, Any]:
    return {"now": shown(now), "evictions": [_eviction_form(item, now) for item in plan]}


def _eviction_form(item: PodEviction, now: datetime) -> dict[str, Any]:
    return {
        "pod": item.pod,
        "uid": item.uid,
        "node": item.node,
        "when": shown(item.when),
        "due": item.when <= now,
        "claims": list(item.claims),
        "reasons": [{"device": str(reason.device), **_taint_form(reason)} for reason in item.reasons],
    }


def _taint_form(item: EffectiveTaint) -> dict[str, Any]:
    return {"rule": item.rule or None, "taint": item.taint.to_dict()}
