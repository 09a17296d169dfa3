"""Assertions about what claims and pods get, which explain themselves when they fail.

The pytest plugin (`dra_alloc.testing.plugin`) hands them out as fixtures; `Kit` is for other test runners.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dra_alloc.allocator import Allocation, Allocator
from dra_alloc.errors import DraError
from dra_alloc.explain.reasons import REASONS

if TYPE_CHECKING:
    from dra_alloc.api import DeviceRequestAllocationResult
    from dra_alloc.explain import Explanation

__all__ = ["Kit"]

#: Devices as a test expects them: names in the order of the results, in any order (a set), or by request.
Devices = Sequence[str] | Collection[str] | Mapping[str, "Sequence[str] | Collection[str] | str"] | str


@attrs.frozen(eq=False)
class Kit:
    """Assertions over one allocator. Failures are AssertionErrors whose text is the explanation."""

    allocator: Allocator

    def assert_allocates(
        self, claims: Any = None, *, pod: Any = None, node: str | None = None, devices: Devices | None = None
    ) -> Allocation:
        """The claims, or the pod, fit, and get these devices. Returns the results, one for each claim in order.

        claims: a claim or several, as for `Allocator.allocate`. pod: a pod instead, as for `Allocator.allocate_pod`.
        node: where; default is the first node that fits.
        devices: what they must get, as `device`, `pool/device` or `driver/pool/device`: a list in the order of the
        results, a set in any order, or a mapping from the request (`req`, `req/sub`) to either; None: whatever.

        Raises AssertionError if they do not fit, with the explanation, or get others; DraError if the question itself
        is wrong (no such claim or node).
        """
        __tracebackhide__ = True
        ask = _Ask(self.allocator, claims, pod)
        where = node if node is not None else ask.first_node()
        found = None if where is None else ask.allocate(where)
        if found is None:
            raise AssertionError(f"{ask.title} {_place(node)} should fit, but\n{ask.explain(node).text()}")
        given = [result for allocation in found for result in allocation.devices.results]
        if devices is not None and (fault := _difference(given, devices)):
            raise AssertionError(f"{ask.title} on node {where} should get other devices\n{fault}")
        return found

    def assert_not_allocates(
        self,
        claims: Any = None,
        *,
        pod: Any = None,
        node: str | None = None,
        reason: str | None = None,
    ) -> Explanation:
        """The claims, or the pod, fit on no node (or not on this one), for this reason. Returns the explanation.

        reason: a code of docs/reasons.md. It must be that of the node, of the requests' conflict, or of a rule that
        rules out devices; None: whatever. An attempt that ends with an error does not allocate, and the kind of the
        error is its reason.

        Raises AssertionError if they fit, or for another reason, with the explanation; ValueError for an unknown code.
        """
        __tracebackhide__ = True
        if reason is not None and reason not in REASONS:
            near = difflib.get_close_matches(reason, REASONS, n=3) or list(REASONS)
            raise ValueError(f"there is no reason {reason!r}; did you mean {' or '.join(near)}?")
        ask = _Ask(self.allocator, claims, pod)
        why = ask.explain(node)
        if why.fits:
            raise AssertionError(f"{ask.title} {_place(node)} should not fit, but\n{why.text()}")
        codes = list(dict.fromkeys(_codes(why)))
        if reason is not None and reason not in codes:
            raise AssertionError(
                f"{ask.title} {_place(node)} should not fit for the reason {reason}; "
                f"it is {', '.join(codes)}\n{why.text()}"
            )
        return why


class _Ask:
    """A question about claims or about a pod."""

    def __init__(self, allocator: Allocator, claims: Any, pod: Any) -> None:
        if (claims is None) == (pod is None):
            raise TypeError("assertions take claims or pod=…, one of them")
        self._allocator = allocator
        self._claims = claims
        self._pod = pod
        self.title = f"pod {_name(pod)}" if pod is not None else _title(claims)
        _warn_of_unknown_fields([pod] if pod is not None else _several(claims))

    def first_node(self) -> str | None:
        """The first node that fits; None also where the attempt ends with an error, which the explanation tells."""
        __tracebackhide__ = True
        try:
            return next(iter(self._allocator.feasible_nodes(self._claims, pod=self._pod, limit=1)), None)
        except DraError as error:
            self._needs_explanation(None, error)
            return None

    def allocate(self, node: str) -> Allocation | None:
        """What is had on a node; None as above."""
        __tracebackhide__ = True
        try:
            if self._pod is None:
                return self._allocator.allocate(self._claims, node=node)
            plan = self._allocator.allocate_pod(self._pod, node=node)
            return None if plan is None else Allocation(plan.allocations)
        except DraError as error:
            self._needs_explanation(node, error)
            return None

    def _needs_explanation(self, node: str | None, error: DraError) -> None:
        """Raise an error that is about the question itself, without the insides of the library."""
        __tracebackhide__ = True
        try:
            explained = self.explain(node).failure is not None
        except DraError:
            explained = False
        if not explained:
            raise error.with_traceback(None) from None

    def explain(self, node: str | None) -> Explanation:
        return self._allocator.explain(self._claims, pod=self._pod, node=node)


def _difference(given: Sequence[DeviceRequestAllocationResult], wanted: Devices) -> str:
    """What differs, by request where that is asked for; empty if nothing does."""
    if not isinstance(wanted, Mapping):
        return _unlike(given, wanted)
    requests = list(dict.fromkeys([*wanted, *(result.request for result in given)]))
    faults = {
        name: _unlike([each for each in given if each.request == name], wanted.get(name, ())) for name in requests
    }
    return "\n".join(f"request {name}:\n{fault}" for name, fault in faults.items() if fault)


def _unlike(given: Sequence[DeviceRequestAllocationResult], wanted: Collection[str] | str) -> str:
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    full = [(result.driver, result.pool, result.device) for result in given]
    same = len(full) == len(names)
    if isinstance(wanted, Sequence):
        same = same and all(map(_is, full, names))
    else:
        left = list(full)
        for name in sorted(names, key=lambda each: -each.count("/")):  # the most exact names choose first
            match = next((device for device in left if _is(device, name)), None)
            same = same and match is not None
            if match is not None:
                left.remove(match)
    if same:
        return ""
    return f"  expected: {', '.join(names) or 'none'}\n  actual:   {', '.join(map('/'.join, full)) or 'none'}"


def _is(device: tuple[str, str, str], name: str) -> bool:
    """Whether a device is the one of this name, which may leave out driver and pool. Drivers hold no slash."""
    driver, pool, short = device
    return name in (short, f"{pool}/{short}", f"{driver}/{pool}/{short}")


def _codes(why: Explanation) -> Iterator[str]:
    """All reasons that an explanation names, the decisive one first."""
    yield why.code
    for node in why.explained():
        yield node.code
        if node.failure is not None:
            yield node.failure.code
        if node.conflict is not None:
            yield node.conflict.code
            yield from (entry.code for entry in node.conflict.rest)
        for request in node.requests:
            if not request.enough:
                yield from (entry.code for entry in request.ruled_out)
    yield from (group.code for group in why.groups)


def _place(node: str | None) -> str:
    return "on any node" if node is None else f"on node {node}"


def _several(claims: Any) -> list[Any]:
    return list(claims) if isinstance(claims, Iterable) and not isinstance(claims, str | Mapping) else [claims]


def _warn_of_unknown_fields(items: Iterable[Any]) -> None:
    """A field that a test misspells is one that it does not test: say so at the line that asserts."""
    from dra_alloc.codec import load

    for warning in load(*(item for item in items if isinstance(item, Mapping))).warnings:
        warnings.warn(str(warning), stacklevel=4)


def _title(claims: Any) -> str:
    names = [_name(claim) for claim in _several(claims)]
    return f"claim{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _name(item: Any) -> str:
    from dra_alloc.codec import decode

    return item if isinstance(item, str) else decode(item).metadata.key
