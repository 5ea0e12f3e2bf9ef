"""Event type names of the view `task_events`, in the vocabulary of schedulers that speak of leases and nodes.

Several moves may share one name: the view has a row for each event, with the move beside the name. A move that is not
in the table keeps its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from aaiclick.orchestration.rules.states import LATE_REPORT

REASSIGNED = "reassigned"
"""The name of a claim that follows a run lost with its worker."""

EPOCHS_BETWEEN = 2
"""The difference between a claim's epoch and that of a lost run before it: the recovery and the claim each add one."""

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
        "leave_out": "skipped",
        "cancel": "cancelled",
        "clear": "pending",
        "remove": "removed",
        LATE_REPORT: LATE_REPORT,
    }
)
"""The name of each move of a task's event. `recover` is `lease_expired`: a session's end ends all its claims."""
