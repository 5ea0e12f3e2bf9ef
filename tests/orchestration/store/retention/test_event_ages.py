"""Old events go, in bounded steps, and not before they were counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.reading.event_feed import read_page
from aaiclick.orchestration.store.retention import event_ages
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events
from tests.support.orchestra import Orchestra, orchestra

DAY_S = 86_400.0


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def note(stage: Orchestra, *ages_s: float) -> list[int]:
    """Events so old, in this order; gives their ids."""

    async def work(session: Session) -> None:
        now = await session.now()
        for age_s in ages_s:
            at = now - timedelta(seconds=age_s)
            await session.run(insert(events).values(job_id=1, move="start", status="running", at=at))

    await stage.database.transact(work)
    return await ids(stage)


async def ids(stage: Orchestra) -> list[int]:
    return [row.id for row in await stage.rows(select(events.c.id).order_by(events.c.id))]


async def prune(stage: Orchestra, ttl_s: float = DAY_S) -> int:
    return await stage.database.transact(lambda session: event_ages.prune_events(session, ttl_s))


async def count(stage: Orchestra) -> None:
    while await stage.database.transact(metrics.count_settled):
        pass


async def test_what_is_too_old_goes(stage: Orchestra) -> None:
    assert await prune(stage) == 0  # nothing there
    noted = await note(stage, 3 * DAY_S, 2 * DAY_S, DAY_S / 2, 0)
    await count(stage)
    assert await prune(stage) == 2
    assert await ids(stage) == noted[2:]
    assert await prune(stage) == 0


async def test_what_was_not_counted_stays(stage: Orchestra) -> None:
    noted = await note(stage, 3 * DAY_S, 2 * DAY_S, 0)
    assert await prune(stage) == 0
    await count(stage)
    later = await note(stage, 2 * DAY_S, 0)  # committed very late
    assert await prune(stage) == 2
    assert await ids(stage) == [noted[2], *later[3:]]


async def test_metrics_do_not_fall(stage: Orchestra) -> None:
    await note(stage, 3 * DAY_S, 2 * DAY_S, 0)
    await count(stage)
    before = await stage.database.read(metrics.read_metrics)
    assert await prune(stage) == 2
    after = await stage.database.read(metrics.read_metrics)
    assert (after.counters, after.histograms) == (before.counters, before.histograms)


async def test_the_newest_stays_and_ids_count_on(stage: Orchestra) -> None:
    noted = await note(stage, 3 * DAY_S, 2 * DAY_S)
    await count(stage)
    assert await prune(stage) == 1
    assert await ids(stage) == noted[1:]
    assert (await note(stage, 0))[-1] > noted[1]


async def test_in_bounded_steps(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_ages, "STEP", 2)
    noted = await note(stage, *(5 * [2 * DAY_S]), 0)
    await count(stage)
    assert [await prune(stage) for _ in range(4)] == [2, 2, 1, 0]
    assert await ids(stage) == noted[5:]


async def test_who_comes_again_after_that_goes_on_with_what_there_is(stage: Orchestra) -> None:
    noted = await note(stage, 4 * DAY_S, 3 * DAY_S, 2 * DAY_S, DAY_S / 2)
    await count(stage)
    await prune(stage)
    page = await stage.database.read(lambda session: read_page(session, noted[0], 10, None))
    assert ([event.id for event in page.events], page.cursor) == (noted[3:], noted[3])


async def test_a_clock_that_was_set_back_keeps_no_more_than_it_must(stage: Orchestra) -> None:
    await note(stage, DAY_S / 2, 3 * DAY_S, 0)
    await count(stage)
    assert await prune(stage) == 0  # in the order of ids: behind one that is young, nothing goes
    assert await prune(stage, DAY_S / 4) == 2
