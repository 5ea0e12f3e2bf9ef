"""`aaiclick task`: one unit of work of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from aaiclick.cli import logs, pending
from aaiclick.cli.expectations import show_unmet, unmet_to_json
from aaiclick.cli.job import DryRun, Upstream, show_cleared, to_time
from aaiclick.cli.loop import with_id
from aaiclick.cli.output import AsJson, harmless, show_facts, show_json, show_text
from aaiclick.errors import NotFound

if TYPE_CHECKING:
    from aaiclick.orchestration.expectations import Unmet
    from aaiclick.orchestration.models import Task

app = typer.Typer(rich_markup_mode=None)
app.command("why")(pending.why)
app.command("logs")(logs.task_logs)

TaskId = pending.TaskId


@app.command()
def get(task_id: TaskId, as_json: AsJson = False) -> None:
    """Show a task; of one that failed, where that was."""
    import json  # here, to keep start-up light

    task, traceback, unmet = with_id("task", task_id, _get_with_traceback)
    facts = to_json(task)
    if as_json:
        show_json(facts | {"traceback": traceback, "expectations": unmet_to_json(unmet)})
        return
    show_facts(facts | {"arguments": json.dumps(facts["arguments"], ensure_ascii=False)})
    show_unmet(unmet_to_json(unmet))
    if traceback:
        show_text("")
        show_text(harmless(traceback.rstrip("\n")))


async def _get_with_traceback(task_id: int) -> tuple[Task, str | None, list[Unmet]]:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.expectations import list_task_expectations  # here, to keep start-up light
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
    from aaiclick.orchestration.dead_letters import replay_dead_letter  # here, to keep start-up light

    show_cleared(with_id("task", task_id, replay_dead_letter), False, as_json)


def to_json(task: Task) -> dict[str, Any]:
    """Ids are strings: programs that read numbers as doubles would change their last digits."""
    from aaiclick.orchestration.rules.entrypoints import shown  # here, to keep start-up light
    from aaiclick.orchestration.rules.showing import show_stored_arguments  # here, to keep start-up light

    return {
        "id": str(task.id),
        "job_id": str(task.job_id),
        "group_id": None if task.group_id is None else str(task.group_id),
        "name": task.name,
        "entrypoint": shown(task.entrypoint),
        "arguments": show_stored_arguments(task.kwargs_json),
        "status": str(task.status),
        "epoch": task.epoch,
        "attempt": task.attempt,
        "crash_count": task.crash_count,
        "lost_count": task.lost_count,
        "max_retries": task.max_retries,
        "generation": task.generation,
        "priority": task.priority,
        "critical": task.critical,
        "when": str(task.when),
        "timeout_s": task.timeout_s,
        "worker_id": None if task.worker_id is None else str(task.worker_id),
        "created_at": to_time(task.created_at),
        "claimed_at": to_time(task.claimed_at),
        "started_at": to_time(task.started_at),
        "completed_at": to_time(task.completed_at),
        "run_after": to_time(task.run_after),
        "log_path": task.log_path,
        "error": task.error,
    }
