"""`ReconcilerRecord`: the stored outcome of a reconciler's runs, which the leader writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ReconcilerRecord:
    """The totals of all runs of one reconciler, under all leaders."""

    name: str
    runs: int = 0
    done: int = 0
    """The number of things that all runs found to do."""
    failures: int = 0
    """The number of runs that failed."""
    seconds: float = 0.0
    """The duration of all runs together."""
    ran_at: datetime | None = None
    """When the reconciler last ran; None if never."""
    ran_s_ago: float | None = None
    """Seconds since then, by the database's time."""
    trouble: str | None = None
    """The error of the last run that failed."""
    trouble_at: datetime | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last run failed."""
        return self.trouble_at is not None and self.ran_at is not None and self.trouble_at >= self.ran_at
