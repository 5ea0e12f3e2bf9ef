"""`aaiclick task`: one unit of work of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from aaiclick.cli.event_loop import with_id
from aaiclick.cli.jobs import logs, why
from aaiclick.cli.jobs.expectations import show_unmet
from aaiclick.cli.jobs.job import DryRun, Upstream, show_cleared
from aaiclick.cli.output import AsJson, harmless, show_facts, show_json, show_text
from aaiclick.errors import NotFound

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Task
    from aaiclick.orchestration.queries.expectations import Unmet

app = typer.Typer(rich_markup_mode=None)
app.command("why")(why.why)
app.command("logs")(logs.task_logs)

TaskId = why.TaskId


@app.command()
def get(task_id: TaskId, as_json: AsJson = False) -> None:
    """Show a task; of one that failed, where that was."""
    import json  # here, to keep start-up light

    from aaiclick.representations.tasks import only_here, task_detail  # here, to keep start-up light

    task, traceback, unmet = with_id("task", task_id, _get_with_traceback)
    facts: dict[str, Any] = {**task_detail(task, traceback, unmet), **only_here(task)}
    if as_json:
        show_json(facts)
        return
    traceback, told = facts.pop("traceback"), facts.pop("expectations")
    show_facts(facts | {"arguments": json.dumps(facts["arguments"], ensure_ascii=False)})
    show_unmet(told)
    if traceback:
        show_text("")
        show_text(harmless(traceback.rstrip("\n")))


async def _get_with_traceback(task_id: int) -> tuple[Task, str | None, list[Unmet]]:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.queries.expectations import list_task_expectations  # here, to keep start-up light
    from aaiclick.orchestration.tasks import get_traceback  # here, to keep start-up light

    async with orch_context():
        return await _get(task_id), await get_traceback(task_id), await list_task_expectations(task_id)


async def _get(task_id: int) -> Task:
    from aaiclick.orchestration.tasks import get_task  # here, to keep start-up light

    task = await get_task(task_id)
    if task is None:
        raise NotFound(what="task", field="id", value=task_id, hint="")
    return task


@app.command()
def clear(task_id: TaskId, dry_run: DryRun = False, upstream: Upstream = False, as_json: AsJson = False) -> None:
    """Run a task again, with everything downstream of it."""
    from aaiclick.orchestration.tasks import clear_task  # here, to keep start-up light

    cleared = with_id("task", task_id, lambda wanted: clear_task(wanted, dry_run=dry_run, upstream=upstream))
    show_cleared(cleared, dry_run, as_json)


@app.command()
def retry(task_id: TaskId, as_json: AsJson = False) -> None:
    """Run a task again that failed, with everything downstream of it; refused for one that did not fail."""
    from aaiclick.orchestration.queries.dead_letters import replay_dead_letter  # here, to keep start-up light

    show_cleared(with_id("task", task_id, replay_dead_letter), False, as_json)
