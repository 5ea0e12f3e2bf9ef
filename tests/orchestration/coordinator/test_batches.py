"""A batch of reports in which one cannot be stored."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.coordinator import batches
from aaiclick.orchestration.models import Done, Failure
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, done, failure, make

__all__ = ["band"]

BAD = "x" * 2000
"""A path of a log that is longer than its column."""


@SERVERS
async def test_one_that_the_database_refuses_fails_alone(band: Orchestra) -> None:
    job = await band.submit(*(make(f"t{number}") for number in range(9)))
    claims = await band.claim()
    reports: list[Done | Failure] = [done(claim) for claim in claims]
    reports[4] = Done(claims[4].task_id, claims[4].epoch, log_path=BAD)
    receipt = await band.report(*reports)
    assert receipt.accepted == {(claim.task_id, claim.epoch) for claim in claims}
    statuses = await band.statuses(job)
    assert statuses.pop("t4") == "failed"
    assert set(statuses.values()) == {"completed"}
    task = await band.task(claims[4])
    assert task.error is not None
    assert task.error.startswith("ReportRefused: ")
    assert "SQL" not in task.error  # what the database says, not what it was asked, nor with which values
    assert BAD[:50] not in task.error
    assert await band.violations() == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_one_that_sqlite_itself_refuses_fails_alone(band: Orchestra) -> None:
    job = await band.submit(make("bad"), make("good"))
    bad, good = await band.claim()
    refuse = "CREATE TRIGGER no BEFORE INSERT ON runs WHEN NEW.log_path = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END"
    async with band.database.connection() as connection:
        await connection.exec_driver_sql(refuse)
    await band.report(Done(bad.task_id, bad.epoch, log_path="bad"), done(good))
    assert await band.statuses(job) == {"bad": "failed", "good": "completed"}


@SERVERS
async def test_a_failure_that_the_database_refuses_fails_its_task_for_good(band: Orchestra) -> None:
    job = await band.submit(make("a", max_retries=5))
    (claim,) = await band.claim()
    await band.report(failure(claim, log_path=BAD))
    assert await band.statuses(job) == {"a": "failed"}


async def test_stale_ones_are_not_among_those_accepted_and_harm_no_other(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    first, second = await band.claim()
    await band.coordinator.release(band.worker, [first])
    receipt = await band.complete(first, second)
    assert receipt.accepted == {(second.task_id, second.epoch)}


async def test_the_same_batch_again_is_answered_as_the_first_time(band: Orchestra) -> None:
    await band.submit(make("a"), make("b", max_retries=3))
    first, second = await band.claim()
    reports: list[Done | Failure] = [done(first), failure(second, crashed=True)]
    accepted = (await band.report(*reports)).accepted
    assert len(accepted) == 2
    assert (await band.report(*reports)).accepted == accepted
    assert await band.violations() == []


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_database_that_is_away_is_no_refusal(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()

    async def away(*_: object) -> None:
        raise ConnectionResetError("gone")

    monkeypatch.setattr(batches, "take_reports", away)
    with pytest.raises(ConnectionResetError):
        await band.complete(claim)
    monkeypatch.undo()
    assert len((await band.complete(claim)).accepted) == 1


async def test_crashes_are_counted_apart_and_given_up_after_three(band: Orchestra) -> None:
    task = make("a")
    job = await band.submit(task)
    for _ in range(3):
        await band.let_time_pass()
        await band.coordinator.reconcile()
        (claim,) = await band.claim()
        receipt = await band.report(failure(claim, error="TaskCrashed: killed by signal 9", crashed=True))
        assert len(receipt.accepted) == 1
    task = await band.task(task)
    assert (task.status, task.crash_count, task.attempt) == ("failed", 3, 0)
    assert (await band.job(job)).error == "TaskCrashed: killed by signal 9"
    assert await band.violations() == []
