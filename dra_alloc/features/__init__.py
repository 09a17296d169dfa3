"""One module a feature of DRA that surrounds the search (KEP by KEP); the main functions of each are here as well.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dra_alloc.features.adminaccess import check_admin_access as check_admin_access
    from dra_alloc.features.binding import BindingState as BindingState
    from dra_alloc.features.binding import claim_readiness as claim_readiness
    from dra_alloc.features.binding import pod_readiness as pod_readiness
    from dra_alloc.features.binding import retry_plan as retry_plan
    from dra_alloc.features.devicestatus import addresses as addresses
    from dra_alloc.features.devicestatus import cluster_addresses as cluster_addresses
    from dra_alloc.features.devicestatus import device_status as device_status
    from dra_alloc.features.devicestatus import in_network as in_network
    from dra_alloc.features.devicestatus import put_device_status as put_device_status
    from dra_alloc.features.devicestatus import remove_device_status as remove_device_status
    from dra_alloc.features.devicestatus import update_status as update_status
    from dra_alloc.features.extended import extended_claim as extended_claim
    from dra_alloc.features.groups import GroupPlan as GroupPlan
    from dra_alloc.features.groups import group_retry as group_retry
    from dra_alloc.features.groups import make_pod_groups as make_pod_groups
    from dra_alloc.features.metadata import MetadataWriter as MetadataWriter
    from dra_alloc.features.metadata import read_claim as read_claim
    from dra_alloc.features.metadata import read_template_claim as read_template_claim
    from dra_alloc.features.nodeoperations import node_calls as node_calls
    from dra_alloc.features.nodeoperations import pod_node_calls as pod_node_calls
    from dra_alloc.features.noderesources import Refusal as Refusal
    from dra_alloc.features.pods import PodPlan as PodPlan
    from dra_alloc.features.poolstatus import answer_request as answer_request
    from dra_alloc.features.poolstatus import pool_status as pool_status
    from dra_alloc.features.quota import quota_usage as quota_usage
    from dra_alloc.features.score import normalize as normalize
    from dra_alloc.features.score import score_allocations as score_allocations
    from dra_alloc.features.standard import pci_attributes as pci_attributes
    from dra_alloc.features.taints import DeviceTaints as DeviceTaints
    from dra_alloc.features.taints import eviction_plan as eviction_plan
    from dra_alloc.features.taints import plan_evictions as plan_evictions
    from dra_alloc.features.taints import try_rule as try_rule

#: Where each name lives. The block under TYPE_CHECKING says the same to type checkers; a test compares them.
_EXPORTS: dict[str, str] = {
    "BindingState": "binding",
    "DeviceTaints": "taints",
    "GroupPlan": "groups",
    "MetadataWriter": "metadata",
    "PodPlan": "pods",
    "Refusal": "noderesources",
    "addresses": "devicestatus",
    "answer_request": "poolstatus",
    "check_admin_access": "adminaccess",
    "claim_readiness": "binding",
    "cluster_addresses": "devicestatus",
    "device_status": "devicestatus",
    "eviction_plan": "taints",
    "extended_claim": "extended",
    "group_retry": "groups",
    "in_network": "devicestatus",
    "make_pod_groups": "groups",
    "node_calls": "nodeoperations",
    "normalize": "score",
    "pci_attributes": "standard",
    "plan_evictions": "taints",
    "pod_node_calls": "nodeoperations",
    "pod_readiness": "binding",
    "pool_status": "poolstatus",
    "put_device_status": "devicestatus",
    "quota_usage": "quota",
    "read_claim": "metadata",
    "read_template_claim": "metadata",
    "remove_device_status": "devicestatus",
    "retry_plan": "binding",
    "score_allocations": "score",
    "try_rule": "taints",
    "update_status": "devicestatus",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'dra_alloc.features' has no attribute {name!r}")
    value: object = getattr(import_module(f"dra_alloc.features.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
