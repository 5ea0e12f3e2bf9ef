"""Claims: the order, batches, the fence's epoch, and workers that do not stand in each other's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy import select, text

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.claims import claiming as store_claims
from aaiclick.orchestration.store.claims.claiming import QueueFront, claim_tasks
from aaiclick.orchestration.store.claims.reports import release_claims, take_reports
from aaiclick.orchestration.store.dialects.contract import ClaimedTask, ReadyKey
from aaiclick.orchestration.store.dialects.postgres import PostgresDialect
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, tasks
from aaiclick.orchestration.store.transitions import lock_tasks
from tests.support.ids import HandClock
from tests.support.orchestra import Orchestra, done, extension, make, more_workers, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
postgres_only = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


# ---------------------------------------------------------------- order


async def test_claims_come_by_priority_then_oldest_job_then_task(stage: Orchestra) -> None:
    await stage.submit(make("a"), make("b", priority=5), make("c", priority=-5))
    await stage.submit(make("d"), make("e", priority=5))
    await stage.submit(make("f", priority=1), make("g"), priority=9)
    named = [(await stage.claim(1))[0].name for _ in range(7)]
    assert named == ["g", "b", "e", "f", "a", "d", "c"]


async def test_a_batch_is_in_the_same_order_as_single_claims(stage: Orchestra) -> None:
    await stage.submit(*(make(f"t{number}", priority=number % 3) for number in range(12)))
    in_order = await stage.ready_names()
    assert [claim.name for claim in await stage.claim(5)] == in_order[:5]
    assert [claim.name for claim in await stage.claim(100)] == in_order[5:]
    assert await stage.claim(100) == []


async def test_a_job_that_began_long_ago_or_never_stands_where_its_id_says(stage: Orchestra) -> None:
    """Ordered by started_at, NULLs sort last here and first there (pitfall T4)."""
    older = make("older") >> make("follows")
    await stage.submit(*(edge.previous for edge in older.incoming), older)
    await stage.submit(make("younger"), make("youngest"))
    first = await stage.claim(2)
    assert [claim.name for claim in first] == ["older", "younger"]
    await stage.complete(first[0])
    assert [claim.name for claim in await stage.claim(2)] == ["follows", "youngest"]


async def test_ids_of_63_bits_and_lower_case_statuses_reach_the_rows(stage: Orchestra) -> None:
    """SQLModel's INTEGER keys overflow, and its enums are stored by name (pitfall T29)."""
    task = make("large")
    task.id = 2**63 - 1
    await stage.submit(task)
    (claim,) = await stage.claim()
    assert claim.task_id == 2**63 - 1
    assert await stage.scalar(text("SELECT count(*) FROM tasks WHERE status = 'claimed'")) == 1
    assert await stage.scalar(text("SELECT count(*) FROM jobs WHERE status = 'running'")) == 1
    await stage.complete(claim)
    assert await stage.scalar(text("SELECT count(*) FROM tasks WHERE status = 'completed'")) == 1


# ---------------------------------------------------------------- the fence


async def test_a_claim_carries_what_a_runner_needs_and_returns_from_the_update_itself(stage: Orchestra) -> None:
    """RETURNING (SELECT …) would be a syntax error (pitfall T5)."""
    group = Group("g")
    job = await stage.submit(group, make("t", kwargs={"x": 1}, group_id=group.id, timeout_s=2.5, priority=4))
    (claim,) = await stage.claim()
    assert (claim.epoch, claim.attempt, claim.worker_id, claim.job_id) == (1, 0, stage.worker, job.id)
    assert (claim.group_id, claim.entrypoint, claim.timeout_s) == (group.id, "some.module.t", 2.5)
    assert claim.priority == 4
    assert '"x"' in claim.kwargs_json
    task = await stage.task(claim)
    assert (task.status, task.epoch, task.worker_id) == ("claimed", 1, stage.worker)
    assert task.claimed_at is not None
    assert not await stage.violations()


async def test_the_epoch_grows_with_every_claim_release_and_retry(stage: Orchestra) -> None:
    job = await stage.submit(make("t", max_retries=1))
    epochs = []
    (claim,) = await stage.claim()
    epochs.append(claim.epoch)
    await stage.coordinator.release(stage.worker, [claim])
    (claim,) = await stage.claim()
    epochs.append(claim.epoch)
    await stage.fail(claim)
    await stage.let_time_pass()
    await stage.coordinator.reconcile()
    (claim,) = await stage.claim()
    epochs.append(claim.epoch)
    await stage.complete(claim)
    assert epochs == [1, 3, 5]
    moves = await stage.rows(select(events.c.move).where(events.c.task_id == claim.task_id).order_by(events.c.id))
    told = [row.move for row in moves]
    assert told == ["claim", "release", "claim", "fail", "retry", "claim", "complete"]
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


async def test_the_first_claim_starts_the_job_and_no_other_does(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"))
    assert (await stage.job(job)).status == "pending"
    await stage.claim(1)
    begun = await stage.job(job)
    assert (begun.status, begun.started_at is not None) == ("running", True)
    stage.database.started_jobs.clear()  # as another process, which does not know
    await stage.claim(1)
    assert (await stage.job(job)).started_at == begun.started_at
    starts = select(events.c.id).where(events.c.job_id == job.id, events.c.move == "start")
    assert len(await stage.rows(starts)) == 1


async def test_a_limit_is_kept_and_an_empty_queue_gives_nothing(stage: Orchestra) -> None:
    assert await stage.claim(10) == []
    await stage.submit(*(make() for _ in range(7)))
    assert [len(await stage.claim(3)) for _ in range(4)] == [3, 3, 1, 0]


async def test_a_claim_sees_only_what_is_reserved_for_it(stage: Orchestra) -> None:
    await stage.submit(make("kept"), reserved_for=7)
    await stage.submit(make("free"))
    assert [claim.name for claim in await stage.claim(10)] == ["free"]
    assert [claim.name for claim in await stage.claim(10, reserved_for=7)] == ["kept"]


# ---------------------------------------------------------------- two at once


@servers_only
async def test_a_second_claimer_takes_what_the_first_left_while_that_is_not_committed(stage: Orchestra) -> None:
    """A claim that locks the job's row leaves nothing for a second worker (pitfall T1)."""
    await stage.submit(*(make(f"t{number}") for number in range(4)))
    (begin,) = await stage.claim(1)  # the job is running: what starts it is the claim of a moment
    options: dict[str, Any] = {"reserved_for": 0, "limit": 1, "after": None, "started": {begin.job_id}}
    workers = await more_workers(stage, 3)
    async with stage.transaction() as one, stage.transaction() as two, stage.transaction() as three:
        first, second, third = [
            await claim_tasks(session, worker_id=worker, **options)
            for session, worker in zip((one, two, three), workers, strict=True)
        ]
    assert [claim.name for claim in (*first, *second, *third)] == ["t1", "t2", "t3"]
    assert not await stage.violations()


@servers_only
async def test_batches_that_are_not_committed_hold_up_neither_claims_nor_completions(stage: Orchestra) -> None:
    """To delete most rows of a small table MariaDB reads all of it, and waits for what others have locked there."""
    await stage.submit(*(make(f"t{number}") for number in range(9)))
    before = await stage.claim(1)
    options: dict[str, Any] = {"reserved_for": 0, "after": None, "started": {before[0].job_id}}
    mine, theirs = await more_workers(stage, 2)
    async with asyncio.timeout(60), stage.transaction() as one, stage.transaction() as two:
        first = await claim_tasks(one, worker_id=mine, limit=3, **options)
        second = await claim_tasks(two, worker_id=theirs, limit=5, **options)
        assert (await take_reports(two, stage.worker, [done(before[0])], lambda: 1.0)).accepted
        await release_claims(one, mine, {claim.task_id: claim.epoch for claim in first})
    assert len({claim.task_id for claim in (*first, *second)}) == 8
    assert not await stage.violations()


@servers_only
async def test_two_claims_at_once_start_a_job_once(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"))
    options: dict[str, Any] = {"reserved_for": 0, "limit": 1, "after": None, "started": set()}
    (worker,) = await more_workers(stage, 1)
    async with stage.transaction() as one:
        await claim_tasks(one, worker_id=worker, **options)
        other = asyncio.create_task(stage.claim(1))
        await stage.until_waiting()
    assert len(await other) == 1
    assert (await stage.job(job)).status == "running"
    assert not await stage.violations()


@servers_only
async def test_a_claim_that_waited_for_a_change_is_dated_after_the_wait(stage: Orchestra) -> None:
    """NOW() is the transaction's start, on MariaDB the statement's: stale after a lock wait (pitfall T8)."""
    waited_for = make("waited_for")
    job = await stage.submit(waited_for)
    following = make("following").depends_on(waited_for)
    async with stage.transaction() as holder:
        await extend_job(holder, extension(job, following))
        claiming = asyncio.create_task(stage.claim())
        await stage.until_waiting()
        freed = await holder.now()
    (claim,) = await claiming
    claimed_at = (await stage.task(claim)).claimed_at
    assert claimed_at is not None
    assert claimed_at >= freed
    assert not await stage.violations()


@servers_only
async def test_now_of_the_statement_would_be_older_than_the_wait(stage: Orchestra) -> None:
    """Why claims ask clock_timestamp() and SYSDATE(6): the plain NOW of the same statement is from before the wait."""
    waited_for = make("waited_for")
    await stage.submit(waited_for)
    naive = "now()" if stage.database.dialect.name == "postgresql" else "NOW(6)"
    async with stage.transaction() as holder:
        await lock_tasks(holder, [waited_for.id])

        async def write_now() -> None:
            async with stage.transaction() as waiter:
                await waiter.run(text(f"UPDATE tasks SET started_at = {naive}"))

        waiting = asyncio.create_task(write_now())
        await stage.until_waiting()
        freed = await holder.now()
    await waiting
    started_at = (await stage.task(waited_for)).started_at
    assert started_at is not None
    assert started_at < freed


@servers_only
async def test_a_task_that_is_cancelled_while_its_claim_waits_is_not_claimed(stage: Orchestra) -> None:
    task = make("t")
    job = await stage.submit(task)
    async with stage.transaction() as holder:
        await lock_tasks(holder, [task.id])
        claiming = asyncio.create_task(stage.claim())
        await stage.until_waiting()
        await holder.run(text("UPDATE tasks SET status = 'cancelled', epoch = epoch + 1"))
    assert await claiming == []
    assert (await stage.task(task)).worker_id is None
    assert (await stage.job(job)).status == "pending"


# ---------------------------------------------------------------- where to begin


def key(number: int) -> ReadyKey:
    return ReadyKey(0, 1, number)


def test_the_front_is_looked_at_while_that_is_cheap() -> None:
    front = QueueFront()
    for number in range(10):
        after = front.begin(float(number))
        assert after is None
        front.learn(after, key(number), float(number), store_claims.BEARABLE_S)


def test_a_slow_front_is_looked_at_for_a_twentieth_of_the_time() -> None:
    front = QueueFront()
    for number in range(3):
        front.learn(None, key(number), now=100.0, cost_s=1.0)
    assert front.begin(101.0) == key(2)
    front.learn(key(2), key(9), now=102.0, cost_s=0.001)
    assert front.begin(119.0) == key(9)
    assert front.begin(120.0) is None
    for _ in range(3):
        front.learn(None, key(3), now=121.0, cost_s=0.001)
    assert front.begin(121.0) is None  # it is cheap again


def test_one_slow_claim_among_quick_ones_changes_nothing() -> None:
    front = QueueFront()
    for cost_s in (0.001, 3.0, 0.002):
        front.learn(None, key(1), now=1.0, cost_s=cost_s)
    assert front.begin(1.0) is None


def test_a_claim_that_found_nothing_leaves_the_place_as_it_was() -> None:
    front = QueueFront()
    front.learn(None, key(5), 1.0, 1.0)
    front.learn(None, None, 2.0, 1.0)
    assert front.last == key(5)


async def test_what_lies_before_the_remembered_place_is_found_by_the_same_call(stage: Orchestra) -> None:
    job = await stage.submit(*(make(f"t{number}") for number in range(6)))
    last = (await stage.rows(select(tasks.c.id).order_by(tasks.c.id)))[3].id
    place = ReadyKey(0, job.id, last)

    async def claim(limit: int) -> list[str]:
        claims = await stage.database.transact(
            lambda session: claim_tasks(
                session, worker_id=stage.worker, reserved_for=0, limit=limit, after=place, started=set()
            )
        )
        return [each.name for each in claims]

    assert await claim(1) == ["t4"]
    assert await claim(3) == ["t0", "t1", "t5"]
    assert await claim(10) == ["t2", "t3"]
    assert await claim(10) == []
    assert not await stage.violations()


@postgres_only
async def test_what_was_taken_is_not_forgotten_when_the_second_look_meets_a_deadlock(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look has committed by itself: to try all of it again would leave its tasks with nobody."""
    job = await stage.submit(make("before"), make("behind"))
    place = ReadyKey(0, job.id, (await stage.rows(select(tasks.c.id).order_by(tasks.c.id)))[0].id)
    looking = PostgresDialect.claim_ready

    async def deadlocked(self: PostgresDialect, session: Session, **options: Any) -> list[ClaimedTask]:
        if options["after"] is None:
            raise asyncpg.DeadlockDetectedError("x")
        return await looking(self, session, **options)

    monkeypatch.setattr(PostgresDialect, "claim_ready", deadlocked)
    claims = await stage.database.write_one(
        lambda session: claim_tasks(
            session, worker_id=stage.worker, reserved_for=0, limit=2, after=place, started=set()
        )
    )
    assert [claim.name for claim in claims] == ["behind"]


@postgres_only
async def test_work_that_appears_before_the_remembered_place_is_never_missed(migrated_sql_url: str) -> None:
    clock = SlowClock()
    async with orchestra(migrated_sql_url, clock=clock) as stage:
        low = [make(f"low{number}", priority=-1) for number in range(6)]
        job = await stage.submit(*low)
        for _ in range(3):
            await stage.claim(1)
        await stage.apply(job, make("high", priority=9))
        # looking at the front costs a second by this clock, so the claim begins behind the last one that was taken
        assert [claim.name for claim in await stage.claim(2)] == ["low3", "low4"]
        assert [claim.name for claim in await stage.claim(2)] == ["high", "low5"]
        assert not await stage.violations()


@postgres_only
async def test_after_a_while_the_front_is_looked_at_again(migrated_sql_url: str) -> None:
    clock = SlowClock()
    async with orchestra(migrated_sql_url, clock=clock) as stage:
        job = await stage.submit(*(make(f"low{number}", priority=-1) for number in range(6)))
        for _ in range(3):
            await stage.claim(1)
        await stage.apply(job, make("high", priority=9))
        clock.pass_by(timedelta(minutes=1).total_seconds())
        assert [claim.name for claim in await stage.claim(2)] == ["high", "low3"]


class SlowClock(HandClock):
    """By this clock everything takes a second."""

    def monotonic(self) -> float:
        self.pass_by(1.0)
        return super().monotonic()


# ---------------------------------------------------------------- inputs


async def test_a_claim_brings_the_results_that_its_arguments_refer_to(stage: Orchestra) -> None:
    group = Group("g")
    inner = Group("inner", parent_group_id=group.id)
    one, two, single = make("one", group_id=group.id), make("two", group_id=inner.id), make("single")
    await stage.submit(group, inner, one, two, single, make("sum", kwargs={"all": group, "x": [single]}))
    await stage.report(*(done(claim, f'"{claim.name}"') for claim in await stage.claim()))
    (claim,) = await stage.claim()
    assert claim.members == {group.id: [one.id, two.id]}
    assert claim.inputs == {one.id: '"one"', two.id: '"two"', single.id: '"single"'}


async def test_blocked_and_finished_and_delayed_tasks_are_not_in_the_queue(stage: Orchestra) -> None:
    """A claim is one look into the queue, whatever else there is."""
    first, retried = make("first"), make("retried", max_retries=1)
    first >> make("blocked")
    await stage.submit(first, retried, *(edge.next for edge in first.outgoing), make("finished"), make("free"))
    claims = await stage.claim_named(4)
    await stage.complete(claims["finished"])
    await stage.fail(claims["retried"])
    await stage.coordinator.release(stage.worker, [claims["free"]])
    assert await stage.ready_names() == ["free"]
