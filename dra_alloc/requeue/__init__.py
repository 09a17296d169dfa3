"""Which pending pods an event may help (KEP-6132): `RequeueIndex`.

`dra_alloc._waiting` reduces a pod to what decides about waking it, `demands` turns that into keys, by which
`_core.Postings` finds it, `judge` says which wants a device serves, `changes` compares devices before and after an
event, and `index` puts it all together.
"""

from __future__ import annotations

from dra_alloc.requeue.index import RequeueIndex
from dra_alloc.requeue.reasons import Blocking, Reasoned

__all__ = ["Blocking", "Reasoned", "RequeueIndex"]
