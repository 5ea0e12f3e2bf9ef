"""Reads the view `execution_idempotency`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Integer, Row, String, column, select, table

from aaiclick.orchestration.store.definitions.column_types import JsonText, UtcTime
from aaiclick.orchestration.store.session import Session

_RECORDS = table(
    "execution_idempotency",
    column("task_id", BigInteger),
    column("attempt_id", Integer),
    column("idempotency_key", String),
    column("result", JsonText),
    column("status", String),
    column("created_at", UtcTime),
)


async def read_records(session: Session, task_id: int) -> Sequence[Row[Any]]:
    """Return the executions of a task, the oldest first."""
    mine = select(_RECORDS).where(_RECORDS.c.task_id == task_id)
    return await session.rows(mine.order_by(_RECORDS.c.attempt_id))
