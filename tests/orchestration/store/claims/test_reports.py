"""What runs report, and what becomes of reports that come too late, twice, or for another's task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.models import Claim, Group
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.reports import release_claims, take_reports
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, events, jobs, runs, tasks
from tests.support.orchestra import Orchestra, done, failing, failure, make, orchestra

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def claim_one(stage: Orchestra, **options: object) -> Claim:
    await stage.submit(make("t", **options))
    (claim,) = await stage.claim()
    return claim


async def outcomes(stage: Orchestra, task_id: int) -> list[tuple[int, str]]:
    found = await stage.rows(select(runs.c.epoch, runs.c.outcome).where(runs.c.task_id == task_id))
    return sorted((row.epoch, row.outcome) for row in found)


# ---------------------------------------------------------------- completing


async def test_a_completion_writes_result_run_event_and_counters_together(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    receipt = await stage.report(replace(done(claim, '{"b":1,"a":2}'), log_path="/logs/1"))
    assert receipt.accepted == {(claim.task_id, claim.epoch)}
    task = await stage.task(claim)
    assert (task.status, task.result_json, task.log_path) == ("completed", '{"b":1,"a":2}', "/logs/1")
    assert task.claimed_at is not None
    assert task.started_at == task.claimed_at  # the start was folded in
    assert task.completed_at is not None
    assert task.completed_at >= task.claimed_at
    assert await outcomes(stage, claim.task_id) == [(1, "completed")]
    assert not await stage.violations()


async def test_a_batch_completes_each_with_its_own_result(stage: Orchestra) -> None:
    await stage.submit(*(make(f"t{number}") for number in range(50)))
    claims = await stage.claim(50)
    await stage.report(*(done(claim, f'"{claim.name}"') for claim in reversed(claims)))
    for claim in claims:
        assert (await stage.task(claim)).result_json == f'"{claim.name}"'
    assert not await stage.violations()


async def test_a_run_that_had_started_keeps_its_start(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    began = (await stage.task(claim)).claimed_at
    assert began is not None
    began = began.replace(microsecond=123456)
    await start(stage, claim, began)
    await stage.complete(claim)
    assert (await stage.task(claim)).started_at == began


async def start(stage: Orchestra, claim: Claim, at: datetime) -> None:
    """What the beat of a worker will do one day: CLAIMED → RUNNING."""

    async def work(session: Session) -> None:
        await session.run(
            update(tasks).where(tasks.c.id == claim.task_id).values(status="running", started_at=at, claimed_at=at)
        )
        facts = {"job_id": claim.job_id, "task_id": claim.task_id, "epoch": claim.epoch}
        await session.insert(events, [{**facts, "move": "start", "status": "running", "at": at}])

    await stage.database.transact(work)


# ---------------------------------------------------------------- the fence


async def test_a_report_with_another_epoch_changes_nothing(stage: Orchestra) -> None:
    claim = await claim_one(stage, max_retries=3)
    for stale in (replace(done(claim), epoch=0), replace(failure(claim), epoch=2), replace(done(claim), epoch=2)):
        assert not (await stage.report(stale)).accepted
    assert (await stage.task(claim)).status == "claimed"
    assert not await stage.violations()


async def test_a_report_of_another_worker_changes_nothing(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    other = (await stage.coordinator.register(hostname="there", pid=2)).id
    for report in (done(claim), failure(claim)):
        assert not (await stage.coordinator.report(other, [report])).accepted
    assert await stage.coordinator.release(other, [claim]) == set()
    assert (await stage.task(claim)).status == "claimed"


async def test_a_zombie_of_the_first_attempt_cannot_complete_the_second(stage: Orchestra) -> None:
    """An epoch that grows with a clear alone lets it (pitfall T10)."""
    first = await claim_one(stage)
    await stage.coordinator.release(stage.worker, [first])
    (second,) = await stage.claim()
    assert not (await stage.complete(first)).accepted
    assert not (await stage.fail(first)).accepted
    assert await stage.coordinator.release(stage.worker, [first]) == set()
    assert (await stage.complete(second)).accepted == {(second.task_id, second.epoch)}
    assert not await stage.violations()


async def test_a_report_for_a_cancelled_task_is_refused(stage: Orchestra) -> None:
    claim = await claim_one(stage, max_retries=1)
    assert await stage.coordinator.cancel(claim.job_id)
    for report in (done(claim), failure(claim)):
        assert not (await stage.report(report)).accepted
    task = await stage.task(claim)
    assert (task.status, task.result_json) == ("cancelled", None)
    assert await outcomes(stage, claim.task_id) == [(1, "cancelled")]
    assert not await stage.violations()


async def test_a_report_for_a_task_that_no_one_knows_is_refused(stage: Orchestra) -> None:
    claim = replace(await claim_one(stage), task_id=12345)
    assert not (await stage.report(done(claim), failure(replace(claim, task_id=54321)))).accepted
    assert not (await stage.report()).accepted


async def test_a_repeated_completion_is_answered_as_the_first_time_and_changes_nothing(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    first = await stage.report(done(claim, '"first"'))
    again = await stage.report(done(claim, '"first"'))
    assert first.accepted == again.accepted == {(claim.task_id, claim.epoch)}
    assert (await stage.task(claim)).result_json == '"first"'
    assert not (await stage.fail(claim)).accepted  # it was no failure
    assert not await stage.violations()


async def test_a_repeated_failure_is_answered_as_the_first_time_and_counts_once(stage: Orchestra) -> None:
    claim = await claim_one(stage, max_retries=5)
    for _ in range(3):
        assert (await stage.fail(claim)).accepted == {(claim.task_id, claim.epoch)}
    assert not (await stage.complete(claim)).accepted
    assert (await stage.task(claim)).attempt == 1
    assert not await stage.violations()


async def test_the_same_report_twice_in_a_batch_counts_once(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    receipt = await stage.report(done(claim), done(claim))
    assert receipt.accepted == {(claim.task_id, claim.epoch)}
    assert (await stage.task(claim)).status == "completed"
    assert not await stage.violations()


@pytest.mark.parametrize("stale_last", [False, True])
@pytest.mark.parametrize("kind", [done, failure])
async def test_a_stale_and_a_live_report_of_one_task_in_a_batch_are_told_apart(
    stage: Orchestra, stale_last: bool, kind: object
) -> None:
    """A worker that lost a task and claimed it again may have both runs to report."""
    first = await claim_one(stage)
    await stage.coordinator.release(stage.worker, [first])
    (second,) = await stage.claim()
    assert callable(kind)
    reports = [kind(first, '"stale"'), kind(second, '"live"')]
    receipt = await stage.report(*(reversed(reports) if stale_last else reports))
    assert receipt.accepted == {(second.task_id, second.epoch)}
    task = await stage.task(second)
    assert (task.result_json or task.error) == '"live"'
    assert await outcomes(stage, task.id) == [(1, "released"), (3, "completed" if kind is done else "failed")]
    assert not await stage.violations()


async def test_done_and_failed_in_one_batch_for_one_run_is_done(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    await stage.report(failure(claim), done(claim))
    assert (await stage.task(claim)).status == "completed"
    assert not await stage.violations()


async def test_good_reports_count_although_stale_ones_ride_with_them(stage: Orchestra) -> None:
    await stage.submit(make("a"), make("b"), make("c"))
    a, b, c = await stage.claim()
    receipt = await stage.report(done(a), replace(done(b), epoch=9), failure(c))
    assert receipt.accepted == {(a.task_id, 1), (c.task_id, 1)}
    assert not await stage.violations()


# ---------------------------------------------------------------- failing


async def test_a_failure_without_retries_ends_the_task_and_its_job(stage: Orchestra) -> None:
    job = await stage.submit(make("t"))
    (claim,) = await stage.claim()
    await stage.fail(claim, error="ValueError: boom", traceback="line 1", log_path="/logs/2")
    task, ended = await stage.task(claim), await stage.job(job)
    assert (task.status, task.error, task.attempt, task.log_path) == ("failed", "ValueError: boom", 1, "/logs/2")
    assert (ended.status, ended.error, ended.failed_tasks) == ("failed", "ValueError: boom", 1)
    (run,) = await stage.rows(select(runs))
    assert (run.outcome, run.error, run.traceback) == ("failed", "ValueError: boom", "line 1")
    assert not await stage.violations()


async def test_a_failure_with_retries_waits_for_its_delay_and_runs_again(stage: Orchestra) -> None:
    await stage.submit(make("t", retry=RetryPolicy(2, delay_s=10, factor=3, jitter=False)))
    for attempt, delay_s in ((0, 10), (1, 30)):
        (claim,) = await stage.claim()
        assert claim.attempt == attempt
        await stage.fail(claim)
        task = await stage.task(claim)
        (run,) = await stage.rows(select(runs).where(runs.c.epoch == claim.epoch))
        assert (task.status, task.attempt, task.worker_id) == ("pending", attempt + 1, None)
        assert task.run_after is not None
        assert (task.run_after - run.ended_at).total_seconds() == delay_s
        assert not await stage.violations()
        assert await stage.claim() == []
        due_s = await stage.coordinator.reconcile()
        assert due_s is not None
        assert 0 < due_s <= delay_s
        assert await stage.claim() == []
        await stage.let_time_pass()
        assert await stage.coordinator.reconcile() is None
        assert await stage.ready_names() == ["t"]
    (claim,) = await stage.claim()
    await stage.fail(claim)
    assert (await stage.task(claim)).status == "failed"
    assert await stage.rows(select(delayed)) == []
    assert not await stage.violations()


async def test_a_retry_without_delay_is_ready_at_once(stage: Orchestra) -> None:
    claim = await claim_one(stage, retry=RetryPolicy(1, delay_s=0))
    await stage.fail(claim)
    assert await stage.ready_names() == ["t"]
    assert not await stage.violations()


async def test_a_permanent_failure_is_not_tried_again(stage: Orchestra) -> None:
    claim = await claim_one(stage, max_retries=5)
    await stage.fail(claim, permanent=True)
    assert (await stage.task(claim)).status == "failed"


async def test_an_attempt_does_not_inherit_the_start_of_the_one_before(stage: Orchestra) -> None:
    first = await claim_one(stage, retry=RetryPolicy(1, delay_s=0))
    await start(stage, first, datetime(2020, 1, 1, tzinfo=UTC))
    await stage.fail(first)
    (second,) = await stage.claim()
    await stage.complete(second)
    (run,) = await stage.rows(select(runs).where(runs.c.epoch == second.epoch))
    assert run.started_at >= run.claimed_at
    assert not await stage.violations()


async def test_the_job_tells_the_error_of_the_first_critical_failure(stage: Orchestra) -> None:
    job = await stage.submit(make("a", critical=False), make("b"), make("c"))
    a, b, c = await stage.claim()
    await stage.fail(a, error="of a")
    await stage.fail(b, error="of b")
    await stage.fail(c, error="of c")
    ended = await stage.job(job)
    assert (ended.status, ended.error, ended.failed_tasks, ended.failed_critical) == ("failed", "of b", 3, 2)


async def test_a_job_completes_although_tasks_that_are_not_critical_failed_or_never_ran(stage: Orchestra) -> None:
    tolerable = make("tolerable", critical=False)
    tolerable >> make("follows", critical=False)
    job = await stage.submit(tolerable, make("fine"), *(edge.next for edge in tolerable.outgoing))
    await stage.drain(failing("tolerable"))
    ended = await stage.job(job)
    assert (ended.status, ended.error, ended.failed_tasks, ended.failed_critical) == ("completed", None, 1, 0)
    assert await stage.statuses(job) == {"tolerable": "failed", "fine": "completed", "follows": "upstream_failed"}


# ---------------------------------------------------------------- giving back


async def test_what_is_given_back_is_ready_at_once_and_no_attempt_is_counted(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    assert await stage.coordinator.release(stage.worker, [claim]) == {claim.task_id}
    assert await stage.coordinator.release(stage.worker, [claim]) == set()
    task = await stage.task(claim)
    assert (task.status, task.epoch, task.attempt, task.worker_id) == ("pending", 2, 0, None)
    assert await outcomes(stage, claim.task_id) == [(1, "released")]
    assert not await stage.violations()


# ---------------------------------------------------------------- two at once


@servers_only
async def test_of_two_reports_of_one_run_at_once_one_counts_and_both_are_accepted_if_they_agree(
    stage: Orchestra,
) -> None:
    claim = await claim_one(stage)
    async with stage.transaction() as one:
        first = await take_reports(one, stage.worker, [done(claim, '"one"')], lambda: 1.0)
        same = asyncio.create_task(stage.report(done(claim, '"one"')))
        other = asyncio.create_task(stage.report(done(claim, '"two"')))
        await stage.until_waiting(2)
    run = {(claim.task_id, claim.epoch)}
    assert first.accepted == (await same).accepted == (await other).conflicts == run
    assert not (await other).accepted
    assert (await stage.task(claim)).result_json == '"one"'
    assert not await stage.violations()


@servers_only
async def test_a_completion_that_waited_for_a_release_is_refused(stage: Orchestra) -> None:
    claim = await claim_one(stage)
    async with stage.transaction() as one:
        await release_claims(one, stage.worker, {claim.task_id: claim.epoch})
        late = asyncio.create_task(stage.complete(claim))
        await stage.until_waiting()
    assert not (await late).accepted
    assert await stage.ready_names() == ["t"]
    assert not await stage.violations()


@servers_only
async def test_the_last_two_tasks_at_once_end_the_job_once(stage: Orchestra) -> None:
    """Under READ COMMITTED each would see the other running, and the job would never end (pitfall T9)."""
    job = await stage.submit(make("a"), make("b"))
    a, b = await stage.claim()
    async with stage.transaction() as one:
        await take_reports(one, stage.worker, [done(a)], lambda: 1.0)
        other = asyncio.create_task(stage.complete(b))
        await stage.until_waiting()
    await other
    assert (await stage.job(job)).status == "completed"
    ends = await stage.rows(select(events).where(events.c.task_id.is_(None), events.c.move == "complete"))
    assert len(ends) == 1
    assert not await stage.violations()


@servers_only
@pytest.mark.parametrize("outcome", [done, failure])
async def test_the_last_two_prerequisites_at_once_tell_their_dependents_once(stage: Orchestra, outcome: object) -> None:
    a, b, following = make("a"), make("b"), make("following")
    [a, b] >> following
    group = Group("g")
    inside = make("inside", group_id=group.id)
    [a, b] >> group
    await stage.submit(a, b, following, group, inside)
    first, second = await stage.claim()
    assert callable(outcome)
    async with stage.transaction() as one:
        await take_reports(one, stage.worker, [done(first)], lambda: 1.0)
        other = asyncio.create_task(stage.report(outcome(second)))
        await stage.until_waiting()
    await other
    assert await stage.ready_names() == (["following", "inside"] if outcome is done else [])
    assert not await stage.violations()


async def test_jobs_of_one_batch_are_counted_each_for_itself(stage: Orchestra) -> None:
    one = await stage.submit(make("a"), make("b"))
    two = await stage.submit(make("c"))
    await stage.complete(*(await stage.claim()))
    counted = await stage.rows(select(jobs.c.id, jobs.c.completed_tasks, jobs.c.status).order_by(jobs.c.id))
    assert [tuple(row) for row in counted] == [(one.id, 2, "completed"), (two.id, 1, "completed")]
    assert not await stage.violations()
