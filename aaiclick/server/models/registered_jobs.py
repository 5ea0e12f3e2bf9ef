"""What is answered about registered jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel

from aaiclick.orchestration.models import RegisteredJob
from aaiclick.server.models.shown import Id, Shown


class RegisteredJobAnswer(Shown):
    """An entry of the catalogue."""

    id: Id
    name: str
    entrypoint: str
    enabled: bool
    schedule: str | None
    timezone: str
    missed_runs: str
    missed_max: int
    overlap: str
    time_kwarg: str | None
    preservation_mode: str | None
    priority: int
    timeout_s: float | None
    fail_fast: bool
    keep_last: int | None
    next_run_at: datetime | None
    created_at: datetime
    updated_at: datetime


class RegisteredJobList(BaseModel):
    """All entries, in the order of their names."""

    registered_jobs: list[RegisteredJobAnswer]

    @classmethod
    def of(cls, entries: list[RegisteredJob]) -> Self:
        return cls(registered_jobs=[RegisteredJobAnswer.of(entry) for entry in entries])
