"""Clearing: who runs again, what of it is forgotten, and what the counters say afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import delete, select

from aaiclick.errors import NotFound
from aaiclick.orchestration.models import Group, JobStatus
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.moves.clears import retry_failed_tasks
from aaiclick.orchestration.store.tables import claims, dependencies, events, runs, tasks, workers
from tests.support.band import band, filled, member
from tests.support.clearing import chain, clear, finish
from tests.support.contents import contents
from tests.support.orchestra import Orchestra, done, failing, failure, make

__all__ = ["band"]


async def names(band: Orchestra, ids: Sequence[int]) -> list[str]:
    rows = await band.rows(select(tasks.c.id, tasks.c.name))
    found = {row.id: row.name for row in rows}
    return [found[task] for task in ids]


# ---------------------------------------------------------------- who runs again


async def test_a_completed_task_runs_again_with_all_that_waits_for_it(band: Orchestra) -> None:
    a, b, c, beside = (make(name) for name in ("a", "b", "c", "beside"))
    chain(a, b, c)
    a >> beside
    job = await band.submit(a, b, c, beside)
    await band.drain()
    cleared = await clear(band, b)
    assert await names(band, cleared.task_ids) == ["b", "c"]
    assert cleared.reactivated
    assert (await band.job(job)).status == "running"
    assert await band.statuses(job) == {"a": "completed", "b": "pending", "c": "pending", "beside": "completed"}
    assert await band.ready_names() == ["b"]
    assert await finish(band, job) == ["b", "c"]


async def test_downstream_goes_through_groups_at_any_depth(band: Orchestra) -> None:
    """A task inside a group is upstream of what waits for that group or any around it; and into all of the next."""
    outer, inner = Group("outer"), Group("inner")
    inner.parent_group_id = outer.id
    deep, beside = member(inner, "deep"), member(outer, "beside")
    following, within = Group("following"), Group("within")
    within.parent_group_id = following.id
    far = member(within, "far")
    last, waits_for_inner, alone = make("last"), make("waits for inner"), make("alone")
    outer >> following >> last
    inner >> waits_for_inner
    job = await band.submit(outer, inner, following, within, deep, beside, far, last, waits_for_inner, alone)
    await band.drain()
    assert await names(band, (await clear(band, beside)).task_ids) == ["beside", "far", "last"]
    await finish(band, job)
    assert await names(band, (await clear(band, deep)).task_ids) == ["deep", "far", "waits for inner", "last"]
    await finish(band, job)
    assert await names(band, (await clear(band, far)).task_ids) == ["far", "last"]
    await finish(band, job)
    both = await names(band, (await clear(band, alone, deep)).task_ids)
    assert both == ["deep", "alone", "far", "waits for inner", "last"]
    await finish(band, job)


async def test_a_group_in_a_group_that_waits_is_held_back_again(band: Orchestra) -> None:
    first, around = make("first"), Group("around")
    inside, empty = filled("inside", inside=around), Group("empty", parent_group_id=around.id)
    first >> around
    job = await band.submit(first, around, inside, empty)
    await band.drain()
    await clear(band, first)
    assert await band.ready_names() == ["first"]
    late = make("late", group_id=empty.id)
    await band.apply(job, late)
    assert await band.ready_names() == ["first"]
    assert await finish(band, job) == ["first", "in inside", "late"]


async def test_what_waits_for_an_empty_group_does_not_wait_for_what_is_before_it(band: Orchestra) -> None:
    first, empty, last = make("first"), Group("empty"), make("last")
    first >> empty >> last
    job = await band.submit(first, empty, last)
    await band.drain()
    assert await names(band, (await clear(band, first)).task_ids) == ["first"]
    await finish(band, job)


async def test_an_edge_that_was_met_when_it_was_made_is_waited_for_after_a_clear(band: Orchestra) -> None:
    first, keeps_open = make("first"), make("keeps open")
    job = await band.submit(first, keeps_open)
    (claim, _) = await band.claim()
    await band.complete(claim)
    later = make("later")
    first >> later
    await band.apply(job, later)
    assert (await band.scalar(select(dependencies.c.met))) is True
    await clear(band, first)
    assert await band.ready_names() == ["first"]
    await band.complete(*(await band.claim()))
    assert await band.ready_names() == ["later"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_dry_run_says_the_same_and_changes_nothing(band: Orchestra, dry_run: bool) -> None:
    a, b = chain(make("a"), make("b"))
    await band.submit(a, b)
    await band.drain(failing("a"))
    before = await contents(band.database)
    assert await band.coordinator.clear(a.id, dry_run=dry_run) == [a.id, b.id]
    assert (await contents(band.database) == before) is dry_run


async def test_what_is_not_there_is_not_found(band: Orchestra) -> None:
    with pytest.raises(NotFound):
        await band.coordinator.clear(5)
    with pytest.raises(NotFound):
        await band.coordinator.retry_failed(5)


# ---------------------------------------------------------------- what is forgotten


async def test_a_cleared_task_is_as_if_it_had_never_run(band: Orchestra) -> None:
    task = make("a", max_retries=1)
    await band.submit(task)
    (claim,) = await band.claim()
    await band.fail(claim, log_path="/logs/1")
    await band.let_time_pass()
    await band.coordinator.reconcile()
    (claim,) = await band.claim()
    await band.report(done(claim, '"x"'))
    before = await band.task(task)
    assert before.attempt == 1
    await clear(band, task)
    after = await band.task(task)
    assert (after.epoch, after.generation, after.status) == (before.epoch + 1, 1, "pending")
    assert not any((after.attempt, after.crash_count, after.lost_count))
    forgotten = (
        "worker_id",
        "claimed_at",
        "started_at",
        "completed_at",
        "run_after",
        "result_json",
        "error",
        "log_path",
    )
    assert [getattr(after, name) for name in forgotten] == [None] * len(forgotten)
    assert [run.outcome for run in await band.rows(select(runs).order_by(runs.c.epoch))] == ["failed", "completed"]
    (claim,) = await band.claim()
    assert (claim.idempotency_key, claim.attempt) == (f"{task.id}-1", 0)


async def test_a_run_under_way_loses_its_claim(band: Orchestra) -> None:
    """A zombie of the old run must not complete the new one (pitfall T10)."""
    job = await band.submit(task := make("a"))
    (old,) = await band.claim()
    await clear(band, task)
    assert await band.rows(select(claims)) == []
    assert [run.outcome for run in await band.rows(select(runs))] == ["cleared"]
    (new,) = await band.claim()
    assert not (await band.complete(old)).accepted
    assert not (await band.fail(old)).accepted
    assert (await band.complete(new)).accepted
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []


async def test_a_task_that_waits_for_its_time_waits_no_longer(band: Orchestra) -> None:
    await band.submit(task := make("a", retry=RetryPolicy(3, delay_s=200)))
    await band.fail(*(await band.claim()))
    assert await band.ready_names() == []
    await clear(band, task)
    assert await band.ready_names() == ["a"]


async def test_clearing_what_never_ran_changes_nothing_that_matters(band: Orchestra) -> None:
    a, b = chain(make("a"), make("b"))
    job = await band.submit(a, b)
    for _ in range(2):
        assert (await clear(band, b)).task_ids == [b.id]  # type: ignore[arg-type]
        assert (await clear(band, a)).task_ids == [a.id, b.id]  # type: ignore[arg-type]
        assert await band.ready_names() == ["a"]
    assert (await band.job(job)).status == "pending"
    assert await finish(band, job) == ["a", "b"]


async def test_others_hear_of_it(band: Orchestra) -> None:
    told: list[set[str]] = []
    await band.submit(task := make("a"))
    await band.claim()
    band.database.on_hints = lambda hints: told.append(set(hints))
    await clear(band, task)
    (claim,) = await band.claim()
    await band.complete(claim)
    await clear(band, task)
    assert told == [{READY, ORDERS}, {ENDED}, {READY}]


# ---------------------------------------------------------------- what still stands in the way


async def test_what_waits_for_another_failure_stays_doomed(band: Orchestra) -> None:
    bad, worse, both, after = make("bad"), make("worse"), make("both"), make("after")
    [bad, worse] >> both >> after
    job = await band.submit(bad, worse, both, after)
    await band.drain(failing("bad", "worse"))
    await clear(band, bad)
    assert await band.statuses(job) == {
        "bad": "pending", "worse": "failed", "both": "upstream_failed", "after": "upstream_failed"
    }  # fmt: skip
    assert await finish(band, job, "failed") == ["bad"]
    assert (await clear(band, worse)).reactivated
    assert await finish(band, job) == ["worse", "both", "after"]


async def test_a_group_with_another_failure_in_it_stays_failed(band: Orchestra) -> None:
    group, last = Group("g"), make("last")
    one, other = member(group, "one"), member(group, "other")
    group >> last
    job = await band.submit(group, one, other, last)
    await band.drain(failing("one", "other"))
    await clear(band, one)
    assert (await band.statuses(job))["last"] == "upstream_failed"
    await clear(band, other)
    assert (await band.statuses(job))["last"] == "pending"
    assert await finish(band, job) == ["one", "other", "last"]


async def test_a_task_in_a_group_that_never_begins_stays_doomed(band: Orchestra) -> None:
    bad, group = make("bad"), Group("g")
    inner = filled("inner", inside=group)
    bad >> group
    job = await band.submit(bad, group, inner)
    await band.drain(failing("bad"))
    deep = await band.scalar(select(tasks.c.id).where(tasks.c.name == "in inner"))
    assert await band.coordinator.clear(deep) == [deep]
    assert await band.statuses(job) == {"bad": "failed", "in inner": "upstream_failed"}
    assert (await band.job(job)).status == "failed"
    assert await band.violations() == []


# ---------------------------------------------------------------- the job


async def test_the_error_of_a_job_is_that_of_what_stays_failed(band: Orchestra) -> None:
    one, other, third = make("one"), make("other"), make("third", critical=False)
    job = await band.submit(one, other, third)
    await band.drain(lambda claim: failure(claim, f"E: {claim.name}"))
    assert (await band.job(job)).error == "E: one"
    await clear(band, one)
    assert (await band.job(job)).error == "E: other"
    await clear(band, other)
    assert (await band.job(job)).error is None
    assert (await band.job(job)).failed_tasks == 1
    await finish(band, job)


@pytest.mark.parametrize("when", ["before it began", "while it runs"])
async def test_a_task_of_a_cancelled_job_runs_alone(band: Orchestra, when: str) -> None:
    a, b, c = make("a"), make("b"), make("c")
    a >> b
    job = await band.submit(a, b, c)
    if when == "while it runs":
        await band.complete(*(await band.claim(1)))
    assert await band.coordinator.cancel(job.id)
    await clear(band, b)
    statuses = await band.statuses(job)
    assert statuses["c"] == "cancelled"
    assert statuses["b"] == ("pending" if when == "while it runs" else "upstream_failed")
    await clear(band, a)
    found = await band.job(job)
    assert (found.status, found.completed_at) == (JobStatus.RUNNING, None)
    assert await finish(band, job, "cancelled") == ["a", "b"]
    await clear(band, c)
    assert await finish(band, job) == ["c"]


async def test_the_time_of_a_job_begins_anew(band: Orchestra) -> None:
    job = await band.submit(task := make("a"))
    await band.drain()
    first = (await band.job(job)).started_at
    await clear(band, task)
    again = (await band.job(job)).started_at
    assert first is not None
    assert again is not None
    assert again > first


async def test_what_a_test_run_kept_for_itself_is_everyones_after_a_clear(band: Orchestra) -> None:
    job = await band.submit(task := make("a"))
    await band.coordinator.reserve(job.id, band.worker)
    await band.complete(*(await band.claim(reserved_for=band.worker)))
    await clear(band, task)
    assert [claim.name for claim in await band.claim()] == ["a"]


async def test_so_it_is_when_the_worker_of_the_test_run_was_pruned(band: Orchestra) -> None:
    job = await band.submit(task := make("a"))
    await band.coordinator.reserve(job.id, band.worker)
    await band.complete(*(await band.claim(reserved_for=band.worker)))
    other = await band.coordinator.register(hostname="elsewhere", pid=2)
    pruned = delete(workers).where(workers.c.id == band.worker)
    await band.database.transact(lambda session: session.run(pruned))
    await clear(band, task)
    claimed = await band.coordinator.claim(other.id, limit=1)
    assert [claim.name for claim in claimed] == ["a"]


# ---------------------------------------------------------------- retry


async def test_a_retry_clears_what_failed_with_all_that_waited_for_it(band: Orchestra) -> None:
    bad, doomed, fine = make("bad"), make("doomed"), make("fine")
    bad >> doomed
    job = await band.submit(bad, doomed, fine)
    assert await band.coordinator.retry_failed(job.id) == []
    await band.drain(failing("bad"))
    assert await band.coordinator.retry_failed(job.id, dry_run=True) == [bad.id, doomed.id]
    assert (await band.job(job)).status == "failed"
    assert await band.coordinator.retry_failed(job.id) == [bad.id, doomed.id]
    assert await finish(band, job) == ["bad", "doomed"]
    assert await band.coordinator.retry_failed(job.id) == []


async def test_a_retry_of_a_job_that_failed_fast_runs_what_was_cancelled_with_it(band: Orchestra) -> None:
    names_ = ["bad", *(f"t{number}" for number in range(5))]
    job = await band.submit(*(make(name) for name in names_), fail_fast=True)
    await band.fail(*(await band.claim(1)))
    assert await band.statuses(job) == {"bad": "failed"} | dict.fromkeys(names_[1:], "cancelled")
    assert len(await band.coordinator.retry_failed(job.id)) == 6
    assert sorted(await finish(band, job)) == sorted(names_)


async def test_every_clear_is_in_the_events(band: Orchestra) -> None:
    a, b = chain(make("a"), make("b"))
    job = await band.submit(a, b)
    await band.drain()
    await clear(band, b)  # type: ignore[arg-type]
    found = await band.rows(
        select(events.c.task_id, events.c.move, events.c.status)
        .where(events.c.job_id == job.id, events.c.move.in_(["clear", "reactivate"]))
        .order_by(events.c.id)
    )
    assert [tuple(row) for row in found] == [(b.id, "clear", "pending"), (None, "reactivate", "running")]


async def test_a_retry_in_one_transaction_sees_the_failures_of_now(band: Orchestra) -> None:
    job = await band.submit(make("a"))
    await band.drain(failing("a"))
    cleared = await band.database.transact(lambda session: retry_failed_tasks(session, job.id))
    assert cleared.reactivated
    assert await band.violations() == []
