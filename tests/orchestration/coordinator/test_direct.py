"""The coordinator that has the database: what it remembers, and what it does after its transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aaiclick.orchestration.coordinator import direct
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Claim, Held
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import claims, ripples
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


async def test_jobs_that_have_started_are_remembered_up_to_a_limit(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "STARTED_JOBS_MAX", 2)
    for _ in range(6):
        await stage.submit(make())
        await stage.claim(1)
        assert len(stage.database.started_jobs) <= 3
    assert not await stage.violations()


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


async def test_what_is_reserved_for_a_worker_has_a_front_of_its_own(stage: Orchestra) -> None:
    await stage.submit(make("kept"), reserved_for=7)
    await stage.submit(make("free"))
    assert [claim.name for claim in await stage.claim(1, reserved_for=7)] == ["kept"]
    assert [claim.name for claim in await stage.claim(1)] == ["free"]


async def in_lanes(stage: Orchestra, *lanes: int) -> None:
    """Two tasks in each of these lanes, named after it."""
    for lane in lanes:
        for priority in (1, 0):
            task = make(f"{lane}-{priority}", priority=priority)
            task.lane = lane
            await stage.submit(task)


async def test_lanes_are_looked_into_in_the_order_in_which_they_are_named(stage: Orchestra) -> None:
    await in_lanes(stage, 0, 3, 5)
    claims = await stage.claim(3, lanes=(5, 0, 3), begins=3)
    assert [claim.name for claim in claims] == ["5-1", "5-0", "0-1"]
    begun = [(await stage.task(claim)).started_at is not None for claim in claims]
    assert begun == [True, True, True]
    assert [claim.name for claim in await stage.claim(9, lanes=(3, 0), begins=1)] == ["3-1", "3-0", "0-0"]
    assert [task.started_at is None for task in [await stage.task(claim) for claim in claims]] == [False] * 3
    assert not await stage.violations()


async def test_only_the_first_that_begin_have_begun_whatever_lanes_they_are_of(stage: Orchestra) -> None:
    await in_lanes(stage, 0, 3)
    claims = await stage.claim(9, lanes=(3, 0), begins=3)
    assert [(await stage.task(claim)).started_at is not None for claim in claims] == [True, True, True, False]


async def test_a_lane_that_fails_takes_nothing_from_the_lanes_before_it(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was taken is committed: with an error for an answer, its worker would not know of it."""
    await in_lanes(stage, 0, 3)

    async def claim_tasks(session: object, *, lane: int, **options: Any) -> list[Claim]:
        if lane == 3:
            raise SystemError("no answer")
        return await real(session, lane=lane, **options)  # type: ignore[arg-type]

    real = direct.claim_tasks
    monkeypatch.setattr(direct, "claim_tasks", claim_tasks)
    assert [claim.name for claim in await stage.claim(9, lanes=(0, 3, 5))] == ["0-1", "0-0"]
    assert "claiming in lane 3: no answer" in caplog.text
    with pytest.raises(SystemError):
        await stage.claim(9, lanes=(0, 3, 5))
    assert not await stage.violations()


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_claims_that_take_long_to_register_their_tables_do_not_make_others_overlook_what_is_urgent(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the queue's front that may be slow to look at, and then is looked at less often."""
    clock = HandClock()

    async def register_first(*_: object) -> set[int]:
        clock.now += 1
        return set()

    monkeypatch.setattr(claims, "register_first", register_first)
    stage.coordinator = DirectCoordinator(stage.database, clock=clock)
    await stage.submit(*(make(f"t{number}") for number in range(5)))
    for _ in range(3):
        await stage.claim(1)
    await stage.submit(make("urgent"), priority=9)
    assert [claim.name for claim in await stage.claim(1)] == ["urgent"]


@SERVERS
async def test_a_session_is_renewed_before_anything_that_may_take_long(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked a task of the worker's: it lives, and is told so."""
    await stage.submit(make())
    (claim,) = await stage.claim()
    held = [Held(claim.task_id, claim.epoch, started=True)]
    renewed = asyncio.Event()
    async with asyncio.timeout(20), stage.transaction() as elsewhere:
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
