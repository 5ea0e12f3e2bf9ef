"""A whole database goes to another one, of any kind, and every value is the same there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import inspect, select, text, update

from aaiclick import ids
from aaiclick.errors import Conflict, SchemaError
from aaiclick.orchestration import database_copies
from aaiclick.orchestration.database_copies import copy_database
from aaiclick.orchestration.models import CacheAnswer, CacheKey
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.store import copies, schema
from aaiclick.orchestration.store.access.callbacks import Received, receive_callback
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, installation, tasks, terms, workers
from aaiclick.orchestration.store.workers import add_worker
from tests.support.contents import contents
from tests.support.filled import fill
from tests.support.orchestra import done, make, orchestra

DIRECTIONS = [
    (source, target)
    for source in ("sqlite", "postgres", "mariadb")
    for target in ("sqlite", "postgres", "mariadb")
    if source != target
]
between = pytest.mark.parametrize(("dialect", "server"), DIRECTIONS)
LONG = "TEST_LONG" in os.environ
FEW = [("sqlite", "postgres"), ("mariadb", "sqlite")]
each_once = pytest.mark.parametrize(("dialect", "server"), DIRECTIONS if LONG else FEW)
on_files = pytest.mark.parametrize(("dialect", "server"), [("sqlite", "sqlite")])


@pytest.fixture
def urls(request: pytest.FixtureRequest, dialect: str, server: str) -> Iterator[tuple[str, str]]:
    """Migrated databases of these kinds, without rows; a target without a schema is a story of its own."""
    with ExitStack() as stack:
        source = stack.enter_context(request.getfixturevalue(f"{dialect}_databases").migrated())
        yield source, stack.enter_context(request.getfixturevalue(f"{server}_databases").migrated())


@pytest.fixture
async def source(urls: tuple[str, str]) -> AsyncIterator[Database]:
    database = await Database.open(urls[0])
    yield database
    await database.close()


async def held(url: str) -> dict[str, Any]:
    database = await Database.open(url)
    try:
        return await contents(database)
    finally:
        await database.close()


@between
async def test_every_value_of_every_table_is_the_same_there(source: Database, urls: tuple[str, str]) -> None:
    rows = await fill(source, 24)
    seen: list[tuple[str, int, int]] = []
    copied = await copy_database(*urls, seen=lambda *told: seen.append(told))
    assert {each.name: each.rows for each in copied} == rows
    assert await contents(source) == await held(urls[1])
    assert [told for told in seen if told[0] == "tasks"][-1] == ("tasks", 24, 24)
    assert await schema.current(urls[1]) == schema.HEAD


@between
async def test_no_table_of_the_schema_is_left_out(source: Database) -> None:
    """Asked of the database itself: a table that migrations make must be copied, or be known as one of its own."""
    async with source.connection() as connection:
        there = await connection.run_sync(lambda plain: set(inspect(plain).get_table_names()))
    assert there - {table.name for table in copies.copied_tables()} == {"machine_ids", "aaiclick_schema"}


@each_once
async def test_what_waits_and_what_is_remembered_goes_on_there(source: Database, urls: tuple[str, str]) -> None:
    """A token that was given away counts, a lane has its needs, a node its id, and a result is known."""
    key, placed = CacheKey("d" * 64, "a.b", "i" * 64), {"placement": {"allowed_nodes": ["W1"]}}
    node = NodeDescription("W1", executor_types=["python"])
    async with orchestra(urls[0]) as band:
        here = band.coordinator
        worker = await here.register(hostname="here", pid=1, node=node)
        await band.submit(make("a", **placed))
        (claim,) = await here.claim(worker.id, limit=9, lanes=None)
        assert await here.callback(claim, "d1") is None
        await here.release(worker.id, [claim])
        await band.submit(make("b"))
        (other,) = await here.claim(worker.id, limit=9, lanes=[PLAIN])
        assert (await here.recall(other, key)).remembers
        await here.report(worker.id, [replace(done(other, "[5]"), remember=key)])
        for each in (worker.id, band.worker):
            await here.deregister(each)
    await copy_database(*urls)
    async with orchestra(urls[1]) as band:
        there = band.coordinator
        assert await there.claim(band.worker, limit=9, lanes=None) == [], "it is not of the node that is allowed"
        again = await there.register(hostname="there", pid=2, node=node)
        assert again.node_id == worker.node_id
        assert await band.database.transact(lambda session: receive_callback(session, "d1", "7")) is Received.STORED
        (claim,) = await there.claim(again.id, limit=9, lanes=None)
        assert (claim.name, await there.callback(claim, "")) == ("a", "7")
        await band.submit(make("b"))
        (other,) = await there.claim(again.id, limit=9, lanes=None)
        assert await there.recall(other, key) == CacheAnswer(hit=True, result_json="[5]")


@each_once
async def test_one_that_is_cut_off_goes_on_where_it_was(
    source: Database, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_copies, "PAGE_ROWS", 5)
    monkeypatch.setattr(database_copies, "PAGE_ROWS_MAX", 5)
    await fill(source, 24)
    for _ in range(3):  # each time it comes further
        pages: list[str] = []

        def cut(name: str, done: int, _: int, pages: list[str] = pages) -> None:
            pages.append(name)
            if len(pages) == 24:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await copy_database(*urls, seen=cut)
        with pytest.raises(SchemaError, match=r"copy of another database is not finished.*migrate copy"):
            await Database.open(urls[1])  # nobody works there meanwhile
    again: list[tuple[str, int]] = []
    await copy_database(*urls, seen=lambda name, done, _: again.append((name, done)))
    assert [done for name, done in again if name == "audit"] == [24], "what was there was not copied again"
    assert await contents(source) == await held(urls[1])


@each_once
async def test_what_changed_meanwhile_is_copied_again(
    source: Database, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(source, 10)
    changes = [0]

    async def finish(*given: Any) -> None:
        assert changes[0] == 1
        await finished(*given)

    finished = database_copies._finish
    monkeypatch.setattr(database_copies, "_finish", finish)
    copied = database_copies._copy_table

    async def copy_table(here: Database, there: Database, table: Any, seen: Any) -> None:
        await copied(here, there, table, seen)
        if table is tasks and not changes[0]:
            changes[0] += 1
            await source.transact(lambda session: session.run(update(tasks).values(name="changed")))

    monkeypatch.setattr(database_copies, "_copy_table", copy_table)
    await copy_database(*urls)
    assert await contents(source) == await held(urls[1])


@on_files
async def test_what_keeps_changing_is_refused_and_named(
    source: Database, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(source, 10)
    copied = database_copies._copy_table
    count = [0]

    async def copy_table(here: Database, there: Database, table: Any, seen: Any) -> None:
        await copied(here, there, table, seen)
        if table is tasks:
            count[0] += 1
            await source.transact(lambda session: session.run(update(tasks).values(name=f"changed {count[0]}")))

    monkeypatch.setattr(database_copies, "_copy_table", copy_table)
    with pytest.raises(Conflict, match="not the same on both sides: tasks"):
        await copy_database(*urls)
    monkeypatch.undo()
    await copy_database(*urls)
    assert await contents(source) == await held(urls[1])


@each_once
async def test_numbers_and_ids_go_on_behind_those_that_were_copied(source: Database, urls: tuple[str, str]) -> None:
    await fill(source, 20)
    await source.transact(lambda session: copies.raise_machine_ids(session, {3: 10**15, 4: 5}))
    await copy_database(*urls)
    target = await Database.open(urls[1])
    try:
        async with orchestra(urls[1]) as band:
            before = await band.scalar(select(events.c.id).order_by(events.c.id.desc()).limit(1))
            await band.submit(make("new"))
            assert await band.scalar(select(events.c.id).order_by(events.c.id.desc()).limit(1)) > before
        high = await target.read(copies.read_machine_ids)
        assert high[3] == 10**15
        assert high[4] >= 5
    finally:
        await target.close()


@on_files
async def test_it_waits_until_new_ids_are_newer(
    source: Database, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ahead(session: Session, seconds: float) -> int:
        ms = int((await session.now() + timedelta(seconds=seconds)).timestamp() * 1000)
        return ids._base(ms, 7)

    soon = await source.read(lambda session: ahead(session, 0.3))
    row: dict[str, Any] = {column.name: None for column in copies.columns_of(tasks)} | dict.fromkeys(
        (column.name for column in copies.columns_of(tasks) if not column.nullable), 0
    )
    row |= {"id": soon, "name": "x", "entrypoint": "x.y", "kwargs": "{}", "status": "completed", "trigger_rule": "x"}
    row["created_at"] = await source.read(Session.now)
    await source.transact(lambda session: session.insert(tasks, [row]))
    await copy_database(*urls)
    target = await Database.open(urls[1])
    assert await target.read(Session.now) > ids.id_time(soon)
    await target.close()

    far = await source.read(lambda session: ahead(session, 3600))
    await source.transact(lambda session: session.run(update(tasks).values(id=far)))
    other = urls[1].replace("local.db", "other.db")
    with pytest.raises(Conflict, match="behind the newest id"):
        await copy_database(urls[0], other)
    with pytest.raises(SchemaError):
        await Database.open(other)


# ---------------------------------------------------------------- refusals


@each_once
async def test_it_is_refused_while_somebody_works_on_either(source: Database, urls: tuple[str, str]) -> None:
    facts: dict[str, Any] = {
        "hostname": "here",
        "pid": 7,
        "name": None,
        "session_s": 3600.0,
        "concurrency": 1,
        "worker_id": 7,
    }
    worker = await source.transact(lambda session: add_worker(session, **facts))
    with pytest.raises(Conflict, match=rf"worker {worker.id} \(here, pid 7\) works on"):
        await copy_database(*urls)
    await copy_database(*urls, while_live=True)
    other = urls[1] if urls[1].startswith("sqlite") else None
    await source.transact(lambda session: session.run(update(workers).values(status="stopped")))
    if other is not None:
        await copy_database(urls[0], other.replace("local.db", "other.db"))


@on_files
async def test_a_leader_lives_too(source: Database, urls: tuple[str, str]) -> None:
    ends = await source.read(Session.now) + timedelta(hours=1)
    term = {"role": "control", "holder": 1, "term": 1, "expires_at": ends}
    await source.transact(lambda session: session.insert(terms, [term]))
    with pytest.raises(Conflict, match="a leader"):
        await copy_database(*urls)


@each_once
async def test_a_target_that_is_in_use_is_left_alone(source: Database, urls: tuple[str, str]) -> None:
    await fill(source, 3)
    await schema.upgrade(urls[1])
    async with orchestra(urls[1]) as band:
        await band.submit(make("theirs"))
        await band.coordinator.deregister(band.worker)
    before = await held(urls[1])
    with pytest.raises(Conflict, match="it has rows in"):
        await copy_database(*urls)
    assert await held(urls[1]) == before


@on_files
async def test_the_beginning_of_another_copy_is_not_gone_on_with(source: Database, urls: tuple[str, str]) -> None:
    await fill(source, 3)

    def cut(name: str, done: int, every: int) -> None:
        if name == "jobs" and done == every:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await copy_database(*urls, seen=cut)
    another = urls[0].replace("local.db", "another.db")
    await (await Database.open(another)).close()  # it is made
    with pytest.raises(Conflict, match=r"the beginning of another copy|it has rows in"):
        await copy_database(another, urls[1])


@each_once
async def test_two_copies_at_once_do_not_mix(
    source: Database, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(source, 5)
    copied = database_copies._copy_table
    second: list[BaseException | None] = []

    async def copy_table(here: Database, there: Database, table: Any, seen: Any) -> None:
        if table is events and not second:
            second.append(None)
            write = database_copies._write

            async def late(target: Database, table: Any, page: Any) -> None:
                monkeypatch.setattr(database_copies, "_write", write)
                await copied(here, there, table, lambda *told: None)  # the other one is quicker
                await write(target, table, page)

            monkeypatch.setattr(database_copies, "_write", late)
        await copied(here, there, table, seen)

    monkeypatch.setattr(database_copies, "_copy_table", copy_table)
    with pytest.raises(Conflict, match="somebody else writes events there"):
        await copy_database(*urls)
    monkeypatch.undo()
    await copy_database(*urls)
    assert await contents(source) == await held(urls[1])


@on_files
async def test_a_source_that_is_not_there_is_not_made(urls: tuple[str, str]) -> None:
    nowhere = urls[0].replace("local.db", "nowhere.db")
    with pytest.raises(SchemaError, match="is not there yet"):
        await copy_database(nowhere, urls[1])
    with pytest.raises(Conflict, match="both addresses name it"):
        await copy_database(urls[0], urls[0].replace("/local.db", "/../" + urls[0].split("/")[-2] + "/local.db"))


@pytest.mark.parametrize(("dialect", "server"), [("mariadb", "sqlite")])
async def test_a_date_that_is_none_is_named(source: Database, urls: tuple[str, str]) -> None:
    await fill(source, 3)
    zero = text("UPDATE jobs SET created_at = '0000-00-00 00:00:00'")
    async with source.connection() as connection:
        await connection.execute(text("SET SESSION sql_mode = ''"))
        await connection.execute(zero)
    with pytest.raises(Conflict, match="a row of jobs from the first row on cannot be read"):
        await copy_database(*urls)


@on_files
async def test_an_installation_that_did_nothing_but_begin_counts_as_empty(
    source: Database, urls: tuple[str, str]
) -> None:
    await fill(source, 3)
    target = await Database.open(urls[1])
    await target.transact(lambda session: copies.raise_machine_ids(session, {1: 5}))
    await target.transact(lambda session: session.insert(installation, [{"slot": 1, "id": "another"}]))
    await target.close()
    await copy_database(*urls)
    assert await contents(source) == await held(urls[1])
