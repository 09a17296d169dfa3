"""Which claims are asked for together: those of a pod, those named, or all that wait in the input."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from dra_alloc import api
from dra_alloc.errors import DecodeError
from dra_alloc.features._objects import key_of

__all__ = ["Question", "questions"]

Found = TypeVar("Found")

_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Question:
    """Claims to allocate together. `pod` is the one they are for, or None; `node` the only node that may serve them."""

    claims: tuple[api.ResourceClaim, ...]
    pod: api.Pod | None = None
    node: str | None = None

    @property
    def names(self) -> dict[str, Any]:
        """Plain data that says what was asked: `pod`, or None, and the keys of `claims`."""
        return {
            "pod": key_of(self.pod.metadata) if self.pod is not None else None,
            "claims": [key_of(claim.metadata) for claim in self.claims],
        }

    @property
    def title(self) -> str:
        names = self.names
        if self.pod is not None:
            return f"pod {names['pod']}"
        return f"claim{'s' * (len(self.claims) != 1)} {', '.join(names['claims'])}"


def questions(
    objects: Sequence[Any], *, claim_names: Sequence[str] = (), pod_name: str | None = None
) -> list[Question]:
    """The questions that the input and the choice of the user pose.

    With a pod: its claims, made from templates where they do not exist yet. With claims: those, together. With
    neither: each pod that is neither finished nor placed and has a claim, then each claim alone that is not allocated
    and that no pod uses; both in the order of the input.
    """
    index = _Index(objects)
    if pod_name is not None:
        return [index.question(index.pod(pod_name))]
    if claim_names:
        return [Question(tuple(index.claim(name) for name in claim_names))]
    waiting = [index.question(pod) for pod in index.pods.values() if _waits(pod)]
    used = {key_of(claim.metadata) for pod in index.pods.values() for claim in index.claims_of(pod, strict=False)}
    alone = [
        Question((claim,))
        for key, claim in index.claims.items()
        if key not in used and (claim.status is None or claim.status.allocation is None)
    ]
    return [*waiting, *alone]


def _waits(pod: api.Pod) -> bool:
    phase = pod.status.phase if pod.status else None
    return bool(pod.spec.resource_claims) and not pod.spec.node_name and phase not in _FINISHED


class _Index:
    """Pods, claims and templates of the input by `namespace/name`; of two equal keys the later object counts."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self.pods: dict[str, api.Pod] = {}
        self.claims: dict[str, api.ResourceClaim] = {}
        self.templates: dict[str, api.ResourceClaimTemplate] = {}
        for found in objects:
            if isinstance(found, api.Pod):
                self.pods[key_of(found.metadata)] = found
            elif isinstance(found, api.ResourceClaim):
                self.claims[key_of(found.metadata)] = found
            elif isinstance(found, api.ResourceClaimTemplate):
                self.templates[key_of(found.metadata)] = found

    def pod(self, key: str) -> api.Pod:
        return _named("Pod", key, self.pods)

    def claim(self, key: str) -> api.ResourceClaim:
        return _named("ResourceClaim", key, self.claims)

    def question(self, pod: api.Pod) -> Question:
        return Question(tuple(self.claims_of(pod)), pod, pod.spec.node_name or None)

    def claims_of(self, pod: api.Pod, *, strict: bool = True) -> list[api.ResourceClaim]:
        """The claims of a pod in its order; those that its templates stand for are made if they do not exist yet.

        With `strict`, a claim or template that is not in the input is a DecodeError; otherwise it is left out.
        """
        made = (
            {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
            if pod.status
            else {}
        )
        found: list[api.ResourceClaim] = []
        for position, entry in enumerate(pod.spec.resource_claims):
            if entry.name in made and made[entry.name] is None:
                continue  # Kubernetes has noted that this one needs no claim.
            path = f"Pod {key_of(pod.metadata)}: spec.resourceClaims[{position}]"
            namespace = pod.metadata.namespace
            name = entry.resource_claim_name or made.get(entry.name)
            if name:
                known = self.claims.get(_joined(namespace, name))
                missing = f"ResourceClaim {_joined(namespace, name)}"
            elif entry.resource_claim_template_name:
                template = self.templates.get(_joined(namespace, entry.resource_claim_template_name))
                known = self._instance(pod, entry.name, template) if template else None
                missing = f"ResourceClaimTemplate {_joined(namespace, entry.resource_claim_template_name)}"
            else:
                known, missing = None, "resourceClaimName or resourceClaimTemplateName"
            if known is not None:
                found.append(known)
            elif strict:
                raise DecodeError(path, f"{missing} is not in the input", "add the file that holds it with -f")
        return found

    def _instance(self, pod: api.Pod, name: str, template: api.ResourceClaimTemplate) -> api.ResourceClaim:
        """The claim that Kubernetes makes for the pod; its generated name ends in no random letters here."""
        owner = api.OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid or "", controller=True
        )
        wanted = template.spec.metadata
        metadata = api.ObjectMeta(
            name=f"{pod.metadata.name}-{name}",
            namespace=pod.metadata.namespace,
            labels=wanted.labels,
            annotations={**wanted.annotations, "resource.kubernetes.io/pod-claim-name": name},
            owner_references=(owner,),
        )
        return api.ResourceClaim(metadata=metadata, spec=template.spec.spec)


def _named(kind: str, key: str, known: dict[str, Found]) -> Found:
    if key in known:
        return known[key]
    near = difflib.get_close_matches(key, known, n=3)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are {len(known)}" if known else "there is none at all"
    )
    raise click.UsageError(f"no {kind} {key} in the input; {hint}")


def _joined(namespace: str, name: str) -> str:
    return f"{namespace or 'default'}/{name}"
