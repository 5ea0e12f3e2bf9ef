"""Whose failure kept a task from beginning is told, however far away it was; and a critical one fails the job."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.failure_causes import error_left, explain
from tests.support.band import band, member
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, failing, make

__all__ = ["band"]


async def test_a_critical_task_that_never_ran_fails_its_job_and_names_what_failed(band: Orchestra) -> None:
    maybe, final = make("maybe", critical=False), make("final")
    maybe >> final
    job = await band.submit(maybe, final)
    await band.drain(failing("maybe"))
    ended, never = await band.job(job), await band.task(final)
    because = f"never ran: task 'maybe' ({maybe.id}) failed: ValueError: no"
    assert (ended.status, ended.failed_tasks, ended.failed_critical) == ("failed", 1, 1)
    assert ended.error == f"UpstreamFailed: Task 'final' {because}"
    assert (never.status, never.cause_id, never.error) == (
        "upstream_failed",
        maybe.id,
        f"UpstreamFailed: The task {because}",
    )
    assert not await band.violations()


@pytest.mark.parametrize("step", [2_000, 1])
async def test_the_cause_is_handed_on_through_groups_and_postponed_ripples(
    band: Orchestra, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripples, "STEP", step)
    outer, after = Group("outer"), Group("after")
    inner = Group("inner", parent_group_id=outer.id)
    deep = Group("deep", parent_group_id=after.id)
    bad = make("bad", group_id=inner.id, critical=False)
    others = [member(deep, f"d{number}") for number in range(3)]
    last = make("last")
    outer >> after >> last
    job = await band.submit(outer, after, last)
    await band.drain(failing("bad"))
    for task in (*others, last):
        assert (await band.task(task)).cause_id == bad.id
    ended = await band.job(job)
    assert ended.status == "failed"
    assert ended.error is not None
    assert f"never ran: task 'bad' ({bad.id}) failed: ValueError: no" in ended.error
    assert not await band.violations()


async def test_a_failure_that_is_critical_itself_is_the_error_of_its_job(band: Orchestra) -> None:
    bad, last = make("bad"), make("last")
    bad >> last
    job = await band.submit(bad, last)
    await band.drain(failing("bad"))
    assert (await band.job(job)).error == "ValueError: no"


async def test_a_job_that_fails_fast_stops_when_a_critical_task_will_never_run(band: Orchestra) -> None:
    maybe, final = make("maybe", critical=False), make("final")
    maybe >> final
    job = await band.submit(maybe, final, make("slow", priority=-1), fail_fast=True)
    (claim,) = await band.claim(1)
    await band.fail(claim)
    await band.coordinator.reconcile()
    assert (await band.job(job)).status == "failed"
    assert await band.statuses(job) == {"maybe": "failed", "final": "upstream_failed", "slow": "cancelled"}
    assert not await band.violations()


async def test_what_is_added_behind_an_old_failure_is_told_its_cause(band: Orchestra) -> None:
    group, bad = Group("g"), make("bad", critical=False)
    inside, follows = make("inside", group_id=group.id, critical=False), make("follows", critical=False)
    bad >> [group, follows]
    job = await band.submit(bad, group, follows, make("keeps open", priority=-1))
    (claim,) = await band.claim(1)
    await band.fail(claim)
    late, later, joined = make("late"), make("later"), make("joined", group_id=group.id)
    group >> late
    follows >> later
    await band.apply(job, late, later, joined)
    for task in (late, later, joined, inside):
        assert (await band.task(task)).cause_id == bad.id
    ended = await band.job(job)
    assert ended.failed_critical == 3
    assert ended.error is not None
    assert "never ran: task 'bad'" in ended.error
    assert not await band.violations()


async def test_what_a_run_makes_behind_an_old_failure_is_told_its_cause(band: Orchestra) -> None:
    bad, parent = make("bad", critical=False), make("parent")
    job = await band.submit(bad, parent)
    named = await band.claim_named()
    await band.fail(named["bad"])
    child = make("child")
    bad >> child
    await band.report(grown(named["parent"], child))
    assert (await band.task(child)).cause_id == bad.id
    assert (await band.job(job)).status == "failed"
    assert not await band.violations()


async def test_clearing_the_cause_lets_the_job_complete(band: Orchestra) -> None:
    maybe, final = make("maybe", critical=False), make("final")
    maybe >> final
    job = await band.submit(maybe, final)
    await band.drain(failing("maybe"))
    assert await band.coordinator.retry_failed(job.id) == [maybe.id, final.id]
    cleared = await band.job(job)
    assert (cleared.status, cleared.failed_critical, cleared.error) == ("running", 0, None)
    assert (await band.task(final)).cause_id is None
    await band.drain()
    assert (await band.job(job)).status == "completed"
    assert not await band.violations()


async def test_the_error_that_stays_after_a_clear_names_its_own_cause(band: Orchestra) -> None:
    one, other, first, second = (
        make("one", critical=False),
        make("other", critical=False),
        make("first"),
        make("second"),
    )
    one >> first
    other >> second
    job = await band.submit(one, other, first, second)
    await band.drain(failing("one", "other"))
    await band.coordinator.clear(one.id)
    stays = await band.job(job)
    words = f"UpstreamFailed: Task 'second' never ran: task 'other' ({other.id}) failed: ValueError: no"
    assert (stays.failed_critical, stays.error) == (1, words)
    assert await band.database.read(lambda session: error_left(session, job.id)) == words
    assert not await band.violations()


async def test_of_a_cancelled_job_what_waits_for_a_cancelled_task_names_it(band: Orchestra) -> None:
    first, second = make("first"), make("second")
    first >> second
    job = await band.submit(first, second)
    await band.coordinator.cancel(job.id)
    await band.coordinator.clear(second.id)
    ended = await band.job(job)
    assert ended.status == "failed"
    assert ended.error == f"UpstreamFailed: Task 'second' never ran: task 'first' ({first.id}) was cancelled"
    assert not await band.violations()


async def test_a_long_error_is_cut_and_only_its_first_line_told(band: Orchestra) -> None:
    maybe, final = make("maybe", critical=False), make("final")
    maybe >> final
    await band.submit(maybe, final)
    (claim,) = await band.claim()
    await band.fail(claim, error="ValueError: " + "x" * 600 + "\nsecond line")
    said = (await band.database.read(lambda session: explain(session, [maybe.id])))[maybe.id]
    assert said.endswith("x…")
    assert len(said) < 600
    assert await band.database.read(lambda session: explain(session, [1])) == {
        1: "what it waits for (1) will never complete"
    }
