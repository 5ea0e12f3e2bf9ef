"""The table `workers`: registration of workers, and their sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select, update

from aaiclick.orchestration.models import Orders, Worker, WorkerStatus
from aaiclick.orchestration.rules.naming.hints import ORDERS
from aaiclick.orchestration.store.reading.jobs import older_than
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import workers


async def add_worker(
    session: Session,
    *,
    hostname: str,
    pid: int,
    name: str | None,
    session_s: float,
    concurrency: int,
    worker_id: int,
    node_id: int | None = None,
    cordoned: bool = False,
) -> Worker:
    """Register a worker of this id; its session ends after `session_s` by the database's clock if not renewed.

    The caller has locked the row of its node. While `cordoned`, it is given no tasks.
    """
    now = await session.now()
    worker = Worker(
        id=worker_id,
        hostname=hostname,
        pid=pid,
        name=name,
        status=WorkerStatus.ACTIVE,
        last_heartbeat=now,
        expires_at=now + timedelta(seconds=session_s),
        started_at=now,
        concurrency=concurrency,
        node_id=node_id,
        cordoned=cordoned,
    )
    await session.insert(workers, [{column.name: getattr(worker, column.name) for column in workers.columns}])
    return worker


async def renew_session(
    session: Session, worker_id: int, session_s: float, *, completed: int = 0, failed: int = 0, unreported_s: int = 0
) -> Orders:
    """Renew the session and add to the worker's counters; return orders, with `alive=False` if the session has ended.

    All times are the database's, whatever the worker's clock says. A session past its end that no sweep has ended yet
    counts as alive: nothing has been taken from its worker.
    """
    renewal = (
        update(workers)
        .where(workers.c.id == worker_id, workers.c.status != WorkerStatus.STOPPED)
        .values(
            last_heartbeat=session.dialect.now(),
            expires_at=session.dialect.later(session_s),
            tasks_completed=workers.c.tasks_completed + completed,
            tasks_failed=workers.c.tasks_failed + failed,
            unreported_s=unreported_s,
        )
    )
    if session.dialect.update_returning:
        row = await session.first(renewal.returning(workers.c.status))
    elif await session.run(renewal):
        row = await session.first(select(workers.c.status).where(workers.c.id == worker_id))
    else:
        row = None
    return Orders(alive=False) if row is None else Orders(drain=row.status == WorkerStatus.STOPPING)


async def drain_worker(session: Session, worker_id: int) -> WorkerStatus | None:
    """Order a worker to finish its runs and leave; return its status before, None if there is no such worker."""
    row = await session.first(select(workers.c.status).where(workers.c.id == worker_id).with_for_update())
    if row is None:
        return None
    await session.run(
        update(workers)
        .where(workers.c.id == worker_id, workers.c.status != WorkerStatus.STOPPED)
        .values(status=WorkerStatus.STOPPING)
    )
    session.hints.add(ORDERS)
    return WorkerStatus(row.status)


async def stop_worker(session: Session, worker_id: int) -> bool:
    """End the worker's session; return False if it had ended before, or there is no such worker."""
    changed = await session.run(
        update(workers)
        .where(workers.c.id == worker_id, workers.c.status != WorkerStatus.STOPPED)
        .values(status=WorkerStatus.STOPPED, expires_at=session.dialect.now())
    )
    return bool(changed)


async def stop_workers_of(session: Session, node_id: int) -> int:
    """End the sessions of all workers of a node; return their number."""
    return await session.run(
        update(workers)
        .where(workers.c.node_id == node_id, workers.c.status != WorkerStatus.STOPPED)
        .values(status=WorkerStatus.STOPPED, expires_at=session.dialect.now())
    )


async def expire_sessions(session: Session) -> int:
    """End the sessions past their end; return their number. An ended session never becomes live again."""
    now = await session.now()
    return await session.run(
        update(workers)
        .where(workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at < now)
        .values(status=WorkerStatus.STOPPED)
    )


async def get_worker(session: Session, worker_id: int) -> Worker | None:
    row = await session.first(select(workers).where(workers.c.id == worker_id))
    return None if row is None else Worker.from_row(row)


async def list_workers(
    session: Session, status: WorkerStatus | None, limit: int | None = None, before: int | None = None
) -> Sequence[Worker]:
    """Return workers, newest first; `before` is the id of the last worker on the previous page."""
    choice = select(workers).order_by(workers.c.started_at.desc(), workers.c.id.desc()).limit(limit)
    if before is not None:
        choice = choice.where(*await older_than(session, workers, workers.c.started_at, before))
    if status is not None:
        choice = choice.where(workers.c.status == status)
    return [Worker.from_row(row) for row in await session.rows(choice)]
