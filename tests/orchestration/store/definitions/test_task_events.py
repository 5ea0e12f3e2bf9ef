"""The view `task_events`, on every database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, text

from aaiclick.orchestration.models import Claim, Job
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.recoveries import recover_claims
from aaiclick.orchestration.store.tables import events, runs
from aaiclick.orchestration.store.workers import expire_sessions
from tests.support.band import band
from tests.support.clearing import clear
from tests.support.growing import grown
from tests.support.orchestra import LONG_AGO, Orchestra, done, expire, make

__all__ = ["band"]


async def read(band: Orchestra, job: Job) -> list[tuple[int, str, int | None]]:
    """The epoch, the type and the node of each event of a job's tasks."""
    asked = text(f"SELECT epoch, event_type, node_id FROM task_events WHERE job_id = {job.id} ORDER BY event_id")
    return [tuple(row) for row in await band.rows(asked)]


async def lose(band: Orchestra) -> int:
    """The session of the worker ends, and others get what it held; gives the next worker, which takes its place."""
    await expire(band)
    await band.database.transact(expire_sessions)
    await band.database.transact(lambda session: recover_claims(session, 10))
    band.worker = (await band.coordinator.register(hostname="there", pid=2)).id
    return band.worker


async def claim_one(band: Orchestra) -> Claim:
    (claim,) = await band.claim(begins=1)
    return claim


async def test_the_story_of_a_task_is_told_in_the_other_words(band: Orchestra) -> None:
    job = await band.submit(make("t", retry=RetryPolicy(1, delay_s=0)))
    first, lost = band.worker, await claim_one(band)
    second = await lose(band)
    assert not (await band.coordinator.report(first, [done(lost)])).accepted
    await band.coordinator.release(second, [await claim_one(band)])
    await band.fail(await claim_one(band))
    await band.complete(await claim_one(band))
    assert await read(band, job) == [
        (1, "assigned", first),
        (1, "lease_expired", first),
        (1, "pending", first),
        (1, "late_report", first),
        (3, "reassigned", second),
        (3, "pending", second),
        (5, "assigned", second),
        (5, "failed", second),
        (5, "pending", second),
        (7, "assigned", second),
        (7, "completed", second),
    ]


async def test_a_claim_is_a_reassignment_right_after_a_loss_and_only_then(band: Orchestra) -> None:
    task = make("t")
    job = await band.submit(task, make("other"))
    held = await band.claim_named()
    await band.complete(held["other"])
    for _ in range(2):
        await lose(band)
        await claim_one(band)
    await lose(band)
    await clear(band, task)
    await claim_one(band)
    told = [name for _, name, _ in await read(band, job)]
    assert [name for name in told if name.endswith("assigned")] == [
        "assigned",
        "assigned",
        "reassigned",
        "reassigned",
        "assigned",
    ]


async def test_what_has_no_word_there_has_one_of_its_own(band: Orchestra) -> None:
    parent, after = make("parent"), make("after")
    bad, doomed = make("bad"), make("doomed")
    parent >> after
    bad >> doomed
    job = await band.submit(parent, after, bad, doomed)
    held = await band.claim_named()
    await band.report(grown(held["parent"], make("child")))
    await band.fail(held["bad"])
    await clear(band, parent)
    await band.coordinator.cancel(job.id)
    told = [name for _, name, _ in await read(band, job)]
    assert told[:4] == ["assigned", "assigned", "completed", "failed"]
    assert told[4:6] == ["failed", "upstream_failed"]  # the attempt, and the task
    assert set(told[6:]) == {"removed", "pending", "cancelled"}


async def test_its_columns_are_those_of_the_other_table_and_some_more(band: Orchestra) -> None:
    job = await band.submit(make("t"))
    claim = await claim_one(band)
    await band.coordinator.release(band.worker, [claim])
    await band.complete(claim)
    *_, late = await band.rows(select(events).order_by(events.c.id))
    (row,) = await band.rows(text("SELECT * FROM task_events WHERE event_type = 'late_report'"))
    found = dict(row._mapping)
    assert str(found.pop("timestamp"))[:19] == str(late.at)[:19]
    assert found == {
        "event_id": late.id,
        "job_id": job.id,
        "task_id": claim.task_id,
        "epoch": claim.epoch,
        "event_type": "late_report",
        "node_id": band.worker,
        "details": "completed, but released before",
        "move": "late_report",
        "status": "pending",
    }


async def test_events_of_jobs_are_not_in_it_and_none_of_a_task_is_missing(band: Orchestra) -> None:
    job = await band.submit(make("a") >> make("b"))
    await band.drain()
    of_tasks = await band.rows(select(events.c.id).where(events.c.task_id.is_not(None)).order_by(events.c.id))
    shown = await band.rows(text(f"SELECT event_id FROM task_events WHERE job_id = {job.id} ORDER BY event_id"))
    assert [row.event_id for row in shown] == [row.id for row in of_tasks]


EXPLAIN = {"postgresql": "EXPLAIN (FORMAT TEXT)", "mariadb": "EXPLAIN", "sqlite": "EXPLAIN QUERY PLAN"}
USED = {
    "postgresql": ("ix_events_job", "runs_pkey"),
    "mariadb": ("ix_events_job", "eq_ref PRIMARY"),
    "sqlite": ("ix_events_job", "sqlite_autoindex_runs_1 (task_id=? AND epoch=?)"),
}


async def plan(band: Orchestra, asked: str) -> str:
    rows = await band.rows(text(f"{EXPLAIN[band.database.dialect.name]} {asked}"))
    return "\n".join(" ".join(map(str, row)) for row in rows)


async def test_a_jobs_events_are_found_by_an_index_and_their_runs_by_their_key(band: Orchestra) -> None:
    await fill(band)
    shown = await plan(band, "SELECT * FROM task_events WHERE job_id = 7 ORDER BY event_id")
    for index in USED[band.database.dialect.name]:
        assert index in shown, shown
    newest = await plan(band, "SELECT * FROM task_events ORDER BY event_id DESC LIMIT 10")
    assert "ort" not in newest.replace("Index Scan Backward", ""), newest  # sort, filesort: it would read all


async def fill(band: Orchestra) -> None:
    """Enough rows for a planner to care."""
    facts: dict[str, Any] = {"epoch": 3, "worker_id": 1}
    noted = [
        {**facts, "job_id": task % 100, "task_id": task, "move": "claim", "status": "claimed", "at": LONG_AGO}
        for task in range(3_000)
    ]
    ended = [
        {**facts, "task_id": task, "epoch": 1, "attempt": 0, "outcome": "lost", "ended_at": LONG_AGO}
        for task in range(3_000)
    ]
    async with band.transaction() as session:
        await session.insert(events, noted)
        await session.insert(runs, ended)
