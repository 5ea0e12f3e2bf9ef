"""Claim, run, report: what the loop of one job notices while bodies run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import (
    Job,
    RetryPolicy,
    add_task_to_job,
    ajob_test,
    get_runs_for_task,
    get_task,
    job,
    list_workers,
)
from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.job_loop import JobLoop
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.launchers.service_thread import Service
from aaiclick.orchestration.models import Claim, Report
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"
Run = Callable[[Claim], Awaitable[Report]]


@asynccontextmanager
async def loop_of(made: Job, run: Run = run_claim, concurrency: int = 4) -> AsyncIterator[JobLoop]:
    """A loop that runs the job, and what it saw of the job."""
    async with coordinated() as coordinator:
        worker = await coordinator.register(hostname="here", pid=1)
        await coordinator.reserve(made.id, worker.id)
        loop = JobLoop(
            coordinator,
            run,
            worker_id=worker.id,
            job_id=made.id,
            concurrency=concurrency,
            seen=lambda job: None,
        )
        async with Service(loop.worker, control=False):
            yield loop


async def test_a_job_runs_to_its_end(state: str) -> None:
    made = await flows.fan.submit(5)
    async with loop_of(made) as loop:
        finished = await loop.until_ended()
    assert (finished.status, finished.completed_tasks) == ("completed", 6)


async def test_no_more_bodies_run_at_once_than_asked_for(local: object) -> None:
    running: list[int] = []
    most = 0

    async def run(claim: Claim) -> Report:
        nonlocal most
        running.append(claim.task_id)
        most = max(most, len(running))
        await asyncio.sleep(0.001)
        running.remove(claim.task_id)
        return await run_claim(claim)

    made = await flows.fan.submit(20)
    async with loop_of(made, run, concurrency=3) as loop:
        await loop.until_ended()
    assert most == 3


async def test_what_comes_due_is_run_while_another_body_still_runs(local: object) -> None:
    key = "comes due"
    flows.GATES[key] = asyncio.Event()

    @job
    def both() -> object:
        flows.opens_gate.options(retry=RetryPolicy(max_retries=1, delay_s=0.01))(key)
        return flows.awaits_gate(key)

    finished = await ajob_test(both)
    assert (finished.status, flows.CALLS[key]) == ("completed", 2)


async def test_what_is_added_is_run_while_another_body_still_runs(state: str) -> None:
    key = "added" + state
    flows.GATES[key] = asyncio.Event()
    flows.CALLS[key] = 1
    made = await flows.runs.submit("awaits_gate", key=key)
    running = asyncio.create_task(ajob_test(made))
    await flows.noted(key)
    await add_task_to_job(made.id, f"{HERE}.opens_gate", {"key": key})
    assert (await running).status == "completed"


async def test_a_body_that_cancels_itself_fails_and_the_rest_goes_on(local: object) -> None:
    @job
    def both() -> None:
        flows.cancels_itself()
        flows.echo(1)

    finished = await ajob_test(both)
    assert {task.name: task.status for task in finished.tasks} == {"cancels_itself": "failed", "echo": "completed"}
    assert finished.error == "CancelledError"


async def test_a_report_that_comes_too_late_changes_nothing(local: object) -> None:
    """The body cancels its own job and then returns as if nothing were."""

    async def run(claim: Claim) -> Report:
        async with coordinated() as coordinator:
            await coordinator.cancel(claim.job_id)
        return await run_claim(claim)

    made = await flows.single.submit(1)
    async with loop_of(made, run) as loop:
        finished = await loop.until_ended()
    assert finished.status == "cancelled"
    task = await get_task(made.tasks[0].id)
    assert task is not None
    assert (task.status, task.result) == ("cancelled", None)


async def test_the_worker_beats_while_a_body_runs(local: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_HEARTBEAT_INTERVAL", "1")
    reset_settings()
    beats: set[object] = set()

    async def run(claim: Claim) -> Report:
        while len(beats) < 2:
            (worker,) = await list_workers()
            beats.add(worker.last_heartbeat)
            await asyncio.sleep(0.05)
        return await run_claim(claim)

    made = await flows.single.submit(1)
    async with loop_of(made, run) as loop:
        assert (await loop.until_ended()).status == "completed"


async def test_a_run_is_recorded_with_the_loops_worker(local: object) -> None:
    made = await flows.single.submit(1)
    async with loop_of(made) as loop:
        await loop.until_ended()
        (run,) = await get_runs_for_task(made.tasks[0].id)
        assert run.worker_id == loop.worker.id


async def test_an_error_of_our_own_ends_the_loop_and_stops_the_bodies(local: object) -> None:
    """A runner never raises; were it to, the loop would not hide it."""
    stopped: list[int] = []

    async def run(claim: Claim) -> Report:
        if claim.name == "nothing":
            raise AssertionError("a bug")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(claim.task_id)
        raise AssertionError("unreachable")

    @job
    def both() -> None:
        flows.echo(1)
        flows.nothing()

    made = await both.submit()
    async with loop_of(made, run) as loop:
        with pytest.raises(AssertionError, match="a bug"):
            await loop.until_ended()
    assert len(stopped) == 1


async def test_what_the_loop_saw_is_told_step_by_step(local: object) -> None:
    seen: list[tuple[int, str]] = []
    made = await flows.fan.submit(3)
    async with coordinated() as coordinator:
        assert isinstance(coordinator, DirectCoordinator)
        worker = await coordinator.register(hostname="here", pid=1)
        await coordinator.reserve(made.id, worker.id)
        loop = JobLoop(
            coordinator,
            run_claim,
            worker_id=worker.id,
            job_id=made.id,
            concurrency=1,
            seen=lambda job: seen.append((job.completed_tasks, job.status)),
        )
        await loop.until_ended()
    counts = [count for count, _ in seen]
    assert counts == sorted(counts)
    assert set(counts) <= {0, 1, 2, 3, 4}
    assert seen[-1] == (4, "completed")
