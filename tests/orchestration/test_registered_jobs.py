"""The catalogue: entries, what is refused, and running one by its name; one answer on all databases."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from aaiclick.errors import Conflict, EntrypointError, InputError, NotFound, SignatureMismatch, ValueNotPortable
from aaiclick.orchestration import (
    FireOutcome,
    MissedRuns,
    Overlap,
    PreservationMode,
    RunType,
    ajob_test,
    create_task,
    disable_job,
    enable_job,
    get_job_result,
    get_registered_job,
    get_tasks_for_job,
    list_fires,
    list_registered_jobs,
    next_runs,
    register_job,
    resolve_job_config,
    run_job,
    upsert_registered_job,
)
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.models.node import collector
from aaiclick.orchestration.registered_jobs import scheduled_run
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.schedules.firing import start_run
from aaiclick.orchestration.store.tables import registered_jobs
from tests.orchestration import scheduled_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

PLAIN = "tests.orchestration.scheduled_flows.plain"
LISTING = "tests.orchestration.scheduled_flows.listing"
NEEDS = "tests.orchestration.scheduled_flows.needs"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def set_next_run(name: str, moment: datetime | None) -> None:
    async with connected() as database:
        mine = update(registered_jobs).where(registered_jobs.c.name == name).values(next_run_at=moment)
        await database.transact(lambda session: session.run(mine))


# ---------------------------------------------------------------- entries


async def test_an_entry_is_found_as_it_was_registered(state: str) -> None:
    made = await register_job("a", flows.plain, "0 8 * * *", {"x": 5}, "FULL", timezone="Europe/Berlin", overlap="SKIP")  # type: ignore[arg-type]
    found = await get_registered_job("a")
    assert found == made
    assert (made.name, made.entrypoint, made.enabled, made.schedule) == ("a", PLAIN, True, "0 8 * * *")
    assert (made.default_kwargs, made.preservation_mode, made.timezone) == ({"x": 5}, "full", "Europe/Berlin")
    assert (made.missed_runs, made.missed_max, made.overlap) == (MissedRuns.LATEST, 10, Overlap.SKIP)
    assert made.next_run_at is not None
    assert made.created_at < made.next_run_at <= made.created_at + timedelta(days=1, hours=2)
    assert await get_registered_job("A") is None


async def test_a_name_is_registered_once(state: str) -> None:
    await register_job("a", PLAIN)
    with pytest.raises(Conflict, match="a registered job has that name already"):
        await register_job("a", PLAIN)
    await register_job("A", PLAIN)
    assert [entry.name for entry in await list_registered_jobs()] in (["A", "a"], ["a", "A"])


async def test_two_who_register_a_name_at_once_are_told_apart(state: str) -> None:
    answers = await asyncio.gather(*(register_job("a", PLAIN) for _ in range(4)), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict"] * 3 + ["RegisteredJob"]


async def test_two_who_upsert_a_name_at_once_agree(state: str) -> None:
    answers = await asyncio.gather(*(upsert_registered_job("a", PLAIN) for _ in range(4)))
    assert len({answer.id for answer in answers}) == 1


async def test_an_upsert_changes_all_but_whether_it_is_enabled(state: str) -> None:
    first = await upsert_registered_job("a", PLAIN, "0 8 * * *", {"x": 1})
    await disable_job("a")
    changed = await upsert_registered_job("a", NEEDS, default_kwargs={"x": 2})
    assert (changed.id, changed.entrypoint, changed.default_kwargs) == (first.id, NEEDS, {"x": 2})
    assert (changed.schedule, changed.enabled, changed.next_run_at) == (None, False, None)
    assert (await upsert_registered_job("a", PLAIN, "@daily", enabled=True)).next_run_at is not None


async def test_an_upsert_that_says_the_same_keeps_a_time_that_has_come(state: str) -> None:
    await upsert_registered_job("a", PLAIN, "0 8 * * *")
    await set_next_run("a", LONG_AGO)
    assert (await upsert_registered_job("a", PLAIN, "0 8 * * *", {"x": 9})).next_run_at == LONG_AGO
    moved = await upsert_registered_job("a", PLAIN, "0 8 * * *", timezone="Europe/Berlin")
    assert moved.next_run_at is not None
    assert moved.next_run_at > moved.updated_at


async def test_enabling_never_runs_what_was_missed(state: str) -> None:
    await register_job("a", PLAIN, "* * * * *")
    off = await disable_job("a")
    assert (off.enabled, off.next_run_at) == (False, None)
    await set_next_run("a", None)
    on = await enable_job("a")
    assert on.enabled
    assert on.next_run_at is not None
    assert on.next_run_at > on.updated_at


async def test_enabling_what_is_enabled_changes_nothing(state: str) -> None:
    await register_job("a", PLAIN, "* * * * *")
    await set_next_run("a", LONG_AGO)
    assert (await enable_job("a")).next_run_at == LONG_AGO


async def test_those_that_are_enabled_are_listed(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from aaiclick.orchestration.store.schedules import registered_jobs as store

    monkeypatch.setattr(store, "PAGE", 2)
    for name in ("c", "a", "e", "b", "d"):
        await register_job(name, PLAIN, enabled=name != "b")
    assert [entry.name for entry in await list_registered_jobs()] == ["a", "b", "c", "d", "e"]
    assert [entry.name for entry in await list_registered_jobs(enabled_only=True)] == ["a", "c", "d", "e"]


async def test_what_nobody_registered_is_not_found(state: str) -> None:
    assert await get_registered_job("nobody") is None
    for ask in (enable_job, disable_job, next_runs, list_fires, run_job):
        with pytest.raises(NotFound, match="No registered job with name 'nobody'"):
            await ask("nobody")


async def test_the_next_five_times_are_shown_with_their_offsets(local: object) -> None:
    await register_job("a", PLAIN, "30 2 * * *", timezone="Europe/Berlin")
    shown = await next_runs("a")
    assert len(shown) == 5
    assert {str(time.utcoffset()) for time in shown} <= {"1:00:00", "2:00:00"}
    await disable_job("a")
    assert await next_runs("a") == []


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"schedule": "61 * * * *"}, "schedule minute"),
        ({"schedule": "0 0 30 2 *"}, "schedule day of month"),
        ({"schedule": ""}, "schedule"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"timezone": "Europe/Nowhere"}, "timezone"),
        ({"missed_runs": "some"}, "missed_runs"),
        ({"keep_last": 0}, "keep_last"),
        ({"keep_last": True}, "keep_last"),
        ({"keep_last": 1.5}, "keep_last"),
        ({"keep_last": 1_000_001}, "keep_last"),
        ({"missed_max": 0}, "missed_max"),
        ({"missed_max": True}, "missed_max"),
        ({"overlap": "maybe"}, "overlap"),
        ({"priority": 2**40}, "priority"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"fail_fast": 1}, "fail_fast"),
        ({"enabled": "yes"}, "enabled"),
        ({"preservation_mode": "some"}, "preservation_mode"),
        ({"default_kwargs": ["x"]}, "default_kwargs"),
        ({"time_kwarg": "x y"}, "time_kwarg"),
        ({"time_kwarg": "x", "default_kwargs": {"x": 1}}, "time_kwarg"),
        ({"time_zone": "UTC"}, "options"),
        ({"name": " a"}, "Job name"),
    ],
)
async def test_what_is_refused_names_its_field_and_writes_nothing(local: object, changes: Any, field: str) -> None:
    given = {"name": "a", "entrypoint": PLAIN} | changes
    for register in (register_job, upsert_registered_job):
        with pytest.raises(InputError) as refused:
            await register(**given)
        assert refused.value.facts["field"] == field
    assert await list_registered_jobs() == []


async def test_defaults_are_checked_against_the_signature(local: object) -> None:
    with pytest.raises(SignatureMismatch, match="unexpected: 'z'"):
        await register_job("a", PLAIN, default_kwargs={"z": 1})
    with pytest.raises(SignatureMismatch, match="missing: 'x'"):
        await register_job("a", NEEDS, "@daily")
    with pytest.raises(SignatureMismatch, match="unexpected: 'day'"):
        await register_job("a", PLAIN, time_kwarg="day")
    await register_job("a", NEEDS)  # whoever runs it says the rest
    with pytest.raises(SignatureMismatch, match="missing: 'x'"):
        await run_job("a")
    with pytest.raises(EntrypointError, match="has no nothing"):
        await register_job("b", "tests.orchestration.scheduled_flows.nothing")


@pytest.mark.parametrize("value", [object(), lambda: 1])
async def test_defaults_that_cannot_travel_are_refused(local: object, value: object) -> None:
    with pytest.raises(ValueNotPortable):
        await register_job("a", PLAIN, default_kwargs={"x": value})


# ---------------------------------------------------------------- runs


async def test_a_run_is_linked_to_its_entry_and_its_arguments_go_over_the_defaults(state: str) -> None:
    entry = await register_job("a", PLAIN, default_kwargs={"x": 10, "y": 20}, preservation_mode="FULL", priority=3)
    job = await run_job("a", kwargs={"y": 5})
    assert (job.registered_job_id, job.run_type, job.name) == (entry.id, RunType.MANUAL, "a")
    assert (job.preservation_mode, job.priority) == (PreservationMode.FULL, 3)
    await ajob_test(job)
    assert await get_job_result(job) == 15


async def test_without_an_entry_a_run_stands_alone(state: str) -> None:
    job = await run_job("b", flows.double, {"x": 4})
    assert (job.registered_job_id, job.run_type) == (None, RunType.MANUAL)
    await ajob_test(job)
    assert await get_job_result(job) == 8


@pytest.mark.parametrize("registered", [False, True])
async def test_the_options_of_a_task_hold_when_it_runs_by_name(state: str, registered: bool) -> None:
    if registered:
        await register_job("b", flows.careful)
    job = await run_job("b", None if registered else "tests.orchestration.scheduled_flows.careful")
    (entry,) = await get_tasks_for_job(job.id)
    assert (job.priority, entry.priority, entry.name) == (4, 4, "with care")
    assert (entry.retry, entry.timeout_s, entry.critical) == (RetryPolicy(3), 9, False)
    assert (await run_job("b", flows.careful, priority=1)).priority == 1


async def test_a_disabled_entry_runs_by_hand(local: object) -> None:
    await register_job("a", PLAIN, enabled=False)
    assert (await run_job("a")).registered_job_id is not None


async def test_an_entrypoint_that_is_given_wins(local: object) -> None:
    entry = await register_job("a", PLAIN, default_kwargs={"x": 2}, preservation_mode="FULL")
    job = await run_job("a", flows.double)
    assert (job.registered_job_id, job.preservation_mode) == (entry.id, PreservationMode.FULL)
    await ajob_test(job)
    assert await get_job_result(job) == 4


async def test_a_workflow_runs_as_the_entry_and_stages_its_graph(state: str) -> None:
    entry = await register_job("nightly", flows.nightly)
    assert (entry.priority, entry.timeout_s, entry.fail_fast, entry.preservation_mode) == (7, 3600, True, "full")
    job = await run_job("nightly", kwargs={"x": 10})
    assert (job.priority, job.timeout_s, job.fail_fast) == (7, 3600, True)
    done = await ajob_test(job)
    assert (done.status, done.total_tasks) == ("completed", 3)
    assert await get_job_result(job) == [20, 22]


async def test_a_workflow_without_an_entry_runs_too(local: object) -> None:
    job = await run_job("s", flows.single, {"x": 5})
    await ajob_test(job)
    assert await get_job_result(job) == 10


@pytest.mark.parametrize(
    ("explicit", "registered", "environment", "expected"),
    [
        ("NONE", "FULL", "FULL", "none"),
        ("FULL", "NONE", "NONE", "full"),
        (None, "FULL", "NONE", "full"),
        (None, "NONE", "FULL", "none"),
        (None, None, "FULL", "full"),
        (None, None, None, "none"),
    ],
)
async def test_the_precedence_of_preservation(
    local: object,
    monkeypatch: pytest.MonkeyPatch,
    explicit: str | None,
    registered: str | None,
    environment: str | None,
    expected: str,
) -> None:
    from aaiclick.config import reset_settings

    if environment is not None:
        monkeypatch.setenv("AAICLICK_DEFAULT_PRESERVATION_MODE", environment)
        reset_settings()
    entry = await register_job("a", PLAIN, preservation_mode=registered)
    assert (await run_job("a", preservation_mode=explicit)).preservation_mode == expected
    assert resolve_job_config(explicit, entry) == expected


async def test_a_key_makes_a_run_of_it_once(local: object) -> None:
    await register_job("a", PLAIN)
    first = await run_job("a", kwargs={"x": 1}, key="k")
    assert (await run_job("a", kwargs={"x": 1}, key="k")).id == first.id
    with pytest.raises(Conflict, match="submitted with other contents"):
        await run_job("a", kwargs={"x": 2}, key="k")


async def test_a_dict_that_looks_like_a_reference_stays_a_dict(local: object) -> None:
    value = {"object_type": "object", "table": "t1"}
    await register_job("a", PLAIN, default_kwargs={"x": value})
    found = await get_registered_job("a")
    assert found is not None
    assert found.default_kwargs == {"x": value}
    job = await run_job("a", kwargs={"y": value})
    assert [each["object_type"] for each in job.tasks[0].kwargs.values()] == ["pyobj", "pyobj"]


async def test_a_run_is_no_part_of_the_graph_around(local: object) -> None:
    gathered: list[Any] = []
    token = collector.set(gathered)
    try:
        await run_job("a", PLAIN)
        create_task(PLAIN)
    finally:
        collector.reset(token)
    assert len(gathered) == 1


async def test_a_run_goes_where_its_entry_or_its_workflow_says(state: str) -> None:
    entry = await register_job("a", PLAIN, placement="gpu == nvidia")
    assert entry.placement == {"where": [["gpu", "==", "nvidia"]]}
    with pytest.raises(InputError, match="comparison"):
        await register_job("b", PLAIN, placement="gpu")
    job = await run_job("a")
    (task,) = await get_tasks_for_job(job.id)
    assert task.lane == job.lane != 0
    own = await run_job("c", PLAIN)
    assert own.lane == 0
    await ajob_test(job)
    assert await get_job_result(job) is not None


# ---------------------------------------------------------------- scheduled runs


async def test_a_scheduled_run_says_so_and_gets_its_time(local: object) -> None:
    entry = await register_job(
        "t", flows.tells_its_time, "0 8 * * *", {"label": "at "}, timezone="Europe/Berlin", time_kwarg="day"
    )
    submission = scheduled_run(entry, datetime(2026, 7, 1, 6, tzinfo=UTC), {"label": "on "})
    assert submission.new_job is not None
    assert submission.new_job.run_type is RunType.SCHEDULED
    async with coordinated() as coordinator:
        job = await coordinator.submit(submission)
    await ajob_test(job)
    assert await get_job_result(job) == "on 2026-07-01T08:00:00+02:00"


@pytest.mark.parametrize("given", [flows.listing, LISTING], ids=["function", "text"])
async def test_runs_of_a_task_with_an_executor_need_that_executor(local: object, given: Any) -> None:
    """However the task was named."""
    entry = await register_job("a", given, "@daily")
    async with connected() as database:
        fired = await database.transact(lambda session: start_run(session, scheduled_run(entry, LONG_AGO)))
        for job_id in (fired, (await run_job("a")).id, (await run_job("b", given)).id):
            (task,) = await get_tasks_for_job(job_id)
            assert (task.executor, task.lane) == ("shell", database.lanes.numbers['{"executors":["shell"]}'])


async def test_an_entry_that_never_fired_has_no_times(local: object) -> None:
    await register_job("a", PLAIN, "@daily")
    assert await list_fires("a") == []
    assert {each.value for each in FireOutcome} == {"run", "queued", "skipped"}


async def test_an_entry_that_a_job_from_outside_makes_tells_its_runs(local: None) -> None:
    """Its defaults may have come with the arguments: what they name is judged at each of its runs."""
    with arguments_from_outside():
        made = await register_job("a", flows.plain, "0 8 * * *", {"x": 5})
        again = await upsert_registered_job("b", flows.plain, None, {"x": 5})
    for entry in (made, again):
        assert scheduled_run(entry, LONG_AGO).tasks[0].entrypoint == f"~{PLAIN}"
        assert (await run_job(entry.name)).tasks[0].entrypoint == f"~{PLAIN}"
