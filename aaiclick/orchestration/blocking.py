"""Running coroutines from synchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aaiclick.errors import RunningLoop

T = TypeVar("T")


def blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine from synchronous code and return its result.

    If the caller's thread runs an event loop, the coroutine runs in a new loop on another thread, and the caller's loop
    is blocked meanwhile.
    """
    if not in_running_loop():
        return asyncio.run(work())
    with ThreadPoolExecutor(1, thread_name_prefix="aaiclick-blocking") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def refuse_running_loop(call: str, instead: str) -> None:
    """Raise RunningLoop, naming what to await instead, if blocking here would block a running event loop."""
    if in_running_loop():
        raise RunningLoop(call=call, instead=instead)


def in_running_loop() -> bool:
    """Return whether this thread runs an event loop now."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
