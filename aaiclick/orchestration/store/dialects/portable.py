"""Deletes from `ready` and `claims`, for the databases on which one plain DELETE is fast for any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Delete, bindparam, delete

from aaiclick.orchestration.store.dialects.contract import Dialect, QueueStretch
from aaiclick.orchestration.store.tables import claims, ready

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session


async def delete_ready(session: Session, stretch: QueueStretch, ids: Sequence[int]) -> None:
    values = {f"of_{field}": value for field, value in stretch._asdict().items()}
    await session.run(session.built(_delete_ready), values | {"ids": session.dialect.pack(ids)})


def _delete_ready(dialect: Dialect) -> Delete:
    stretch = [ready.c[field] == bindparam(f"of_{field}") for field in QueueStretch._fields]
    return delete(ready).where(*stretch, dialect.in_ids(ready.c.task_id))


async def delete_claims(session: Session, worker_id: int, ids: Sequence[int]) -> None:
    await session.run(session.built(_delete_claims), {"worker": worker_id, "ids": session.dialect.pack(ids)})


def _delete_claims(dialect: Dialect) -> Delete:
    return delete(claims).where(claims.c.worker_id == bindparam("worker"), dialect.in_ids(claims.c.task_id))
