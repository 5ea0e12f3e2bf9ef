"""Whoever leads fires what is due; two leaders, outages and lost replies fire nothing twice."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.schedules import Scheduler, tell
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from aaiclick.orchestration.rules.schedules.fires import COUNTED_MAX
from aaiclick.orchestration.store.schedules import backfills, firing
from aaiclick.orchestration.store.schedules.firing import Fired
from aaiclick.orchestration.store.tables import registered_jobs, tasks
from tests.support.band import SERVERS, band
from tests.support.catalogue import PLAIN, come, count_jobs, days_ago, fires_of, register
from tests.support.chores import chores
from tests.support.clocks import HandClock
from tests.support.orchestra import Orchestra, orchestra

__all__ = ["band"]


async def test_the_control_loop_fires_what_is_due(band: Orchestra) -> None:
    loop = Control(band.database, 1, session_s=30, clock=HandClock())
    await register(band)
    await loop.round()
    assert await count_jobs(band) == 0
    assert (await chores(band)).get("fire_schedules") != 0
    await come(band, await days_ago(band, 0))
    assert (await chores(band))["fire_schedules"] == 0
    await loop.round()
    assert await count_jobs(band) == 1
    assert (await chores(band)).get("fire_schedules") != 0


async def test_what_comes_from_outside_beside_it_does_not_mark_what_is_fired(band: Orchestra) -> None:
    await register(band)
    await come(band, await days_ago(band, 0))
    with arguments_from_outside():
        loop = Control(band.database, 1, session_s=30, clock=HandClock())
        await asyncio.create_task(loop.round(), context=contextvars.Context())
    assert await band.scalar(select(tasks.c.entrypoint)) == PLAIN


async def test_pages_of_entries_are_fired_to_their_end(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "AT_ONCE", 2)
    for number in range(5):
        await register(band, f"a{number}")
        await come(band, await days_ago(band, 0), f"a{number}")
    assert await Scheduler(band.database).fire() == 5


async def test_a_round_does_its_share_and_the_next_goes_on(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aaiclick.orchestration.control.schedules.STEPS_MAX", 2)
    for number in range(5):
        await register(band, f"a{number}")
        await come(band, await days_ago(band, 0), f"a{number}")
    loop = Control(band.database, 1, session_s=30, clock=HandClock())
    assert [await loop.round() for _ in range(2)] == [0.0, 0.0]
    assert 2 <= await count_jobs(band) < 5
    while loop.tools.schedules.unfinished:
        await loop.round()
    assert await count_jobs(band) == 5
    assert await loop.round() > 0


async def test_what_waits_and_what_is_filled_in_gets_its_turn(band: Orchestra) -> None:
    scheduler = Scheduler(band.database)
    entry = await register(band, overlap="queue", missed_runs="all")
    await come(band, await days_ago(band, 1))
    assert await scheduler.fire() == 1
    start = await days_ago(band, 9)
    facts = {
        "registered_job_id": entry.id,
        "schedule": entry.schedule,
        "timezone": "UTC",
        "kwargs": "{}",
        "start_at": start,
        "end_at": start + timedelta(days=3),
        "parallel_max": 1,
    }
    await band.database.transact(lambda session: backfills.add_backfill(session, facts))
    for _ in range(12):
        await scheduler.fire()
        await band.complete(*await band.claim())
    assert await count_jobs(band) == 2 + 3
    assert (await chores(band)).get("fire_schedules") != 0


async def test_an_entry_that_cannot_fire_does_not_hold_up_the_others(
    band: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a time zone is known to the machine that registered it, and not to the one that leads."""
    await register(band, "a")
    await register(band, "b")
    for name in ("a", "b"):
        await come(band, await days_ago(band, 0), name)
    unknown = update(registered_jobs).where(registered_jobs.c.name == "a").values(timezone="Mars/Olympus")
    await band.database.transact(lambda session: session.run(unknown))
    scheduler = Scheduler(band.database)
    assert [await scheduler.fire() for _ in range(3)] == [1, 0, 0]
    assert caplog.text.count("Mars/Olympus") == 1
    known = update(registered_jobs).where(registered_jobs.c.name == "a").values(timezone="UTC")
    await band.database.transact(lambda session: session.run(known))
    assert await scheduler.fire() == 1


@pytest.mark.parametrize("written", [{"overlap": "replace"}, {"default_kwargs": '{"x": {"of": "another version"}}'}])
async def test_an_entry_of_another_version_does_not_hold_up_the_others(
    band: Orchestra, caplog: pytest.LogCaptureFixture, written: dict[str, str]
) -> None:
    for name in ("a", "b"):
        await register(band, name)
        await come(band, await days_ago(band, 0), name)
    newer = update(registered_jobs).where(registered_jobs.c.name == "a").values(**written)
    await band.database.transact(lambda session: session.run(newer))
    scheduler = Scheduler(band.database)
    assert [await scheduler.fire() for _ in range(3)] == [1, 0, 0]
    assert caplog.text.count("firing registered job") == 1


async def test_what_was_missed_is_logged(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    await register(band, missed_runs="latest")
    await come(band, await days_ago(band, 3))
    await Scheduler(band.database).fire()
    assert "registered job 'a': 3 missed times do not run" in caplog.text


def test_what_did_not_run_as_scheduled_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aaiclick")  # a test of commands may have left it quieter
    tell(Fired("a", run=1, queued=2, skipped=3, missed=COUNTED_MAX + 1))
    assert "more than 1000 missed times" in caplog.text
    assert "3 times were skipped" in caplog.text
    assert "2 times wait" in caplog.text
    caplog.clear()
    tell(Fired("a", run=1, queued=0, skipped=0, missed=0))
    assert caplog.text == ""


@SERVERS
async def test_a_reply_that_was_lost_is_not_a_second_run(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    await register(band)
    await come(band, await days_ago(band, 0))
    scheduler, command = Scheduler(band.database), band.database.dialect.command
    lost: list[str] = []

    async def lose(connection: object, sql: str) -> None:
        await command(connection, sql)  # type: ignore[arg-type]
        if sql == "COMMIT" and await count_jobs(band) and not lost:
            lost.append(sql)
            raise ConnectionError("the reply to COMMIT was lost")

    monkeypatch.setattr(band.database.dialect, "command", lose)
    with pytest.raises(ConnectionError):
        await scheduler.fire()
    assert await scheduler.fire() == 0
    assert (await count_jobs(band), len(await fires_of(band))) == (1, 1)


@SERVERS
async def test_four_leaders_at_once_fire_each_time_once(band: Orchestra) -> None:
    for number in range(6):
        await register(band, f"a{number}", missed_runs="all")
        await come(band, await days_ago(band, 2), f"a{number}")
    async with orchestra(band.database.url) as other, orchestra(band.database.url) as third:
        databases = (band.database, other.database, third.database, third.database)
        started = await asyncio.gather(*(Scheduler(database).fire() for database in databases))
    assert sum(started) == 6
    assert await count_jobs(band) == 6 * 3
    assert len({fire.job_id for fire in await fires_of(band)}) == 6 * 3
