"""Findings about pods: claims, templates and requests that do not exist, and claims that nothing uses."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from dra_alloc.api import (
    DeviceClaim,
    Pod,
    PodGroup,
    PodGroupResourceClaim,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._world import Item, World, finding

__all__ = ["check_pods"]


def check_pods(world: World) -> Iterator[Finding]:
    """What pods and PodGroups refer to. Claims and templates count as missing only if the input has any at all."""
    given = world.has(ResourceClaim, ResourceClaimTemplate)
    for item, group in world.of(PodGroup):
        for index, shared in enumerate(group.spec.resource_claims if given else ()):
            yield from _missing(world, item, f"spec.resourceClaims[{index}]", shared)
    for item, pod in world.of(Pod):
        for index, reference in enumerate(pod.spec.resource_claims):
            path = f"spec.resourceClaims[{index}]"
            if given:
                yield from _missing(world, item, path, reference)
            yield from _unused(item, pod, path, reference)
        yield from _requests(world, item, pod)


def _namespace(item: Item) -> str:
    return str(item.obj.metadata.namespace or "default")


def _missing(
    world: World, item: Item, path: str, reference: PodResourceClaim | PodGroupResourceClaim
) -> Iterator[Finding]:
    namespace = _namespace(item)
    sources = {
        "resourceClaimName": ("claim", reference.resource_claim_name, world.claims),
        "resourceClaimTemplateName": ("template", reference.resource_claim_template_name, world.templates),
    }
    for field, (what, name, known) in sources.items():
        if name and f"{namespace}/{name}" not in known:
            names = [key.partition("/")[2] for key in known if key.startswith(f"{namespace}/")]
            near = difflib.get_close_matches(name[:256], names, n=1)
            elsewhere = next((key for key in known if key.endswith(f"/{name}")), None)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {elsewhere}" if elsewhere else ""
            message = f"there is no {what} {namespace}/{name}"
            yield finding(item, "claim-not-found", f"{path}.{field}", message, hint)


def _unused(item: Item, pod: Pod, path: str, reference: PodResourceClaim) -> Iterator[Finding]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    if not any(use.name == reference.name for container in containers for use in container.resources.claims):
        message = f"is allocated for the pod, but no container has {reference.name!r} in its resources.claims"
        yield finding(item, "claim-unused", path, message)


def _requests(world: World, item: Item, pod: Pod) -> Iterator[Finding]:
    claims = {reference.name: _claim(world, item, reference) for reference in pod.spec.resource_claims}
    for field, containers in {"initContainers": pod.spec.init_containers, "containers": pod.spec.containers}.items():
        for number, container in enumerate(containers):
            for index, use in enumerate(container.resources.claims):
                claim = claims.get(use.name)
                names = [request.name for request in claim.requests] if claim else []
                if claim and use.request and use.request not in names:
                    near = difflib.get_close_matches(use.request[:256], names, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names) or 'none'}"
                    path = f"spec.{field}[{number}].resources.claims[{index}].request"
                    message = f"claim {use.name!r} has no request {use.request!r}"
                    yield finding(item, "request-not-found", path, message, hint)


def _claim(world: World, item: Item, reference: PodResourceClaim) -> DeviceClaim | None:
    namespace = _namespace(item)
    claim = world.claims.get(f"{namespace}/{reference.resource_claim_name}")
    if claim is not None:
        return claim.spec.devices
    template = world.templates.get(f"{namespace}/{reference.resource_claim_template_name}")
    return template.spec.spec.devices if template is not None else None
