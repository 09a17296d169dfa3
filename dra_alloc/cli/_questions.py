"""What is asked for: the devices of a pod, claims that were named, or all that waits in the input."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from dra_alloc import api
from dra_alloc.cli._output import note
from dra_alloc.features._objects import key_of
from dra_alloc.features.extended import totals
from dra_alloc.features.noderesources import is_finished
from dra_alloc.gates import Features

__all__ = ["Question", "missing", "qualified", "questions", "selection_options"]

Found = TypeVar("Found")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Who makes claims: a claim that one of them controls is asked for with its pods.
_OWNERS = frozenset({"Pod", "PodGroup"})

#: Objects of which it is said that the API server would refuse them.
_TOLD = 5


@dataclass(frozen=True)
class Question:
    """A pod, or else claims that are to be allocated together."""

    pod: api.Pod | None = None
    claims: tuple[api.ResourceClaim, ...] = ()

    @property
    def title(self) -> str:
        if self.pod is not None:
            return f"pod {key_of(self.pod.metadata)}"
        return f"claim{'s' * (len(self.claims) != 1)} {', '.join(key_of(claim.metadata) for claim in self.claims)}"

    @property
    def subject(self) -> dict[str, Any]:
        """The pod or the claims, as the methods of an Allocator take either of them."""
        return {"claims": self.claims} if self.pod is None else {"pod": self.pod}

    def to_dict(self) -> dict[str, Any]:
        """The names of both: plain data with the keys pod, claims."""
        return {
            "pod": None if self.pod is None else key_of(self.pod.metadata),
            "claims": [key_of(claim.metadata) for claim in self.claims],
        }


def questions(
    objects: Iterable[Any], *, claim_names: Sequence[str] = (), pod_name: str | None = None
) -> list[Question]:
    """The questions that the input and the choice of the user pose.

    With a pod: that one. With claims: those, together. With neither: each pod that needs devices and is neither placed
    nor finished nor one that schedulers pass over, then each claim alone that is not allocated and belongs to no pod;
    both in the order of the input.
    """
    pods: dict[str, api.Pod] = {}
    claims: dict[str, api.ResourceClaim] = {}
    for found in objects:
        if isinstance(found, api.Pod):
            pods[key_of(found.metadata)] = found
        elif isinstance(found, api.ResourceClaim):
            claims[key_of(found.metadata)] = found
    if pod_name is not None:
        return [Question(pod=_named("Pod", pod_name, pods))]
    if claim_names:
        return [Question(claims=tuple(_named("ResourceClaim", name, claims) for name in claim_names))]
    used = {key for pod in pods.values() for key in _claims_of(pod)}
    waiting = [Question(pod=pod) for pod in pods.values() if _waits(pod) and _passed_over(pod) is None]
    alone = [Question(claims=(claim,)) for key, claim in claims.items() if key not in used and _is_free(claim)]
    return [*waiting, *alone]


def _waits(pod: api.Pod) -> bool:
    return not pod.spec.node_name and not is_finished(pod) and bool(pod.spec.resource_claims or totals(pod))


def _passed_over(pod: api.Pod) -> str | None:
    """Why no scheduler tries a pod for now, or None."""
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted"
    if pod.spec.scheduling_gates:
        return f"waits for its scheduling gates: {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"
    return None


def _is_free(claim: api.ResourceClaim) -> bool:
    if claim.status is not None and claim.status.allocation is not None:
        return False
    return not any(owner.controller and owner.kind in _OWNERS for owner in claim.metadata.owner_references)


def _claims_of(pod: api.Pod) -> Iterator[str]:
    """Keys of the claims that a pod names, or that were made for it."""
    namespace = pod.metadata.namespace or "default"
    names = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    if pod.status is not None:
        names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
        if pod.status.extended_resource_claim_status is not None:
            names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return (f"{namespace}/{name}" for name in names if name)


def _named(kind: str, key: str, known: dict[str, Found]) -> Found:
    if key not in known:
        raise missing(kind, key, known)
    return known[key]


def missing(kind: str, key: str, known: Collection[str]) -> click.UsageError:
    """What is said when an object of the user's choice is not among those that are known."""
    same = [other for other in known if other.rpartition("/")[2] == key.rpartition("/")[2]]
    near = same[:3] or difflib.get_close_matches(key, known, n=3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        more = f" and {len(known) - 3} more" if len(known) > 3 else ""
        hint = f"it has {', '.join(list(known)[:3])}{more}"
    else:
        hint = "it has none"
    return click.UsageError(f"no {kind} {key} in the input; {hint}")


def _warn(asked: Iterable[Question], objects: Iterable[Any]) -> None:
    """Say of hand-written pods, claims and templates that are asked for if the API server would refuse them.

    What has a `uid` comes from a server, which has accepted it.
    """
    from dra_alloc.codec.validation import validate

    pods = [question.pod for question in asked if question.pod is not None]
    wanted: dict[int, Any] = {id(item): item for question in asked for item in (question.pod, *question.claims) if item}
    claims = {key for pod in pods for key in _claims_of(pod)}
    templates = {
        f"{pod.metadata.namespace or 'default'}/{entry.resource_claim_template_name}"
        for pod in pods
        for entry in pod.spec.resource_claims
    }
    for kind, keys in ((api.ResourceClaim, claims), (api.ResourceClaimTemplate, templates)):
        wanted |= {id(item): item for item in objects if isinstance(item, kind) and key_of(item.metadata) in keys}
    told = 0
    for item in wanted.values():
        problems = [] if item.metadata.uid else validate(item, features=Features.all())
        if problems:
            told += 1
            if told <= _TOLD:
                note(f"warning: the API server would refuse {item.kind} {key_of(item.metadata)}: {problems[0]}")
    if told > _TOLD:
        note(f"warning: and {told - _TOLD} more; dra-alloc check says all")


def _tell_passed_over(pods: Iterable[api.Pod], rest: str) -> None:
    """Say which pods no scheduler tries, and what that means here."""
    found = [(pod, why) for pod in pods if (why := _passed_over(pod)) is not None]
    for pod, why in found[:_TOLD]:
        note(f"warning: pod {key_of(pod.metadata)} {why}; {rest}")
    if len(found) > _TOLD:
        note(f"warning: and {len(found) - _TOLD} more pods that schedulers pass over")


def selection_options(function: Function) -> Function:
    """The options `--claim` and `--pod`, passed as `asked`: the questions about the `objects`; and `--node`, as `node`.

    Goes below `input_options`, which reads the objects.
    """

    @click.option("--node", metavar="NODE", help="Ask for this node only.")
    @click.option(
        "--claim",
        "claim_names",
        metavar="NS/NAME",
        multiple=True,
        help="These claims together, as those of one pod are.",
    )
    @click.option("--pod", "pod_name", metavar="NS/NAME", help="The claims of this pod.")
    @functools.wraps(function)
    def wrapper(*, objects: list[Any], claim_names: tuple[str, ...], pod_name: str | None, **rest: Any) -> Any:
        if claim_names and pod_name is not None:
            raise click.UsageError("--claim and --pod exclude each other")
        asked = questions(
            objects,
            claim_names=tuple(map(qualified, claim_names)),
            pod_name=None if pod_name is None else qualified(pod_name),
        )
        _warn(asked, objects)
        if pod_name is not None:
            pods = [question.pod for question in asked if question.pod is not None]
            _tell_passed_over(pods, "what it would get all the same:")
        elif not claim_names:
            waiting = [item for item in objects if isinstance(item, api.Pod) and _waits(item)]
            _tell_passed_over(waiting, "passed over, as schedulers do")
        return function(objects=objects, asked=asked, **rest)

    return wrapper  # type: ignore[return-value]


def qualified(name: str) -> str:
    """`NS/NAME`; a name alone is one of the namespace `default`, as for kubectl."""
    namespace, slash, short = name.rpartition("/")
    if "/" in namespace or not short or (slash and not namespace):
        raise click.UsageError(f"{name!r} is no NAMESPACE/NAME")
    return f"{namespace or 'default'}/{short}"
