"""Waiting for what is awaited, from code that does not await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aaiclick.errors import RunningLoop

T = TypeVar("T")


def blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to its end from code that does not await; inside a running loop, on a thread of its own."""
    if not in_running_loop():
        return asyncio.run(work())
    with ThreadPoolExecutor(1, thread_name_prefix="aaiclick-blocking") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def refuse_running_loop(call: str, instead: str) -> None:
    """Say what to await, where blocking would stop the loop that this runs in."""
    if in_running_loop():
        raise RunningLoop(call=call, instead=instead)


def in_running_loop() -> bool:
    """Whether this code runs in an event loop, which blocking would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
