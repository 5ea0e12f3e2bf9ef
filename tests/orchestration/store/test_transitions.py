"""Moves: guarded by their source states, each with its event, and a job that ends exactly once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

import aaiclick.orchestration.store as store
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.rules.states import JOB_MOVES, TASK_MOVES, TaskStatus
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, jobs
from aaiclick.orchestration.store.transitions import (
    count_in_job,
    doom_tasks,
    lock_tasks,
    move_each,
    move_job,
    move_tasks,
    start_jobs,
)
from tests.support.orchestra import Orchestra, make, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def told(stage: Orchestra, task: Task | None = None) -> list[tuple[str, str]]:
    of = events.c.task_id.is_(None) if task is None else events.c.task_id == task.id
    rows = await stage.rows(select(events.c.move, events.c.status).where(of).order_by(events.c.id))
    return [(row.move, row.status) for row in rows]


async def move(stage: Orchestra, name: str, *nodes: Task) -> list[int]:
    async def work(session: Session) -> list[int]:
        locked = await lock_tasks(session, [node.id for node in nodes])
        return [row.id for row in await move_tasks(session, name, locked, await session.now())]

    return await stage.database.transact(work)


async def test_a_move_changes_the_rows_whose_state_allows_it_and_writes_their_events(stage: Orchestra) -> None:
    pending, claimed = make("pending"), make("claimed", priority=1)
    await stage.submit(pending, claimed)
    await stage.claim(1)
    assert await move(stage, "start", pending, claimed) == [claimed.id]
    assert (await stage.task(pending)).status == "pending"
    assert (await stage.task(claimed)).status == "running"
    assert await told(stage, pending) == []
    assert await told(stage, claimed) == [("claim", "claimed"), ("start", "running")]


@pytest.mark.parametrize("name", sorted(TASK_MOVES))
async def test_no_move_starts_from_a_state_that_is_not_its_own(stage: Orchestra, name: str) -> None:
    task = make("t")
    await stage.submit(task)
    await stage.claim()
    allowed = TaskStatus.CLAIMED in TASK_MOVES[name].sources
    assert await move(stage, name, task) == ([task.id] if allowed else [])
    assert (await stage.task(task)).status == (TASK_MOVES[name].target if allowed else "claimed")


async def test_a_chain_of_moves_writes_an_event_for_every_link(stage: Orchestra) -> None:
    task = make("t")
    await stage.submit(task)
    await stage.claim()

    async def work(session: Session) -> None:
        (row,) = await lock_tasks(session, [task.id])
        await move_each(session, ("fail", "give_up"), [(row, {"error": "no"})], await session.now())

    await stage.database.transact(work)
    assert await told(stage, task) == [("claim", "claimed"), ("fail", "pending_cleanup"), ("give_up", "failed")]
    assert (await stage.task(task)).error == "no"


async def test_a_chain_from_a_wrong_state_is_a_mistake_of_ours(stage: Orchestra) -> None:
    task = make("t")
    await stage.submit(task)

    async def work(session: Session) -> None:
        (row,) = await lock_tasks(session, [task.id])
        await move_each(session, ("fail", "retry"), [(row, {})], await session.now())

    with pytest.raises(AssertionError, match="cannot fail"):
        await stage.database.transact(work)
    assert await told(stage, task) == []


async def test_tasks_are_locked_and_read_in_the_order_of_their_ids(stage: Orchestra) -> None:
    nodes = [make(f"t{number}") for number in range(5)]
    await stage.submit(*nodes)
    shuffled = [nodes[number].id for number in (3, 0, 4, 1, 2)]
    rows = await stage.database.transact(lambda session: lock_tasks(session, shuffled))
    assert [row.id for row in rows] == sorted(shuffled)
    assert await stage.database.transact(lambda session: lock_tasks(session, [])) == []


async def test_only_pending_tasks_are_doomed(stage: Orchestra) -> None:
    pending, claimed = make("pending"), make("claimed", priority=1)
    await stage.submit(pending, claimed)
    await stage.claim(1)

    async def work(session: Session) -> list[tuple[int, str]]:
        locked = await lock_tasks(session, [pending.id, claimed.id])
        doomed = await doom_tasks(session, locked, await session.now(), claimed.id, "because")
        return [(task.id, task.status) for task in doomed]

    assert await stage.database.transact(work) == [(pending.id, "upstream_failed")]
    doomed = await stage.task(pending)
    assert doomed.completed_at is not None
    assert (doomed.cause_id, doomed.error) == (claimed.id, "because")


# ---------------------------------------------------------------- jobs


async def move_the_job(stage: Orchestra, name: str, job: Job) -> bool:
    async def work(session: Session) -> bool:
        return await move_job(session, name, job.id, await session.now())

    return await stage.database.transact(work)


async def test_a_job_moves_only_from_the_states_of_the_move(stage: Orchestra) -> None:
    job = await stage.submit(make())
    assert not await move_the_job(stage, "complete", job)
    assert await move_the_job(stage, "start", job)
    assert not await move_the_job(stage, "start", job)
    assert await move_the_job(stage, "complete", job)
    for name in ("start", "complete", "fail", "cancel"):
        assert not await move_the_job(stage, name, job)
    assert await told(stage) == [("create", "pending"), ("start", "running"), ("complete", "completed")]


async def test_starting_jobs_starts_those_that_have_not_begun(stage: Orchestra) -> None:
    one, two = await stage.submit(make()), await stage.submit(make())
    for _ in range(2):
        await stage.database.transact(lambda session: start_jobs(session, [two.id, one.id]))
    assert [move for move, _ in await told(stage)].count("start") == 2
    for job in (one, two):
        found = await stage.job(job)
        assert (found.status, found.started_at is not None) == ("running", True)


async def test_whoever_brings_the_open_tasks_to_zero_ends_the_job_once(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"))
    await stage.claim()

    async def count(error: str | None, **counts: int) -> None:
        await stage.database.transact(lambda session: count_in_job(session, job.id, counts, error))

    await count("first", open_tasks=-1, failed_tasks=1, failed_critical=1)
    assert (await stage.job(job)).status == "running"
    await count("second", open_tasks=-1, completed_tasks=1)
    ended = await stage.job(job)
    assert (ended.status, ended.error, ended.failed_tasks, ended.completed_tasks) == ("failed", "first", 1, 1)
    await count(None)
    assert [move for move, _ in await told(stage)] == ["create", "start", "fail"]


async def test_a_job_without_tasks_stays_pending(stage: Orchestra) -> None:
    job = await stage.submit()
    await stage.coordinator.reconcile()
    assert (await stage.job(job)).status == "pending"
    await stage.apply(job, make("at last"))
    await stage.drain()
    assert (await stage.job(job)).status == "completed"
    assert not await stage.violations()


def test_all_job_moves_that_the_store_makes_are_known() -> None:
    assert {"start", "complete", "fail", "cancel"} <= set(JOB_MOVES)


def test_a_status_is_written_in_transitions_and_in_the_two_hot_statements_alone() -> None:
    """Every other module goes through them (ARCHITECTURE: one module writes a status column)."""
    folder = Path(store.__path__[0])
    writes = re.compile(r"\.values\([^)]*\bstatus=|SET status|\"status\": \"")
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if "migrations" not in path.parts and writes.search(path.read_text())
    }
    new_rows_and_sessions_of_workers = {"graphs/new_rows.py", "workers.py", "nodes/states.py"}
    hot = {f"dialects/{name}.py" for name in ("mariadb_moves", "postgres", "sqlite_moves")}
    assert found <= {"transitions.py"} | hot | new_rows_and_sessions_of_workers


async def test_the_error_of_a_job_is_that_of_its_first_failure(stage: Orchestra) -> None:
    job = await stage.submit(make("a"), make("b"), make("c"))
    a, b, c = await stage.claim()
    await stage.fail(a, error="of a")
    await stage.fail(b, error="of b")
    assert (await stage.job(job)).error == "of a"
    await stage.complete(c)
    assert await stage.scalar(select(jobs.c.error)) == "of a"
