"""PodGroups from the templates of a Workload, as its controller makes them (KEP-4671, KEP-5729)."""

from __future__ import annotations

from dra_alloc.api import (
    ObjectMeta,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    Workload,
    WorkloadReference,
)
from dra_alloc.features._objects import controlled_by, key_of, refused

__all__ = ["make_pod_groups"]


def make_pod_groups(workload: Workload) -> tuple[PodGroup, ...]:
    """One PodGroup for each of `spec.podGroupTemplates`, named `<workload>-<template>`, its claims included.

    Raises ValidationError if two templates have one name.
    """
    groups: dict[str, PodGroup] = {}
    for position, template in enumerate(workload.spec.pod_group_templates):
        if template.name in groups:
            raise refused(
                f"Workload {key_of(workload.metadata)}: spec.podGroupTemplates[{position}].name",
                f"{template.name!r} is the name of a template before",
                "each template needs a name of its own",
            )
        groups[template.name] = _group(workload, template)
    return tuple(groups.values())


def _group(workload: Workload, template: PodGroupTemplate) -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(
            name=f"{workload.metadata.name}-{template.name}",
            namespace=workload.metadata.namespace,
            owner_references=(controlled_by(workload),),
        ),
        spec=PodGroupSpec(
            scheduling_policy=template.scheduling_policy,
            resource_claims=template.resource_claims,
            scheduling_constraints=template.scheduling_constraints,
            disruption_mode=template.disruption_mode,
            preemption_policy=template.preemption_policy,
            priority=template.priority,
            priority_class_name=template.priority_class_name,
            workload_ref=WorkloadReference(workload_name=workload.metadata.name, template_name=template.name),
        ),
    )
