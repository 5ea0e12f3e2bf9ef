"""Column types: what is read back is what was written, on every database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateTable

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, LongText, UtcTime
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, tasks
from tests.support.orchestra import Orchestra, make, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def written_and_read(stage: Orchestra, at: datetime) -> datetime:
    async def work(session: Session) -> datetime:
        told = {"job_id": 1, "move": "m", "status": "s", "at": at}
        await session.run(insert(events).values(**told))
        found: datetime = await session.scalar(select(events.c.at))
        return found

    return await stage.database.transact(work)


@pytest.mark.parametrize("micros", [0, 1, 120000, 999999])
async def test_a_time_keeps_its_microseconds(stage: Orchestra, micros: int) -> None:
    at = datetime(2026, 7, 1, 12, 0, 0, micros, tzinfo=UTC)
    assert await written_and_read(stage, at) == at


async def test_a_time_of_another_zone_is_the_same_instant_in_utc(stage: Orchestra) -> None:
    at = datetime(2026, 7, 1, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    found = await written_and_read(stage, at)
    assert found == at
    assert found.utcoffset() == timedelta(0)
    assert found.day == 30


async def test_the_zone_of_the_connection_does_not_move_a_time(stage: Orchestra) -> None:
    """MariaDB's TIMESTAMP does move (pitfall T20)."""
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    zone = {"postgresql": "SET LOCAL TIME ZONE 'Asia/Kathmandu'", "mariadb": "SET SESSION time_zone = '+05:45'"}
    told = {"job_id": 1, "move": "m", "status": "s", "at": at}
    async with stage.transaction() as session:
        await session.run(insert(events).values(**told))
        if stage.database.dialect.name in zone:
            await session.run(text(zone[stage.database.dialect.name]))
        assert await session.scalar(select(events.c.at)) == at
        if stage.database.dialect.name == "mariadb":
            await session.run(text("SET SESSION time_zone = '+00:00'"))


async def test_a_time_without_a_zone_is_refused(stage: Orchestra) -> None:
    naive = datetime(2026, 7, 1)  # noqa: DTZ001 (that it is refused is the point)
    with pytest.raises(Exception, match="has no zone"):
        await written_and_read(stage, naive)


async def test_times_sort_as_instants(stage: Orchestra) -> None:
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=step * 333_333) for step in range(9)]
    rows = [{"job_id": 1, "move": "m", "status": "s", "at": at} for at in reversed(moments)]
    await stage.database.transact(lambda session: session.insert(events, rows))
    found = await stage.rows(select(events.c.at).where(events.c.at > moments[2]).order_by(events.c.at))
    assert [row.at for row in found] == moments[3:]


@pytest.mark.parametrize("count", [1, 150])
async def test_json_is_read_back_to_the_letter(stage: Orchestra, count: int) -> None:
    """`jsonb` would sort the keys and drop the blanks."""
    letter = '{"z": 1,  "a": [1.0, 1e400, 12345678901234567890], "ü": "\\u0041\\n", "a": 2}'
    nodes = [make(f"t{number}") for number in range(count)]
    for node in nodes:
        node.kwargs_json = letter
    await stage.submit(*nodes)
    assert {row.kwargs for row in await stage.rows(select(tasks.c.kwargs))} == {letter}
    (claim,) = await stage.claim(1)
    assert claim.kwargs_json == letter


async def test_long_texts_and_every_letter_are_kept(stage: Orchestra) -> None:
    """A TEXT of MariaDB ends at 64 kB, and its utf8 has no 🙂."""
    told = "🙂" + "x" * 300_000 + "ß"
    node = make("t")
    await stage.submit(node)
    (claim,) = await stage.claim()
    await stage.fail(claim, error=told, traceback=told)
    assert (await stage.task(node)).error == told


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**63 - 1, -(2**63)])
async def test_an_id_has_64_bits(stage: Orchestra, number: int) -> None:
    told = {"job_id": number, "move": "m", "status": "s", "at": datetime(2026, 1, 1, tzinfo=UTC)}
    await stage.database.transact(lambda session: session.insert(events, [told]))
    assert await stage.scalar(select(events.c.job_id)) == number


@pytest.mark.parametrize(
    ("dialect_of_sqlalchemy", "kinds"),
    [
        (sqlite.dialect(), ("INTEGER", "TEXT", "TEXT", "VARCHAR(26)")),
        (postgresql.dialect(), ("BIGINT", "JSON", "TEXT", "TIMESTAMP WITH TIME ZONE")),
        (mysql.dialect(), ("BIGINT", "LONGTEXT", "LONGTEXT", "DATETIME(6)")),
    ],
    ids=["sqlite", "postgres", "mariadb"],
)
def test_each_database_has_its_own_name_for_a_type(dialect_of_sqlalchemy: Dialect, kinds: tuple[str, ...]) -> None:
    named = [kind.compile(dialect=dialect_of_sqlalchemy) for kind in (Id, JsonText(), LongText, UtcTime())]
    assert tuple(named) == kinds
    assert "kwargs" in str(CreateTable(tasks).compile(dialect=dialect_of_sqlalchemy))
