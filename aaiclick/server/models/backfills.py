"""What is answered about the past times of schedules, and backfills of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from aaiclick.orchestration.backfills import PlannedTime
from aaiclick.orchestration.models import Backfill, Fire
from aaiclick.server.models.shown import Id, Shown, plain


class BackfillAnswer(Shown):
    """A range of past times of a schedule that is being run, so many at once."""

    id: Id
    registered_job_id: Id
    status: str
    schedule: str
    timezone: str
    start_at: datetime
    end_at: datetime
    next_at: datetime = Field(description="All times before this are done with.")
    parallel_max: int
    force: bool
    failed_only: bool
    total: int
    counts: dict[str, int] = Field(description="Its times by what became of them.")
    created_at: datetime
    completed_at: datetime | None


class BackfillPage(BaseModel):
    """Backfills of an entry, the newest first. `next` is the `before` of the next page."""

    backfills: list[BackfillAnswer]
    next: Id | None

    @classmethod
    def of(cls, found: Sequence[Backfill], limit: int) -> Self:
        last = str(found[-1].id) if len(found) == limit else None
        return cls(backfills=[BackfillAnswer.of(each) for each in found], next=last)


class PlannedAnswer(BaseModel):
    """A time that a backfill covers: what became of it so far, and whether it would run."""

    time: datetime
    state: str
    runs: bool
    job_id: Id | None

    @classmethod
    def of(cls, planned: PlannedTime) -> Self:
        job_id = plain("job_id", planned.job_id)
        return cls(time=planned.fire_at, state=str(planned.state), runs=planned.runs, job_id=job_id)


class BackfillPlan(BaseModel):
    """What a backfill would do."""

    times: list[PlannedAnswer]
    would_run: int
    left_alone: dict[str, int]
    dry_run: bool = True

    @classmethod
    def of(cls, times: Sequence[PlannedTime]) -> Self:
        left = Counter(str(planned.state) for planned in times if not planned.runs)
        shown = [PlannedAnswer.of(planned) for planned in times]
        return cls(times=shown, would_run=sum(planned.runs for planned in times), left_alone=dict(left))


class FireAnswer(Shown):
    """What became of one time of a schedule; `job_id` is its latest run."""

    fire_at: datetime
    outcome: str
    job_id: Id | None
    backfill_id: Id | None
    created_at: datetime


class FirePage(BaseModel):
    """Times of an entry, the latest first. `next` is the `before` of the next page."""

    fires: list[FireAnswer]
    next: str | None

    @classmethod
    def of(cls, found: Sequence[Fire], limit: int) -> Self:
        # with Z: in an address, + is a blank
        last = found[-1].fire_at.isoformat().replace("+00:00", "Z") if len(found) == limit else None
        return cls(fires=[FireAnswer.of(each) for each in found], next=last)
