"""Whatever ends a claim passes one place, with its reason, and the claim is gone with that commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
from sqlalchemy import delete, insert, select, update

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.states import RunOutcome
from aaiclick.orchestration.store import claim_ends
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.dialects.contract import EndedClaim
from aaiclick.orchestration.store.moves import repairs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, runs, tasks
from tests.support.band import band
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, expire, failure, make

__all__ = ["band"]

End = Callable[[Orchestra, Claim], Awaitable[object]]


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[EndedClaim]:
    """The claims whose ends have passed, in their order; all that is done there is done."""
    real = claim_ends.free_held
    seen: list[EndedClaim] = []

    async def free_held(session: Session, ended: Sequence[EndedClaim]) -> None:
        seen.extend(ended)
        await real(session, ended)

    monkeypatch.setattr(claim_ends, "free_held", free_held)
    return seen


async def report_completion(band: Orchestra, claim: Claim) -> None:
    await band.report(done(claim))


async def report_children(band: Orchestra, claim: Claim) -> None:
    await band.report(grown(claim, make("child")))


async def report_failure(band: Orchestra, claim: Claim) -> None:
    await band.report(failure(claim))


async def report_crash(band: Orchestra, claim: Claim) -> None:
    await band.report(failure(claim, crashed=True))


async def report_nothing_to_do(band: Orchestra, claim: Claim) -> None:
    await band.report(failure(claim, skipped=True))


async def release(band: Orchestra, claim: Claim) -> None:
    assert await band.coordinator.release(band.worker, [claim])


async def cancel(band: Orchestra, claim: Claim) -> None:
    assert await band.coordinator.cancel(claim.job_id)


async def clear(band: Orchestra, claim: Claim) -> None:
    assert await band.coordinator.clear(claim.task_id)


async def lose(band: Orchestra, claim: Claim) -> None:
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    assert await band.database.transact(lambda session: recoveries.recover_claims(session, 9))


async def repair(band: Orchestra, claim: Claim) -> None:
    """Of a task that is ended, as somebody's hand has written, the claim goes."""
    ended = update(tasks).where(tasks.c.id == claim.task_id).values(status="cancelled")
    await band.database.transact(lambda session: session.run(ended))
    assert await band.database.transact(lambda session: repairs.repair_job(session, claim.job_id))


REASONS: dict[RunOutcome, list[End]] = {
    RunOutcome.COMPLETED: [report_completion, report_children],
    RunOutcome.FAILED: [report_failure],
    RunOutcome.CRASHED: [report_crash],
    RunOutcome.SKIPPED: [report_nothing_to_do],
    RunOutcome.RELEASED: [release],
    RunOutcome.CANCELLED: [cancel],
    RunOutcome.CLEARED: [clear],
    RunOutcome.LOST: [lose],
    RunOutcome.REPAIRED: [repair],
}


def test_every_reason_is_tried() -> None:
    assert set(REASONS) == set(RunOutcome)


@pytest.mark.parametrize(
    ("reason", "end"),
    [(reason, end) for reason, ends in REASONS.items() for end in ends],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_claim_that_ends_passes_with_its_reason_and_is_gone(
    band: Orchestra, passed: list[EndedClaim], reason: RunOutcome, end: End
) -> None:
    await band.submit(make("t", retry=RetryPolicy(3, delay_s=0)), make("other", priority=-1))
    claim, other = await band.claim(begins=2)
    await end(band, claim)
    mine = [each for each in passed if each.task_id == claim.task_id]
    assert mine == [EndedClaim(band.worker, claim.task_id, claim.epoch, reason)]
    left = {row.task_id for row in await band.rows(select(claims.c.task_id))}
    assert left == ({other.task_id} - {each.task_id for each in passed})
    told = await band.rows(select(runs.c.outcome).where(runs.c.task_id == claim.task_id))
    assert [row.outcome for row in told] == ([] if reason is RunOutcome.REPAIRED else [reason])


async def test_a_run_of_a_task_that_is_removed_passes_as_cleared(band: Orchestra, passed: list[EndedClaim]) -> None:
    parent, child = make("parent"), make("child")
    await band.submit(parent)
    (claim,) = await band.claim()
    await band.report(grown(claim, child))
    (running,) = await band.claim()
    await band.coordinator.clear(parent.id)
    assert passed[1:] == [EndedClaim(band.worker, running.task_id, running.epoch, RunOutcome.CLEARED)]
    assert await band.rows(select(claims)) == []


async def test_what_does_not_pass_the_fence_ends_no_claim(band: Orchestra, passed: list[EndedClaim]) -> None:
    await band.submit(make("t"))
    (claim,) = await band.claim()
    await band.coordinator.release(band.worker, [claim])
    (again,) = await band.claim()
    passed.clear()
    await band.report(done(claim))
    await band.coordinator.release(band.worker, [claim])
    assert passed == []
    assert [row.epoch for row in await band.rows(select(claims))] == [again.epoch]


async def test_a_completion_asks_nothing_more_of_the_database() -> None:
    """It is the hot path: what a run that reports has held is told with its report."""
    nowhere = Session(None, None)  # type: ignore[arg-type]
    ended = [EndedClaim(1, task, 1, RunOutcome.COMPLETED) for task in range(100)]
    await claim_ends.free_held(nowhere, ended)


async def test_claims_are_mended_to_those_that_are_due(band: Orchestra, passed: list[EndedClaim]) -> None:
    await band.submit(make("kept"), make("lost"))
    kept, lost = await band.claim()
    stray = {"worker_id": 5, "task_id": kept.task_id, "epoch": 3}
    await band.database.transact(lambda session: session.run(delete(claims).where(claims.c.task_id == lost.task_id)))
    await band.database.transact(lambda session: session.run(insert(claims).values(**stray)))
    due = {claim_ends.LiveClaim(band.worker, each.task_id, each.epoch) for each in (kept, lost)}
    ids = [kept.task_id, lost.task_id]
    removed, added = await band.database.transact(lambda session: claim_ends.mend_claims(session, ids, due))
    assert removed == {claim_ends.LiveClaim(5, kept.task_id, 3)}
    assert added == {claim_ends.LiveClaim(band.worker, lost.task_id, lost.epoch)}
    assert passed == [EndedClaim(5, kept.task_id, 3, RunOutcome.REPAIRED)]
    assert await band.violations() == []
