"""References to tables on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.store.dialects import sqlite_tables
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.table_moves import Hold
from aaiclick.orchestration.store.session import Session
from tests.support.orchestra import Orchestra, make, orchestra
from tests.support.tables import references_left

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


LOOKS = [sqlite_tables._FENCE, sqlite_tables._REGISTER_FENCED, sqlite_tables._AROUND, *sqlite_tables._LOOK.values()]


@pytest.mark.parametrize("sql", LOOKS)
async def test_a_look_scans_no_table(stage: Orchestra, sql: str) -> None:
    async with stage.transaction() as session:
        driver = driver_of(session.connection)
        plan = driver.execute(
            f"EXPLAIN QUERY PLAN {sql}", ["[]"] * (sql.count("?") if "?1" not in sql else 1)
        ).fetchall()
    scanned = {row[3].split()[1] for row in plan if row[3].startswith("SCAN")}
    assert scanned <= {"json_each", "around", "CONSTANT"}


async def test_what_was_held_before_an_error_is_not(stage: Orchestra) -> None:
    await stage.submit(make("a"))
    (claim,) = await stage.claim()

    async def hold(session: Session) -> None:
        await session.dialect.tables.hold(session, stage.worker, [Hold(claim.task_id, claim.epoch, ["out"])])
        raise RuntimeError("the process has other troubles")

    with pytest.raises(RuntimeError):
        await stage.database.transact(hold)
    assert await references_left(stage) == 0
