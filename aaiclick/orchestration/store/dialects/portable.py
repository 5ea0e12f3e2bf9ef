"""Leaving the two narrow tables, where one DELETE does it, whatever the number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Delete, bindparam, delete

from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.tables import claims, ready

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session


async def leave_lane(session: Session, placement: int, rank: int, job_id: int, ids: Sequence[int]) -> None:
    lane = {"placement": placement, "lane_rank": rank, "lane_job": job_id, "ids": session.dialect.pack(ids)}
    await session.run(session.built(_leave), lane)


def _leave(dialect: Dialect) -> Delete:
    return delete(ready).where(
        ready.c.placement == bindparam("placement"),
        ready.c.rank == bindparam("lane_rank"),
        ready.c.job_id == bindparam("lane_job"),
        dialect.in_ids(ready.c.task_id),
    )


async def free_claims(session: Session, worker_id: int, ids: Sequence[int]) -> None:
    await session.run(session.built(_free), {"worker": worker_id, "ids": session.dialect.pack(ids)})


def _free(dialect: Dialect) -> Delete:
    return delete(claims).where(claims.c.worker_id == bindparam("worker"), dialect.in_ids(claims.c.task_id))
