"""Asking for a backfill: what it would cover, what is refused, and how far it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from aaiclick.errors import Conflict, InputError, NotFound, SignatureMismatch, ValueExposed
from aaiclick.orchestration import (
    Overlap,
    ajob_test,
    backfill_job,
    cancel_backfill,
    get_backfill,
    get_job_result,
    list_backfills,
    list_fires,
    list_jobs,
    plan_backfill,
    register_job,
    upsert_registered_job,
)
from aaiclick.orchestration.context import connected
from aaiclick.orchestration.control.schedules import Scheduler
from aaiclick.telemetry import masks
from tests.orchestration import scheduled_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

START, END = datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC)


async def entry(**options: Any) -> None:
    await register_job("a", flows.tells_its_time, "30 2 * * *", timezone="Europe/Berlin", time_kwarg="day", **options)


async def fire() -> None:
    async with connected() as coordinator:
        await Scheduler(coordinator.database).fire()


async def test_every_past_time_runs_with_its_own_time(state: str) -> None:
    await entry(default_kwargs={"label": "?"}, overlap=Overlap.SKIP)
    assert [time.isoformat() for time in await plan_backfill("a", START, END)] == [
        "2026-03-27T02:30:00+01:00",
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    backfill = await backfill_job("a", START, END, parallel=2, kwargs={"label": "for "})
    results: list[str] = []
    for _ in range(2):
        await fire()
        for job in reversed(await list_jobs(status="pending")):
            await ajob_test(job)
            results.append(await get_job_result(job))
    await fire()
    assert results == [f"for {time.isoformat()}" for time in await plan_backfill("a", START, END)]
    done = await get_backfill(backfill.id)
    assert done is not None
    assert (done.status, done.parallel_max, done.kwargs) == ("completed", 2, {"label": "for "})
    assert done.completed_at is not None
    assert len(await list_fires("a")) == 4


async def test_a_second_backfill_of_a_range_runs_nothing_again(local: object) -> None:
    await entry()
    for _ in range(2):
        await backfill_job("a", START, END, parallel=10)
        await fire()
    assert len(await list_jobs()) == 4
    assert len(await list_backfills("a")) == 2


async def test_a_schedule_that_changes_leaves_a_backfill_as_it_was(local: object) -> None:
    await entry()
    await backfill_job("a", START, END, parallel=10)
    await upsert_registered_job("a", flows.tells_its_time, "0 0 1 1 *", time_kwarg="day")
    await fire()
    assert len(await list_jobs()) == 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"start": "2026-01-01"}, "start"),
        ({"start": END}, "start"),
        ({"end": datetime(2999, 1, 1, tzinfo=UTC)}, "end"),
        ({"end": START + timedelta(minutes=1)}, "start"),
        ({"start": datetime(1980, 1, 1, tzinfo=UTC)}, "end"),
        ({"start": datetime(1, 1, 1, tzinfo=UTC)}, "start"),
        ({"start": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))}, "start"),
        ({"kwargs": ["label"]}, "kwargs"),
        ({"parallel": 0}, "parallel"),
        ({"parallel": True}, "parallel"),
        ({"parallel": 5_000}, "parallel"),
    ],
)
async def test_what_is_refused_names_its_field_and_writes_nothing(local: object, changes: Any, field: str) -> None:
    await entry()
    with pytest.raises(InputError) as refused:
        await backfill_job(**{"name": "a", "start": START, "end": END} | changes)
    assert refused.value.facts["field"] == field
    assert await list_backfills("a") == []


async def test_what_a_secret_was_resolved_to_is_not_stored_with_it(local: object) -> None:
    await entry()
    masks.remember(["canary-of-backfills"])
    try:
        with pytest.raises(ValueExposed, match="kwargs"):
            await backfill_job("a", START, END, kwargs={"label": "canary-of-backfills"})
    finally:
        masks.forget_all()
    assert await list_backfills("a") == []


async def test_its_arguments_are_checked_against_the_signature(local: object) -> None:
    await entry()
    with pytest.raises(SignatureMismatch, match="unexpected: 'z'"):
        await backfill_job("a", START, END, kwargs={"z": 1})


async def test_what_is_not_there_is_not_found(local: object) -> None:
    for ask in (plan_backfill, backfill_job):
        with pytest.raises(NotFound, match="nobody"):
            await ask("nobody", START, END)
    with pytest.raises(NotFound, match="nobody"):
        await list_backfills("nobody")
    assert await get_backfill(5) is None
    with pytest.raises(NotFound, match="backfill"):
        await cancel_backfill(5)


async def test_without_a_schedule_there_is_nothing_to_fill_in(local: object) -> None:
    await register_job("a", flows.plain)
    with pytest.raises(Conflict, match="it has no schedule"):
        await backfill_job("a", START, END)


async def test_a_backfill_that_is_cancelled_starts_no_more(local: object) -> None:
    await entry()
    backfill = await backfill_job("a", START, END)
    await fire()
    assert await cancel_backfill(backfill.id)
    await fire()
    assert len(await list_jobs()) == 1
