"""Rows of `callbacks`: tokens that tasks have given away, and what was sent with them. Only digests are stored."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from sqlalchemy import exists, select, update

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.rules.states import ENDED_TASK, LIVE_TASK
from aaiclick.orchestration.store.definitions.access_tables import callbacks
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks


class Received(Enum):
    """What became of a callback."""

    STORED = "stored"
    REPEATED = "repeated"
    """The same was stored before."""
    USED = "used"
    """Something else was stored before."""
    UNKNOWN = "unknown"
    """There is no such token, or nobody waits for it any more."""


class Awaiting(NamedTuple):
    """A run that waits for a callback."""

    task_id: int
    epoch: int
    worker_id: int
    generation: int


async def expect_callback(session: Session, run: Awaiting, digest: str) -> None:
    """Accept a callback for the run's task. Raises ClaimLost if the run's claim is no longer live.

    It may be repeated: the answer to the first call may have been lost.
    """
    held = (
        tasks.c.id == run.task_id,
        tasks.c.epoch == run.epoch,
        tasks.c.worker_id == run.worker_id,
        tasks.c.status.in_(LIVE_TASK),
    )
    if await session.first(select(tasks.c.id).where(*held)) is None:
        raise ClaimLost(task_id=run.task_id, epoch=run.epoch, move="callback")
    known = (callbacks.c.digest == digest, callbacks.c.task_id == run.task_id)
    if await session.first(select(callbacks.c.digest).where(*known)) is not None:
        return
    row = {"digest": digest, "task_id": run.task_id, "generation": run.generation}
    await session.insert(callbacks, [{**row, "created_at": await session.now(), "received_at": None, "body": None}])


async def find_callback(session: Session, run: Awaiting) -> str | None:
    """Return what was called back for the run's task since it was last cleared; the first, if there are several."""
    mine = (callbacks.c.task_id == run.task_id, callbacks.c.generation == run.generation)
    chosen = select(callbacks.c.body).where(*mine, callbacks.c.received_at.is_not(None))
    row = await session.first(chosen.order_by(callbacks.c.received_at, callbacks.c.digest).limit(1))
    return None if row is None else str(row.body)


async def receive_callback(session: Session, digest: str, body: str) -> Received:
    """Store what was sent with a token, unless the token was used before or its task has ended or was cleared."""
    awaited = exists(
        select(tasks.c.id).where(
            tasks.c.id == callbacks.c.task_id,
            tasks.c.generation == callbacks.c.generation,
            tasks.c.status.not_in(ENDED_TASK),
        )
    )
    unused = (callbacks.c.digest == digest, callbacks.c.received_at.is_(None))
    values = {"received_at": session.dialect.now(), "body": body}
    if await session.run(update(callbacks).where(*unused, awaited).values(values)):
        return Received.STORED
    row = await session.first(select(callbacks.c.received_at, callbacks.c.body).where(callbacks.c.digest == digest))
    if row is None or row.received_at is None:
        return Received.UNKNOWN
    return Received.REPEATED if row.body == body else Received.USED
