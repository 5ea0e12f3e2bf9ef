"""Every damage that is planted is found, named and mended; and what is well is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Executable, delete, insert, select, update

from aaiclick.orchestration.models import Group, Job
from aaiclick.orchestration.rules.naming.hints import READY
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples as rippling
from aaiclick.orchestration.store.moves.repairs import WORDS_MAX, repair_job, stuck_jobs
from aaiclick.orchestration.store.tables import (
    claims,
    delayed,
    dependencies,
    events,
    groups,
    jobs,
    ready,
    ripples,
    tasks,
)
from tests.support.band import SERVERS, band, filled, member
from tests.support.contents import contents
from tests.support.orchestra import LONG_AGO, Orchestra, done, failing, failure, make

__all__ = ["band"]


async def repair(band: Orchestra, job: Job) -> list[str]:
    return await band.database.transact(lambda session: repair_job(session, job.id))


async def stuck(band: Orchestra, limit: int = 10) -> list[int]:
    return await band.database.read(lambda session: stuck_jobs(session, limit))


async def damage(band: Orchestra, *statements: Executable) -> None:
    async with band.transaction() as session:
        for statement in statements:
            assert await session.run(statement)


async def lively(band: Orchestra) -> Job:
    """A job with something in every place: claimed, delayed, ready, blocked, gated, completed, failed, doomed."""
    first, doomed, waits, after = make("first"), make("doomed"), make("waits"), make("after")
    bad, slow, free = make("bad"), make("slow", retry=RetryPolicy(2, delay_s=100)), make("free")
    group = filled("g")
    inner = filled("inner", inside=group)
    bad >> doomed
    first >> [after, group]
    [after, slow] >> waits
    job = await band.submit(bad, slow, first, after, doomed, waits, group, inner)
    named = await band.claim_named()
    await band.report(failure(named["bad"]), failure(named["slow"]), done(named["first"]))
    await band.claim()
    await band.apply(job, free)
    return job


NAMED = {
    "a counter of a task": ([update(tasks).where(tasks.c.name == "waits").values(unmet_count=5)], "had unmet_count 5"),
    "a task that waits for nothing": (
        [update(tasks).where(tasks.c.name == "waits").values(unmet_count=0)],
        "had unmet_count 0, not 2",
    ),
    "a gate": (
        [update(tasks).where(tasks.c.name == "in g").values(gated=True, unmet_count=1)],
        "had gated True, not False",
    ),
    "who is told": (
        [update(tasks).where(tasks.c.name == "slow").values(dependents_count=0)],
        "had dependents_count 0, not 1",
    ),
    "the counters of groups": (
        [update(groups).values(open_count=9, failed_count=9, unmet_count=9)],
        "had failed_count 9, not 0",
    ),
    "an edge": (
        [update(dependencies).where(dependencies.c.met.is_(False)).values(met=True)],
        "was marked as met",
    ),
    "the counters of the job": (
        [update(jobs).values(open_tasks=1, completed_tasks=5, failed_critical=0, total_tasks=3)],
        "had open_tasks 1",
    ),
    "nothing is in the queue": ([delete(ready)], "was not in the queue"),
    "the wrong place in the queue": ([update(ready).values(reserved_for=3)], "was in the queue"),
    "what should not be in the queue": (
        [
            insert(ready).from_select(
                ["reserved_for", "lane", "rank", "job_id", "task_id"],
                select(tasks.c.reserved_for, tasks.c.lane, tasks.c.priority, tasks.c.job_id, tasks.c.id).where(
                    tasks.c.name == "bad"
                ),
            )
        ],
        "was in the queue",
    ),
    "nobody waits for its time": ([delete(delayed)], "was not among the delayed"),
    "the wrong time": ([update(delayed).values(run_after=LONG_AGO)], "was among the delayed"),
    "no claim": ([delete(claims)], "was not claimed"),
    "a claim of an older run": ([update(claims).values(epoch=77)], "was claimed"),
    "doom that was not told": (
        [
            update(tasks).where(tasks.c.name == "doomed").values(status="pending", completed_at=None),
            update(jobs).values(open_tasks=jobs.c.open_tasks + 1),
            delete(events).where(events.c.move == "doom"),
        ],
        "waits for something that has failed, and had not been told",
    ),
}


@pytest.mark.parametrize("statements", [NAMED[name] for name in NAMED], ids=list(NAMED))
async def test_a_damage_is_found_named_and_mended(
    band: Orchestra, statements: tuple[Sequence[Executable], str]
) -> None:
    job = await lively(band)
    assert await repair(band, job) == []
    await damage(band, *statements[0])
    assert await band.violations() != []
    words = await repair(band, job)
    assert any(statements[1] in word for word in words), words
    assert await band.violations() == []
    assert await repair(band, job) == []
    (event,) = await band.rows(select(events).where(events.c.move == "repair"))
    assert (event.job_id, event.task_id, event.status) == (job.id, None, "running")
    assert statements[1] in event.detail
    await band.complete(*[claim for claim in await band.claim() if claim])
    await band.coordinator.cancel(job.id)


async def test_what_is_well_is_left_alone(band: Orchestra) -> None:
    job = await lively(band)
    before = await contents(band.database)
    assert await repair(band, job) == []
    assert await contents(band.database) == before
    await band.coordinator.cancel(job.id)
    assert await repair(band, job) == []
    assert await repair(band, Job(5, "nobody's")) == []


async def test_a_job_whose_last_task_did_not_end_it_is_ended(band: Orchestra) -> None:
    """Two last tasks that each saw the other running (pitfall T9)."""
    job = await band.submit(make("a"), make("b", critical=False))
    await band.drain(failing("b"))
    await damage(
        band,
        update(jobs).values(status="running", completed_at=None, open_tasks=1),
        delete(events).where(events.c.task_id.is_(None), events.c.move == "complete"),
    )
    assert await stuck(band) == [job.id]
    words = await repair(band, job)
    assert words[-1] == "the job was running with 0 tasks left"
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []
    assert await stuck(band) == []


@pytest.mark.parametrize("status", ["completed", "cancelled"])
async def test_a_job_that_ended_before_its_tasks(band: Orchestra, status: str) -> None:
    """One that was stopped stays stopped, one that seemed complete goes on."""
    job = await band.submit(make("a"), make("b"))
    (claim, _) = await band.claim()
    await band.complete(claim)
    move = {"completed": "complete", "cancelled": "cancel"}[status]
    await damage(
        band,
        update(jobs).values(status=status, completed_at=LONG_AGO),
        insert(events).values(job_id=job.id, move=move, status=status, at=LONG_AGO),
    )
    assert await repair(band, job) == [f"the job was {status} with 1 tasks left"]
    assert (await band.job(job)).status == ("running" if status == "completed" else "cancelled")
    assert await band.violations() == []


@pytest.mark.parametrize("fail", [False, True], ids=["release", "doom"])
async def test_a_ripple_that_was_lost_is_made_up_for(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, fail: bool
) -> None:
    monkeypatch.setattr(rippling, "STEP", 3)
    first, many, group = make("first"), [make(f"t{number}") for number in range(7)], Group("g")
    inside = [member(group, f"in {number}") for number in range(7)]
    first >> [*many, group]
    job = await band.submit(first, group, *many, *inside)
    (claim,) = await band.claim()
    report: Any = failure(claim) if fail else done(claim)
    await band.database.transact(lambda session: take_reports(session, band.worker, [report], lambda: 1.0))
    await band.database.transact(rippling.work_one_ripple)
    assert await repair(band, job) == []  # it is on its way
    assert await stuck(band) == []
    await damage(band, delete(ripples), delete(ready) if not fail else update(jobs).values(priority=0))
    assert await stuck(band) == [job.id]
    assert await repair(band, job) != []
    await band.coordinator.reconcile()
    assert await band.violations() == []
    await band.drain()
    assert (await band.job(job)).status == ("failed" if fail else "completed")


async def test_workers_hear_of_what_is_ready_again(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await damage(band, delete(ready))
    told: set[str] = set()
    band.database.on_hints = told.update
    await repair(band, job)
    assert told == {READY}


async def test_an_event_tells_no_more_than_can_be_read(band: Orchestra) -> None:
    job = await band.submit(*(make(f"t{number}") for number in range(WORDS_MAX + 50)))
    await damage(band, delete(ready))
    assert len(await repair(band, job)) == WORDS_MAX + 50
    detail = await band.scalar(select(events.c.detail).where(events.c.move == "repair"))
    assert detail.endswith("… and 50 more")


# ---------------------------------------------------------------- who is stuck


async def test_a_job_in_which_something_moves_is_not_stuck(band: Orchestra) -> None:
    empty = await band.submit(name="empty")
    waiting = await band.submit(make("ready"))
    held = await band.submit(make("claimed"), priority=5)
    assert [claim.name for claim in await band.claim(1)] == ["claimed"]
    again = await band.submit(make("again", retry=RetryPolicy(2, delay_s=100)), priority=7)
    await band.fail(*(await band.claim(1)))
    ended = await band.submit(make("ended"), priority=9)
    await band.complete(*(await band.claim(1)))
    assert len({job.id for job in (empty, waiting, held, again, ended)}) == 5
    assert await stuck(band) == []


async def test_jobs_in_which_nothing_moves_are_found_oldest_first_up_to_a_limit(band: Orchestra) -> None:
    made = [await band.submit(make("a")) for _ in range(3)]
    await band.claim(1)
    await damage(band, delete(ready))
    assert await stuck(band) == [made[1].id, made[2].id]
    assert await stuck(band, 1) == [made[1].id]
    await damage(band, delete(claims))
    assert await stuck(band) == [job.id for job in made]
    for job in made:
        await repair(band, job)
    assert await stuck(band) == []
    assert await band.violations() == []


@SERVERS
async def test_a_repair_among_everything_else_finds_nothing(band: Orchestra) -> None:
    """Whatever is under way is not damage."""
    group, first, last = Group("g"), make("first"), make("last")
    inside = [member(group, f"t{number}") for number in range(30)]
    first >> group >> last
    job = await band.submit(first, group, last, *inside)

    async def work() -> None:
        for _ in range(12):
            await band.complete(*(await band.claim(3)))

    async def check() -> list[str]:
        found: list[str] = []
        for _ in range(8):
            found += await repair(band, job)
        return found

    checking = asyncio.gather(check(), check())
    await asyncio.gather(*(work() for _ in range(4)))
    words, more = await checking
    assert not words
    assert not more
    assert await band.violations() == []
