"""`aaiclick dlq`: dead letters, the tasks that were given up."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs import task
from aaiclick.cli.jobs.job import show_cleared
from aaiclick.cli.jobs.why import TaskId
from aaiclick.cli.output import AsJson, is_terminal, say, show_json, show_table
from aaiclick.errors import InputError
from aaiclick.wording import counted

COLUMNS = ("id", "job_id", "name", "attempt", "completed_at", "error")
ERROR_LENGTH_MAX = 100

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def list_(
    job: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only dead letters of this job: its id, or enough of its last digits."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show at most this many.")] = 100,
    before: Annotated[
        str | None,
        typer.Option(metavar="JOB-TASK", help="Only dead letters after this one, as the previous page shows."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List tasks that failed and are not tried again, those of the newest jobs first."""
    place = _place(before)
    if job is None:
        page = wait_for(_list(place, limit, None))
    else:
        page = with_id("job", job, lambda wanted: _list(place, limit, wanted))
    more = page["next"]
    if as_json:
        show_json(page)
        return
    show_table(COLUMNS, [_row(dict(told)) for told in page["tasks"]])
    count = counted(len(page["tasks"]), "dead letter")
    say(f"{count}; there may be more: --before {more}" if more else count)


async def _list(before: tuple[int, int] | None, limit: int, job_id: int | None) -> dict[str, Any]:
    if (api := afar()) is not None:
        place = None if before is None else "{}-{}".format(*before)
        return dict(await api.list_dead_letters(job_id=job_id, before=place, limit=limit))
    from aaiclick.orchestration.queries.dead_letters import list_dead_letters  # here, to keep start-up light
    from aaiclick.representations.dead_letters import dead_letter_page  # here, to keep start-up light
    from aaiclick.representations.tasks import only_here  # here, to keep start-up light

    found = await list_dead_letters(before, limit, job_id=job_id)
    page = dead_letter_page(found, limit)
    tasks = [{**told, **only_here(task)} for told, task in zip(page["tasks"], found, strict=True)]
    return {**page, "tasks": tasks}


def _place(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    form = re.fullmatch("([0-9]{1,19})-([0-9]{1,19})", text)
    if form is None:
        rule = "it must be the ids of a job and a task with a - between them"
        raise InputError(field="--before", value=text[:50], rule=rule, hint="The previous page shows it.")
    return int(form[1]), int(form[2])


def _row(facts: dict[str, Any]) -> list[Any]:
    """An error in one short line: `task get` shows all of it."""
    error = " ".join((facts["error"] or "").split())
    if is_terminal() and len(error) > ERROR_LENGTH_MAX:  # a pipe gets it whole
        error = error[: ERROR_LENGTH_MAX - 1] + "…"
    facts["error"] = error
    return [facts[column] for column in COLUMNS]


@app.command()
def replay(task_id: TaskId, as_json: AsJson = False) -> None:
    """Run a dead letter again, with everything downstream of it, and print the ids."""
    show_cleared(with_id("task", task_id, task.replay), False, as_json)
