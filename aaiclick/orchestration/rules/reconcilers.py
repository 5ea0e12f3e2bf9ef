"""What became of a reconciler, which the leader writes down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ReconcilerRecord:
    """All runs of one reconciler, under whoever led."""

    name: str
    runs: int = 0
    done: int = 0
    """How many things it found to do, in all."""
    failures: int = 0
    """How many of the runs failed."""
    seconds: float = 0.0
    """What all of them took."""
    ran_at: datetime | None = None
    """When it ran last."""
    ran_s_ago: float | None = None
    """The same, by the database's time."""
    trouble: str | None = None
    """Why it failed last."""
    trouble_at: datetime | None = None

    @property
    def is_failing(self) -> bool:
        """Whether its last run failed."""
        return self.trouble_at is not None and self.ran_at is not None and self.trouble_at >= self.ran_at
