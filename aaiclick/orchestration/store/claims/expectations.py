"""Unmet expectations: what bodies expected of their data and did not find, kept as events beside the run's end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, select

from aaiclick.orchestration.models import Report
from aaiclick.orchestration.rules.states import UNMET
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, tasks
from aaiclick.orchestration.store.transitions import task_event

NOTED_MAX = 100
"""Maximum number of events that one run leaves."""


class _Noted(NamedTuple):
    """What `task_event` reads to make an event."""

    id: int
    job_id: int
    epoch: int
    worker_id: int


async def note_unmet(
    session: Session, worker_id: int, reports: Sequence[Report], accepted: Collection[tuple[int, int]]
) -> None:
    """Write events for the unmet expectations of those runs whose reports were accepted."""
    noted = {(each.task_id, each.epoch): each for each in reversed(reports) if each.unmet}
    noted = {run: report for run, report in noted.items() if run in accepted}
    if not noted:
        return
    now = await session.now()
    which = session.any_of(tasks.c.id, sorted({task for task, _ in noted}))
    found = await session.rows(select(tasks.c.id, tasks.c.job_id, tasks.c.status).where(which))
    of_tasks = {row.id: row for row in found}
    rows: list[dict[str, Any]] = []
    for (task_id, epoch), report in sorted(noted.items(), key=lambda pair: pair[0]):
        task = of_tasks[task_id]
        about = _Noted(task_id, task.job_id, epoch, worker_id)
        rows += [task_event(about, move, task.status, now, line) for move, line in report.unmet[:NOTED_MAX]]
    await session.insert(events, rows)


async def read_unmet(session: Session, job_id: int, task_id: int | None, limit: int) -> Sequence[Row[Any]]:
    """Return the newest `limit` unmet expectations of a job, or of one of its tasks; the oldest come first."""
    asked = select(events).where(events.c.job_id == job_id, events.c.move.in_(sorted(UNMET)))
    if task_id is not None:
        asked = asked.where(events.c.task_id == task_id)
    return list(reversed(await session.rows(asked.order_by(events.c.id.desc()).limit(limit))))
