"""Asking for a backfill: what it would cover, what is refused, and how far it is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
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
    get_tasks_for_job,
    list_backfills,
    list_fires,
    list_jobs,
    plan_backfill,
    register_job,
    upsert_registered_job,
)
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control.schedules import Scheduler
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside, has_outside_arguments
from aaiclick.telemetry import masks
from tests.orchestration import scheduled_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

START, END = datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC)


async def entry(**options: Any) -> None:
    await register_job("a", flows.tells_its_time, "30 2 * * *", timezone="Europe/Berlin", time_kwarg="day", **options)


async def fire() -> None:
    async with connected() as database:
        await Scheduler(database).fire()


async def test_every_past_time_runs_with_its_own_time(state: str) -> None:
    await entry(default_kwargs={"label": "?"}, overlap=Overlap.SKIP)
    assert [planned.fire_at.isoformat() for planned in await plan_backfill("a", START, END)] == [
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
    assert results == [f"for {planned.fire_at.isoformat()}" for planned in await plan_backfill("a", START, END)]
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
        ({"force": 1}, "force"),
        ({"force": True, "failed": True}, "force"),
        ({"start": date(2026, 1, 1), "end": date(2999, 1, 1)}, "end"),
        ({"start": date(1, 1, 1)}, "start"),
        ({"end": date.max}, "end"),
        ({"start": datetime(2026, 1, 1)}, "start"),  # noqa: DTZ001
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


async def run_all() -> None:
    """Let whoever leads and a worker do what there is to do."""
    for _ in range(20):
        await fire()
        jobs = await list_jobs(status="pending")
        if not jobs:
            return
        for job in reversed(jobs):
            await ajob_test(job)


async def odd_days() -> int:
    """The 27th and 29th fail; gives the backfill's id."""
    await register_job("odd", flows.fails_on_odd_days, "30 2 * * *", time_kwarg="day")
    made = await backfill_job("odd", START, END, parallel=10)
    await run_all()
    return made.id


async def test_its_end_and_its_counts_tell_of_failures(state: str) -> None:
    done = await get_backfill(await odd_days())
    assert done is not None
    assert (done.status, done.counts) == ("completed_with_failures", {"completed": 2, "failed": 2})


async def test_a_plan_tells_the_truth_about_times_that_have_run(state: str) -> None:
    await odd_days()
    planned = await plan_backfill("odd", START, END + timedelta(days=1))
    assert [(time.fire_at.day, time.state, time.runs) for time in planned] == [
        (27, "failed", False),
        (28, "completed", False),
        (29, "failed", False),
        (30, "completed", False),
        (31, "new", True),
    ]
    assert all((time.job_id is None) == time.runs for time in planned)
    forced = await plan_backfill("odd", START, END + timedelta(days=1), force=True)
    assert [time.runs for time in forced] == [True] * 5
    failed = await plan_backfill("odd", START, END + timedelta(days=1), failed=True)
    assert [time.runs for time in failed] == [True, False, True, False, False]


async def test_failed_times_run_again_and_others_do_not(state: str) -> None:
    await odd_days()
    await upsert_registered_job("odd", flows.tells_its_time, "30 2 * * *", time_kwarg="day")
    again = await backfill_job("odd", START, END, failed=True)
    await run_all()
    done = await get_backfill(again.id)
    assert done is not None
    assert (done.status, done.counts) == ("completed", {"completed": 2, "left_alone": 2})
    assert {fire.backfill_id for fire in await list_fires("odd") if fire.fire_at.day % 2} == {again.id}
    assert [time.state for time in await plan_backfill("odd", START, END)] == ["completed"] * 4


async def test_with_force_all_run_again_and_what_they_left_is_kept(state: str) -> None:
    first = await odd_days()
    again = await backfill_job("odd", START, END, force=True, parallel=2)
    await run_all()
    for backfill_id in (first, again.id):
        done = await get_backfill(backfill_id)
        assert done is not None
        assert (done.status, done.counts) == ("completed_with_failures", {"completed": 2, "failed": 2})
    assert len(await list_fires("odd")) == 4
    runs = [job for job in await list_jobs() if job.backfill_id == first]
    days = [job.scheduled_at.day for job in runs if job.scheduled_at is not None]
    assert sorted(days) == [27, 28, 29, 30]


async def test_when_none_completes_it_has_failed(local: object) -> None:
    await register_job("odd", flows.fails_on_odd_days, "30 2 27 * *", time_kwarg="day")
    made = await backfill_job("odd", START, END)
    await run_all()
    done = await get_backfill(made.id)
    assert done is not None
    assert done.status == "failed"


async def test_days_are_midnight_in_the_entrys_zone(local: object) -> None:
    await entry()
    made = await backfill_job("a", date(2026, 3, 29), date(2026, 3, 30))
    assert (made.start_at, made.end_at) == (
        datetime(2026, 3, 28, 23, tzinfo=UTC),
        datetime(2026, 3, 29, 22, tzinfo=UTC),
    )


async def test_two_names_get_the_interval_that_ends_with_the_time(state: str) -> None:
    names: dict[str, Any] = {"time_kwarg": ("start", "end")}
    made = await register_job("a", flows.tells_its_interval, "30 2 * * *", timezone="Europe/Berlin", **names)
    assert made.time_kwarg == "start,end"
    await backfill_job("a", START, END, parallel=10)
    await fire()
    results = []
    for job in reversed(await list_jobs()):
        await ajob_test(job)
        results.append(await get_job_result(job))
    assert sorted(results) == [
        ["2026-03-26T02:30:00+01:00", "2026-03-27T02:30:00+01:00"],
        ["2026-03-27T02:30:00+01:00", "2026-03-28T02:30:00+01:00"],
        ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00"],
        ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
    ]


async def test_the_interval_of_a_backfill_goes_by_the_schedule_that_it_was_asked_with(local: object) -> None:
    await register_job("a", flows.tells_its_interval, "30 2 * * *", time_kwarg="start,end")
    await backfill_job("a", date(2026, 3, 28), date(2026, 3, 29))
    await upsert_registered_job("a", flows.tells_its_interval, None, time_kwarg="start,end")
    await fire()
    (job,) = await list_jobs()
    await ajob_test(job)
    assert await get_job_result(job) == ["2026-03-27T02:30:00+00:00", "2026-03-28T02:30:00+00:00"]


async def test_runs_with_arguments_from_outside_carry_where_they_came_from(state: str) -> None:
    await entry(default_kwargs={"label": ""})
    for outside in (True, False):
        with arguments_from_outside(outside):
            made = await backfill_job("a", START, END, parallel=10, kwargs={"label": "x"}, force=True)
        assert made.from_outside is outside
        await fire()
        runs = [job for job in await list_jobs() if job.backfill_id == made.id]
        assert len(runs) == 4
        for run in runs:
            (task,) = await get_tasks_for_job(run.id)
            assert has_outside_arguments(task.entrypoint) is outside
            await ajob_test(run)
