"""Leaving the narrow tables: these rows, in one statement, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from aaiclick.orchestration.store.dialects import portable
from aaiclick.orchestration.store.dialects.contract import QueueStretch
from aaiclick.orchestration.store.tables import claims, ready
from tests.support.orchestra import Orchestra, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_a_stretch_of_the_queue_is_left_by_the_tasks_that_are_named(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"), make("c", priority=1))
    ids = {row.task_id for row in await stage.rows(select(ready.c.task_id).where(ready.c.rank == 0))}
    gone = min(ids)
    async with stage.transaction() as session:
        for other in (QueueStretch(0, 0, 1, job.id), QueueStretch(0, 1, 0, job.id), QueueStretch(1, 0, 0, job.id)):
            await portable.delete_ready(session, other, [gone])
        assert len(await session.rows(select(ready))) == 3
        await portable.delete_ready(session, QueueStretch(0, 0, 0, job.id), [gone, 7])
    left = {row.task_id for row in await stage.rows(select(ready.c.task_id))}
    assert len(left) == 2
    assert gone not in left


async def test_claims_of_one_worker_are_deleted(stage: Orchestra) -> None:
    rows = [{"worker_id": worker, "task_id": task, "epoch": 1} for worker in (1, 2) for task in (5, 6)]
    async with stage.transaction() as session:
        await session.insert(claims, rows)
        await portable.delete_claims(session, 1, [5])
    left = {(row.worker_id, row.task_id) for row in await stage.rows(select(claims))}
    assert left == {(1, 6), (2, 5), (2, 6)}
