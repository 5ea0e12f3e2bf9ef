"""What the events of tasks are called by those who speak of leases and nodes; the view `task_events` says so.

Several moves may have one name there: it has a row for each event, and the move beside its name. What is not in the
table is called as its move.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from aaiclick.orchestration.rules.states import LATE_REPORT

REASSIGNED = "reassigned"
"""A claim, where the run before it was lost with its worker."""

EPOCHS_BETWEEN = 2
"""By how much the epoch of a claim is above that of a lost run before it: the recovery raised it, and the claim."""

EVENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "claim": "assigned",
        "release": "pending",
        "start": "started",
        "complete": "completed",
        "fail": "failed",
        "recover": "lease_expired",
        "retry": "pending",
        "give_up": "failed",
        "doom": "upstream_failed",
        "skip": "skipped",
        "cancel": "cancelled",
        "clear": "pending",
        "remove": "removed",
        LATE_REPORT: LATE_REPORT,
    }
)
"""By the move of a task's event. `lease_expired`: the end of a session ends all that it held."""
