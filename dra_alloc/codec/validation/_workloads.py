"""The claims of Pods, PodGroups and Workloads (KEP-5729). What else these objects say is not checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dra_alloc.api import (
    CompositePodGroupTemplate,
    Container,
    Pod,
    PodExtendedResourceClaimStatus,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
    PodGroupTemplate,
    PodResourceClaim,
    PodResourceClaimStatus,
    Workload,
)
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._meta import metadata
from dra_alloc.codec.validation._problems import (
    Problem,
    at,
    duplicate,
    each,
    immutable,
    invalid,
    keyed,
    listed,
    required,
    unique,
)

__all__ = ["pod", "pod_group", "workload"]

GROUP_CLAIMS_MAX = 4
TEMPLATES_MAX = 8
#: How deep templates of groups may lie in each other before what is below is no longer looked at.
DEPTH_MAX = 16


def pod(new: Pod, old: Pod | None) -> Iterator[Problem]:
    """Problems of the claims of a pod, of its containers' use of them, and of their status."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=True))
    claims = new.spec.resource_claims
    if old is not None:
        yield from at("spec", immutable("resourceClaims", claims, old.spec.resource_claims))
    else:
        yield from at("spec", _claims(claims))
    names = {claim.name for claim in claims}
    containers = {"initContainers": new.spec.init_containers, "containers": new.spec.containers}
    for field, items in containers.items():
        yield from at("spec", each(items, lambda item: _uses(item, names), field))
    if new.status is not None:
        yield from at("status", _claim_statuses(new.status.resource_claim_statuses, names))
        if new.status.extended_resource_claim_status is not None:
            yield from at(
                "status.extendedResourceClaimStatus", _extended(new, new.status.extended_resource_claim_status)
            )


def pod_group(new: PodGroup, old: PodGroup | None) -> Iterator[Problem]:
    """Problems of the claims of a PodGroup and of their status."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=True))
    claims = new.spec.resource_claims
    if old is not None:
        yield from at("spec", immutable("resourceClaims", claims, old.spec.resource_claims))
    else:
        yield from at("spec", _group_claims(claims))
    if new.status is not None:
        statuses = new.status.resource_claim_statuses
        yield from at("status", listed(statuses, GROUP_CLAIMS_MAX, lambda _: (), "resourceClaimStatuses"))
        if len(statuses) <= GROUP_CLAIMS_MAX:
            yield from at("status", _claim_statuses(statuses, {claim.name for claim in claims}))


def workload(new: Workload, old: Workload | None) -> Iterator[Problem]:
    """Problems of the claims in the templates of a Workload."""
    yield from at("metadata", metadata(new.metadata, old.metadata if old else None, namespaced=True))
    if old is not None:
        before, after = ({item.name: item for item in o.spec.pod_group_templates} for o in (old, new))
        for index, template in enumerate(new.spec.pod_group_templates):
            stored = before.get(template.name)
            if stored is not None:
                field = f"spec.podGroupTemplates[{index}]"
                yield from at(field, immutable("resourceClaims", template.resource_claims, stored.resource_claims))
        yield from at("spec", immutable("podGroupTemplates", list(after), list(before)))
        return
    yield from at("spec", _templates(new.spec.pod_group_templates))
    yield from at("spec", _composites(new.spec.composite_pod_group_templates, DEPTH_MAX))


def _templates(templates: Sequence[PodGroupTemplate]) -> Iterator[Problem]:
    field = "podGroupTemplates"
    yield from keyed(templates, TEMPLATES_MAX, _template, lambda item: item.name, field)


def _template(template: PodGroupTemplate) -> Iterator[Problem]:
    yield from at("name", formats.label(template.name))
    yield from _group_claims(template.resource_claims)


def _composites(templates: Sequence[CompositePodGroupTemplate], depth: int) -> Iterator[Problem]:
    def composite(template: CompositePodGroupTemplate) -> Iterator[Problem]:
        yield from _templates(template.pod_group_templates)
        if depth:
            yield from _composites(template.composite_pod_group_templates, depth - 1)

    yield from listed(templates, TEMPLATES_MAX, composite, "compositePodGroupTemplates")


def _group_claims(claims: Sequence[PodGroupResourceClaim]) -> Iterator[Problem]:
    yield from keyed(claims, GROUP_CLAIMS_MAX, _claim, lambda item: item.name, "resourceClaims")


def _claims(claims: Sequence[PodResourceClaim]) -> Iterator[Problem]:
    yield from each(claims, _claim, "resourceClaims")
    yield from unique(claims, lambda item: item.name, "resourceClaims")


def _claim(claim: PodResourceClaim | PodGroupResourceClaim) -> Iterator[Problem]:
    yield from at("name", formats.label(claim.name))
    sources = {
        "resourceClaimName": claim.resource_claim_name,
        "resourceClaimTemplateName": claim.resource_claim_template_name,
    }
    given = {field: name for field, name in sources.items() if name is not None}
    if len(given) != 1:
        fault = "sets both resourceClaimName and resourceClaimTemplateName" if given else "names no claim"
        yield Problem("", fault, "exactly one of resourceClaimName, resourceClaimTemplateName")
    for field, name in given.items():
        yield from at(field, formats.subdomain(name))


def _uses(container: Container, names: Collection[str]) -> Iterator[Problem]:
    uses = container.resources.claims
    seen: dict[str, set[str]] = {}
    for index, use in enumerate(uses):
        field = f"resources.claims[{index}]"
        if not use.name:
            yield from at(f"{field}.name", [required("the name of an entry of spec.resourceClaims")])
        elif use.name not in names:
            hint = f"one of {', '.join(sorted(names)[:16])}" if names else "the pod has no resourceClaims"
            yield from at(f"{field}.name", [invalid(use.name, "is no claim of the pod", hint)])
        if use.request:
            yield from at(f"{field}.request", formats.label(use.request))
        # The whole claim and one of its requests side by side are as much a repetition as the same entry twice.
        requests = seen.setdefault(use.name, set())
        if requests and (not use.request or requests & {"", use.request}):
            yield from at(field, [duplicate(f"{use.name}/{use.request}" if use.request else use.name)])
        requests.add(use.request or "")


def _claim_statuses(
    statuses: Sequence[PodResourceClaimStatus | PodGroupResourceClaimStatus], names: Collection[str]
) -> Iterator[Problem]:
    field = "resourceClaimStatuses"
    for index, status in enumerate(statuses):
        if status.name not in names:
            yield from at(f"{field}[{index}].name", [invalid(status.name, "is no claim in spec.resourceClaims")])
        if status.resource_claim_name is not None:
            yield from at(f"{field}[{index}].resourceClaimName", formats.subdomain(status.resource_claim_name))
    yield from unique(statuses, lambda item: item.name, field)


def _extended(owner: Pod, status: PodExtendedResourceClaimStatus) -> Iterator[Problem]:
    yield from at("resourceClaimName", formats.subdomain(status.resource_claim_name))
    if not status.request_mappings:
        yield from at("requestMappings", [required("at least one mapping")])
    containers = {item.name: item for item in (*owner.spec.init_containers, *owner.spec.containers)}
    for index, mapping in enumerate(status.request_mappings):
        field = f"requestMappings[{index}]"
        yield from at(f"{field}.requestName", formats.label(mapping.request_name))
        container = containers.get(mapping.container_name)
        if container is None:
            yield from at(f"{field}.containerName", [invalid(mapping.container_name, "is no container of the pod")])
        elif mapping.resource_name not in container.resources.requests:
            fault = f"is not requested by container {mapping.container_name!r}"
            yield from at(f"{field}.resourceName", [invalid(mapping.resource_name, fault)])
