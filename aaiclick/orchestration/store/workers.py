"""Workers and their sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select, update

from aaiclick.ids import new_id
from aaiclick.orchestration.models import Worker, WorkerStatus
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import workers


async def add_worker(session: Session, *, hostname: str, pid: int, name: str | None, session_s: float) -> Worker:
    """Register a worker; its session ends after `session_s` of the database's time unless renewed."""
    now = await session.now()
    worker = Worker(
        id=new_id(),
        hostname=hostname,
        pid=pid,
        name=name,
        status=WorkerStatus.ACTIVE,
        last_heartbeat=now,
        expires_at=now + timedelta(seconds=session_s),
        started_at=now,
    )
    await session.insert(workers, [{column.name: getattr(worker, column.name) for column in workers.columns}])
    return worker


async def renew_session(session: Session, worker_id: int, session_s: float) -> bool:
    """Keep the session alive; False if it is over."""
    now = await session.now()
    changed = await session.run(
        update(workers)
        .where(workers.c.id == worker_id, workers.c.status != WorkerStatus.STOPPED)
        .values(last_heartbeat=now, expires_at=now + timedelta(seconds=session_s))
    )
    return bool(changed)


async def stop_worker(session: Session, worker_id: int) -> bool:
    """End the session; False if it was over, or never was."""
    changed = await session.run(
        update(workers)
        .where(workers.c.id == worker_id, workers.c.status != WorkerStatus.STOPPED)
        .values(status=WorkerStatus.STOPPED, expires_at=session.dialect.now())
    )
    return bool(changed)


async def list_workers(session: Session, status: WorkerStatus | None) -> Sequence[Worker]:
    """Newest first."""
    choice = select(workers).order_by(workers.c.id.desc())
    if status is not None:
        choice = choice.where(workers.c.status == status)
    return [Worker.from_row(row) for row in await session.rows(choice)]
