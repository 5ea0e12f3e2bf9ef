"""Starting an executor, unless the worker is told to stop meanwhile."""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.execution.executors.contract import Executor


async def start_unless(leaving: asyncio.Event, executor: Executor) -> bool:
    """Start the executor. If `leaving` is set before it has started, close it and return False."""
    starting = asyncio.create_task(executor.start())
    told = asyncio.create_task(leaving.wait())
    try:
        await asyncio.wait([starting, told], return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and not leaving.is_set():
            starting.result()
    except BaseException:
        await _end(starting, executor)
        raise
    finally:
        told.cancel()
    if leaving.is_set():
        await _end(starting, executor)
    return not leaving.is_set()


async def _end(starting: asyncio.Task[None], executor: Executor) -> None:
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await executor.close()
