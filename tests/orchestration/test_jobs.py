"""Asking about jobs, cancelling them, reading what they came to: one answer on all databases."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from aaiclick.errors import Conflict, InputError, NotFound, WaitTimeout
from aaiclick.orchestration import (
    Context,
    Group,
    Job,
    JobStatus,
    TaskResult,
    ajob_test,
    cancel_job,
    claim_next_task,
    compute_job_stats,
    count_jobs,
    create_job,
    create_task,
    get_dependencies_for_job,
    get_events_for_job,
    get_groups_for_job,
    get_job,
    get_job_result,
    get_runs_for_task,
    get_tasks_for_job,
    job,
    job_test,
    list_jobs,
    print_job_stats,
    register_worker,
    retry_failed_tasks,
    wait_for_job,
)
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.store.tables import jobs
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

WRONG_IDS = [0, -1, 2**63, 2**70, "1e3", "0x10", "5", 1.0, float("nan"), True, None, [1]]
ASKING: list[Any] = [
    *(get_job, cancel_job, get_tasks_for_job, get_groups_for_job, get_events_for_job, get_dependencies_for_job),
    *(get_job_result, compute_job_stats, print_job_stats, retry_failed_tasks, wait_for_job),
]


@pytest.mark.parametrize("wrong", WRONG_IDS, ids=repr)
async def test_an_id_that_is_none_is_refused_before_the_database_is_asked(local: object, wrong: Any) -> None:
    for ask in ASKING:
        with pytest.raises(InputError, match="job id"):
            await ask(wrong)


@pytest.mark.parametrize("unknown", [1, 2**63 - 1])
async def test_an_id_that_no_one_holds_is_not_found(state: str, unknown: int) -> None:
    assert await get_job(unknown) is None
    assert await cancel_job(unknown) is False
    assert await get_tasks_for_job(unknown) == []
    assert await get_groups_for_job(unknown) == []
    assert await get_events_for_job(unknown) == []
    assert await get_dependencies_for_job(unknown) == []
    for ask in (get_job_result, compute_job_stats, print_job_stats):
        with pytest.raises(NotFound, match=f"No job with id {unknown}"):
            await ask(unknown)


async def test_a_job_tells_how_far_it_is(state: str) -> None:
    made = await flows.fan.submit(3)
    found = await get_job(made.id)
    assert found is not None
    assert (found.completed_tasks, found.total_tasks, found.status) == (0, 4, JobStatus.PENDING)
    assert found.started_at is None
    finished = await ajob_test(made)
    assert (finished.completed_tasks, finished.total_tasks, finished.status) == (4, 4, JobStatus.COMPLETED)
    assert finished.created_at is not None
    assert finished.started_at is not None
    assert finished.completed_at is not None
    assert finished.created_at <= finished.started_at <= finished.completed_at
    assert finished.created_at.utcoffset() is not None


# ---------------------------------------------------------------- lists


async def test_jobs_are_listed_newest_first_by_status_and_name(state: str) -> None:
    made = [await create_job(name, flows.plain) for name in ("etl a", "ETL b", "other", "etl 100%")]
    await cancel_job(made[2].id)
    assert [one.id for one in await list_jobs()] == [one.id for one in reversed(made)]
    assert [one.name for one in await list_jobs(name_like="etl%")] == ["etl 100%", "etl a"]
    assert [one.name for one in await list_jobs(name_like="etl _")] == ["etl a"]
    assert [one.name for one in await list_jobs(JobStatus.CANCELLED)] == ["other"]
    assert [one.name for one in await list_jobs("PENDING", "%b")] == ["ETL b"]
    assert await count_jobs() == 4
    assert await count_jobs("pending", "etl%") == 2
    assert await count_jobs(status=JobStatus.RUNNING) == 0


async def test_pages_do_not_overlap_and_have_limits(state: str) -> None:
    made = [(await create_job(f"j{number}", flows.plain)).id for number in range(5)][::-1]
    assert [one.id for one in await list_jobs(limit=2)] == made[:2]
    assert [one.id for one in await list_jobs(limit=2, offset=2)] == made[2:4]
    assert [one.id for one in await list_jobs(limit=1000, offset=4)] == made[4:]
    assert await list_jobs(offset=10**18) == []


@pytest.mark.parametrize("wrong", [-1, 0, 10**9, "5", 1.5, True, float("nan"), 2**63], ids=repr)
async def test_a_wrong_limit_is_refused(local: object, wrong: Any) -> None:
    with pytest.raises(InputError, match="limit"):
        await list_jobs(limit=wrong)


@pytest.mark.parametrize("wrong", [-5, "5", 1.5, True, 2**63], ids=repr)
async def test_a_wrong_offset_is_refused(local: object, wrong: Any) -> None:
    with pytest.raises(InputError, match="offset"):
        await list_jobs(offset=wrong)


@pytest.mark.parametrize("ask", [list_jobs, count_jobs])
async def test_a_status_that_does_not_exist_is_refused_with_the_nearest(local: object, ask: Any) -> None:
    with pytest.raises(InputError, match=r"Did you mean running\? Valid are: pending, running, completed"):
        await ask(status="RUNNIG")
    with pytest.raises(InputError, match="Valid are"):
        await ask(status=5)


PATTERNS = [
    "%'; DROP TABLE jobs; --",
    '"',
    "\\",
    "\\%",
    "!",
    "a!%",
    "[a-z]",
    "*",
    "%" * 200,
    "a\\_b",
    "😀%",
    "á%",
    "A%",
]
NAMES = ["'; DROP TABLE jobs; --", '"', "\\", "\\x", "!", "a!b", "a", "*", "a\\_b", "a\\xb", "😀!", "á", "a b", "A"]


async def test_a_pattern_is_harmless_and_means_the_same_everywhere(state: str) -> None:
    async with Context():
        for name in NAMES:
            await create_job(name, flows.plain)
        for pattern in PATTERNS:
            expected = [name for name in reversed(NAMES) if like(name, pattern)]
            assert [one.name for one in await list_jobs(name_like=pattern)] == expected
            assert await count_jobs(name_like=pattern) == len(expected)
        assert await count_jobs() == len(NAMES)


def like(name: str, pattern: str) -> bool:
    """LIKE in a few lines: % is anything, _ is one character, all else is itself."""
    return re.fullmatch("".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern), name) is not None


@pytest.mark.parametrize("wrong", ["", "a\0", "x" * 201, "\ud800", 5, b"a"], ids=repr)
async def test_a_pattern_that_is_no_text_is_refused(state: str, wrong: Any) -> None:
    for ask in (list_jobs, count_jobs):
        with pytest.raises(InputError, match="name_like"):
            await ask(name_like=wrong)


# ---------------------------------------------------------------- what belongs to a job


async def test_the_parts_of_a_job_are_listed_in_the_order_in_which_they_were_made(state: str) -> None:
    @job
    def parts() -> None:
        with Group("outer") as outer, Group("inner"):
            first = flows.add(1, 2)
        second = flows.echo(first)
        outer >> second

    made = await parts.submit()
    assert [one.name for one in await get_tasks_for_job(made.id)] == ["add", "echo"]
    assert [one.name for one in await get_groups_for_job(made.id)] == ["outer", "inner"]
    kinds = sorted((edge.previous_type, edge.next_type) for edge in await get_dependencies_for_job(made.id))
    assert kinds == [("group", "task"), ("task", "task")]


async def test_events_tell_what_happened(state: str) -> None:
    finished = await ajob_test(flows.single, 1)
    events = await get_events_for_job(finished.id)
    assert [event.move for event in events if event.task_id is None] == ["create", "start", "complete"]
    assert {event.move for event in events if event.task_id is not None} >= {"complete"}
    assert all(event.at.utcoffset() is not None for event in events)


def test_a_jobs_parts_can_be_read_without_awaiting(state: str) -> None:
    made = flows.fan(2)
    found = asyncio.run(get_job(made.id))
    assert found is not None
    assert [one.name for one in found.tasks] == ["add", "add", "total"]
    assert found.groups == []
    assert found.description == "fan"


async def test_a_jobs_parts_can_be_read_inside_a_running_loop(state: str) -> None:
    finished = await ajob_test(flows.single, 7)
    assert [one.status for one in finished.tasks] == ["completed"]
    assert finished.result == 7


# ---------------------------------------------------------------- results


async def test_the_result_is_what_the_workflow_returned_with_results_in_place(state: str) -> None:
    @job
    def nested() -> object:
        with Group("outer") as outer:
            flows.echo("a")
            with Group("inner"):
                flows.echo("b")
            flows.echo("c")
        return {"group": outer, "sum": (flows.add(1, 2), [flows.echo({"x": None})]), "plain": b"bytes"}

    finished = await ajob_test(nested)
    expected = {"group": ["a", "b", "c"], "sum": (3, [{"x": None}]), "plain": b"bytes"}
    assert await get_job_result(finished) == expected
    assert await get_job_result(finished.id) == expected


async def test_the_result_of_a_job_with_an_entry_is_the_entrys_and_a_list_of_tasks_has_none(state: str) -> None:
    made = await create_job("x", flows.plain)
    assert await get_job_result(await ajob_test(made)) == 1
    made = await create_job("x", tasks=[create_task(flows.plain)])
    assert await get_job_result(await ajob_test(made)) is None


async def test_data_of_a_task_result_wins_over_its_tasks(local: object) -> None:
    @job
    def both() -> TaskResult:
        return TaskResult(data={"x": flows.add(1, 2)}, tasks=[flows.echo("not handed on")])

    finished = await ajob_test(both)
    assert finished.completed_tasks == 2
    assert await get_job_result(finished) == {"x": 3}


async def test_the_result_of_a_failed_job_says_why_there_is_none(state: str) -> None:
    finished = await ajob_test(flows.runs, "fail", message="broken pipe")
    with pytest.raises(Conflict, match=r"it is failed \(ValueError: broken pipe\)"):
        await get_job_result(finished)


# ---------------------------------------------------------------- cancel


async def test_cancelling_ends_all_that_has_not_ended_once(state: str) -> None:
    made = await flows.fan.submit(3)
    worker = await register_worker()
    claim = await claim_next_task(worker.id)
    assert claim is not None
    assert await cancel_job(made.id) is True
    assert await cancel_job(made.id) is False
    found = await get_job(made.id)
    assert found is not None
    assert found.status == JobStatus.CANCELLED
    assert {one.status for one in await get_tasks_for_job(made.id)} == {"cancelled"}
    assert [run.outcome for run in await get_runs_for_task(claim.task_id)] == ["cancelled"]
    assert await claim_next_task(worker.id) is None


async def test_a_job_that_ended_is_not_cancelled(state: str) -> None:
    finished = await ajob_test(flows.single, 1)
    assert await cancel_job(finished.id) is False
    found = await get_job(finished.id)
    assert found is not None
    assert found.status == JobStatus.COMPLETED


# ---------------------------------------------------------------- retry


async def test_what_failed_runs_again_with_what_waited_for_it(state: str) -> None:
    """In one process: a `job_test` that failed, then its job once more."""
    finished = await ajob_test(flows.runs, "fail", message="broken pipe")
    assert finished.status == JobStatus.FAILED
    ids = [one.id for one in await get_tasks_for_job(finished.id)]
    assert await retry_failed_tasks(finished.id, dry_run=True) == ids
    assert [job.status for job in await list_jobs()] == [JobStatus.FAILED]
    assert await retry_failed_tasks(finished.id) == ids
    found = await get_job(finished.id)
    assert found is not None
    assert (found.status, found.error, found.completed_at) == (JobStatus.RUNNING, None, None)
    assert await retry_failed_tasks(finished.id) == []
    again = await ajob_test(found)
    assert (again.id, again.status, again.error) == (finished.id, JobStatus.FAILED, "ValueError: broken pipe")


async def test_a_retry_of_what_did_not_fail_does_nothing(state: str) -> None:
    finished = await ajob_test(flows.single, 1)
    assert await retry_failed_tasks(finished.id) == []
    with pytest.raises(NotFound, match="No job with id 5"):
        await retry_failed_tasks(5)


# ---------------------------------------------------------------- statistics


async def test_statistics_count_tasks_by_status(state: str) -> None:
    @job("mixed")
    def mixed() -> None:
        flows.echo(1)
        flows.echo(flows.fail("oh"))

    finished = await ajob_test(mixed)
    stats = await compute_job_stats(finished.id)
    assert stats.by_status == {"completed": 1, "failed": 1, "upstream_failed": 1}
    assert (stats.total_tasks, stats.completed_tasks, stats.status) == (3, 1, "failed")
    assert stats.error == "ValueError: oh"
    assert stats.queued_s is not None
    assert stats.duration_s is not None
    assert min(stats.queued_s, stats.duration_s) >= 0


async def test_statistics_of_a_job_that_waits_have_no_times(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = await flows.single.submit(1)
    stats = await print_job_stats(made.id)
    assert (stats.queued_s, stats.duration_s) == (None, None)
    assert "tasks 0/1 completed" in capsys.readouterr().out


async def test_printed_statistics_are_harmless(local: object, capsys: pytest.CaptureFixture[str]) -> None:
    finished = await ajob_test(flows.runs, "fail", message="\x1b[2J\nred")
    await print_job_stats(finished.id)
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "error ValueError: \\x1b[2J\\x0ared" in said
    assert "ran " in said


async def test_waiting_for_a_job_hears_of_each_change_and_ends_with_it(state: str) -> None:
    job = await flows.pipeline.submit(x=2, y=3)
    told: list[str] = []
    waiting = asyncio.create_task(wait_for_job(job.id, told=lambda now: told.append(now.status)))
    await ajob_test(job)
    assert (await waiting).status == "completed"
    assert told[-1] == "completed"
    assert (await wait_for_job(job.id, timeout_s=0)).id == job.id


def test_a_job_is_waited_for_by_itself(state: str) -> None:
    job = flows.pipeline(x=2, y=3)
    with pytest.raises(WaitTimeout):
        job.wait(timeout_s=0.01)
    job_test(job)
    for stale in (Job(id=job.id, name=""), job):
        assert stale.wait() is stale
        assert (stale.name, stale.status, stale.completed_tasks) == ("pipeline", "completed", 2)

    async def inside() -> Job:
        return await Job(id=job.id, name="").wait()

    assert asyncio.run(inside()).status == "completed"


async def test_waiting_too_long_is_told_and_the_job_goes_on(local: object) -> None:
    job = await flows.pipeline.submit(x=2, y=3)
    with pytest.raises(WaitTimeout, match=r"is pending after 0\.01 s of waiting"):
        await wait_for_job(job.id, timeout_s=0.01)
    with pytest.raises(NotFound):
        await wait_for_job(5)
    assert (await ajob_test(job)).status == "completed"


async def test_jobs_are_listed_by_creation_whatever_their_ids_say(state: str) -> None:
    made = [(await create_job(str(number), flows.add(1, 2))).id for number in range(5)]
    async with connected() as database:
        for number, job_id in enumerate(made):
            moment = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=number // 2)  # two at a time are as old
            older = update(jobs).where(jobs.c.id == job_id).values(created_at=moment)
            await database.transact(lambda session, older=older: session.run(older))  # type: ignore[misc]
    expected = [made[1], made[0], made[3], made[2], made[4]]
    assert [job.id for job in await list_jobs()] == expected
    seen: list[int] = []
    before = None
    while page := await list_jobs(limit=2, before=before):
        seen += [job.id for job in page]
        before = page[-1].id
    assert seen == expected
    assert [job.id for job in await list_jobs(status="pending", limit=2, before=made[1])] == [made[0], made[3]]
