"""Waiting for what is awaited, from code that does not await."""

from __future__ import annotations

import asyncio
import threading

import pytest

from aaiclick.errors import RunningLoop
from aaiclick.orchestration.blocking import blocking, refuse_running_loop


async def work() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def test_blocking_inside_a_running_loop_uses_a_thread_of_its_own() -> None:
    assert blocking(work).startswith("aaiclick-blocking")


def test_blocking_outside_of_a_loop_runs_here() -> None:
    assert blocking(work) == threading.current_thread().name
    refuse_running_loop("call()", "await call()")


async def test_what_must_not_block_says_what_to_await() -> None:
    with pytest.raises(RunningLoop, match=r"await call\(\)"):
        refuse_running_loop("call()", "await call()")
