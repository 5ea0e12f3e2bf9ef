"""`aaiclick job`: the runs of workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar, refuse_offset
from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs.expectations import show_unmet
from aaiclick.cli.jobs.progress import check_timeout, exit_code, follow, warn_if_nobody_works
from aaiclick.cli.jobs.watching import Watch, watch
from aaiclick.cli.output import (
    AsJson,
    harmless,
    is_terminal,
    printable,
    say,
    show_facts,
    show_json,
    show_table,
    show_text,
)
from aaiclick.errors import Conflict, NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aaiclick.orchestration.models import Job
    from aaiclick.representations.jobs import JobAnswer
    from aaiclick.representations.tasks import Cleared

COLUMNS = ("id", "name", "status", "tasks", "created", "seconds", "scheduled", "backfill", "arguments")
ARGUMENTS_SHOWN = 60
"""Characters of the arguments in a table on a terminal."""

ENDED = ("completed", "failed", "cancelled")

app = typer.Typer(rich_markup_mode=None)

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or enough of its last digits.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show which tasks would run again, and change nothing.")]
Before = Annotated[
    int | None, typer.Option(min=1, metavar="ID", help="Only entries after this one: the `next` of the previous page.")
]
Upstream = Annotated[
    bool, typer.Option("--upstream", help="Also run again the tasks that made needed tables which are gone.")
]


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="Only jobs with this status.")] = None,
    like: Annotated[str | None, typer.Option(help="Only names like this; % stands for anything.")] = None,
    limit: Annotated[int | None, typer.Option(help="Show at most this many.")] = None,
    offset: Annotated[int | None, typer.Option(help="Skip this many of the newest.")] = None,
    before: Before = None,
    watched: Watch = False,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""

    def show(found: dict[str, Any]) -> None:
        if as_json:
            show_json(found)
            return
        jobs, total = found["jobs"], found["total"]
        show_table(COLUMNS, [to_row(job) for job in jobs])
        say(f"{len(jobs)} of {counted(total, 'job')}" if total else counted(total, "job"))

    if not watched:
        show(wait_for(_list(status, like, limit, offset, before)))
        return
    if limit is None and is_terminal():
        import shutil  # here, to keep start-up light

        limit = max(1, shutil.get_terminal_size().lines - 3)
    watch(lambda: _list(status, like, limit, offset, before), show, as_json=as_json)


async def _list(
    status: str | None, like: str | None, limit: int | None, offset: int | None, before: int | None
) -> dict[str, Any]:
    if (api := afar()) is not None:
        refuse_offset(offset)
        page = await api.list_jobs(status=status, name_like=like, before=before, limit=limit, total=True)
        return dict(page)
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.jobs import count_jobs, list_jobs  # here, to keep start-up light
    from aaiclick.representations.jobs import job_page  # here, to keep start-up light

    async with orch_context():
        jobs = await list_jobs(status=status, name_like=like, limit=limit, offset=offset, before=before)
        return {**job_page(jobs, limit), "total": await count_jobs(status=status, name_like=like)}


@app.command()
def get(
    job_id: JobId,
    result: Annotated[bool, typer.Option("--result", help="Also show what the workflow returned.")] = False,
    watched: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Show a job, and where the tasks of a failed job failed."""
    show = show_json if as_json else _show
    if watched:
        wanted = with_id("job", job_id, _same)
        watch(lambda: _facts(wanted, result), show, is_over=_has_ended, as_json=as_json)
    else:
        show(with_id("job", job_id, lambda wanted: _facts(wanted, result)))


def _show(facts: dict[str, Any]) -> None:
    import json  # here, to keep start-up light

    facts = dict(facts)  # whoever watches compares what was read
    errors, unmet = facts.pop("errors"), facts.pop("expectations")
    for field in ("arguments", "result"):
        if facts.get(field) is not None:
            facts[field] = json.dumps(facts[field], ensure_ascii=False)
    show_facts(facts)
    show_unmet(unmet)
    for each in errors:
        show_text("")
        show_text(f"==> {printable(each['name'])} ({each['task_id']}) <==")
        show_text(harmless((each["traceback"] or each["error"] or "").rstrip("\n")))


async def _same(job_id: int) -> int:
    return job_id


async def _facts(job_id: int, with_result: bool = False) -> dict[str, Any]:
    if (api := afar()) is not None:
        facts: dict[str, Any] = {**await api.get_job(job_id), **await api.get_job_errors(job_id)}
        if with_result:
            shown = await api.show_job_result(job_id)
            named = {"result": "result", "result_complete": "complete", "result_size": "size"}
            facts |= {name: shown[there] for name, there in named.items()}  # type: ignore[literal-required]
        return facts
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.jobs import list_job_errors, show_job_result  # here, to keep start-up light
    from aaiclick.orchestration.queries.expectations import list_job_expectations  # here, to keep start-up light
    from aaiclick.representations.jobs import job_detail, job_errors  # here, to keep start-up light

    async with orch_context():
        job = await _get(job_id)
        failed = await list_job_errors(job_id) if job.failed_tasks else []
        errors = job_errors(failed, await list_job_expectations(job_id))
        return dict(job_detail(job, errors, await show_job_result(job_id) if with_result else None))


def _has_ended(facts: dict[str, Any]) -> bool:
    return facts["status"] in ENDED


async def _answer(job_id: int) -> JobAnswer:
    if (api := afar()) is not None:
        return await api.get_job(job_id)
    from aaiclick.representations.jobs import job_answer  # here, to keep start-up light

    return job_answer(await _get(job_id))


async def _get(job_id: int) -> Job:
    from aaiclick.orchestration.jobs import get_job  # here, to keep start-up light

    job = await get_job(job_id)
    if job is None:
        raise NotFound(what="job", field="id", value=job_id, hint="See: aaiclick job list")
    return job


@app.command()
def wait(
    job_id: JobId,
    timeout: Annotated[float | None, typer.Option(help="Wait at most this many seconds, then exit with 124.")] = None,
    as_json: AsJson = False,
) -> int:
    """Wait until a job ends; exit with 0 if it completed, else with 1."""
    check_timeout(timeout)
    job = with_id("job", job_id, lambda wanted: _wait(wanted, timeout))
    show_outcome(job, as_json)
    return exit_code(job)


def show_outcome(job: JobAnswer, as_json: bool) -> None:
    """Print the state of a job: in full for programs, in short for people."""
    facts = dict(job)
    if as_json:
        show_json(facts)
    else:
        show_facts({field: facts[field] for field in ("id", "name", "status", "error")})


async def _wait(job_id: int, timeout_s: float | None) -> JobAnswer:
    if (await _answer(job_id))["status"] not in ENDED:
        await warn_if_nobody_works()
    return await follow(job_id, timeout_s)


@app.command()
def cancel(job_id: JobId, as_json: AsJson = False) -> None:
    """Cancel a job and all of its tasks that have not ended."""
    cancelled, job = with_id("job", job_id, _cancel)
    if as_json:
        show_json({"cancelled": cancelled, "job": job})
    else:
        say(f"Job {job['id']} is cancelled." if cancelled else f"Job {job['id']} was cancelled already.")


async def _cancel(job_id: int) -> tuple[bool, JobAnswer]:
    if (api := afar()) is not None:
        cancelled = (await api.cancel_job(job_id))["cancelled"]
    else:
        from aaiclick.orchestration.jobs import cancel_job  # here, to keep start-up light

        cancelled = await cancel_job(job_id)
    job = await _answer(job_id)
    if not cancelled and job["status"] != "cancelled":
        raise Conflict(what=f"Job {job_id}", verb="cancelled", cause=f"it is {job['status']} already", hint="")
    return cancelled, job


@app.command()
def retry(job_id: JobId, dry_run: DryRun = False, upstream: Upstream = False, as_json: AsJson = False) -> None:
    """Run again the tasks that failed, with everything downstream of them."""
    show_cleared(with_id("job", job_id, lambda wanted: _retry(wanted, dry_run, upstream)), dry_run, as_json)


async def _retry(job_id: int, dry_run: bool, upstream: bool) -> list[int]:
    if (api := afar()) is not None:
        return ids_in(await api.retry_job(job_id, dry_run=dry_run, upstream=upstream))
    from aaiclick.orchestration.jobs import retry_failed_tasks  # here, to keep start-up light

    return await retry_failed_tasks(job_id, dry_run=dry_run, upstream=upstream)


def ids_in(told: Cleared) -> list[int]:
    """Return the ids of the tasks that run again, as a server told them."""
    return [int(each) for each in told["task_ids"]]


@app.command()
def stats(job_id: JobId, watched: Watch = False, as_json: AsJson = False) -> None:
    """Show statistics of a job."""
    from aaiclick.orchestration.rules.job_stats import JobStats, stats_text  # here, to keep start-up light
    from aaiclick.representations.jobs import stats_answer  # here, to keep start-up light

    def show(found: JobStats) -> None:
        if as_json:
            show_json(stats_answer(found))
        else:
            show_text(stats_text(found))

    async def compute_job_stats(wanted: int) -> JobStats:
        if (api := afar()) is not None:
            told: dict[str, Any] = {**await api.get_job_stats(wanted)}
            return JobStats(**{**told, "job_id": wanted})
        from aaiclick.orchestration import jobs  # here, to keep start-up light

        return await jobs.compute_job_stats(wanted)

    if watched:
        wanted = with_id("job", job_id, _same)
        watch(lambda: compute_job_stats(wanted), show, is_over=lambda found: found.status in ENDED, as_json=as_json)
    else:
        show(with_id("job", job_id, compute_job_stats))


def show_cleared(task_ids: Sequence[int], dry_run: bool, as_json: bool) -> None:
    """Print the ids of the tasks that run again, or would."""
    from aaiclick.representations.tasks import cleared  # here, to keep start-up light

    if as_json:
        told = cleared(task_ids, dry_run)
        show_json({**told, "cleared": told["task_ids"]})  # an older name
        return
    for task in task_ids:
        show_text(str(task))
    count = counted(len(task_ids), "task").capitalize()
    say(f"{count} would run again." if dry_run else f"{count} will run again.")


def to_row(facts: dict[str, Any]) -> tuple[Any, ...]:
    """Return a job's facts as a row of the table."""
    tasks = f"{facts['completed_tasks']}/{facts['total_tasks']}"
    told = (facts["id"], facts["name"], facts["status"], tasks, facts["created_at"], _seconds(facts))
    return (*told, facts["scheduled_at"], facts["backfill_id"], _brief(facts["arguments"]))


def _brief(arguments: dict[str, Any] | None) -> str | None:
    """Arguments in a line of a table: texts as they are, all else as JSON has it."""
    import json  # here, to keep start-up light

    if not arguments:
        return None
    text = ", ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )
    return f"{text[: ARGUMENTS_SHOWN - 1]}…" if len(text) > ARGUMENTS_SHOWN and is_terminal() else text


def _seconds(facts: dict[str, Any]) -> str | None:
    from datetime import datetime  # here, to keep start-up light

    if facts["started_at"] is None or facts["completed_at"] is None:
        return None
    began, ended = (datetime.fromisoformat(facts[field]) for field in ("started_at", "completed_at"))
    return f"{(ended - began).total_seconds():.3f}"
