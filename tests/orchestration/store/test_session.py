"""The session's few verbs, on every database."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import bindparam, delete, func, insert, select, update

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, events
from tests.support.orchestra import Orchestra, done, make, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


def rows(count: int) -> list[dict[str, int]]:
    return [{"worker_id": 1, "task_id": number, "epoch": 1} for number in range(count)]


async def test_a_write_says_how_many_rows_it_changed(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        await session.insert(claims, rows(5))
        assert await session.run(update(claims).where(claims.c.task_id < 3).values(epoch=2)) == 3
        assert await session.run(update(claims).where(claims.c.task_id < 3).values(epoch=2)) == 3  # found, not changed
        assert await session.run(update(claims).where(claims.c.task_id > 99).values(epoch=2)) == 0
        assert await session.run(delete(claims)) == 5


async def test_values_can_be_given_beside_the_statement(stage: Orchestra) -> None:
    one = select(claims.c.task_id).where(claims.c.task_id == bindparam("wanted"))
    async with stage.transaction() as session:
        await session.insert(claims, rows(3))
        found = await session.first(one, {"wanted": 2})
        assert found is not None
        assert found.task_id == 2
        assert await session.first(one, {"wanted": 99}) is None


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 2_500])
async def test_many_rows_are_inserted_whatever_their_number(stage: Orchestra, count: int) -> None:
    """A few go one way and many another, with the same rows at the end."""

    async def work(session: Session) -> tuple[int, int | None]:
        await session.insert(claims, rows(count))
        total = await session.scalar(select(func.count()).select_from(claims))
        return total, await session.scalar(select(func.max(claims.c.task_id)))

    assert await stage.database.transact(work) == (count, count - 1 if count else None)


@pytest.mark.parametrize("count", [3, 300])
async def test_every_kind_of_value_is_inserted_the_same_way(stage: Orchestra, count: int) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    told: dict[str, Any] = {"job_id": 2**62, "task_id": None, "epoch": 7, "move": "claim", "status": "claimed"}
    told |= {"worker_id": None, "at": at, "detail": "«ü» \\ \" ' \t\n 🙂"}
    async with stage.transaction() as session:
        await session.insert(events, [told] * count)
    found = await stage.rows(select(events).order_by(events.c.id))
    assert len(found) == count
    for row in (found[0], found[-1]):
        assert {name: row._mapping[name] for name in told} == told
    assert [row.id for row in found] == sorted(row.id for row in found)


async def test_the_same_statement_for_many_rows(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        await session.insert(claims, rows(3))
        change = update(claims).where(claims.c.task_id == bindparam("task")).values(epoch=bindparam("to"))
        await session.run_many(change, [{"task": number, "to": number * 10} for number in range(3)])
        await session.run_many(insert(claims), [])
        found = await session.rows(select(claims.c.epoch).order_by(claims.c.task_id))
    assert [row.epoch for row in found] == [0, 10, 20]


async def test_now_is_aware_and_moves_on_inside_a_transaction(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        first = await session.now()
        second = await session.now()
    assert first.tzinfo is UTC
    assert first < second
    assert abs(second - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("count", [0, 1, 5_000])
async def test_one_of_many_ids_is_one_statement(stage: Orchestra, count: int) -> None:
    wanted = [2**62 + number for number in range(count)]
    async with stage.transaction() as session:
        await session.insert(claims, [{"worker_id": 1, "task_id": task, "epoch": 1} for task in (*wanted[:3], 5)])
        chosen = select(func.count()).select_from(claims).where(session.any_of(claims.c.task_id, wanted))
        assert await session.scalar(chosen) == len(wanted[:3])


async def test_a_session_that_only_reads_cannot_be_handed_a_claim(stage: Orchestra) -> None:
    """What only reads may be answered by a replica."""
    await stage.submit(make("a"))

    async def claim(session: Session) -> list[Claim]:
        return await claim_tasks(session, worker_id=stage.worker, reserved_for=0, limit=1, after=None, started=set())

    for stale_ok in (False, True):
        with pytest.raises(AssertionError, match="read-only"):
            await stage.database.read(claim, stale_ok=stale_ok)
    (claimed,) = await stage.claim()
    assert claimed.name == "a"
    with pytest.raises(AssertionError, match="read-only"):
        await stage.database.read(lambda session: take_reports(session, stage.worker, [done(claimed)], random.random))
    assert (await stage.complete(claimed)).accepted
    assert not await stage.violations()


WRITES: dict[str, Callable[[Session], Awaitable[object]]] = {
    "insert": lambda session: session.insert(claims, rows(1)),
    "run": lambda session: session.run(delete(claims)),
    "run_many": lambda session: session.run_many(insert(claims), rows(1)),
    "first": lambda session: session.first(update(events).values(detail="x").returning(events.c.id)),
    "rows": lambda session: session.rows(delete(events).returning(events.c.id)),
    "scalar": lambda session: session.scalar(delete(events).returning(events.c.id)),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_session_that_only_reads_refuses_to_write(stage: Orchestra, write: str) -> None:
    with pytest.raises(AssertionError, match="use transact, or write_one"):
        await stage.database.read(WRITES[write])


async def test_a_write_of_one_statement_is_there_at_once_and_tells_its_hints(stage: Orchestra) -> None:
    told: list[str] = []
    stage.database.on_hints = told.extend

    async def work(session: Session) -> int:
        await session.insert(claims, rows(1))
        session.hints.add("x")
        return await stage.database.read(lambda other: other.scalar(select(func.count()).select_from(claims)))

    assert await stage.database.write_one(work) == 1
    assert told == ["x"]
