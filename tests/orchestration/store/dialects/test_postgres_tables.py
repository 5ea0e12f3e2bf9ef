"""References to tables on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aaiclick.errors import ClaimLost
from tests.support.orchestra import Orchestra, make, orchestra
from tests.support.tables import references_left, run_refs, table_of

pytestmark = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_to_hold_is_one_statement_that_commits_by_itself(stage: Orchestra) -> None:
    assert stage.database.dialect.tables.at_once
    await stage.submit(make("a"))
    (claim,) = await stage.claim()
    await stage.coordinator.hold(claim, [table_of(claim)])
    assert len(await run_refs(stage)) == 1


async def test_a_hold_that_waited_looks_at_the_fence_again(stage: Orchestra) -> None:
    job = await stage.submit(make("a"))
    (claim,) = await stage.claim()
    async with stage.transaction() as session:
        await session.dialect.tables.hold(session, stage.worker, [])
        connection = session.connection
        await connection.exec_driver_sql(f"UPDATE tasks SET epoch = epoch + 1 WHERE job_id = {job.id}")
        holding = asyncio.create_task(stage.coordinator.hold(claim, [table_of(claim)]))
        await stage.until_waiting()
    with pytest.raises(ClaimLost):
        await holding
    assert await references_left(stage) == 0
