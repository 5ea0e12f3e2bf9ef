"""`aaiclick task`: one unit of work of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs import logs, why
from aaiclick.cli.jobs.expectations import show_unmet
from aaiclick.cli.jobs.job import Before, DryRun, Upstream, ids_in, show_cleared
from aaiclick.cli.output import AsJson, harmless, say, show_facts, show_json, show_table, show_text
from aaiclick.errors import NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Task
    from aaiclick.representations.tasks import TaskPage

app = typer.Typer(rich_markup_mode=None)
app.command("why")(why.why)
app.command("logs")(logs.task_logs)

TaskId = why.TaskId
LISTED = ("id", "job_id", "name", "status", "lane", "priority", "worker_id", "created_at")


@app.command()
def get(task_id: TaskId, as_json: AsJson = False) -> None:
    """Show a task, and where a failed task failed."""
    import json  # here, to keep start-up light

    facts = with_id("task", task_id, _facts)
    if as_json:
        show_json(facts)
        return
    traceback, told = facts.pop("traceback"), facts.pop("expectations")
    show_facts(facts | {"arguments": json.dumps(facts["arguments"], ensure_ascii=False)})
    show_unmet(told)
    if traceback:
        show_text("")
        show_text(harmless(traceback.rstrip("\n")))


async def _facts(task_id: int) -> dict[str, Any]:
    if (api := afar()) is not None:
        return dict(await api.get_task(task_id))
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.queries.expectations import list_task_expectations  # here, to keep start-up light
    from aaiclick.orchestration.tasks import get_traceback  # here, to keep start-up light
    from aaiclick.representations.tasks import only_here, task_detail  # here, to keep start-up light

    async with orch_context():
        task = await _get(task_id)
        detail = task_detail(task, await get_traceback(task_id), await list_task_expectations(task_id))
        return {**detail, **only_here(task)}


async def _get(task_id: int) -> Task:
    from aaiclick.orchestration.tasks import get_task  # here, to keep start-up light

    task = await get_task(task_id)
    if task is None:
        raise NotFound(what="task", field="id", value=task_id, hint="")
    return task


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="Only tasks of this status.")] = None,
    name_like: Annotated[str | None, typer.Option(help="Only names like this; % stands for anything.")] = None,
    node: Annotated[str | None, typer.Option(help="Only tasks that this node has, or had last.")] = None,
    lane: Annotated[int | None, typer.Option(help="Only tasks of this lane.")] = None,
    blocked: Annotated[str | None, typer.Option(help="placement: only ready tasks that no live node may run.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many at most.")] = None,
    before: Before = None,
    as_json: AsJson = False,
) -> None:
    """List tasks of all jobs, the newest first, or those that no node may run."""
    which = {"status": status, "name_like": name_like, "node": node, "lane": lane, "blocked": blocked}
    found = wait_for(_list(which | {"before": before, "limit": limit}))
    if as_json:
        show_json(found)
        return
    tasks: list[Any] = [*found["tasks"]]
    show_table(LISTED, [[task[field] for field in LISTED] for task in tasks])
    say(counted(len(tasks), "task") + (f"; more with --before {found['next']}" if found["next"] else ""))


async def _list(which: dict[str, Any]) -> TaskPage:
    if (api := afar()) is not None:
        return await api.list_tasks(**which)
    from aaiclick.orchestration.queries.task_list import list_tasks  # here, to keep start-up light
    from aaiclick.representations.tasks import task_page  # here, to keep start-up light

    return task_page(await list_tasks(**which))


@app.command()
def clear(task_id: TaskId, dry_run: DryRun = False, upstream: Upstream = False, as_json: AsJson = False) -> None:
    """Run a task again, with everything downstream of it."""
    show_cleared(with_id("task", task_id, lambda wanted: _clear(wanted, dry_run, upstream)), dry_run, as_json)


async def _clear(task_id: int, dry_run: bool, upstream: bool) -> list[int]:
    if (api := afar()) is not None:
        return ids_in(await api.clear_task(task_id, dry_run=dry_run, upstream=upstream))
    from aaiclick.orchestration.tasks import clear_task  # here, to keep start-up light

    return await clear_task(task_id, dry_run=dry_run, upstream=upstream)


@app.command()
def retry(task_id: TaskId, as_json: AsJson = False) -> None:
    """Run a failed task again, with everything downstream of it; refused if the task did not fail."""
    show_cleared(with_id("task", task_id, replay), False, as_json)


async def replay(task_id: int) -> list[int]:
    """Run a task again that was given up, and return the ids of all that run again."""
    if (api := afar()) is not None:
        return ids_in(await api.replay_dead_letter(task_id))
    from aaiclick.orchestration.queries.dead_letters import replay_dead_letter  # here, to keep start-up light

    return await replay_dead_letter(task_id)
