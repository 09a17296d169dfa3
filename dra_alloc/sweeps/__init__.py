"""Many what-ifs over one cluster: scenarios, run here, in threads, in processes, or on Dask.

`dra_alloc.sweep` is the way in; docs/sweep.md shows it.
"""

from __future__ import annotations

from dra_alloc.sweeps.model import Outcome, Placement, Scenario, table
from dra_alloc.sweeps.plan import Plan, read_plan
from dra_alloc.sweeps.running import sweep

__all__ = ["Outcome", "Placement", "Plan", "Scenario", "read_plan", "sweep", "table"]
