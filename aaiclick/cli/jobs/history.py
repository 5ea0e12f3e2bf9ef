"""`aaiclick job tasks`, `job events`, `task runs` and `audit`: what there is of a job, and what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs.job import Before, JobId
from aaiclick.cli.jobs.why import TaskId
from aaiclick.cli.output import AsJson, say, show_json, show_table
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.representations.access.audit import AuditPage
    from aaiclick.representations.events import EventPage
    from aaiclick.representations.graphs import GraphTaskPage
    from aaiclick.representations.tasks import RunList

TASKS = ("id", "name", "status", "attempt", "started_at", "completed_at")
EVENTS = ("id", "at", "move", "status", "task_id", "epoch", "worker_id", "detail")
RUNS = ("epoch", "attempt", "outcome", "worker_id", "started_at", "ended_at", "error")
ENTRIES = ("id", "at", "actor", "verb", "target", "outcome")

Limit = Annotated[int | None, typer.Option(help="Show at most this many.")]
After = Annotated[
    int | None, typer.Option(min=1, metavar="ID", help="Only entries after this one: the `next` of the previous page.")
]


def tasks(
    job_id: JobId,
    status: Annotated[str | None, typer.Option(help="Only tasks with this status.")] = None,
    limit: Limit = None,
    after: After = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks of a job, in the order of their creation."""
    found = with_id("job", job_id, lambda wanted: _tasks(wanted, status, after, limit))
    _show(TASKS, found, "task", as_json)


async def _tasks(job_id: int, status: str | None, after: int | None, limit: int | None) -> GraphTaskPage:
    if (api := afar()) is not None:
        return await api.list_job_tasks(job_id, status=status, after=after, limit=limit)
    from aaiclick.orchestration.queries.job_graphs import list_job_tasks  # here, to keep start-up light
    from aaiclick.representations.graphs import graph_task_page  # here, to keep start-up light

    return graph_task_page(await list_job_tasks(job_id, status, after, limit), limit)


def events(job_id: JobId, limit: Limit = None, after: After = None, as_json: AsJson = False) -> None:
    """List the events of a job and its tasks, oldest first; more may follow after `next`."""
    _show(EVENTS, with_id("job", job_id, lambda wanted: _events(wanted, after or 0, limit)), "event", as_json)


async def _events(job_id: int, after: int, limit: int | None) -> EventPage:
    if (api := afar()) is not None:
        return await api.list_events(job_id=job_id, after=after, limit=limit)
    from aaiclick.orchestration.queries.event_feed import read_feed  # here, to keep start-up light
    from aaiclick.representations.events import event_page  # here, to keep start-up light

    found = await read_feed(after, job_id=job_id, limit=limit)
    return event_page(found.events, found.cursor)


def runs(task_id: TaskId, as_json: AsJson = False) -> None:
    """List the ended attempts of a task, oldest first."""
    _show(RUNS, with_id("task", task_id, _runs), "run", as_json)


async def _runs(task_id: int) -> RunList:
    if (api := afar()) is not None:
        return await api.list_task_runs(task_id)
    from aaiclick.orchestration.tasks import get_runs_for_task  # here, to keep start-up light
    from aaiclick.representations.tasks import run_list  # here, to keep start-up light

    return run_list(await get_runs_for_task(task_id))


def audit(limit: Limit = None, before: Before = None, as_json: AsJson = False) -> None:
    """List changes made from outside, newest first; a change without an outcome was cut off."""
    _show(ENTRIES, wait_for(_audit(before, limit)), "change", as_json)


async def _audit(before: int | None, limit: int | None) -> AuditPage:
    if (api := afar()) is not None:
        return await api.list_audit(before=before, limit=limit)
    from aaiclick.orchestration.access.audit import list_audit  # here, to keep start-up light
    from aaiclick.representations.access.audit import audit_page  # here, to keep start-up light

    return audit_page(await list_audit(before, limit), limit)


def _show(columns: tuple[str, ...], page: Any, noun: str, as_json: bool) -> None:
    """A page, whose first field is the list."""
    if as_json:
        show_json(page)
        return
    rows = next(iter(page.values()))
    show_table(columns, [[row[column] for column in columns] for row in rows])
    count = counted(len(rows), noun)
    following = page.get("next")
    say(f"{count}; there may be more: next is {following}" if following and rows else count)
