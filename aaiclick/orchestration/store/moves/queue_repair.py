"""Repair of the rows of `ready`, `delayed` and `claims` that belong to the tasks of a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, select

from aaiclick.orchestration.rules.naming.hints import READY
from aaiclick.orchestration.rules.states import LIVE_TASK, TaskStatus
from aaiclick.orchestration.store.claim_ends import LiveClaim, mend_claims
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, ready, tasks

Place = tuple[Any, ...]

_READY = ("reserved_for", "lane", "rank", "job_id", "task_id")
_DELAYED = ("run_after", "task_id")


async def repair_queue(session: Session, job_id: int, ids: Sequence[int]) -> list[str]:
    """Make `ready`, `delayed` and `claims` agree with these tasks, all of one job; return in words what was wrong.

    The caller has locked the tasks.
    """
    if not ids:
        return []
    read = (tasks.c.id, tasks.c.job_id, tasks.c.status, tasks.c.unmet_count, tasks.c.run_after)
    more = (tasks.c.reserved_for, tasks.c.lane, tasks.c.priority, tasks.c.worker_id, tasks.c.epoch)
    rows = await session.rows(select(*read, *more).where(session.any_of(tasks.c.id, sorted(ids))))
    words: list[str] = []
    for table, columns, due, what in (
        (ready, _READY, {_in_queue(row) for row in rows if _is_ready(row)}, "in the queue"),
        (delayed, _DELAYED, {(row.run_after, row.id) for row in rows if _is_delayed(row)}, "among the delayed"),
    ):
        which = table.c.job_id == job_id if table is ready else session.any_of(table.c.task_id, sorted(ids))
        found = {tuple(row) for row in await session.rows(select(*(table.c[name] for name in columns)).where(which))}
        key = [table.c[name] == bindparam(f"old_{name}") for name in columns]
        gone = [{f"old_{name}": value for name, value in zip(columns, place, strict=True)} for place in found - due]
        await session.run_many(delete(table).where(*key), gone)
        await session.insert(table, [dict(zip(columns, place, strict=True)) for place in due - found])
        words += [f"task {place[-1]} was {what}" for place in sorted(found - due)]
        words += [f"task {place[-1]} was not {what}" for place in sorted(due - found)]
        if table is ready and due - found:
            session.hints.add(READY)
    held = {LiveClaim(row.worker_id, row.id, row.epoch) for row in rows if _is_held(row)}
    removed, added = await mend_claims(session, sorted(ids), held)
    words += [f"task {claim.task_id} was claimed" for claim in sorted(removed)]
    words += [f"task {claim.task_id} was not claimed" for claim in sorted(added)]
    return words


def _in_queue(row: Row[Any]) -> tuple[int, ...]:
    return row.reserved_for, row.lane, -row.priority, row.job_id, row.id


def _is_ready(row: Row[Any]) -> bool:
    return row.status == TaskStatus.PENDING and not row.unmet_count and row.run_after is None


def _is_delayed(row: Row[Any]) -> bool:
    return row.status == TaskStatus.PENDING and isinstance(row.run_after, datetime)


def _is_held(row: Row[Any]) -> bool:
    return row.status in LIVE_TASK and row.worker_id is not None
