"""`aaiclick task why`: what a task waits for, or who holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.job import to_time
from aaiclick.cli.loop import with_id
from aaiclick.cli.output import AsJson, cell, show_json, show_text

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.pending import Pending


TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task's id, or enough of its last digits.")]


def why(task_id: TaskId, as_json: AsJson = False) -> None:
    """Say why a task is pending: what it waits for, or who or what holds it."""
    from aaiclick.orchestration.pending import why_pending  # here, to keep start-up light

    found = with_id("task", task_id, why_pending)
    if as_json:
        show_json(to_json(found))
    else:
        show_text(cell(f"{found.name} is {found.status}: {found.line}"))


def to_json(found: Pending) -> dict[str, Any]:
    """Ids are strings, as in every answer."""
    return {
        "task_id": str(found.task_id),
        "job_id": str(found.job_id),
        "name": found.name,
        "status": str(found.status),
        "reason": str(found.reason),
        "line": found.line,
        "waits_for": [
            {
                "id": str(blocker.id),
                "kind": blocker.kind,
                "name": blocker.name,
                "status": blocker.status,
                "open_count": blocker.open_count if blocker.kind == "group" else None,
                "gate": blocker.gate,
            }
            for blocker in found.waits_for
        ],
        "more": found.more,
        "run_after": to_time(found.run_after),
        "delay_s": found.delay_s,
        "before": found.before,
        "worker_id": None if found.worker_id is None else str(found.worker_id),
        "live_workers": found.live_workers,
        "slots": found.slots,
        "slots_taken": found.slots_taken,
    }
