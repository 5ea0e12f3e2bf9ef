"""Tasks: reading them and their results, running them again, adding them to a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aaiclick.errors import Conflict, NotFound
from aaiclick.orchestration.blocking import blocking
from aaiclick.orchestration.checks import refuse_during_import
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.context import Context, get_current_job_id
from aaiclick.orchestration.factories import create_task
from aaiclick.orchestration.gathering import refuse_staged
from aaiclick.orchestration.models import Group, Run, Task
from aaiclick.orchestration.results.references import opened_here
from aaiclick.orchestration.results.task_results import Results
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.validation import check_id
from aaiclick.orchestration.store.reading import jobs as store
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import FoundResults, read_named


async def get_task(task_id: int) -> Task | None:
    """Return the task as it is now; None if there is none with this id."""
    wanted = check_id(task_id, "task id")
    refuse_staged(wanted)
    async with connected() as database:
        return await database.read(lambda session: store.get_task(session, wanted))


async def get_task_result(task_id: int) -> Any:
    """Return what a task returned; tasks in it are replaced by their results.

    In a `data_context` Objects are opened; elsewhere references to them are returned. Raise Conflict if the task, or a
    task that it returned, has not completed.
    """
    wanted = check_id(task_id, "task id")
    refuse_staged(wanted)
    async with connected() as database:
        text, found = await database.read(lambda session: _read_result(session, wanted))
    opened = await opened_here([text, *found.texts.values()])
    return Results(found.texts, found.members, found.outputs, opened).decode(text)


async def _read_result(session: Session, task_id: int) -> tuple[str | None, FoundResults]:
    task = await store.get_task(session, task_id)
    if task is None:
        raise NotFound(what="task", field="id", value=task_id, hint="")
    found = FoundResults() if task.result_json is None else await read_named(session, [task.result_json])
    standings = {task.id: str(task.status)}
    standings |= {other: status for other, (status, _) in (await store.get_results(session, [*found.texts])).items()}
    for other, status in standings.items():
        if status != TaskStatus.COMPLETED:
            what = "it" if other == task_id else f"task {other}, which it returned,"
            cause = f"{what} is {status}" + (f" ({task.error})" if other == task_id and task.error else "")
            raise Conflict(what=f"The result of task {task_id}", verb="read", cause=cause, hint="")
    return task.result_json, found


async def get_traceback(task_id: int) -> str | None:
    """Return the traceback of a task's last attempt that left one; None if none did."""
    wanted = check_id(task_id, "task id")
    async with connected() as database:
        found = await database.read(lambda session: store.last_tracebacks(session, [wanted]))
    return found.get(wanted)


async def get_runs_for_task(task_id: int) -> list[Run]:
    """Return the ended attempts at a task, oldest first."""
    wanted = check_id(task_id, "task id")
    async with connected() as database:
        rows = await database.read(lambda session: store.get_runs(session, wanted))
    return [Run.from_row(row) for row in rows]


async def clear_task(task_id: int, *, dry_run: bool = False, upstream: bool = False) -> list[int]:
    """Run a task again, with everything downstream of it; return the ids of these tasks, its own first.

    The task may have any status: a current run loses its claim, and a job that has ended goes on. With `dry_run`,
    nothing changes.

    Raise InputsGone if tables that it needs are gone; with `upstream`, the tasks that made them run again too.
    """
    wanted = check_id(task_id, "task id")
    async with coordinated() as coordinator:
        return await coordinator.clear(wanted, dry_run=dry_run, upstream=upstream)


async def add_task_to_job(
    job_id: int,
    entrypoint: str | Callable[..., Any],
    kwargs: Mapping[str, object] | None = None,
    *,
    name: str | None = None,
    group_id: int | None = None,
    max_retries: int | None = None,
) -> Task:
    """Add one task to a job that has not ended."""
    refuse_during_import("add_task_to_job(…)")
    task = create_task(entrypoint, kwargs, name=name, group_id=group_id, max_retries=max_retries)
    return await Context(check_id(job_id, "job id")).apply(task)


async def add_task_to_current_job(
    entrypoint: str | Callable[..., Any],
    kwargs: Mapping[str, object] | None = None,
    *,
    job_id: int | None = None,
    name: str | None = None,
) -> Task:
    """Add one task to a job, by default the one of the current context."""
    job = get_current_job_id() if job_id is None else job_id
    return await add_task_to_job(job, entrypoint, kwargs, name=name)


# ---------------------------------------------------------------- for the models' properties


def load_group_tasks(group_id: int) -> list[Task]:
    async def work() -> list[Task]:
        async with connected() as database:
            return await database.read(lambda session: store.get_group_tasks(session, group_id))

    return blocking(work)


def load_child_groups(group_id: int) -> list[Group]:
    async def work() -> list[Group]:
        async with connected() as database:
            return await database.read(lambda session: store.get_child_groups(session, group_id))

    return blocking(work)
