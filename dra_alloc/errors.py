"""Every exception of the library. They all derive from `DraError`.

"Does not fit" is not an exception: `Allocator.allocate` returns None for it. An exception means that the question
could not be answered, and its message names the object, the field, and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dra_alloc.codec.validation import Problem

__all__ = [
    "AllocationError",
    "BudgetExceeded",
    "Cancelled",
    "CelError",
    "Conflict",
    "DecodeError",
    "DraError",
    "MissingExtra",
    "ValidationError",
]


class DraError(Exception):
    """Base of all exceptions of this library. `kind` is a stable, machine-readable word."""

    kind: str = "error"


class DecodeError(DraError):
    """Input could not be read as Kubernetes objects.

    path: where it is, as precise as known: file, document, object, field path
    (`claims.yaml[2] ResourceClaim default/c: spec.devices`).
    message: what is wrong. hint: what would be right (may be empty).
    """

    kind = "decode"

    def __init__(self, path: str, message: str, hint: str = "") -> None:
        super().__init__(path, message, hint)
        self.path = path
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text} ({self.hint})" if self.hint else text


class ValidationError(DraError):
    """An object breaks rules of the API. `problems` lists all of them, each with path, message, hint."""

    kind = "validation"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(tuple(problems))
        self.problems: tuple[Problem, ...] = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class CelError(DraError):
    """A CEL expression does not compile, or fails on a device.

    expression: its text. offset: position of the fault in characters, or None. message: what is wrong.
    """

    kind = "cel"

    def __init__(self, message: str, expression: str = "", offset: int | None = None) -> None:
        super().__init__(message, expression, offset)
        self.message = message
        self.expression = expression
        self.offset = offset

    @property
    def line(self) -> int | None:
        """1-based line of the fault in the expression, or None."""
        return None if self.offset is None else self.expression.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int | None:
        """1-based column of the fault in its line, or None."""
        return None if self.offset is None else self.offset - self.expression.rfind("\n", 0, self.offset)

    def __str__(self) -> str:
        if self.offset is None or not self.expression:
            return self.message
        line, column = self.line, self.column
        assert line is not None
        assert column is not None
        text = self.expression.split("\n")[line - 1]
        if len(text) > 160:
            start = max(0, column - 80)
            text, column = text[start : start + 160], column - start
        return f"{line}:{self.column}: {self.message}\n | {text}\n | {'.' * (column - 1)}^"


def located(message: str, **places: str) -> str:
    """A message after the places that it is about, those that are not empty: `claim default/c, node n: …`."""
    where = ", ".join(f"{label} {place}" for label, place in places.items() if place)
    return f"{where}: {message}" if where else message


class AllocationError(DraError):
    """The attempt ended with an error of one of the kinds in the reference page "Errors".

    kind: `class-not-found`, `pool-all`, `too-many-devices`, `cel`, `capacity`, `unknown-selector`, `unknown-mode`,
    `all-violates-constraint`, `invalid-pool`, `unknown-constraint`, `unsupported`, `forbidden` (admin access in a
    namespace without the label for it), `node-resources` (what a device takes of its node cannot be told).
    claim: "namespace/name". request: `req` or `req/sub`. device: "driver/pool/device". Each empty where it does not
    apply.
    node: the node of the attempt, empty if the error does not depend on it.
    """

    def __init__(
        self, kind: str, message: str, *, claim: str = "", request: str = "", device: str = "", node: str = ""
    ) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.claim = claim
        self.request = request
        self.device = device
        self.node = node

    def __reduce__(self) -> tuple[object, ...]:
        state = {"claim": self.claim, "request": self.request, "device": self.device, "node": self.node}
        return type(self), (self.kind, self.message), state

    def __str__(self) -> str:
        return located(self.message, claim=self.claim, request=self.request, device=self.device, node=self.node)


class BudgetExceeded(DraError):
    """A search ran out of its budget of steps, time, or memory. Never the same as "does not fit".

    steps: search steps taken. hard: the requests (`claim/request`) that the search spent most of its steps on.
    """

    kind = "budget-exceeded"

    def __init__(self, message: str, *, steps: int = 0, hard: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.steps = steps
        self.hard = tuple(hard)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message,), {"steps": self.steps, "hard": self.hard}


class Cancelled(DraError):
    """The search was cancelled from another thread."""

    kind = "cancelled"


class Conflict(DraError):
    """A commit no longer holds (a device was taken meanwhile, a slice is gone). Nothing was changed."""

    kind = "conflict"


class MissingExtra(DraError):
    """A part of the library needs packages that are not installed; the message names the command that installs them."""

    kind = "missing-extra"
