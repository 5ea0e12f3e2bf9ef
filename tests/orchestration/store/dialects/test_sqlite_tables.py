"""References to tables on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.sqlite_tables import _LOOK, SqliteTables
from aaiclick.orchestration.store.dialects.table_moves import Hold
from tests.support.orchestra import Orchestra, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_to_hold_takes_no_statement_of_its_own_for_each_run(stage: Orchestra) -> None:
    await stage.submit(*(make("a") for _ in range(10)))
    claims = await stage.claim()
    async with stage.transaction() as session:
        said: list[str] = []
        driver_of(session.connection).set_trace_callback(said.append)
        holds = [Hold(claim.task_id, claim.epoch) for claim in claims]
        assert len(await SqliteTables().hold(session, stage.worker, holds)) == 10
        driver_of(session.connection).set_trace_callback(None)
        assert len(said) == 1


async def test_a_look_scans_no_table(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        plan = driver_of(session.connection).execute(f"EXPLAIN QUERY PLAN {_LOOK}", ("[]", "[]", "[]")).fetchall()
    scanned = [row[3] for row in plan if row[3].startswith("SCAN")]
    assert {line.split()[1] for line in scanned} <= {"json_each", "maker", "around", "CONSTANT"}
