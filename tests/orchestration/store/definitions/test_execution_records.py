"""The view `execution_idempotency`, on every database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text, update

from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.tables import tasks
from tests.support.band import band
from tests.support.orchestra import Orchestra, done, make

__all__ = ["band"]


async def records(band: Orchestra, job: Job) -> list[tuple[Any, ...]]:
    asked = "SELECT attempt_id, idempotency_key, result, status FROM execution_idempotency WHERE task_id = {}"
    (task,) = await band.rows(text(f"SELECT id FROM tasks WHERE job_id = {job.id}"))
    rows = await band.rows(text(f"{asked.format(task.id)} ORDER BY attempt_id"))
    shown = [tuple(row) for row in rows]
    return [
        (epoch, key.replace(str(task.id), "task"), result and str(result), *rest) for epoch, key, result, *rest in shown
    ]


async def test_the_key_stays_over_the_attempts_of_a_generation_and_the_result_is_remembered(band: Orchestra) -> None:
    job = await band.submit(make("t", retry=RetryPolicy(1, delay_s=0)))
    (first,) = await band.claim()
    assert await records(band, job) == [(1, "task-0", None, "pending")]
    await band.fail(first)
    (second,) = await band.claim()
    await band.report(done(second, "5"))
    failed, completed = (1, "task-0", None, "failed"), (3, "task-0", "5", "completed")
    assert await records(band, job) == [failed, completed]
    await band.database.transact(lambda session: clear_tasks(session, [second.task_id]))
    (third,) = await band.claim()
    assert third.idempotency_key == f"{third.task_id}-1"
    assert await records(band, job) == [failed, (3, "task-0", None, "completed"), (5, "task-1", None, "pending")]


async def test_a_key_of_its_own_is_shown_as_it_is(band: Orchestra) -> None:
    job = await band.submit(make("t"))
    (claim,) = await band.claim()
    named = update(tasks).where(tasks.c.id == claim.task_id).values(idempotency_key="charge-5")
    await band.database.transact(lambda session: session.run(named))
    assert await records(band, job) == [(1, "charge-5", None, "pending")]
    await band.complete(claim)
    ((_, key, _, status),) = await records(band, job)
    assert (key, status) == ("charge-5", "completed")
