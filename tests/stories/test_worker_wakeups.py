"""A worker that would not look for an hour is woken by a submission from another process."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import worker_main_loop
from aaiclick.orchestration.execution import worker as module
from tests.support.crewing import looks_for_work
from tests.support.fleet import APP, WAIT_S_MAX, Fleet, fleet

__all__ = ["fleet"]

SUBMIT = """
import asyncio
from aaiclick.orchestration import create_job
asyncio.run(create_job("elsewhere", "errands.quick", kwargs={"value": 7}))
"""


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"], indirect=True)
async def test_a_submission_from_another_process_wakes_an_idle_worker(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fleet.env.items():
        if name.startswith("AAICLICK_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(module, "POLL_S_MIN", 3600.0)
    monkeypatch.setattr(module, "POLL_S_MAX", 3600.0)
    monkeypatch.syspath_prepend(str(APP))
    reset_settings()
    with looks_for_work() as looked:
        running = asyncio.create_task(worker_main_loop(executor="inline", max_tasks=1, control=False))
        async with asyncio.timeout(WAIT_S_MAX):
            await looked.wait()
            while not running.done():  # it may not listen yet: then it hears of the next
                submitted = fleet.start(program=("-c", SUBMIT), PYTHONPATH=f"{APP}:{fleet.env['PYTHONPATH']}")
                assert await submitted.ended() == 0, submitted.said()
                await asyncio.wait([running], timeout=1)
    await running
