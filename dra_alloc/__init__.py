"""Kubernetes Dynamic Resource Allocation, decided in Python at C speed.

Public names are imported when they are first used, so that `import dra_alloc` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dra_alloc._core import Cancel as Cancel
    from dra_alloc.allocator import Allocation as Allocation
    from dra_alloc.allocator import Allocator as Allocator
    from dra_alloc.allocator import Budget as Budget
    from dra_alloc.cluster import Cluster as Cluster
    from dra_alloc.codec import DecodeWarning as DecodeWarning
    from dra_alloc.codec import Loaded as Loaded
    from dra_alloc.codec import decode as decode
    from dra_alloc.codec import dump_yaml as dump_yaml
    from dra_alloc.codec import encode as encode
    from dra_alloc.codec import load as load
    from dra_alloc.codec.validation import Problem as Problem
    from dra_alloc.codec.validation import validate as validate
    from dra_alloc.codec.validation import warnings as warnings
    from dra_alloc.errors import AllocationError as AllocationError
    from dra_alloc.errors import BudgetExceeded as BudgetExceeded
    from dra_alloc.errors import Cancelled as Cancelled
    from dra_alloc.errors import CelError as CelError
    from dra_alloc.errors import Conflict as Conflict
    from dra_alloc.errors import DecodeError as DecodeError
    from dra_alloc.errors import DraError as DraError
    from dra_alloc.errors import MissingExtra as MissingExtra
    from dra_alloc.errors import ValidationError as ValidationError
    from dra_alloc.events import Event as Event
    from dra_alloc.explain import Explanation as Explanation
    from dra_alloc.gates import Features as Features
    from dra_alloc.pending import PendingQueue as PendingQueue
    from dra_alloc.preference import Chosen as Chosen
    from dra_alloc.preference import Preferred as Preferred
    from dra_alloc.report import render_report as render_report
    from dra_alloc.requeue import RequeueIndex as RequeueIndex
    from dra_alloc.status import cluster_status as cluster_status
    from dra_alloc.sweeps import sweep as sweep
    from dra_alloc.whatif import Preemption as Preemption
    from dra_alloc.whatif import WhatIf as WhatIf
    from dra_alloc.whatif import WhatIfBudget as WhatIfBudget

__version__ = "0.1.0"

#: Where each public name lives. The block under TYPE_CHECKING says the same to type checkers; a test compares them.
_EXPORTS: dict[str, str] = {
    "Explanation": "dra_alloc.explain",
    "WhatIf": "dra_alloc.whatif",
    "WhatIfBudget": "dra_alloc.whatif",
    "Preemption": "dra_alloc.whatif",
    "cluster_status": "dra_alloc.status",
    "render_report": "dra_alloc.report",
    "Allocation": "dra_alloc.allocator",
    "AllocationError": "dra_alloc.errors",
    "Allocator": "dra_alloc.allocator",
    "Budget": "dra_alloc.allocator",
    "BudgetExceeded": "dra_alloc.errors",
    "Cancel": "dra_alloc._core",
    "Cancelled": "dra_alloc.errors",
    "CelError": "dra_alloc.errors",
    "Chosen": "dra_alloc.preference",
    "Cluster": "dra_alloc.cluster",
    "Conflict": "dra_alloc.errors",
    "DecodeError": "dra_alloc.errors",
    "DecodeWarning": "dra_alloc.codec",
    "DraError": "dra_alloc.errors",
    "Event": "dra_alloc.events",
    "Features": "dra_alloc.gates",
    "Loaded": "dra_alloc.codec",
    "MissingExtra": "dra_alloc.errors",
    "PendingQueue": "dra_alloc.pending",
    "Preferred": "dra_alloc.preference",
    "Problem": "dra_alloc.codec.validation",
    "RequeueIndex": "dra_alloc.requeue",
    "ValidationError": "dra_alloc.errors",
    "decode": "dra_alloc.codec",
    "dump_yaml": "dra_alloc.codec",
    "encode": "dra_alloc.codec",
    "load": "dra_alloc.codec",
    "sweep": "dra_alloc.sweeps",
    "validate": "dra_alloc.codec.validation",
    "warnings": "dra_alloc.codec.validation",
}

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> object:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'dra_alloc' has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
