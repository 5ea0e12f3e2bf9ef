"""Jobs: reading them and their results, waiting for them, cancelling them, retrying failed tasks, statistics."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from aaiclick.config import settings
from aaiclick.errors import NotFound, WaitTimeout
from aaiclick.orchestration.blocking import blocking, in_running_loop
from aaiclick.orchestration.connections import connected, coordinated, front_door
from aaiclick.orchestration.models import Dependency, Event, Group, Job, JobStatus, Task
from aaiclick.orchestration.results.references import opened_here
from aaiclick.orchestration.results.task_results import Results
from aaiclick.orchestration.rules.job_stats import JobStats as JobStats
from aaiclick.orchestration.rules.job_stats import stats_text
from aaiclick.orchestration.rules.states import ENDED_JOB, TaskStatus
from aaiclick.orchestration.rules.validation import (
    check_id,
    check_paging,
    check_seconds,
    check_status,
)
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.orchestration.rules.values.shown_values import RESULT_BYTES_MAX, ShownValue, show_value
from aaiclick.orchestration.rules.values.walk import BLOB_SETTING
from aaiclick.orchestration.store.reading import jobs as store
from aaiclick.orchestration.store.reading.dead_letters import list_dead_letters
from aaiclick.orchestration.store.session import Session

ERRORS_SHOWN = 5
"""How many failed tasks of a job are shown by default."""

LOOK_S_MIN, LOOK_S_MAX = 0.02, 1.0
"""The shortest and longest pause between two looks at a job; the pause grows while nothing changes."""


async def get_job(job_id: int) -> Job | None:
    """Return the job as it is now; None if there is none with this id."""
    wanted = check_id(job_id, "job id")
    async with front_door() as coordinator:
        return await coordinator.job(wanted)


async def list_jobs(
    status: JobStatus | str | None = None,
    name_like: str | None = None,
    limit: int | None = None,
    offset: int | None = None,
    *,
    before: int | None = None,
) -> list[Job]:
    """Return jobs, newest first. `name_like` is an SQL pattern (% and _), case-sensitive.

    `before` is the id of the last job of the previous page: unlike `offset`, it costs the same on every page.
    """
    wanted = None if status is None else check_status(status, JobStatus)
    count, start = check_paging(limit, offset)
    below = None if before is None else check_id(before, "before")
    async with connected() as database:
        return await database.read(lambda session: store.list_jobs(session, wanted, name_like, count, start, below))


async def count_jobs(status: JobStatus | str | None = None, name_like: str | None = None) -> int:
    """Return how many jobs `list_jobs` would return without a limit."""
    wanted = None if status is None else check_status(status, JobStatus)
    async with connected() as database:
        return await database.read(lambda session: store.count_jobs(session, wanted, name_like))


async def cancel_job(job_id: int) -> bool:
    """Cancel a job and all of its tasks that have not ended. Return False if there is no such job, or it had ended."""
    wanted = check_id(job_id, "job id")
    async with coordinated() as coordinator:
        return await coordinator.cancel(wanted)


async def wait_for_job(
    job_id: int, *, timeout_s: float | None = None, told: Callable[[Job], None] | None = None
) -> Job:
    """Wait until a job has ended, and return it. `told` is called when its status or `completed_tasks` has changed.

    Raise WaitTimeout if that takes longer than `timeout_s`, and NotFound if there is no such job. The job goes on,
    whether the caller waits or not.
    """
    wanted = check_id(job_id, "job id")
    if timeout_s is not None and timeout_s != 0:
        check_seconds(timeout_s, "timeout_s", "Leave it out to wait for as long as it takes.")
    began, pause_s = time.monotonic(), LOOK_S_MIN
    seen: tuple[JobStatus, int] | None = None
    async with front_door() as coordinator:
        while True:
            job = await coordinator.job(wanted)
            if job is None:
                raise NotFound(what="job", field="id", value=wanted, hint="List them with: aaiclick job list")
            if (now := (job.status, job.completed_tasks)) != seen:
                seen, pause_s = now, LOOK_S_MIN
                if told is not None:
                    told(job)
            if job.status in ENDED_JOB:
                return job
            left_s = float("inf") if timeout_s is None else began + timeout_s - time.monotonic()
            if left_s <= 0:
                raise WaitTimeout(job_id=wanted, status=str(job.status), timeout_s=timeout_s)
            await asyncio.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, LOOK_S_MAX)


def wait_for_this(job: Job, timeout_s: float | None = None) -> Any:
    """Do the work of `Job.wait`: block until the job has ended; inside a running event loop, return a coroutine."""

    async def work() -> Job:
        return job.update(await wait_for_job(job.id, timeout_s=timeout_s))

    return work() if in_running_loop() else asyncio.run(work())


async def retry_failed_tasks(job_id: int, *, dry_run: bool = False, upstream: bool = False) -> list[int]:
    """Run the failed tasks of a job again, with everything downstream of them; return their ids, the failed first.

    If the job failed because of `fail_fast` or its time limit, the tasks cancelled with it run again too. The list is
    empty if nothing failed. With `dry_run`, nothing changes. With `upstream`, the tasks that made tables which are gone
    run again too. Raise NotFound if there is no such job.
    """
    wanted = check_id(job_id, "job id")
    async with coordinated() as coordinator:
        return await coordinator.retry_failed(wanted, dry_run=dry_run, upstream=upstream)


async def get_tasks_for_job(job_id: int) -> list[Task]:
    """Return all tasks of a job, in the order of creation."""
    wanted = check_id(job_id, "job id")
    async with connected() as database:
        return await database.read(lambda session: store.get_tasks(session, wanted))


async def get_groups_for_job(job_id: int) -> list[Group]:
    """Return all groups of a job, in the order of creation."""
    wanted = check_id(job_id, "job id")
    async with connected() as database:
        return await database.read(lambda session: store.get_groups(session, wanted))


async def get_events_for_job(job_id: int) -> list[Event]:
    """Return all events of a job and its tasks, in order."""
    wanted = check_id(job_id, "job id")
    async with connected() as database:
        rows = await database.read(lambda session: store.get_events(session, wanted))
    return [Event.from_row(row) for row in rows]


async def get_dependencies_for_job(job_id: int) -> list[Dependency]:
    """Return all dependencies of a job."""
    wanted = check_id(job_id, "job id")
    async with connected() as database:
        rows = await database.read(lambda session: store.get_dependencies(session, wanted))
    return [Dependency.from_row(row) for row in rows]


class TaskError(NamedTuple):
    """A failed task, with its error and the traceback of its last attempt that left one."""

    task_id: int
    name: str
    error: str | None
    traceback: str | None


async def list_job_errors(job_id: int, limit: int = ERRORS_SHOWN) -> list[TaskError]:
    """Return failed tasks of a job with their errors, the last created ones first."""
    wanted, (count, _) = check_id(job_id, "job id"), check_paging(limit)

    async def work(session: Session) -> list[TaskError]:
        failed = await list_dead_letters(session, None, count, only_job=wanted)
        traces = await store.last_tracebacks(session, [task.id for task in failed])
        return [TaskError(task.id, task.name, task.error, traces.get(task.id)) for task in failed]

    async with connected() as database:
        return await database.read(work)


# ---------------------------------------------------------------- results


async def show_job_result(job_id: int, length_max: int = RESULT_BYTES_MAX) -> ShownValue:
    """Return the job's result for display: JSON, cut to a length, secrets masked. No module of the user is imported."""
    return show_value(await _result(check_id(job_id, "job id"), importing=False), length_max)


async def get_opened_result(job_id: int) -> Any:
    """Return the job's result like `get_job_result`, but without importing modules of the user."""
    return await _result(check_id(job_id, "job id"), importing=False)


async def encode_job_result(job_id: int) -> str:
    """Return the job's result as `encode_value` writes it, with the results of the tasks that it names.

    No module of the user is imported. References to Objects are plain dicts, as `get_job_result` returns them.
    """
    value = await _result(check_id(job_id, "job id"), importing=False)
    return encode_value(value, path="result", bytes_max=settings().blob_bytes_max, setting=BLOB_SETTING)


async def get_job_result(job: Job | int) -> Any:
    """Return what the workflow function returned; tasks and groups in it are replaced by their results.

    In a `data_context` Objects are opened; elsewhere references to them are returned. Raise Conflict, whose text
    includes the job's error, if the job has not completed.
    """
    return await _result(check_id(job.id if isinstance(job, Job) else job, "job id"), importing=True)


async def _result(job_id: int, *, importing: bool) -> Any:
    async with front_door() as coordinator:
        found = await coordinator.result_of(job_id)
    opened = await opened_here([found.text, *found.texts.values()])
    return Results(found.texts, found.members, found.outputs, opened, importing).decode(found.text)


# ---------------------------------------------------------------- statistics


async def compute_job_stats(job_id: int) -> JobStats:
    """Return the number of a job's tasks by status, and its times; raise NotFound."""
    wanted = check_id(job_id, "job id")

    async def work(session: Session) -> JobStats:
        job = await store.get_job(session, wanted)
        if job is None:
            raise NotFound(what="job", field="id", value=wanted, hint="List them with: aaiclick job list")
        counts = await store.count_tasks_by_status(session, wanted)
        return JobStats(
            job_id=job.id,
            name=job.name,
            status=str(job.status),
            total_tasks=job.total_tasks,
            completed_tasks=job.completed_tasks,
            by_status={str(status): counts[status] for status in TaskStatus if counts.get(status)},
            error=job.error,
            queued_s=_seconds(job.created_at, job.started_at),
            duration_s=_seconds(job.started_at, job.completed_at),
        )

    async with connected() as database:
        return await database.read(work)


def _seconds(start: Any, end: Any) -> float | None:
    return None if start is None or end is None else float((end - start).total_seconds())


async def print_job_stats(job_id: int) -> JobStats:
    """Print the statistics of a job to stdout, and return them."""
    stats = await compute_job_stats(job_id)
    sys.stdout.write(stats_text(stats) + "\n")
    return stats


# ---------------------------------------------------------------- for the models' properties


def load_job_tasks(job_id: int) -> list[Task]:
    return blocking(lambda: get_tasks_for_job(job_id))


def load_job_groups(job_id: int) -> list[Group]:
    return blocking(lambda: get_groups_for_job(job_id))


def load_job_result(job_id: int) -> Any:
    return blocking(lambda: get_job_result(job_id))
