"""`aaiclick task why`: what a task waits for, or who holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import with_id
from aaiclick.cli.output import AsJson, cell, show_json, show_text

if TYPE_CHECKING:
    from aaiclick.representations.pending import PendingAnswer

TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task's id, or enough of its last digits.")]


def why(task_id: TaskId, as_json: AsJson = False) -> None:
    """Show why a task is pending: what it waits for, or what holds it back."""
    found = with_id("task", task_id, _why)
    if as_json:
        show_json(found)
    else:
        show_text(cell(f"{found['name']} is {found['status']}: {found['line']}"))


async def _why(task_id: int) -> PendingAnswer:
    if (api := afar()) is not None:
        return await api.why_pending(task_id)
    from aaiclick.orchestration.queries.pending import why_pending  # here, to keep start-up light
    from aaiclick.representations.pending import pending_answer  # here, to keep start-up light

    return pending_answer(await why_pending(task_id))
