"""Reservation of a job for one worker."""

from __future__ import annotations

from sqlalchemy import select, update

from aaiclick.orchestration.rules.states import ENDED_TASK
from aaiclick.orchestration.store.moves.early_endings import lock_graph
from aaiclick.orchestration.store.moves.queue import leave_queue, make_ready
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, tasks
from aaiclick.orchestration.store.transitions import lock_tasks


async def reserve_job(session: Session, job_id: int, worker_id: int) -> None:
    """Reserve the open tasks of a job for one worker: no other worker may claim them.

    Tasks that are claimed by now are reserved too: if they are given back or retried, only this worker may claim them.
    """
    await lock_graph(session, job_id)
    unfinished = (tasks.c.job_id == job_id, tasks.c.status.not_in(sorted(ENDED_TASK)))
    ids = [row.id for row in await session.rows(select(tasks.c.id).where(*unfinished))]
    if ids:
        await leave_queue(session, session.any_of(tasks.c.id, ids))
        await lock_tasks(session, ids)
        await leave_queue(session, session.any_of(tasks.c.id, ids))
        await session.run(update(tasks).where(session.any_of(tasks.c.id, ids)).values(reserved_for=worker_id))
        await make_ready(session, ids)
    await session.run(update(jobs).where(jobs.c.id == job_id).values(reserved_for=worker_id))
