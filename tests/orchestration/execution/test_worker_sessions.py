"""A worker whose session is not live: it learns it from whatever is refused, and begins anew."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Claim, Report
from aaiclick.orchestration.store import workers as store_workers
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.dialects import mariadb_moves
from aaiclick.orchestration.store.tables import jobs, runs, tasks, workers
from tests.support.band import band
from tests.support.crewing import ScriptedExecutor, completes, hangs, working
from tests.support.orchestra import Orchestra, expire, make, until

__all__ = ["band"]


class Deaf:
    """Lets no heartbeat through."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self.is_cut = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)

    async def beat(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_cut:
            raise ConnectionResetError("only beats are cut")
        return await self._coordinator.beat(*args, **kwargs)


async def truth(is_so: bool) -> bool:
    return is_so


async def sweep(band: Orchestra, losses_max: int = 3) -> None:
    await band.database.transact(store_workers.expire_sessions)
    await band.database.transact(lambda session: recoveries.recover_claims(session, losses_max))


async def test_a_worker_whose_beats_are_cut_learns_from_a_refusal_and_loses_no_task(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it claimed on under its old id, and the sweep took each claim from it until the task had failed."""
    monkeypatch.setattr(mariadb_moves, "ASK_EVERY", 1)  # else five times eight looks, which are seconds apart
    executor = ScriptedExecutor()
    async with working(band, executor, coordinator=Deaf(band.coordinator)) as worker:
        for _ in range(5):
            await until(lambda: truth(bool(worker.id)))
            old = worker.id
            await expire(band, old)
            await sweep(band)
            await until(lambda old=old: truth(worker.id not in (0, old)))  # type: ignore[misc]
        job = await band.submit(make("a"), make("b"))

        async def ended() -> bool:
            await sweep(band)
            return bool(await band.rows(select(jobs.c.id).where(jobs.c.status == "completed")))

        await until(ended)
    assert set((await band.statuses(job)).values()) == {"completed"}
    assert {tuple(row) for row in await band.rows(select(tasks.c.lost_count, tasks.c.attempt))} == {(0, 0)}
    assert await band.violations() == []


async def test_a_session_that_was_ended_while_its_beats_were_cut_stops_its_runs(band: Orchestra) -> None:
    async def body(claim: Claim) -> Report:
        return await (hangs if claim.epoch == 1 else completes)(claim)

    executor = ScriptedExecutor(body)
    await band.submit(make("a"))
    async with working(band, executor, coordinator=Deaf(band.coordinator)) as worker:
        await until(lambda: truth(bool(executor.running)))
        await expire(band, worker.id)

        async def again() -> bool:
            await sweep(band, losses_max=10)
            return len(await band.rows(select(runs.c.task_id).where(runs.c.outcome == "completed"))) == 1

        await until(again)
    assert len(executor.stopped) == 1


async def test_a_session_whose_time_is_up_is_saved_from_here_while_nobody_has_swept_it(band: Orchestra) -> None:
    """The heart is cut off, and so may be whoever would sweep: a beat beside the claims keeps the worker at work."""
    coordinator = Deaf(band.coordinator)
    await band.submit(make("a"))
    executor = ScriptedExecutor()
    async with working(band, executor, coordinator=coordinator, every_s=1000.0) as worker:
        await until(lambda: truth(bool(executor.seen)))
        old = worker.id
        await expire(band, old)
        coordinator.is_cut = False
        await band.submit(make("b"))
        worker.wake()
        await until(lambda: truth(len(executor.seen) == 2))
        assert worker.id == old
    (row,) = await band.rows(select(workers).where(workers.c.id == old))
    assert row.expires_at > row.started_at


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_what_begins_at_once_is_told_with_the_claim(band: Orchestra, concurrency: int) -> None:
    """If the worker dies of it before its next beat, that was this run's doing; the others only waited."""
    began: list[int] = []
    claim = band.coordinator.claim

    async def noted(worker_id: int, **facts: Any) -> list[Claim]:
        began.append(facts["begins"])
        return await claim(worker_id, **facts)

    band.coordinator.claim = noted  # type: ignore[method-assign]
    await band.submit(make("a"))
    executor = ScriptedExecutor(hangs)
    async with working(band, executor, concurrency=concurrency, grace_s=0.0):
        await until(lambda: truth(bool(executor.running)))
        (row,) = await band.rows(select(tasks.c.status, tasks.c.started_at))
        assert row.started_at is not None
    assert began[0] == concurrency
