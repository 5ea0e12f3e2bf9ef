"""Jobs: one by one, in pages, in numbers, and where they failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

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
    cache_mode: str
    arguments: Annotated[dict[str, Any] | None, Form(description="The arguments, shortened and masked.")]
    scheduled_at: Annotated[Time | None, Form(description="The scheduled time that the job runs for.")]
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
    """Jobs, newest first. `next` is the `before` of the next page; null on the last page."""

    jobs: list[JobAnswer]
    next: Id | None
    total: NotRequired[Annotated[int, Form(description="The number of all jobs that match, if it was asked for.")]]


class TaskErrorAnswer(TypedDict):
    """A failed task: its error and traceback."""

    task_id: Id
    name: str
    error: str | None
    traceback: str | None


class JobErrors(TypedDict):
    """Failed tasks of a job, with their errors; and data expectations that were not met."""

    errors: list[TaskErrorAnswer]
    expectations: list[UnmetAnswer]


class JobDetail(JobAnswer, JobErrors):
    """A job with its errors."""


class JobDetailWithResult(JobDetail):
    """A job with its errors and its result."""

    result: Any
    result_complete: bool
    result_size: int


class ResultAnswer(TypedDict):
    """The result of a job. If it is too large, `result` is the beginning of its JSON as a text."""

    job_id: Id
    result: Any
    complete: bool
    size: Annotated[int, Form(description="The length of its JSON in characters, or a lower bound.")]


class ExactResult(TypedDict):
    """The result of a job in the encoding in which values travel exactly."""

    job_id: Id
    encoded: Annotated[Any, Form(description="null, or an envelope: a JSON value, and marks that say what it was.")]


class Cancelled(TypedDict):
    """False if the job had ended before."""

    cancelled: bool


class StatsAnswer(TypedDict):
    """Statistics of a job."""

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


def job_page(jobs: Sequence[Job], limit: int | None, total: int | None = None) -> JobPage:
    """Return a page of jobs, with the number of all if that is given."""
    page = JobPage(jobs=[job_answer(job) for job in jobs], next=next_id(jobs, limit))
    if total is not None:
        page["total"] = total
    return page


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
