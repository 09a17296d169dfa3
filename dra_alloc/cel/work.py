"""What one evaluation may do besides what it is charged for.

Costs are those of the reference, and some are far below the work: reversing a list, or formatting or comparing lists
of lists, costs next to nothing. Functions of that kind spend from a second budget, which the reference does not have.
"""

from __future__ import annotations

import threading
from typing import Final

__all__ = ["MAX_WORK", "Halt", "begin_work", "exhaust", "spend"]

#: Elements that the functions of one evaluation may go over.
MAX_WORK: Final = 1 << 22


class Halt(Exception):
    """An error that ends the evaluation whatever surrounds it: the cost limit, a bound on memory, an internal error."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class _Work(threading.local):
    left = MAX_WORK


_WORK = _Work()


def begin_work() -> None:
    """Start an evaluation in this thread."""
    _WORK.left = MAX_WORK


def exhaust() -> None:
    """Leave nothing to this thread until the next evaluation begins; what begins none must not need any."""
    _WORK.left = 0


def spend(amount: int) -> None:
    """Take from what the evaluation may do. Raises Halt when nothing is left."""
    _WORK.left -= amount
    if _WORK.left < 0:
        raise Halt("the evaluation takes too many steps")
