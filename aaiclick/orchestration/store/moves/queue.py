"""The ready queue and the delayed tasks: how tasks enter and leave them, other than by a claim.

A claim locks a row of `ready` before the task's row, and so does every function that takes tasks out of the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Insert, bindparam, delete, insert, select, update

from aaiclick.orchestration.rules.naming.hints import READY
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.dialects.contract import Dialect, QueueStretch
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, ready, tasks


async def make_ready(session: Session, ids: Sequence[int]) -> None:
    """Insert into the queue those of these (locked) tasks that are PENDING and wait for nothing."""
    if ids and await session.run(session.built(_enter_queue), {"ids": session.dialect.pack(sorted(ids))}):
        session.hints.add(READY)


def _enter_queue(dialect: Dialect) -> Insert:
    rows = select(tasks.c.reserved_for, tasks.c.lane, -tasks.c.priority, tasks.c.job_id, tasks.c.id).where(
        dialect.in_ids(tasks.c.id),
        tasks.c.status == TaskStatus.PENDING,
        tasks.c.unmet_count == 0,
        tasks.c.run_after.is_(None),
    )
    return insert(ready).from_select(["reserved_for", "lane", "rank", "job_id", "task_id"], rows)


async def leave_queue(session: Session, which: Any) -> None:
    """Delete the rows of `ready` of the tasks that match `which`; the rows of the tasks are not locked."""
    found = await session.rows(
        select(tasks.c.reserved_for, tasks.c.lane, tasks.c.priority, tasks.c.job_id, tasks.c.id).where(
            which, tasks.c.status == TaskStatus.PENDING
        )
    )
    stretches: dict[QueueStretch, list[int]] = {}
    for row in found:
        stretch = QueueStretch(row.reserved_for, row.lane, -row.priority, row.job_id)
        stretches.setdefault(stretch, []).append(row.id)
    for stretch, ids in sorted(stretches.items()):
        await session.dialect.delete_ready(session, stretch, sorted(ids))


async def leave_delay(session: Session, ids: Iterable[int]) -> None:
    """Delete the rows of `delayed` of these tasks.

    The rows are found by their whole key: by the task alone, MariaDB would wait for every row that is locked.
    """
    wanted: Sequence[int] = sorted(ids)
    if not wanted:
        return
    waiting = await session.rows(
        select(tasks.c.id, tasks.c.run_after).where(session.any_of(tasks.c.id, wanted), tasks.c.run_after.is_not(None))
    )
    await session.run_many(_LEAVE_DELAY, [{"task": row.id, "at": row.run_after} for row in waiting])


_LEAVE_DELAY = delete(delayed).where(delayed.c.run_after == bindparam("at"), delayed.c.task_id == bindparam("task"))


async def promote_due(session: Session, limit: int = 1000) -> int:
    """Move up to `limit` delayed tasks that are due into the queue; return their number."""
    now = await session.now()  # as a value: a function that is called for each row could use no index
    due = await session.rows(
        select(delayed.c.run_after, delayed.c.task_id)
        .where(delayed.c.run_after <= now)
        .order_by(delayed.c.run_after, delayed.c.task_id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    ids = sorted(row.task_id for row in due)
    if not ids:
        return 0
    await leave_delay(session, ids)
    await lock_pending(session, ids)
    await session.run(update(tasks).where(session.any_of(tasks.c.id, ids)).values(run_after=None))
    await make_ready(session, ids)
    return len(ids)


async def lock_pending(session: Session, ids: Sequence[int]) -> list[int]:
    """Lock those of these tasks that are still PENDING; return their ids."""
    found = await session.rows(
        select(tasks.c.id)
        .where(session.any_of(tasks.c.id, ids), tasks.c.status == TaskStatus.PENDING)
        .order_by(tasks.c.id)
        .with_for_update(key_share=True)
    )
    return [row.id for row in found]


async def seconds_to_next_due(session: Session) -> float | None:
    """Return the seconds until the next delayed task is due; None if there is none."""
    due = await session.scalar(select(delayed.c.run_after).order_by(delayed.c.run_after).limit(1))
    return None if due is None else max(0.0, (due - await session.now()).total_seconds())
