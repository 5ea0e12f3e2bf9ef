"""`aaiclick job`: the runs of workflows."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.loop import wait_for
from aaiclick.cli.output import AsJson, say, show_facts, show_json, show_table, show_text
from aaiclick.errors import Conflict, InputError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from aaiclick.orchestration.models import Job

COLUMNS = ("id", "name", "status", "tasks", "created", "seconds")

app = typer.Typer(help="List, show, cancel and retry jobs.", rich_markup_mode=None)

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say which tasks it would be.")]
Upstream = Annotated[bool, typer.Option("--upstream", help="Also what made tables that are needed and gone.")]


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="Only jobs of this status.")] = None,
    like: Annotated[str | None, typer.Option(help="Only names like this; % stands for anything.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many at most.")] = None,
    offset: Annotated[int | None, typer.Option(help="How many of the newest to leave out.")] = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, the newest first."""
    jobs, total = wait_for(_list(status, like, limit, offset))
    if as_json:
        show_json({"jobs": [to_json(job) for job in jobs], "total": total})
        return
    show_table(COLUMNS, [to_row(job) for job in jobs])
    say(f"{len(jobs)} of {total} jobs" if total else "no jobs")


async def _list(status: str | None, like: str | None, limit: int | None, offset: int | None) -> tuple[list[Job], int]:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.jobs import count_jobs, list_jobs  # here, to keep start-up light

    async with orch_context():
        jobs = await list_jobs(status=status, name_like=like, limit=limit, offset=offset)
        return jobs, await count_jobs(status=status, name_like=like)


@app.command()
def get(job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job."""
    job = wait_for(_get(to_id(job_id)))
    if as_json:
        show_json(to_json(job))
    else:
        show_facts(to_json(job))


async def _get(job_id: int) -> Job:
    from aaiclick.orchestration.jobs import get_job  # here, to keep start-up light

    job = await get_job(job_id)
    if job is None:
        raise NotFound(what="job", field="id", value=job_id, hint="See: aaiclick job list")
    return job


@app.command()
def cancel(job_id: JobId, as_json: AsJson = False) -> None:
    """Cancel a job and all of its tasks that have not ended."""
    cancelled, job = wait_for(_cancel(to_id(job_id)))
    if as_json:
        show_json({"cancelled": cancelled, "job": to_json(job)})
    else:
        say(f"Job {job.id} is cancelled." if cancelled else f"Job {job.id} was cancelled already.")


async def _cancel(job_id: int) -> tuple[bool, Job]:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.jobs import cancel_job  # here, to keep start-up light

    async with orch_context():
        cancelled = await cancel_job(job_id)
        job = await _get(job_id)
    if not cancelled and job.status != "cancelled":
        raise Conflict(what=f"Job {job_id}", verb="cancelled", cause=f"it is {job.status} already", hint="")
    return cancelled, job


@app.command()
def retry(job_id: JobId, dry_run: DryRun = False, upstream: Upstream = False, as_json: AsJson = False) -> None:
    """Run again the tasks that failed, with everything downstream of them."""
    from aaiclick.orchestration.jobs import retry_failed_tasks  # here, to keep start-up light

    cleared = wait_for(retry_failed_tasks(to_id(job_id), dry_run=dry_run, upstream=upstream))
    show_cleared(cleared, dry_run, as_json)


@app.command()
def stats(job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job in numbers."""
    from aaiclick.orchestration.jobs import compute_job_stats, print_job_stats  # here, to keep start-up light

    if as_json:
        found = wait_for(compute_job_stats(to_id(job_id)))
        show_json(asdict(found) | {"job_id": str(found.job_id)})
    else:
        wait_for(print_job_stats(to_id(job_id)))


def show_cleared(task_ids: Sequence[int], dry_run: bool, as_json: bool) -> None:
    """The ids of the tasks that run again, or would."""
    if as_json:
        show_json({"cleared": [str(task) for task in task_ids], "dry_run": dry_run})
        return
    for task in task_ids:
        show_text(str(task))
    count = f"{len(task_ids)} task" + ("" if len(task_ids) == 1 else "s")
    say(f"{count} would run again." if dry_run else f"{count} will run again.")


def to_id(text: str, what: str = "job") -> int:
    """An id as it is printed, and nothing else that Python would take for a number."""
    if not re.fullmatch("[0-9]{1,19}", text):
        raise InputError(field="ID", value=text[:50], rule="an id is a whole number", hint=f"See: aaiclick {what} list")
    return int(text)


def to_json(job: Job) -> dict[str, Any]:
    """The id is a string: programs that read numbers as doubles would change its last digits."""
    return {
        "id": str(job.id),
        "name": job.name,
        "key": job.key,
        "status": str(job.status),
        "run_type": str(job.run_type),
        "preservation_mode": str(job.preservation_mode),
        "priority": job.priority,
        "total_tasks": job.total_tasks,
        "completed_tasks": job.completed_tasks,
        "failed_tasks": job.failed_tasks,
        "created_at": to_time(job.created_at),
        "started_at": to_time(job.started_at),
        "completed_at": to_time(job.completed_at),
        "error": job.error,
    }


def to_row(job: Job) -> tuple[Any, ...]:
    tasks = f"{job.completed_tasks}/{job.total_tasks}"
    return (job.id, job.name, job.status, tasks, to_time(job.created_at), _seconds(job))


def to_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _seconds(job: Job) -> str | None:
    if job.started_at is None or job.completed_at is None:
        return None
    return f"{(job.completed_at - job.started_at).total_seconds():.3f}"
