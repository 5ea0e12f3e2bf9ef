"""The hot moves of SQLite, on its own driver."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Done
from aaiclick.orchestration.store.dialects import sqlite_moves
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.tables import claims, events, tasks
from tests.support.orchestra import Orchestra, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

NOW = "2026-01-02 03:04:05.000006"


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_a_claim_leaves_what_is_reserved_and_what_is_behind_it_in_the_queue(stage: Orchestra) -> None:
    await stage.submit(make("a"), make("b"), make("c"))
    async with stage.transaction() as session:
        driver = driver_of(session.connection)
        driver.execute("INSERT INTO ready SELECT 5, lane, rank, job_id, task_id FROM ready")
        driver.execute("INSERT INTO ready SELECT reserved_for, 7, rank, job_id, task_id FROM ready")
        taken = sqlite_moves.claim(driver, NOW, stage.worker, 0, 0, 2, None, 3, 0)
        assert [task.name for task in taken] == ["a", "b"]
        left = driver.execute("SELECT reserved_for, lane, count(*) FROM ready GROUP BY 1, 2").fetchall()
        assert left == [(0, 0, 1), (0, 7, 3), (5, 0, 3), (5, 7, 3)]
        held = await session.rows(select(claims.c.task_id, claims.c.epoch, claims.c.claim_call))
        assert {tuple(row) for row in held} == {(task.id, 1, 3) for task in taken}


@pytest.mark.parametrize("sql", [sqlite_moves._PICK, sqlite_moves._LEAVE])
async def test_the_front_of_a_lane_is_found_by_the_key_of_the_queue(stage: Orchestra, sql: str) -> None:
    """Nothing is sorted: the key is the order of claims."""
    async with stage.transaction() as session:
        plan = driver_of(session.connection).execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?")).fetchall()
    (step,) = [row[3] for row in plan]
    assert step.startswith(
        "SEARCH ready USING PRIMARY KEY (reserved_for=? AND lane=? AND (rank,job_id,task_id)>(?,?,?)"
    )


async def test_all_of_a_batch_carries_one_moment(stage: Orchestra) -> None:
    await stage.submit(make("a"), make("b"))
    claimed = await stage.claim()
    async with stage.transaction() as session:
        done = [Done(claim.task_id, claim.epoch, "null") for claim in claimed]
        ended = sqlite_moves.complete(driver_of(session.connection), NOW, stage.worker, done)
        assert {task.id for task in ended} == {claim.task_id for claim in claimed}
        (when,) = {row.completed_at for row in await session.rows(select(tasks.c.completed_at))}
        noted = await session.rows(select(events.c.at).where(events.c.move == "complete"))
        assert [row.at for row in noted] == [when, when]


async def test_another_worker_and_another_epoch_complete_nothing(stage: Orchestra) -> None:
    await stage.submit(make("a"))
    (claim,) = await stage.claim()
    async with stage.transaction() as session:
        driver = driver_of(session.connection)
        assert not sqlite_moves.complete(driver, NOW, stage.worker + 1, [Done(claim.task_id, claim.epoch, "null")])
        assert not sqlite_moves.complete(driver, NOW, stage.worker, [Done(claim.task_id, claim.epoch + 1, "null")])
        assert [row.status for row in await session.rows(select(tasks.c.status))] == ["claimed"]
