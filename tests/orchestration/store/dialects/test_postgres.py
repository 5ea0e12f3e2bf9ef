"""PostgreSQL: the two hot statements, COPY, and locks that let foreign eyes pass."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.dialects import postgresql

from aaiclick.orchestration.coordinator import claiming
from aaiclick.orchestration.store.dialects import postgres as module
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.postgres import _CLAIM_FRONT, PostgresDialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, groups, tasks
from aaiclick.orchestration.store.transitions import lock_tasks
from tests.support.orchestra import Orchestra, done, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


def test_rows_are_locked_for_no_key_update(dialect: str) -> None:
    """FOR UPDATE would stand in the way of foreign keys, and make MultiXacts (pitfall T36)."""
    for table in (tasks, groups):
        locked = select(table.c.id).with_for_update(key_share=True).compile(dialect=postgresql.dialect())
        assert str(locked).endswith("FOR NO KEY UPDATE")


async def test_a_task_that_is_locked_can_be_referred_to(stage: Orchestra) -> None:
    """A FOR KEY SHARE, which a foreign key takes, does not wait for our lock."""
    task = make("t")
    await stage.submit(task)
    async with stage.transaction() as holder, stage.transaction() as other:
        await lock_tasks(holder, [task.id])
        found = await other.rows(text(f"SELECT id FROM tasks WHERE id = {task.id} FOR KEY SHARE NOWAIT"))
        assert len(found) == 1


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (asyncpg.DeadlockDetectedError("x"), True),
        (asyncpg.SerializationError("x"), True),
        (asyncpg.LockNotAvailableError("x"), True),
        (asyncpg.UniqueViolationError("x"), False),
        (asyncpg.ConnectionDoesNotExistError("x"), False),
    ],
)
def test_deadlocks_and_their_like_are_transient(dialect: str, error: Exception, transient: bool) -> None:
    assert PostgresDialect().is_transient(error) is transient
    wrapped = RuntimeError("around")
    wrapped.__cause__ = error
    assert PostgresDialect().is_transient(wrapped) is transient


@pytest.mark.parametrize("count", [1, 250])
async def test_copied_rows_and_inserted_rows_are_the_same(
    stage: Orchestra, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"worker_id": 1, "task_id": number, "epoch": 1} for number in range(count)]
    for copy_from in (1, 1_000):
        monkeypatch.setattr(module, "COPY_FROM", copy_from)

        async def work(session: Session) -> int:
            await session.insert(claims, rows)
            found = await session.scalar(select(func.count()).select_from(claims))
            await session.run(claims.delete())
            return int(found)

        assert await stage.database.transact(work) == count


async def test_a_claim_is_one_statement_that_commits_by_itself(stage: Orchestra) -> None:
    await stage.submit(make("a"), make("b"))
    sent: list[str] = []
    async with stage.database.connection() as connection:
        driver = driver_of(connection)
    driver.add_query_logger(lambda query: sent.append(query.query))
    assert len(await stage.claim(2)) == 2
    await asyncio.sleep(0)  # what asyncpg logs comes with the next turn of the loop
    assert len(sent) == 1


async def test_the_ready_rows_are_found_by_their_index(stage: Orchestra) -> None:
    """Whatever the number of blocked and finished tasks: they are not in the queue."""
    first = make("first")
    await stage.submit(first, *(make(f"t{number}").depends_on(first) for number in range(300)))
    async with stage.transaction() as session:
        for way in ("seqscan", "bitmapscan", "sort"):
            await session.run(text(f"SET LOCAL enable_{way} = off"))
        lane = "reserved_for = 0 AND lane = 0"
        order = "reserved_for, lane, rank, job_id, task_id"
        assert order in _CLAIM_FRONT
        plan = await session.rows(text(f"EXPLAIN SELECT ctid FROM ready WHERE {lane} ORDER BY {order} LIMIT 5"))
    assert any("Index Cond: ((reserved_for = 0) AND (lane = 0))" in row[0] for row in plan)
    assert not any("Sort" in row[0] for row in plan)


async def test_completions_of_one_batch_lock_in_the_order_of_their_ids(stage: Orchestra) -> None:
    """Two batches that share nothing cannot wait for each other; one that waits holds only lower ids."""
    await stage.submit(*(make(f"t{number}") for number in range(40)))
    claimed = await stage.claim(40)
    middle = sorted(claim.task_id for claim in claimed)[20]
    async with stage.transaction() as holder:
        await lock_tasks(holder, [middle])
        completing = asyncio.create_task(stage.complete(*reversed(claimed)))
        await stage.until_waiting()
        free = await holder.rows(text("SELECT id FROM tasks ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"))
    await completing
    assert [row.id for row in free] == sorted(claim.task_id for claim in claimed)[20:]
    assert not await stage.violations()


async def test_two_claimers_of_many_new_jobs_at_once_start_each_once(stage: Orchestra) -> None:
    for number in range(12):
        await stage.submit(*(make(f"{number}-{each}") for each in range(4)))
    claims_made = await asyncio.gather(*(stage.claim(6) for _ in range(8)))
    assert len({claim.task_id for some in claims_made for claim in some}) == 48
    assert not await stage.violations()


async def test_the_queue_is_swept_after_many_claims(migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a claim steps over all rows that were taken since autovacuum last came."""
    monkeypatch.setattr(claiming, "SWEEP_EVERY", 50)
    async with orchestra(migrated_sql_url) as stage:
        await stage.submit(*(make(str(number)) for number in range(60)))
        before = await _pages_of_ready(stage)
        while claims := await stage.coordinator.claim(stage.worker, limit=10):
            await stage.coordinator.report(stage.worker, [done(claim) for claim in claims])
        await stage.coordinator.reconcile()
        assert before > 0
        assert await _pages_of_ready(stage) == 0


async def _pages_of_ready(stage: Orchestra) -> int:
    """A vacuum gives the pages behind the last row back."""
    rows = await stage.database.read(lambda session: session.rows(text("SELECT pg_relation_size('ready')")))
    return int(rows[0][0])


@pytest.mark.parametrize("sql", [module._CLAIM_FRONT, module._CLAIM_AFTER, module._COMPLETE])
async def test_the_hot_statements_look_up_their_own_rows_and_compare_none_with_each(stage: Orchestra, sql: str) -> None:
    numbers = sorted({int(number) for number in re.findall(r"\$(\d+)", sql)})
    await stage.submit(*(make(f"t{number}") for number in range(1000)))
    async with stage.database.connection() as connection:
        driver = driver_of(connection)
        await driver.execute("ANALYZE tasks")  # else the plan depends on whether autovacuum looked at the empty table
        await driver.execute("SET plan_cache_mode = force_generic_plan")
        await driver.execute(f"PREPARE looked_at AS {sql}")
        plan = await driver.fetch(f"EXPLAIN EXECUTE looked_at ({', '.join(['NULL'] * len(numbers))})")
        await driver.execute("DEALLOCATE looked_at; RESET plan_cache_mode")
    lines = [row[0] for row in plan]
    assert not [line for line in lines if "Seq Scan on tasks" in line], lines
    assert not [line for line in lines if "Join" in line or "Nested Loop" in line], lines  # each with each
    assert [line for line in lines if "tasks_pkey" in line], lines


async def test_a_plan_that_was_made_while_a_table_was_small_is_forgotten_when_it_has_grown(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept for a connection, and nobody may have analysed the table since."""
    await stage.submit(*(make(f"t{number}") for number in range(3)))
    sent: list[str] = []
    async with stage.database.connection() as connection:
        driver_of(connection).add_query_logger(lambda query: sent.append(query.query))
    claims = await stage.claim(2)
    await stage.complete(claims[0])
    await asyncio.sleep(0)
    assert "DISCARD PLANS" not in sent
    monkeypatch.setattr(module, "PLANNED_FOR_S", 0.0)
    monkeypatch.setattr(module, "PLANNED_FOR_CALLS", 1)
    assert len(await stage.claim(1)) == 1
    await stage.complete(claims[1])
    await asyncio.sleep(0)
    assert sent.count("DISCARD PLANS") == 2
