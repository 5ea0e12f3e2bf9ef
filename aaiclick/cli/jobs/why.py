"""`aaiclick task why`: what a task waits for, or who holds it."""

from __future__ import annotations

from typing import Annotated

import typer

from aaiclick.cli.event_loop import with_id
from aaiclick.cli.output import AsJson, cell, show_json, show_text

TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task's id, or enough of its last digits.")]


def why(task_id: TaskId, as_json: AsJson = False) -> None:
    """Say why a task is pending: what it waits for, or who or what holds it."""
    from aaiclick.orchestration.queries.pending import why_pending  # here, to keep start-up light
    from aaiclick.representations.pending import pending_answer  # here, to keep start-up light

    found = with_id("task", task_id, why_pending)
    if as_json:
        show_json(pending_answer(found))
    else:
        show_text(cell(f"{found.name} is {found.status}: {found.line}"))
