"""Places in the feed: a replica that is killed, away for long, or whose coordinator is restored; and random loads."""

from __future__ import annotations

import asyncio
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, text, update

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.models import Claim, Job, Report
from aaiclick.orchestration.rules import settled_events
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.replicas import applying
from aaiclick.orchestration.store.retention.event_ages import prune_events
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, installation, tasks
from aaiclick.server.replicas import feeder as module
from tests.support.band import SERVERS, band, filled
from tests.support.growing import grown
from tests.support.orchestra import LONG_AGO, Orchestra, done, failure, make, until
from tests.support.replicas import MOVING, Fed, contents, differences, fed, replica, some_jobs, write

__all__ = ["band", "replica"]


# ---------------------------------------------------------------- places in the feed


@SERVERS
async def test_an_event_that_commits_late_below_the_newest_is_not_lost(
    band: Orchestra, replica: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await band.submit(make("a"), make("b"))
    await replica.catch_up()
    before = replica.progress.as_of_seq
    inserted, go_on = asyncio.Event(), asyncio.Event()
    named = next(iter(await contents(band.database, "tasks")))[0]

    async def slow(session: Session) -> None:
        row = {"job_id": job.id, "task_id": named, "move": "clear", "status": "pending", "at": await session.now()}
        await session.run(insert(events).values(**row))
        await session.run(update(tasks).where(tasks.c.id == named).values(error="late"))
        inserted.set()
        await go_on.wait()

    late = asyncio.create_task(band.database.transact(slow))
    await inserted.wait()
    await band.submit(make("c"), name="early")
    with monkeypatch.context() as patch:
        patch.setattr(settled_events, "PATIENCE_S", 1000.0)
        await replica.catch_up()
    assert replica.progress.as_of_seq == before  # what came after the gap is not given out
    go_on.set()
    await late
    await replica.catch_up()
    assert replica.progress.as_of_seq > before + 1
    assert await differences(band, replica, *MOVING) == []


async def test_a_replica_that_is_killed_between_asking_and_writing_goes_on_from_its_cursor(
    band: Orchestra, replica: Fed, tmp_path: Path
) -> None:
    await some_jobs(band)
    await replica.compare_all()
    await band.drain()

    async def killed(asked: Any) -> None:
        raise KeyboardInterrupt

    replica.wire.after["replica_changes"] = killed
    with pytest.raises(KeyboardInterrupt):
        await replica.follow()
    await replica.database.close()
    async with fed(band, tmp_path / "replica.db") as again:
        assert again.progress.is_whole
        await again.catch_up()
        assert (again.progress.counts.copies, again.progress.counts.pages) == (0, 0)
        assert await differences(band, again, *MOVING) == []


async def test_a_write_that_fails_moves_neither_rows_nor_the_cursor(
    band: Orchestra, replica: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await replica.compare_all()
    await band.submit(make("a"))
    before = await replica.database.read(applying.read_state)

    async def fails(session: Session, state: object) -> None:
        raise AaiclickError

    with monkeypatch.context() as patch:
        patch.setattr(applying, "write_state", fails)
        with pytest.raises(AaiclickError):
            await replica.follow()
    assert await replica.database.read(applying.read_state) == before
    assert await contents(replica.database, "tasks") == {}
    assert replica.progress.as_of_seq == before.cursor
    await replica.catch_up()
    assert await differences(band, replica, *MOVING) == []


async def test_events_that_retention_removed_vanish_and_what_is_left_goes_on(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.catch_up()
    await write(band, update(events).values(at=LONG_AGO))
    newest = replica.progress.as_of_seq
    await write(band, update(events).where(events.c.id == newest).values(at=await band.database.read(Session.now)))
    while await band.database.transact(metrics.count_settled):
        pass
    while await band.database.transact(partial(prune_events, ttl_s=3600)):
        pass
    await replica.compare_the_rest()  # the event at the cursor has another time now
    await replica.catch_up()
    await band.submit(make("after"))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING) == []


async def test_a_replica_that_was_away_for_longer_than_events_are_kept_compares_all_again(
    band: Orchestra, replica: Fed
) -> None:
    await some_jobs(band)
    await replica.compare_all()
    for number in range(3):
        await band.submit(make("a"), name=f"job {number}")
    newest = max(key for (key,) in await contents(band.database, "events"))
    await write(band, delete(events).where(events.c.id < newest))
    await replica.catch_up()
    assert replica.progress.counts.copies == 2
    assert replica.progress.counts.same_pages > 0
    assert await differences(band, replica) == []


async def test_a_coordinator_that_was_restored_to_before_is_compared_again(band: Orchestra, replica: Fed) -> None:
    await band.submit(make("a"), name="kept")
    await replica.catch_up()
    kept = replica.progress.as_of_seq
    lost = await band.submit(make("b"), name="lost")
    await replica.catch_up()
    for table, column in (("events", "job_id"), ("tasks", "job_id"), ("jobs", "id")):
        await write(band, text(f"DELETE FROM {table} WHERE {column} = {lost.id}"))
    await replica.catch_up()
    assert replica.progress.as_of_seq == kept
    assert await differences(band, replica) == []


async def test_another_installation_is_copied_anew(band: Orchestra, replica: Fed) -> None:
    await band.submit(make("a"))
    await replica.catch_up()
    await write(band, update(installation).values(id="f" * 32))
    await replica.follow()
    assert not replica.progress.is_whole  # nothing of the old one is shown
    assert await contents(replica.database, "jobs") == {}
    await replica.catch_up()
    assert await differences(band, replica) == []


# ---------------------------------------------------------------- while it is away


async def test_a_replica_says_how_old_it_is_while_the_coordinator_is_away(band: Orchestra, replica: Fed) -> None:
    await band.submit(make("a"))
    await replica.catch_up()
    as_of, moment = replica.progress.as_of(), await replica.database.read(Session.now)
    assert as_of == moment
    replica.wire.away = True
    feeding = asyncio.create_task(replica.run())
    await until(lambda: _truth("is away" in replica.progress.trouble))
    assert await replica.database.read(Session.now) == as_of  # nothing is called overdue because nobody looked
    assert not replica.progress.health()["coordinator"].ok
    assert replica.progress.health()["replica"].ok
    replica.wire.away = False
    await band.submit(make("b"))
    newest = max(key for (key,) in await contents(band.database, "events"))
    assert await replica.progress.reaches(newest, 60)
    feeding.cancel()
    assert await differences(band, replica, *MOVING) == []


async def _truth(found: bool) -> bool:
    return found


# ---------------------------------------------------------------- at random


def outcome(dice: random.Random, claim: Claim) -> Report:
    roll = dice.random()
    if roll < 0.2:
        return failure(claim)
    if roll < 0.35:
        return grown(claim, *(make(f"child {dice.random()}") for _ in range(dice.randint(1, 3))))
    return done(claim)


async def disturbance(dice: random.Random, band: Orchestra, jobs: list[Job]) -> None:
    """One step of a random load."""
    step = dice.choice(("submit", "work", "work", "apply", "clear", "cancel", "beat"))
    try:
        if step == "submit" or not jobs:
            group, first = filled(f"g{dice.random()}"), make("first", retry=RetryPolicy(max_retries=dice.randint(0, 1)))
            first >> group
            jobs.append(await band.submit(first, group, make("other"), name=f"job {len(jobs)}"))
        elif step == "work":
            claims = await band.claim(dice.randint(1, 4))
            await band.report(*(outcome(dice, claim) for claim in claims))
        elif step == "apply":
            await band.apply(dice.choice(jobs), make("applied"))
        elif step == "clear":
            task = dice.choice(sorted(await contents(band.database, "tasks")))[0]
            await band.coordinator.clear(task)
        elif step == "cancel":
            await band.coordinator.cancel(dice.choice(jobs).id)
        else:
            await band.coordinator.beat(band.worker, completed=1)
    except AaiclickError:  # what the state does not allow, such as more for a job that has ended
        pass


@pytest.mark.parametrize("seed", range(30 if "TEST_LONG" in os.environ else 2))
async def test_after_a_random_load_all_tables_are_the_same(
    band: Orchestra, replica: Fed, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, jobs = random.Random(seed), list[Job]()
    monkeypatch.setattr(module, "PAGE_ROWS_MIN", 2)
    monkeypatch.setattr(module, "PAGE_BYTES", 600)
    replica._limit = 2

    async def between(asked: Any) -> None:
        if dice.random() < 0.3:
            await disturbance(dice, band, jobs)

    await disturbance(dice, band, jobs)
    for verb in ("replica_page", "replica_changes", "replica_workers"):
        replica.wire.before[verb] = replica.wire.after[verb] = between
    for _ in range(25):
        await disturbance(dice, band, jobs)
        await replica.step()
    replica.wire.before.clear()
    replica.wire.after.clear()
    await replica.catch_up()
    assert await differences(band, replica, "jobs", "tasks", "events") == []
    await replica.compare_the_rest()
    assert await differences(band, replica) == []
    assert replica.progress.counts.copies == 1
