"""A worker whose heartbeats arrive and whose reports do not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.errors import WorkerStuck
from aaiclick.orchestration.control.repairs import recover_lost_runs
from aaiclick.orchestration.execution import report_queue as report_queue_module
from aaiclick.orchestration.execution import worker as worker_module
from aaiclick.orchestration.models import Receipt, Report
from aaiclick.orchestration.store.tables import workers
from tests.support.band import band
from tests.support.crewing import ScriptedExecutor, working
from tests.support.orchestra import Orchestra, make, until

__all__ = ["band"]


class Swallowing:
    """A way to the state on which reports get lost without a word."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.tried = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        self.tried += 1
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_it_ends_and_its_runs_are_given_to_others(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_queue_module, "STUCK_SESSIONS", 2)
    monkeypatch.setattr(worker_module, "LAST_WORDS_S", 0.1)
    swallowing = Swallowing(band.coordinator)
    job = await band.submit(make("a"))
    with pytest.raises(WorkerStuck) as stuck:
        await _until_it_leaves(band, swallowing)
    assert swallowing.tried > 1
    worker_id = stuck.value.facts["worker_id"]
    assert await band.scalar(select(workers.c.status).where(workers.c.id == worker_id)) == "stopped"
    assert (await band.statuses(job))["a"] in ("claimed", "running")
    await recover_lost_runs(band.database)
    assert await band.statuses(job) == {"a": "pending"}
    await band.drain()
    assert (await band.job(job)).status == "completed"


async def _until_it_leaves(band: Orchestra, swallowing: Swallowing) -> None:
    async with working(band, ScriptedExecutor(), coordinator=swallowing) as worker:
        worker._report_queue.session_s = 0.2
        await until(lambda: _is_leaving(worker))


async def _is_leaving(worker: Any) -> bool:
    return bool(worker._leaving.is_set())
