"""`why_pending`: each reason, forced, on each of the three databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import update

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration import Reason, why_pending
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, ready, tasks, workers
from tests.support.front_door import state as state
from tests.support.orchestra import LONG_AGO, Orchestra, make, orchestra


@pytest.fixture
async def stage(state: str) -> AsyncIterator[Orchestra]:
    async with orchestra(state) as opened:
        yield opened


@pytest.fixture
async def ready_task(stage: Orchestra) -> Task:
    task = make("load")
    await stage.submit(task)
    return task


async def change(stage: Orchestra, *statements: Any) -> None:
    async def work(session: Session) -> None:
        for statement in statements:
            await session.run(statement)

    await stage.database.transact(work)


async def reason(node: Node) -> Reason:
    return (await why_pending(node.id)).reason


async def test_it_waits_for_others(stage: Orchestra) -> None:
    first, last = make("extract"), make("load")
    first >> last
    await stage.submit(first, last)
    found = await why_pending(last.id)
    assert (found.reason, found.line) == (Reason.WAITS, "it waits for task 'extract' (pending)")
    assert [(blocker.id, blocker.name) for blocker in found.waits_for] == [(first.id, "extract")]
    await stage.claim()
    assert "(claimed)" in (await why_pending(last.id)).line


async def test_news_are_on_their_way(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(*_: object) -> bool:
        return False

    monkeypatch.setattr(ripples, "STEP", 0)
    monkeypatch.setattr(ripples, "work_one_ripple", wait)
    first, last = make("extract"), make("load")
    first >> last
    await stage.submit(first, last)
    await stage.complete(*await stage.claim())
    assert await reason(last) is Reason.NEWS


async def test_its_time_has_not_come(stage: Orchestra) -> None:
    task = make(max_retries=1)
    await stage.submit(task)
    await stage.fail(*await stage.claim())
    found = await why_pending(task.id)
    assert found.reason is Reason.DELAYED
    assert found.delay_s is not None
    assert found.delay_s > 0
    await stage.let_time_pass()
    assert "its time has come" in (await why_pending(task.id)).line


async def test_its_job_has_ended(stage: Orchestra, ready_task: Task) -> None:
    await change(stage, update(jobs).values(status="cancelled"))
    assert await reason(ready_task) is Reason.JOB_ENDED


async def test_it_fell_out_of_the_queue(stage: Orchestra, ready_task: Task) -> None:
    await change(stage, ready.delete())
    assert await reason(ready_task) is Reason.UNQUEUED


async def test_its_job_is_kept_for_somebody(stage: Orchestra, ready_task: Task) -> None:
    assert ready_task.job_id is not None
    await stage.coordinator.reserve(ready_task.job_id, stage.worker)
    found = await why_pending(ready_task.id)
    assert (found.reason, found.worker_id) == (Reason.RESERVED, stage.worker)


async def test_nobody_is_there(stage: Orchestra, ready_task: Task) -> None:
    await change(stage, update(workers).values(expires_at=LONG_AGO))
    found = await why_pending(ready_task.id)
    assert (found.reason, found.live_workers) == (Reason.NO_WORKER, 0)


async def test_everybody_leaves(stage: Orchestra, ready_task: Task) -> None:
    await change(stage, update(workers).values(status="stopping"))
    assert await reason(ready_task) is Reason.DRAINING


async def test_everybody_is_busy_until_a_slot_is_free(stage: Orchestra) -> None:
    running, waiting = make("running"), make("waiting")
    await stage.submit(running, waiting)
    await change(stage, update(workers).values(concurrency=1))
    (claim,) = await stage.claim(1)
    found = await why_pending(waiting.id)
    assert (found.reason, found.slots, found.slots_taken, found.before) == (Reason.BUSY, 1, 1, 0)
    await stage.complete(claim)
    assert await reason(waiting) is Reason.IN_LINE


async def test_it_is_next_or_others_are_before_it(stage: Orchestra) -> None:
    first, second = make("first"), make("second")
    await stage.submit(first, second)
    assert [(await why_pending(task.id)).before for task in (first, second)] == [0, 1]
    assert await reason(second) is Reason.IN_LINE


async def test_it_is_not_pending_at_all(stage: Orchestra, ready_task: Task) -> None:
    (claim,) = await stage.claim()
    found = await why_pending(ready_task.id)
    assert (found.reason, found.worker_id) == (Reason.HELD, stage.worker)
    await change(stage, update(tasks).values(status="pending_cleanup"))
    assert await reason(ready_task) is Reason.CLEANUP
    await change(stage, update(tasks).values(status="running"))
    await stage.fail(claim)
    found = await why_pending(ready_task.id)
    assert (found.reason, found.line) == (Reason.ENDED, "it is failed: ValueError: no")


async def test_there_is_no_such_task(state: str) -> None:
    with pytest.raises(NotFound):
        await why_pending(12345)
    with pytest.raises(InputError):
        await why_pending(0)
