"""Findings about DeviceClasses."""

from __future__ import annotations

from collections.abc import Iterator

from dra_alloc.api import DeviceClass
from dra_alloc.lint._findings import Finding
from dra_alloc.lint._world import Failure, Item, World, finding

__all__ = ["check_classes", "failed_selector"]


def check_classes(world: World) -> Iterator[Finding]:
    """Classes that no device belongs to, selectors that fail, two classes for one extended resource."""
    served: dict[str, str] = {}
    for item, obj in world.of(DeviceClass):
        resource = obj.spec.extended_resource_name
        if resource and served.setdefault(resource, obj.metadata.name) != obj.metadata.name:
            message = f"class {served[resource]!r} serves {resource} as well; the one created later wins"
            hint = "one class for each extended resource"
            yield finding(item, "extended-resource-clash", "spec.extendedResourceName", message, hint)
        if not world.rows:
            continue
        selection = world.select(world.rows, obj.spec.selectors)
        for failure in selection.failures:
            yield failed_selector(item, "spec.selectors", failure)
        if not selection.rows and not selection.failures and not selection.unknown:
            total = sum(len(row.members) for row in world.rows)
            yield finding(item, "class-without-devices", "spec.selectors", f"none of {total} published devices passes")


def failed_selector(item: Item, path: str, failure: Failure) -> Finding:
    """A selector that fails on devices."""
    more = f" and {failure.count - 1} more" if failure.count > 1 else ""
    message = f"fails on device {failure.device.name}{more}: {failure.message}"
    if failure.other is not None:
        hint = f"is another domain meant? The device has {failure.other}"
    else:
        hint = "test with has() or use .? and orValue() where a device may lack the attribute; test device.driver first"
    return finding(item, "selector-fails", f"{path}[{failure.selector}].cel.expression", message, hint)
