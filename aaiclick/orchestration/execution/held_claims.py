"""A claim call that a server holds until there is work, and its recall."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aaiclick.orchestration.execution.final_reports import end_tasks
from aaiclick.orchestration.models import Claim


async def held_claim(
    ask: Callable[..., Awaitable[list[Claim]]], hold_s: float, recalled: asyncio.Event, is_over: Callable[[], bool]
) -> list[Claim]:
    """Make a claim call that may be held for `hold_s`. If it is recalled meanwhile, ask once more for what it brought.

    The claims may have been made in the very moment; the call has a number, by which they are found. `is_over`: whether
    it was recalled before this call. With a `hold_s` of 0 it is not held.
    """
    recalled.clear()
    if not hold_s or is_over():
        return await ask()
    held: asyncio.Future[list[Claim]] = asyncio.ensure_future(ask(wait_s=hold_s))
    recall = asyncio.ensure_future(recalled.wait())
    try:
        both: list[asyncio.Future[Any]] = [held, recall]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if held.done():
            return held.result()
        held.cancel()
        return await ask(again=True)
    finally:
        await end_tasks(held, recall)
