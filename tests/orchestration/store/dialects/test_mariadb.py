"""MariaDB: what its defaults would do to us, and do not (pitfall T20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncmy.errors
import pytest
from sqlalchemy import func, select, text, update

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.dialects import mariadb as module
from aaiclick.orchestration.store.dialects.mariadb import MariadbDialect
from aaiclick.orchestration.store.tables import claims, ready, tasks
from tests.support.orchestra import Orchestra, make, more_workers, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_every_connection_is_set_up_the_same(stage: Orchestra) -> None:
    asked = text("SELECT @@tx_isolation AS isolation, @@time_zone AS zone, @@sql_mode AS mode, @@autocommit AS own")
    together = asyncio.Barrier(3)

    async def look() -> tuple[str, str, bool]:
        async with stage.transaction() as session:
            await together.wait()
            row = await session.first(asked)
            assert row is not None
            return row.isolation, row.zone, "STRICT_ALL_TABLES" in row.mode

    assert await asyncio.gather(*(look() for _ in range(3))) == [("READ-COMMITTED", "+00:00", True)] * 3


async def test_a_value_that_does_not_fit_is_refused_and_not_cut(stage: Orchestra) -> None:
    task = make("t")
    await stage.submit(task)
    with pytest.raises(Exception, match="too long"):
        await stage.database.transact(lambda session: session.run(update(tasks).values(name="x" * 300)))
    assert (await stage.task(task)).name == "t"


@pytest.mark.parametrize("code", sorted(module.TRANSIENT))
def test_deadlocks_and_their_like_are_transient(dialect: str, code: int) -> None:
    error = asyncmy.errors.OperationalError(code, "x")
    wrapped = RuntimeError("around")
    wrapped.__cause__ = error
    assert MariadbDialect().is_transient(error)
    assert MariadbDialect().is_transient(wrapped)


@pytest.mark.parametrize("code", [1062, 2013, 1054])
def test_other_errors_are_not(dialect: str, code: int) -> None:
    assert not MariadbDialect().is_transient(asyncmy.errors.OperationalError(code, "x"))


async def test_a_lock_that_is_never_freed_is_told_as_transient(stage: Orchestra) -> None:
    task = make("t")
    await stage.submit(task)

    async def wait_in_vain() -> None:
        async with stage.transaction() as other:
            await other.run(text("SET SESSION innodb_lock_wait_timeout = 1"))
            await other.run(update(tasks).where(tasks.c.id == task.id).values(error="other"))

    async with stage.transaction() as holder:
        await holder.run(update(tasks).where(tasks.c.id == task.id).values(error="held"))
        with pytest.raises(Exception, match="Lock wait timeout") as caught:
            await wait_in_vain()
    assert stage.database.dialect.is_transient(caught.value)


async def test_many_rows_go_in_several_statements(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    rows = [{"worker_id": 1, "task_id": number, "epoch": 1} for number in range(30)]
    await stage.database.transact(lambda session: session.insert(claims, rows))
    assert await stage.scalar(select(func.count()).select_from(claims)) == 30


async def test_claims_of_two_workers_leave_no_gap_locked_between_them(stage: Orchestra) -> None:
    """Under REPEATABLE READ the gaps before the taken rows would be locked, and new rows would wait."""
    group = Group("g")
    job = await stage.submit(group, *(make(f"t{number}", priority=number, group_id=group.id) for number in range(6)))
    one, two = await more_workers(stage, 2)
    async with stage.transaction() as session:
        taken = await session.dialect.claim_ready(session, worker_id=one, reserved_for=0, lane=0, limit=2, after=None)
        await stage.submit(make("between", priority=4))
        async with stage.transaction() as other:
            more = await other.dialect.claim_ready(other, worker_id=two, reserved_for=0, lane=0, limit=2, after=None)
    assert {task.name for task in taken} == {"t5", "t4"}
    assert {task.name for task in more} == {"between", "t3"}
    assert (await stage.job(job)).total_tasks == 6


async def test_what_a_stranger_would_take_for_one_name_is_two(stage: Orchestra) -> None:
    task = make("t")
    await stage.submit(task)
    await stage.database.transact(lambda session: session.run(update(tasks).values(name="Straße ")))
    for name, found in (("Straße ", 1), ("straße ", 0), ("Strasse ", 0), ("Straße", 0)):
        assert await stage.scalar(select(func.count()).select_from(tasks).where(tasks.c.name == name)) == found


async def test_the_front_of_a_lane_is_found_by_the_key_of_the_queue(stage: Orchestra) -> None:
    """Nothing is sorted: the key is the order of claims."""
    rows = [
        {"reserved_for": 0, "lane": lane, "rank": 0, "job_id": 1, "task_id": task}
        for lane in range(5)
        for task in range(200)
    ]
    await stage.database.transact(lambda session: session.insert(ready, rows))
    order = "reserved_for, lane, `rank`, job_id, task_id"
    asked = f"EXPLAIN SELECT `rank`, job_id, task_id FROM ready WHERE reserved_for = 0 AND lane = 3 ORDER BY {order}"
    async with stage.transaction() as session:
        (step,) = await session.rows(text(f"{asked} LIMIT 5 FOR UPDATE SKIP LOCKED"))
    assert (step.table, step.key, step.ref) == ("ready", "PRIMARY", "const,const")
    assert "filesort" not in (step.Extra or "")
