"""Requests of a claim, each with its alternatives, as the checks go through them."""

from __future__ import annotations

import attrs

from dra_alloc.api import DeviceClaim, DeviceConstraint, DeviceSubRequest, ExactDeviceRequest

__all__ = ["Body", "Request", "requests_of"]


@attrs.frozen
class Body:
    """What one request, or one alternative of it, asks for. `reference` is `request` or `request/subrequest`."""

    reference: str
    path: str
    spec: ExactDeviceRequest | DeviceSubRequest

    @property
    def takes_all(self) -> bool:
        """Whether it asks for all devices there are."""
        return self.spec.allocation_mode == "All"

    @property
    def fewest(self) -> int:
        """The least number of devices that serve it."""
        return 1 if self.takes_all else max(1, self.spec.count or 1)

    def is_meant_by(self, constraint: DeviceConstraint) -> bool:
        """Whether a constraint is about it."""
        parent = self.reference.partition("/")[0]
        return not constraint.requests or parent in constraint.requests or self.reference in constraint.requests


@attrs.frozen
class Request:
    """A request: one body, or its alternatives in order."""

    name: str
    bodies: tuple[Body, ...]

    @property
    def fewest(self) -> int:
        """The least number of devices that serve the request."""
        return min((body.fewest for body in self.bodies), default=0)


def requests_of(claim: DeviceClaim, path: str) -> list[Request]:
    """The requests of a claim whose specification is at `path`."""
    found = []
    for index, request in enumerate(claim.requests):
        where = f"{path}.requests[{index}]"
        bodies: tuple[Body, ...]
        if request.exactly is not None:
            bodies = (Body(request.name, f"{where}.exactly", request.exactly),)
        else:
            bodies = tuple(
                Body(f"{request.name}/{item.name}", f"{where}.firstAvailable[{number}]", item)
                for number, item in enumerate(request.first_available)
            )
        found.append(Request(request.name, bodies))
    return found
