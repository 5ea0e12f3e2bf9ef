"""Claims: in which lanes, in which order, and what is remembered of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aaiclick.orchestration.coordinator import claiming
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store.claims import claiming as claims
from tests.support.clocks import HandClock
from tests.support.orchestra import Orchestra, make, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_jobs_that_have_started_are_remembered_up_to_a_limit(
    stage: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "STARTED_JOBS_MAX", 2)
    for _ in range(6):
        await stage.submit(make())
        await stage.claim(1)
        assert len(stage.database.started_jobs) <= 3
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

    real = claims.claim_tasks
    monkeypatch.setattr(claiming, "claim_tasks", claim_tasks)
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
