"""The plain-search model: the reference answer to every question that `Allocator.allocate` answers.

It tries one device after the other, keeps no state but the list of devices chosen so far, and checks every rule from
scratch at each step. It shares no code with the search and takes exponential time: use it on small inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

from dra_alloc.api import AllocationResult, DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice
from dra_alloc.errors import BudgetExceeded
from dra_alloc.gates import Features
from dra_alloc.testing._plain.nodes import selector_matches
from dra_alloc.testing._plain.pools import gather_pools
from dra_alloc.testing._plain.requests import count_devices, read_claims
from dra_alloc.testing._plain.result import allocation_results
from dra_alloc.testing._plain.rules import Rules
from dra_alloc.testing._plain.search import Search

__all__ = ["plain_allocate"]

_ALL = Features.all()


def plain_allocate(
    claims: Sequence[ResourceClaim],
    node: Node,
    slices: Iterable[ResourceSlice],
    classes: Iterable[DeviceClass],
    taint_rules: Iterable[DeviceTaintRule] = (),
    allocated_claims: Iterable[ResourceClaim] = (),
    features: Features = _ALL,
    *,
    share_ids: Callable[[], str] = lambda: str(uuid4()),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    max_steps: int | None = None,
) -> list[AllocationResult] | None:
    """Allocate `claims` together on `node`; one result per claim in order, or None if they do not fit.

    allocated_claims: claims of others that hold devices. A claim in `claims` that is allocated already keeps its
    allocation, holds its devices, and restricts the answer to the nodes of its node selector.
    share_ids: source of share IDs, called once per share in the order of the results. clock: gives the
    `allocation_timestamp`. max_steps: bound on search steps.

    Raises AllocationError with one of the kinds in docs/errors.md, BudgetExceeded beyond `max_steps` or where the
    search goes too deep for the plain recursion.
    """
    given = [claim.status.allocation if claim.status else None for claim in claims]
    pending = [claim for claim, allocation in zip(claims, given, strict=True) if allocation is None]
    pools = gather_pools(node, list(slices), features)
    holders = {
        claim.metadata.key: claim for claim in (*allocated_claims, *claims) if claim.status and claim.status.allocation
    }
    rules = Rules(node, features, pools, list(taint_rules), list(holders.values()))
    # What is wrong with a claim on any node shows before what keeps the claims from this one.
    plans = read_claims(pending, list(classes), rules)
    if any(allocation and not selector_matches(allocation.node_selector, node) for allocation in given):
        return None
    plans = count_devices(plans, rules)
    try:
        picks = Search(plans, rules, max_steps).run()
    except RecursionError:
        raise BudgetExceeded("the plain search is too deep for these claims; ask for fewer devices") from None
    if picks is None:
        return None
    found = iter(allocation_results(plans, picks, node, features, share_ids, clock))
    return [allocation or next(found) for allocation in given]
