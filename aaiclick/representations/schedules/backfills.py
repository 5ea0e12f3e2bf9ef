"""Backfills: ranges of past times of a schedule that are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typing_extensions import TypedDict

from aaiclick.representations.fields import Form, Id, Time, facts_of, id_text, next_id, time_text

if TYPE_CHECKING:
    from aaiclick.orchestration.backfills import PlannedTime
    from aaiclick.orchestration.models import Backfill


class BackfillAnswer(TypedDict):
    """A range of past times of a schedule that runs, some times at once."""

    id: Id
    registered_job_id: Id
    status: str
    schedule: str
    timezone: str
    start_at: Time
    end_at: Time
    next_at: Annotated[Time, Form(description="All times before this one are finished.")]
    parallel_max: int
    force: bool
    failed_only: bool
    total: int
    counts: Annotated[dict[str, int], Form(description="The number of its times by outcome.")]
    created_at: Time
    completed_at: Time | None


class BackfillPage(TypedDict):
    """Backfills of a registered job, newest first. `next` is the `before` of the next page."""

    backfills: list[BackfillAnswer]
    next: Id | None


class PlannedAnswer(TypedDict):
    """A time that a backfill covers: its outcome so far, and whether it would run."""

    time: Time
    state: str
    runs: bool
    job_id: Id | None


class BackfillPlan(TypedDict):
    """What a backfill would do."""

    times: list[PlannedAnswer]
    would_run: int
    left_alone: dict[str, int]
    dry_run: bool


def backfill_answer(backfill: Backfill) -> BackfillAnswer:
    """Return how a backfill was asked for, and how far it is."""
    return facts_of(BackfillAnswer, backfill)


def backfill_page(found: Sequence[Backfill], limit: int | None) -> BackfillPage:
    """Return a page of backfills."""
    return BackfillPage(backfills=[backfill_answer(each) for each in found], next=next_id(found, limit))


def backfill_plan(times: Sequence[PlannedTime]) -> BackfillPlan:
    """Return which times would run, and which would not."""
    left = Counter(str(planned.state) for planned in times if not planned.runs)
    return BackfillPlan(
        times=[_planned(each) for each in times],
        would_run=sum(planned.runs for planned in times),
        left_alone=dict(left),
        dry_run=True,
    )


def _planned(each: PlannedTime) -> PlannedAnswer:
    time = time_text(each.fire_at)
    return PlannedAnswer(time=time, state=str(each.state), runs=each.runs, job_id=id_text(each.job_id))
