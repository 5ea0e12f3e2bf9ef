"""`worker_main_loop` and its options."""

from __future__ import annotations

import asyncio
import gc
import os
import signal

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration import background_main_loop, get_job, register_worker, worker_main_loop
from aaiclick.orchestration.launchers.worker_main import COLLECT_EVERY, check_concurrency, rare_collections
from aaiclick.orchestration.workers import list_workers
from tests.orchestration import sample_flows as flows
from tests.support.crewing import looks_for_work
from tests.support.front_door import local, state
from tests.support.orchestra import until

__all__ = ["local", "state"]


async def test_a_session_that_was_begun_by_hand_is_used(state: str) -> None:
    made = await flows.fan.submit(3)
    worker = await register_worker(name="by hand")
    async with asyncio.timeout(60):
        await worker_main_loop(worker.id, executor="inline", max_tasks=4, control=False)
    finished = await get_job(made.id)
    assert finished is not None
    assert finished.status == "completed"
    assert [(each.id, each.status) for each in await list_workers()] == [(worker.id, "stopped")]


async def test_sigterm_ends_it_in_order(local: object) -> None:
    running = asyncio.create_task(worker_main_loop(executor="inline"))

    async def is_there() -> bool:
        return bool(await list_workers())

    await until(is_there)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(30):
        await running
    assert [each.status for each in await list_workers()] == ["stopped"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_the_control_loop_alone_ends_by_a_signal_too(local: object) -> None:
    before = signal.getsignal(signal.SIGINT)
    running = asyncio.create_task(background_main_loop())

    async def hears() -> bool:
        return signal.getsignal(signal.SIGINT) is not before

    await until(hears)
    assert not running.done()
    os.kill(os.getpid(), signal.SIGINT)
    async with asyncio.timeout(30):
        await running


async def test_a_submission_wakes_it(local: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a poll that never comes, only the hint can."""
    from aaiclick.orchestration.execution import worker as module

    monkeypatch.setattr(module, "POLL_S_MIN", 3600)
    monkeypatch.setattr(module, "POLL_S_MAX", 3600)
    with looks_for_work() as looked:
        running = asyncio.create_task(worker_main_loop(executor="inline", max_tasks=1, control=False))
        async with asyncio.timeout(30):
            await looked.wait()
            while not running.done():  # it may not listen yet: then it hears of the next
                await flows.single.submit(1)
                await asyncio.wait([running], timeout=0.5)
    await running


def test_how_many_at_once() -> None:
    assert check_concurrency(None, "inline") == 100
    assert check_concurrency(None, "process") == (os.cpu_count() or 1)
    assert check_concurrency(7, "process") == 7


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "4", 10_001])
def test_what_is_no_concurrency(value: object) -> None:
    with pytest.raises(InputError, match="concurrency"):
        check_concurrency(value, "inline")  # type: ignore[arg-type]


def test_what_is_no_executor() -> None:
    with pytest.raises(InputError, match="one of process, inline"):
        check_concurrency(None, "threads")


def test_while_a_worker_works_cycles_are_looked_for_less_often() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == COLLECT_EVERY
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_of_two_workers_in_one_process_the_first_to_leave_may_be_the_first_that_came() -> None:
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    for each in (first, second):
        each.__enter__()
    try:
        for each in (first, second):
            each.__exit__(None, None, None)
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*before)
