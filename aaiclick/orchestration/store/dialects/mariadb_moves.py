"""Claims and completions on MariaDB. Its UPDATE returns no rows, so locking, reading and writing are separate steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Insert,
    Integer,
    Select,
    Update,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    select,
    tuple_,
    update,
)

from aaiclick.orchestration.rules.states import LIVE_TASK, TaskStatus, WorkerStatus
from aaiclick.orchestration.store.dialects.contract import (
    ClaimedTask,
    Dialect,
    EndedTask,
    QueueStretch,
    ReadyKey,
    session_over,
)
from aaiclick.orchestration.store.tables import claims, events, ready, runs, tasks, workers

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done
    from aaiclick.orchestration.store.session import Session

_KEY = (ready.c.rank, ready.c.job_id, ready.c.task_id)
_CLAIMED = tuple(tasks.c[name] for name in ClaimedTask._fields)


# ---------------------------------------------------------------- claim


ASK_EVERY = 8
"""Of this many claim calls that find nothing, one also checks whether the session is over, which costs a statement.

A call with limit 0 always checks: it is how a worker that was cut off asks whether its session is live.
"""


async def claim_ready(
    session: Session,
    *,
    worker_id: int,
    reserved_for: int,
    lane: int,
    limit: int,
    after: ReadyKey | None,
    call: int = 0,
    begins: int = 0,
) -> list[ClaimedTask]:
    """Claim ready tasks in order; rows that another claim has locked are skipped. See `Dialect.claim_ready`."""
    front = session.built(_front)
    if after is not None:
        front = front.where(tuple_(*_KEY) > tuple_(*after))
    asked = {"reserved_for": reserved_for, "lane": lane, "most": limit, "worker": worker_id}
    picked = [ReadyKey._make(row) for row in await session.rows(front, asked)]
    if not picked:
        if not limit or call % ASK_EVERY == 0:
            await _refuse_the_dead(session, worker_id)
        return []
    await _leave_queue(session, reserved_for, lane, picked)
    ids = [key.task_id for key in picked]
    mine = {"ids": session.dialect.pack(ids), "worker": worker_id}
    await session.run(session.built(_claim), mine | {"begun": session.dialect.pack(ids[:begins])})
    await session.run(session.built(_hold), mine | {"call": call})
    await session.run(session.built(_note_claims), mine)
    return [ClaimedTask._make(row) for row in await session.rows(session.built(_claimed), mine)]


def _live(dialect: Dialect) -> tuple[Any, ...]:
    """Return the conditions that the worker's session is live; its row is not locked."""
    mine = workers.c.id == bindparam("worker")
    return mine, workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at > dialect.now()


def _front(dialect: Dialect) -> Select[tuple[int, int, int]]:
    lane = (ready.c.reserved_for == bindparam("reserved_for"), ready.c.lane == bindparam("lane"))
    queue = select(*_KEY).where(*lane, exists().where(*_live(dialect), workers.c.cordoned.is_(False)))
    queue = queue.order_by(ready.c.reserved_for, ready.c.lane, *_KEY)
    return queue.limit(bindparam("most")).with_for_update(skip_locked=True)


async def _refuse_the_dead(session: Session, worker_id: int) -> None:
    """Raise SessionOver if the worker's session is not live; called after a claim that found nothing."""
    if await session.first(session.built(_session_live), {"worker": worker_id}) is None:
        row = await session.first(select(workers.c.status).where(workers.c.id == worker_id))
        raise session_over(worker_id, None if row is None else row.status)


def _session_live(dialect: Dialect) -> Select[tuple[int]]:
    return select(workers.c.id).where(*_live(dialect))


async def _leave_queue(session: Session, reserved_for: int, lane: int, picked: Sequence[ReadyKey]) -> None:
    """Delete the rows of `ready`, one DELETE for each (rank, job): MariaDB uses no index range for a list of tuples."""
    for (rank, job_id), keys in groupby(picked, key=lambda key: key[:2]):
        stretch = QueueStretch(reserved_for, lane, rank, job_id)
        await session.dialect.delete_ready(session, stretch, [key.task_id for key in keys])


def _claim(dialect: Dialect) -> Update:
    return (
        update(tasks)
        .where(dialect.in_ids(tasks.c.id), tasks.c.status == TaskStatus.PENDING)
        .values(
            status=TaskStatus.CLAIMED,
            epoch=tasks.c.epoch + 1,
            worker_id=bindparam("worker"),
            claimed_at=dialect.now(),
            started_at=case((dialect.in_ids(tasks.c.id, "begun"), dialect.now())),
        )
    )


def _mine(dialect: Dialect) -> tuple[Any, ...]:
    claimed = tasks.c.status == TaskStatus.CLAIMED
    return dialect.in_ids(tasks.c.id), claimed, tasks.c.worker_id == bindparam("worker")


def _hold(dialect: Dialect) -> Insert:
    call = bindparam("call", type_=Integer)
    held = select(tasks.c.worker_id, tasks.c.id, tasks.c.epoch, call).where(*_mine(dialect))
    return insert(claims).from_select(["worker_id", "task_id", "epoch", "claim_call"], held)


def _note_claims(dialect: Dialect) -> Insert:
    return _note("claim", TaskStatus.CLAIMED, tasks.c.claimed_at, *_mine(dialect))


def _claimed(dialect: Dialect) -> Select[Any]:
    return select(*_CLAIMED).where(*_mine(dialect))


def _note(move: str, status: str, at: Any, *which: Any) -> Insert:
    """Return an INSERT of the events of a move, for the tasks that meet the conditions `which`."""
    chosen = select(
        tasks.c.job_id, tasks.c.id, tasks.c.epoch, literal(move), literal(str(status)), tasks.c.worker_id, at
    ).where(*which)
    return insert(events).from_select(["job_id", "task_id", "epoch", "move", "status", "worker_id", "at"], chosen)


# ---------------------------------------------------------------- complete


async def complete_claims(session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
    """Lock the tasks, and complete those that pass the fence. See `Dialect.complete_claims`."""
    items = {item.task_id: item for item in done}
    wanted = {"ids": session.dialect.pack(sorted(items)), "worker": worker_id}
    passed = [row for row in await session.rows(session.built(_fence), wanted) if row.epoch == items[row.id].epoch]
    if not passed:
        return []
    moved = {"ids": session.dialect.pack([row.id for row in passed]), "worker": worker_id}
    await session.run(session.built(_complete), moved)
    await session.run_many(session.built(_write_result), [_result(items[row.id]) for row in passed])
    await session.run(session.built(_record), moved)
    await session.run(session.built(_note_completions), moved)
    await session.dialect.delete_claims(session, worker_id, [row.id for row in passed])
    return [
        EndedTask(row.id, row.job_id, row.group_id, row.dependents_count, row.critical, TaskStatus.COMPLETED, row.lane)
        for row in passed
    ]


def _fence(dialect: Dialect) -> Select[Any]:
    columns = ("id", "job_id", "group_id", "dependents_count", "critical", "epoch", "lane")
    return (
        select(*(tasks.c[name] for name in columns))
        .where(
            dialect.in_ids(tasks.c.id),
            tasks.c.worker_id == bindparam("worker"),
            tasks.c.status.in_(sorted(LIVE_TASK)),
        )
        .order_by(tasks.c.id)
        .with_for_update(key_share=True)
    )


def _complete(dialect: Dialect) -> Update:
    started = func.coalesce(tasks.c.started_at, tasks.c.claimed_at)
    return (
        update(tasks)
        .where(dialect.in_ids(tasks.c.id))
        .values(status=TaskStatus.COMPLETED, completed_at=dialect.now(), started_at=started)
    )


def _result(item: Done) -> dict[str, Any]:
    return {"task": item.task_id, "value": item.result_json, "log": item.log_path}


def _write_result(_: Dialect) -> Update:
    written = update(tasks).where(tasks.c.id == bindparam("task"))
    return written.values(result=bindparam("value"), log_path=bindparam("log"))


def _record(dialect: Dialect) -> Insert:
    """Return an INSERT into `runs` for the runs that just ended, from the rows of their tasks."""
    read = ("id", "epoch", "attempt", "generation", "worker_id", "claimed_at", "started_at", "completed_at", "log_path")
    ended = select(*(tasks.c[name] for name in read), literal("completed")).where(dialect.in_ids(tasks.c.id))
    written = (
        "task_id",
        "epoch",
        "attempt",
        "generation",
        "worker_id",
        "claimed_at",
        "started_at",
        "ended_at",
        "log_path",
        "outcome",
    )
    return insert(runs).from_select(written, ended)


def _note_completions(dialect: Dialect) -> Insert:
    return _note("complete", TaskStatus.COMPLETED, tasks.c.completed_at, dialect.in_ids(tasks.c.id))
