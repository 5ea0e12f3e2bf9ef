"""A replica has what its coordinator has, whatever is written while it copies, and wherever it is cut off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, text, update

from aaiclick.errors import AaiclickError, CoordinatorUnreachable
from aaiclick.orchestration.models import Claim, Group, Job, Report
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.replicas import applying
from aaiclick.orchestration.store.replicas.replicated import REPLICATED
from aaiclick.orchestration.store.retention.event_ages import prune_events
from aaiclick.orchestration.store.retention.job_ages import remove_jobs
from aaiclick.orchestration.store.retention.job_remains import look_for_remains, remove_remains
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, installation, jobs, registered_jobs, tasks
from aaiclick.server.replicas import feeder as module
from tests.support.band import SERVERS, band, filled, member
from tests.support.growing import grown
from tests.support.orchestra import LONG_AGO, Orchestra, done, failing, failure, make, until
from tests.support.replicas import Fed, contents, differences, fed

__all__ = ["band"]

MOVING = ("jobs", "groups", "tasks", "runs", "events")
"""Tables that are the same at once when all events were taken over."""


@pytest.fixture
async def replica(band: Orchestra, tmp_path: Path) -> AsyncIterator[Fed]:
    async with fed(band, tmp_path / "replica.db") as opened:
        yield opened


async def write(band: Orchestra, *statements: Any) -> None:
    async def work(session: Session) -> None:
        for statement in statements:
            await session.run(statement)

    await band.database.transact(work)


async def some_jobs(band: Orchestra) -> list[Job]:
    """One that ended, one that failed in its middle, and one that has begun."""
    group = filled("g")
    first = await band.submit(make("a") >> make("b"), group, name="ended")
    await band.drain()
    second = await band.submit(make("c") >> make("d"), name="failed")
    await band.drain(failing("c"))
    third = await band.submit(make("e"), make("f"), name="begun")
    await band.claim(1)
    return [first, second, third]


# ---------------------------------------------------------------- the first copy


async def test_the_first_copy_has_everything(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.compare_all()
    assert await differences(band, replica) == []
    assert replica.progress.is_whole
    assert replica.progress.as_of_seq == max(key for (key,) in await contents(band.database, "events"))


async def test_what_changes_between_the_pages_of_a_copy_is_taken_over_by_its_events(
    band: Orchestra, replica: Fed
) -> None:
    await some_jobs(band)
    turns = iter(range(100))

    async def disturb(asked: Any) -> None:
        """Between two tables a job is added, and another one goes on."""
        if next(turns) < 8:
            await band.submit(make("x") >> make("y"), name="meanwhile")
            await band.complete(*await band.claim(2))

    replica.wire.after["replica_page"] = disturb
    await replica.compare_all()
    del replica.wire.after["replica_page"]
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []


async def test_a_copy_that_was_cut_off_goes_on_where_it_was(band: Orchestra, replica: Fed, tmp_path: Path) -> None:
    await some_jobs(band)

    async def cut(asked: Any) -> None:
        if asked.table == "runs":
            raise CoordinatorUnreachable(url="", cause="cut")

    replica.wire.before["replica_page"] = cut
    with pytest.raises(CoordinatorUnreachable):
        await replica.compare_all()
    assert not replica.progress.is_whole
    assert replica.progress.state.looking == "runs"
    await band.submit(make("late"))
    await replica.database.close()
    async with fed(band, tmp_path / "replica.db") as again:
        seen = []
        again.wire.before["replica_page"] = lambda asked: _noted(seen, asked.table)
        await again.catch_up()
        copied = seen[: seen.index("workers") + 1]
        assert "tasks" not in copied
        assert "runs" in copied
        assert await differences(band, again, *MOVING) == []


async def _noted(seen: list[str], name: str) -> None:
    seen.append(name)


async def test_a_job_that_goes_during_the_copy_vanishes_from_it(band: Orchestra, replica: Fed) -> None:
    gone, stays = await band.submit(make("a") >> make("b"), name="gone"), await band.submit(make("c"), name="stays")
    await band.drain()
    await grow_old(band, gone)

    async def remove(asked: Any) -> None:
        if asked.table == "events":
            await forget(band)

    replica.wire.before["replica_page"] = remove
    await replica.compare_all()
    assert {key for (key,) in await contents(replica.database, "jobs")} == {gone.id, stays.id}
    del replica.wire.before["replica_page"]
    await replica.compare_the_rest()
    assert await differences(band, replica) == []
    assert {key for (key,) in await contents(replica.database, "jobs")} == {stays.id}


async def grow_old(band: Orchestra, job: Job) -> None:
    old = {"completed_at": LONG_AGO, "created_at": LONG_AGO}
    await write(band, update(jobs).where(jobs.c.id == job.id).values(old), update(events).values(at=LONG_AGO))
    while await band.database.transact(metrics.count_settled):
        pass


async def forget(band: Orchestra) -> None:
    """Remove the jobs that are old, with all that they leave."""
    assert await band.database.transact(partial(remove_jobs, ttl_s=86_400))
    while (remains := await band.database.read(look_for_remains)) is not None:
        await band.database.transact(partial(remove_remains, remains=remains))


# ---------------------------------------------------------------- following


async def test_changes_are_taken_over_without_another_copy(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.compare_all()
    pages = replica.progress.counts.pages
    await band.drain(failing("f"))
    await band.submit(make("more"), filled("h"), name="new")
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []
    assert (replica.progress.counts.copies, replica.progress.counts.pages) == (1, pages)


async def test_a_graph_that_is_too_large_for_one_answer_comes_in_pages(
    band: Orchestra, replica: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aaiclick.orchestration.store.replicas.source.SMALL_TASKS", 3)
    await replica.compare_all()
    group = Group("g")
    first = make("first")
    first >> group
    await band.submit(first, group, *(member(group, f"t{number}") for number in range(10)))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []


async def test_a_job_that_grows_brings_its_new_tasks(band: Orchestra, replica: Fed) -> None:
    job = await band.submit(make("maker"), name="grows")
    await replica.compare_all()
    (claim,) = await band.claim()
    await band.report(grown(claim, *(make(f"child {number}") for number in range(3))))
    await band.apply(job, make("applied"))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []


async def test_tasks_that_are_older_than_their_event_says_are_found_by_their_number(
    band: Orchestra, replica: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await band.submit(make("a"), name="grows")
    await replica.compare_all()
    added = make("slow")
    await band.apply(job, added)
    await write(band, update(tasks).where(tasks.c.id == added.id).values(created_at=LONG_AGO))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING) == []


async def test_children_of_a_run_that_is_cleared_vanish(band: Orchestra, replica: Fed) -> None:
    await band.submit(make("maker"), name="grows")
    (claim,) = await band.claim()
    await band.report(grown(claim, make("child") >> make("grandchild")))
    await replica.catch_up()
    assert len(await contents(replica.database, "tasks")) == 3
    await band.coordinator.clear(claim.task_id)
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []
    assert len(await contents(replica.database, "tasks")) == 1


async def test_what_no_event_tells_of_is_found_by_looking(band: Orchestra, replica: Fed) -> None:
    (job, *_) = await some_jobs(band)
    await replica.compare_all()
    row = {"id": 5, "name": "r", "entrypoint": "m.f", "default_kwargs": "{}", "created_at": LONG_AGO}
    await write(
        band,
        update(tasks).where(tasks.c.job_id == job.id).values(priority=7, run_after=LONG_AGO),
        update(jobs).where(jobs.c.id == job.id).values(priority=7),
        insert(registered_jobs).values(updated_at=LONG_AGO, **row),
    )
    await band.coordinator.beat(band.worker, completed=3)
    await replica.catch_up()
    changed = {line.split()[0] for line in await differences(band, replica)}
    assert changed == {"jobs", "tasks", "registered_jobs", "workers"}
    await replica.look()
    assert {line.split()[0] for line in await differences(band, replica)} == {"jobs", "tasks"}
    await replica.compare_the_rest()
    assert await differences(band, replica) == []


async def test_a_sweep_of_what_is_the_same_brings_no_rows(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.catch_up()
    rows = replica.progress.counts.rows
    await replica.sweep()
    assert replica.progress.counts.rows == rows
    assert replica.progress.counts.same_pages >= 4


async def test_workers_that_stop_and_go_are_followed(band: Orchestra, replica: Fed) -> None:
    await replica.compare_all()
    assert await differences(band, replica, "workers") == []
    await band.coordinator.deregister(band.worker)
    await replica.look()
    assert await differences(band, replica, "workers") == []
    workers = REPLICATED["workers"]
    await write(band, delete(workers))
    await replica.compare_the_rest()
    assert await contents(replica.database, "workers") == {}


# ---------------------------------------------------------------- places in the feed


@SERVERS
async def test_an_event_that_commits_late_below_the_newest_is_not_lost(band: Orchestra, replica: Fed) -> None:
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


@pytest.mark.parametrize("seed", range(3))
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
