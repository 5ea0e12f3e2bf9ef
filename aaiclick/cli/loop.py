"""Commands are plain functions; what they call is asynchronous."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from aaiclick.orchestration.short_ids import Kind

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    import asyncio  # a third of what `aaiclick --help` takes, which needs none

    return asyncio.run(work)


def with_id(kind: Kind, typed: str, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
    """Find the id that was typed, whole or shortened, and run this with it, on the same connection."""
    return wait_for(_with_id(kind, typed, work))


async def _with_id(kind: Kind, typed: str, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.short_ids import find_id  # here, to keep start-up light

    async with orch_context():
        return await work(await find_id(kind, typed))
