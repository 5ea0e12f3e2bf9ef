"""Claims that a worker takes ahead of a free slot."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.execution import worker as module
from aaiclick.orchestration.models import Claim, Orders, Report, Stop
from aaiclick.orchestration.store.tables import jobs, tasks
from tests.support.band import band
from tests.support.clocks import StillClock
from tests.support.crewing import ScriptedExecutor, completes, hangs, working
from tests.support.orchestra import Orchestra, make, until

__all__ = ["band"]


async def ended(band: Orchestra) -> None:
    """Wait until a job has completed."""

    async def has_ended() -> bool:
        return bool(await band.rows(select(jobs.c.id).where(jobs.c.status == "completed")))

    await until(has_ended)


def hanging_after_short() -> ScriptedExecutor:
    async def body(claim: Claim) -> Report:
        return await (hangs if claim.name.startswith("hangs") else completes)(claim)

    return ScriptedExecutor(body)


async def test_while_runs_are_short_slots_are_fed_from_a_prefetch(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    claim = band.coordinator.claim

    async def counted(*given: Any, **more: Any) -> Any:
        claims = await claim(*given, **more)
        calls.append(len(claims))
        return claims

    monkeypatch.setattr(band.coordinator, "claim", counted)
    await band.submit(*(make(f"t{number}") for number in range(300)))
    executor = ScriptedExecutor()
    async with working(band, executor, concurrency=2, clock=StillClock()):  # runs are short on any machine
        await ended(band)
    assert len(executor.seen) == 300
    assert max(calls) > 2  # more than there are slots; how often is a matter of who is quicker
    assert await band.violations() == []


async def test_what_waits_behind_long_runs_is_given_back_for_others(band: Orchestra) -> None:
    executor = hanging_after_short()
    await band.submit(
        *(make(f"t{number}", priority=1) for number in range(200)),
        *(make(f"hangs{number}") for number in range(2)),
        *(make(f"after{number}", priority=-1) for number in range(20)),
    )
    async with working(band, executor, concurrency=2, grace_s=0.0):
        await until(lambda: _truth(len(executor.running) == 2 and "hangs0" in {c.name for c in executor.running}))

        async def all_back() -> bool:
            held = await band.rows(select(tasks.c.name).where(tasks.c.status.in_(["claimed", "running"])))
            return {row.name for row in held} == {"hangs0", "hangs1"}

        await until(all_back)
        left = len(await band.ready_names())  # one or two may have run while hangs1 was on its way back
        assert left > 10
        other = ScriptedExecutor()
        async with working(band, other, concurrency=2):
            await until(lambda: _truth(len(other.seen) >= left))
    assert await band.violations() == []


@pytest.mark.parametrize("session_is_lost", [False, True])
async def test_who_leaves_the_prefetch_without_a_run_is_none_of_max_tasks(
    band: Orchestra, session_is_lost: bool
) -> None:
    gate = asyncio.Event()

    async def body(claim: Claim) -> Report:
        if claim.name == "first":
            await gate.wait()
        return await completes(claim)

    executor = ScriptedExecutor(body)
    await band.submit(make("first", priority=1), *(make(f"gone{number}") for number in range(3)))
    worker = module.TaskWorker(band.coordinator, executor, concurrency=1, max_tasks=4, clock=StillClock())
    worker._prefetch._run_s = 0.001
    running = asyncio.create_task(worker.run())
    await until(lambda: _truth(len(worker.holdings) == 4))
    if session_is_lost:
        worker.obey(Orders(alive=False))
    else:
        worker.obey(Orders(stop=dict.fromkeys(list(worker._prefetch._waiting), Stop.CANCELLED)))
    gate.set()
    await band.submit(*(make(f"next{number}") for number in range(3)), name="other")
    async with asyncio.timeout(60):
        await running
    assert len(executor.seen) == 4


async def _truth(is_so: bool) -> bool:
    return is_so
