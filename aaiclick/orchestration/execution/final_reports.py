"""What a worker that leaves still has to say: tried for a while, and not for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aaiclick.backoff import said

log = logging.getLogger("aaiclick")

LAST_WORDS_S = 10.0
"""How long a worker that leaves tries to tell its last results."""

T = TypeVar("T")


async def once(worker_id: int, verb: str, call: Callable[[], Awaitable[T]]) -> T | None:
    """Try; what does not reach the state is mended by the control loop once the session is over."""
    try:
        async with asyncio.timeout(LAST_WORDS_S):
            return await call()
    except Exception as error:
        log.warning("worker %s: cannot %s: %s; it leaves all the same", worker_id, verb, said(error))
        return None


async def end_tasks(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel what is left of these, and wait for it."""
    going_on = [task for task in tasks if task is not None]
    for task in going_on:
        task.cancel()
    await asyncio.gather(*going_on, return_exceptions=True)
