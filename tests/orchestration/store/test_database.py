"""Transactions: whole or not at all, tried again when that may help, and connections that are fit for the next one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
from sqlalchemy import func, insert, literal, select, text, update

from aaiclick.errors import TransientStoreError
from aaiclick.orchestration.store import database as store_database
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, tasks
from tests.support.orchestra import Orchestra, make, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)

ENDING_CONNECTIONS = {
    "postgresql": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mariadb": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def note(session: Session, task_id: int) -> None:
    """Write something that can be counted."""
    await session.run(insert(claims).values(worker_id=1, task_id=task_id, epoch=1))


async def echo(session: Session, number: int) -> int:
    """What the database says when it is told this number."""
    return int(await session.scalar(select(literal(number))))


async def kill(session: Session, connection: int) -> None:
    await session.run(text(f"KILL {connection}"))


async def count(stage: Orchestra) -> int:
    return int(await stage.scalar(select(func.count()).select_from(claims)))


# ---------------------------------------------------------------- whole or not at all


async def test_a_transaction_is_committed_at_its_end(stage: Orchestra) -> None:
    await stage.database.transact(lambda session: note(session, 1))
    assert await count(stage) == 1


async def test_an_error_undoes_all_and_the_connection_is_fit_for_the_next(stage: Orchestra) -> None:
    async def work(session: Session) -> None:
        await note(session, 1)
        raise LookupError("no")

    for _ in range(5):
        with pytest.raises(LookupError):
            await stage.database.transact(work)
    assert await count(stage) == 0
    await stage.database.transact(lambda session: note(session, 1))
    assert await count(stage) == 1


async def test_an_error_of_the_database_undoes_all_too(stage: Orchestra) -> None:
    async def work(session: Session) -> None:
        await note(session, 1)
        await note(session, 1)

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        await stage.database.transact(work)
    assert await count(stage) == 0


async def test_an_error_that_carries_anything_at_all_passes_through(stage: Orchestra) -> None:
    """Whether it is a deadlock is asked of its first argument, which need not be a number."""

    async def work(session: Session) -> None:
        raise ValueError(["not", "hashable"])

    with pytest.raises(ValueError, match="hashable"):
        await stage.database.transact(work)


async def test_a_cancelled_transaction_undoes_all_and_the_next_sees_its_own_answers(stage: Orchestra) -> None:
    inside = asyncio.Event()

    async def work(session: Session) -> None:
        await note(session, 1)
        inside.set()
        await asyncio.Event().wait()

    for _ in range(3):
        inside.clear()
        running = asyncio.create_task(stage.database.transact(work))
        await inside.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await count(stage) == 0
    for number in range(5):
        assert await stage.database.transact(partial(echo, number=number)) == number


@servers_only
async def test_a_transaction_that_is_cancelled_while_a_statement_runs_leaves_no_answer_behind(stage: Orchestra) -> None:
    """The answer that nobody waited for must not be taken for that of the next statement."""
    task = make("t")
    await stage.submit(task)

    async def work(session: Session) -> None:
        await session.run(update(tasks).where(tasks.c.id == task.id).values(name="changed"))

    async with stage.transaction() as holder:
        await holder.run(update(tasks).where(tasks.c.id == task.id).values(name="held"))
        waiting = [asyncio.create_task(stage.database.transact(work)) for _ in range(3)]
        await stage.until_waiting(3)
        for each in waiting:
            each.cancel()
        for number in range(20):
            assert await stage.database.read(partial(echo, number=number)) == number
        await asyncio.gather(*waiting, return_exceptions=True)
    assert (await stage.task(task)).name == "held"
    for number in range(20):
        assert await stage.database.transact(partial(echo, number=number)) == number


async def test_a_big_insert_that_is_cancelled_leaves_nothing_or_all(stage: Orchestra) -> None:
    rows = [{"worker_id": 1, "task_id": number, "epoch": 1} for number in range(20_000)]
    inside = asyncio.Event()

    async def work(session: Session) -> None:
        inside.set()
        await session.insert(claims, rows)

    for pauses in (1, 3, 10):
        inside.clear()
        running = asyncio.create_task(stage.database.transact(work))
        await inside.wait()
        for _ in range(pauses):
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if running.cancelled():  # all of it is there if the commit was on its way already
            assert await count(stage) in (0, len(rows))
        await stage.database.transact(lambda session: session.run(claims.delete()))
    await stage.database.transact(lambda session: note(session, 1))
    assert await count(stage) == 1


# ---------------------------------------------------------------- again


async def test_what_may_pass_is_tried_again_as_a_whole(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    async def work(session: Session) -> int:
        nonlocal tries
        tries += 1
        await note(session, 1)
        if tries < 4:
            raise InterruptedError("transient")
        return tries

    told = stage.database.dialect
    monkeypatch.setattr(type(told), "is_transient", lambda _, error: isinstance(error, InterruptedError))
    assert await stage.database.transact(work) == 4
    assert await count(stage) == 1


async def test_what_never_passes_is_told_with_its_cause(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_database, "TRIES", 3)
    monkeypatch.setattr(type(stage.database.dialect), "is_transient", lambda _, error: True)

    async def work(session: Session) -> None:
        raise InterruptedError("always the same")

    with pytest.raises(TransientStoreError, match=r"3 times in a row .*always the same"):
        await stage.database.transact(work)


@servers_only
async def test_a_deadlock_is_not_seen_by_the_caller(stage: Orchestra) -> None:
    """Two transactions lock two rows in opposite order: one is chosen as the victim, and tried again (pitfall T33)."""
    a, b = make("a"), make("b")
    await stage.submit(a, b)
    tries = {"one": 0, "two": 0}
    both = asyncio.Barrier(2)

    async def work(session: Session, name: str, first: int, second: int) -> None:
        tries[name] += 1
        await session.run(update(tasks).where(tasks.c.id == first).values(error=name))
        if tries[name] == 1:
            await both.wait()
        await session.run(update(tasks).where(tasks.c.id == second).values(error=name))

    await asyncio.gather(
        stage.database.transact(lambda session: work(session, "one", a.id, b.id)),
        stage.database.transact(lambda session: work(session, "two", b.id, a.id)),
    )
    assert sum(tries.values()) == 3
    assert (await stage.task(a)).error == (await stage.task(b)).error


@servers_only
async def test_both_errors_of_a_deadlock_are_told_apart_from_others(stage: Orchestra) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        await stage.database.transact(lambda session: session.run(text("SELECT * FROM nothing_of_the_kind")))
    assert not stage.database.dialect.is_transient(caught.value)


# ---------------------------------------------------------------- connections


@servers_only
async def test_transactions_run_side_by_side(stage: Orchestra) -> None:
    together = asyncio.Barrier(4)

    async def work(session: Session) -> None:
        await session.now()
        await together.wait()

    await asyncio.gather(*(stage.database.transact(work) for _ in range(4)))


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_writers_of_one_process_wait_in_line(stage: Orchestra) -> None:
    inside = 0

    async def work(session: Session) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1

    await asyncio.gather(*(stage.database.transact(work) for _ in range(20)))


async def test_reading_goes_on_while_another_writes(stage: Orchestra) -> None:
    async with stage.transaction() as writing:
        await note(writing, 1)
        assert await count(stage) == 0
    assert await count(stage) == 1


async def test_connections_are_prepared_once_and_used_again(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = 0
    before = stage.database.dialect.prepare

    async def counted(connection: object) -> None:
        nonlocal prepared
        prepared += 1
        await before(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.database.dialect, "prepare", counted)
    for number in range(10):
        await stage.database.transact(partial(note, task_id=number))
    assert prepared == 0


@servers_only
async def test_after_the_server_ended_our_connections_one_call_fails_and_the_next_work(stage: Orchestra) -> None:
    barrier = asyncio.Barrier(4)

    async def together(session: Session) -> None:
        await barrier.wait()

    await asyncio.gather(*(stage.database.transact(together) for _ in range(4)))  # four connections are at hand
    await end_all_connections(stage)
    told: list[Exception] = []
    for number in range(10):
        try:
            await stage.database.transact(partial(note, task_id=number))
        except Exception as error:
            told.append(error)
    assert len(told) <= 1
    assert await count(stage) == 10 - len(told)


async def end_all_connections(stage: Orchestra) -> None:
    other = await Database.open(stage.database.url)
    statement = ENDING_CONNECTIONS[other.dialect.name]
    rows = await other.read(lambda session: session.rows(text(statement)))
    if other.dialect.name == "mariadb":
        for row in rows:
            await other.write_one(partial(kill, connection=row.id))
    await other.close()


async def test_closing_twice_is_fine(migrated_sql_url: str) -> None:
    database = await Database.open(migrated_sql_url)
    await database.read(lambda session: session.now())
    await database.close()
    await database.close()


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_database_set_to_repeatable_read_changes_nothing(migrated_sql_url: str) -> None:
    """«Lock, then look» rests on READ COMMITTED: we ask for it ourselves (pitfall T20)."""
    async with orchestra(migrated_sql_url) as before:
        name = await before.scalar(text("SELECT current_database()"))
        setting = f'ALTER DATABASE "{name}" SET default_transaction_isolation TO "repeatable read"'
        await before.database.write_one(lambda session: session.run(text(setting)))
        try:
            async with orchestra(migrated_sql_url) as stage, stage.transaction() as session:
                assert await session.scalar(text("SHOW transaction_isolation")) == "read committed"
        finally:
            undone = f'ALTER DATABASE "{name}" RESET default_transaction_isolation'
            await before.database.write_one(lambda session: session.run(text(undone)))
