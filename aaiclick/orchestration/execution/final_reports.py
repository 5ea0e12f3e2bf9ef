"""The last calls of a worker that is shutting down: each is tried once, for a limited time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aaiclick.backoff import said

log = logging.getLogger("aaiclick")

LAST_WORDS_S = 10.0
"""The time limit of each of these calls, and of waiting for the last reports."""

T = TypeVar("T")


async def once(worker_id: int, verb: str, call: Callable[[], Awaitable[T]]) -> T | None:
    """Make one call. If it fails, log that and return None: the control loop repairs it once the session is over."""
    try:
        async with asyncio.timeout(LAST_WORDS_S):
            return await call()
    except Exception as error:
        log.warning("worker %s: cannot %s: %s; it ends nevertheless", worker_id, verb, said(error))
        return None


async def end_tasks(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel these tasks and wait until they have ended. Their errors are ignored."""
    going_on = [task for task in tasks if task is not None]
    for task in going_on:
        task.cancel()
    await asyncio.gather(*going_on, return_exceptions=True)
