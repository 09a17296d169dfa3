"""What would help: the least changes with which claims or a pod fit, and which pods would have to go.

Everything that is proposed has been tried: in a fork of the cluster, by the allocator.
"""

from __future__ import annotations

from dra_alloc.whatif._search import WhatIfBudget, whatif
from dra_alloc.whatif.model import Change, Remedy, WhatIf
from dra_alloc.whatif.preemption import Preemption, preempt

__all__ = ["Change", "Preemption", "Remedy", "WhatIf", "WhatIfBudget", "preempt", "whatif"]
