"""The coordinator that has the database: what it remembers, and what it does after its transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.coordinator import direct
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Held
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.transitions import lock_tasks
from tests.support.band import SERVERS
from tests.support.clocks import HandClock
from tests.support.orchestra import Orchestra, make, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@pytest.mark.parametrize("drawn", [0.0, 0.25, 1.0])
async def test_the_draw_decides_how_much_of_a_delay_is_waited(stage: Orchestra, drawn: float) -> None:
    stage.coordinator = DirectCoordinator(stage.database, draw=lambda: drawn)
    await stage.submit(make("t", retry=RetryPolicy(1, delay_s=100)))
    (claim,) = await stage.claim()
    await stage.fail(claim)
    due_s = await stage.coordinator.reconcile()
    if drawn:
        assert due_s is not None
        assert 100 * drawn - 60 < due_s <= 100 * drawn
    else:
        assert due_s is None
        assert await stage.ready_names() == ["t"]


async def test_a_report_works_off_what_it_left_for_later(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripples, "STEP", 2)
    first = make("first")
    await stage.submit(first, *(make(f"t{number}").depends_on(first) for number in range(7)))
    receipt = await stage.complete(*(await stage.claim()))
    assert receipt.rippling
    assert await stage.ripples() == []
    assert len(await stage.ready_names()) == 7


async def test_what_was_left_by_another_is_worked_off_by_reconcile(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripples, "STEP", 2)
    first = make("first")
    job = await stage.submit(first, *(make(f"t{number}").depends_on(first) for number in range(7)))
    (claim,) = await stage.claim()

    async def dies(*_: object) -> None:
        raise SystemError("the process ended here")

    monkeypatch.setattr(direct, "work_ripples", dies)
    with pytest.raises(SystemError):
        await stage.complete(claim)
    monkeypatch.undo()
    monkeypatch.setattr(ripples, "STEP", 2)
    assert await stage.ready_names() == []
    await stage.coordinator.reconcile(job.id)
    assert len(await stage.ready_names()) == 7
    assert (await stage.complete(claim)).accepted  # the report itself had counted
    assert not await stage.violations()


@SERVERS
async def test_a_session_is_renewed_before_anything_that_may_take_long(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked a task of the worker's: it lives, and is told so."""
    await stage.submit(make())
    (claim,) = await stage.claim()
    held = [Held(claim.task_id, claim.epoch, started=True)]
    renewed = asyncio.Event()
    async with asyncio.timeout(60), stage.transaction() as elsewhere:
        await lock_tasks(elsewhere, [claim.task_id])
        beating = asyncio.create_task(stage.coordinator.beat(stage.worker, held=held, renewed=renewed.set))
        await renewed.wait()
        await stage.until_waiting()
        assert not beating.done()
    assert (await beating).alive


async def test_what_could_not_be_freed_is_tried_again_with_the_next_beat(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulator: beats that were given up half-way put it off by a minute each time."""
    clock = HandClock()
    stage.coordinator = DirectCoordinator(stage.database, clock=clock)
    tries: list[int] = []

    async def lost(database: object, worker_id: int, *facts: object) -> None:
        tries.append(worker_id)
        if len(tries) == 1:
            raise ConnectionResetError("lost")

    monkeypatch.setattr(direct, "_free_unknown", lost)
    assert (await stage.coordinator.beat(stage.worker, held=[])).alive
    clock.now += direct.FREE_EVERY_S
    with pytest.raises(ConnectionResetError):
        await stage.coordinator.beat(stage.worker, held=[])
    for _ in range(3):
        assert (await stage.coordinator.beat(stage.worker, held=[])).alive
    assert len(tries) == 2
