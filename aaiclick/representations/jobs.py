"""Jobs: one by one, in pages, in numbers, and where they failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from aaiclick.representations.expectations import UnmetAnswer, unmet_answers
from aaiclick.representations.fields import Form, Id, Time, facts_of, next_id

if TYPE_CHECKING:
    from aaiclick.orchestration.jobs import JobStats, TaskError
    from aaiclick.orchestration.models import Job
    from aaiclick.orchestration.queries.expectations import Unmet
    from aaiclick.orchestration.rules.values.shown_values import ShownValue


class JobAnswer(TypedDict):
    """A job: one run of a workflow."""

    id: Id
    name: str
    key: str | None
    status: str
    run_type: str
    preservation_mode: str
    registered_job_id: Id | None
    priority: int
    timeout_s: float | None
    fail_fast: bool
    arguments: Annotated[dict[str, Any] | None, Form(description="What it was called with: shortened and masked.")]
    scheduled_at: Annotated[Time | None, Form(description="The time of a schedule that it runs for.")]
    backfill_id: Id | None
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    skipped_tasks: int
    created_at: Time | None
    started_at: Time | None
    completed_at: Time | None
    error: str | None


class JobPage(TypedDict):
    """Jobs, the newest first. `next` is the `before` of the page after this; null on the last one."""

    jobs: list[JobAnswer]
    next: Id | None


class TaskErrorAnswer(TypedDict):
    """A task that failed: what was said, and where that was."""

    task_id: Id
    name: str
    error: str | None
    traceback: str | None


class JobErrors(TypedDict):
    """Tasks of a job that failed, with where they did; and what tasks expected of their data and did not find."""

    errors: list[TaskErrorAnswer]
    expectations: list[UnmetAnswer]


class JobDetail(JobAnswer, JobErrors):
    """A job with where it failed, as a command shows it at once."""


class JobDetailWithResult(JobDetail):
    """The same, with what the workflow returned."""

    result: Any
    result_complete: bool
    result_size: int


class ResultAnswer(TypedDict):
    """What a workflow returned. Of what is too large, `result` is the beginning of its JSON as a text."""

    job_id: Id
    result: Any
    complete: bool
    size: Annotated[int, Form(description="How many characters its JSON has, or has at least.")]


class Cancelled(TypedDict):
    """False if the job had ended before."""

    cancelled: bool


class StatsAnswer(TypedDict):
    """A job in numbers."""

    job_id: Id
    name: str
    status: str
    total_tasks: int
    completed_tasks: int
    by_status: dict[str, int]
    error: str | None
    queued_s: float | None
    duration_s: float | None


def job_answer(job: Job) -> JobAnswer:
    """Return a job as JSON data."""
    return facts_of(JobAnswer, job)


def job_page(jobs: Sequence[Job], limit: int | None) -> JobPage:
    """Return a page of jobs."""
    return JobPage(jobs=[job_answer(job) for job in jobs], next=next_id(jobs, limit))


def job_errors(found: Sequence[TaskError], unmet: Sequence[Unmet]) -> JobErrors:
    """Return where the tasks of a job failed."""
    return JobErrors(errors=[facts_of(TaskErrorAnswer, each) for each in found], expectations=unmet_answers(unmet))


def job_detail(job: Job, errors: JobErrors, result: ShownValue | None = None) -> JobDetail:
    """Return a job with where it failed, and with what it returned if that was asked for."""
    detail = JobDetail(**job_answer(job), **errors)
    if result is None:
        return detail
    return JobDetailWithResult(**detail, result=result.value, result_complete=result.complete, result_size=result.size)


def result_answer(job_id: int, found: ShownValue) -> ResultAnswer:
    """Return what a job returned."""
    return ResultAnswer(job_id=str(job_id), result=found.value, complete=found.complete, size=found.size)


def stats_answer(stats: JobStats) -> StatsAnswer:
    """Return a job in numbers."""
    return facts_of(StatsAnswer, stats)
