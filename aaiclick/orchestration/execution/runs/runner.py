"""Runs bodies in this process: coroutines in the running loop, plain functions on threads of their own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from aaiclick.errors import TaskTimeout
from aaiclick.orchestration.execution.runs.claim_inputs import narrowed
from aaiclick.orchestration.execution.runs.current import RUNNING
from aaiclick.orchestration.execution.runs.pipeline import PipelineRun, Raised, run_through
from aaiclick.orchestration.execution.timeouts import timeout_of
from aaiclick.orchestration.models import Claim, Report

T = TypeVar("T")


class Watcher(Protocol):
    """A function that is called with an exception before it becomes a report, such as a debugger."""

    def __call__(self, claim: Claim, error: BaseException, /) -> None: ...


def run_claim(
    claim: Claim, *, threads: bool = True, watcher: Watcher | None = None, interruptible: bool = True
) -> Coroutine[Any, Any, Report]:
    """Run the body of a claimed task in this process and return its report, to be awaited.

    A plain function runs on a thread, so that the loop goes on; with `threads=False` it runs on the calling thread, as
    a debugger needs. Exceptions of the body become failures. With `interruptible=True`, KeyboardInterrupt is raised
    instead: it is the user who ends `job_test`.
    """
    return run_through(narrowed(claim), _Here(threads, watcher, interruptible))


class _Here:
    """The Caller for this process: calls bodies in the running loop or on threads, and enforces their time limit."""

    __slots__ = ("_interruptible", "_threads", "_watcher")

    def __init__(self, threads: bool, watcher: Watcher | None, interruptible: bool) -> None:
        self._threads, self._watcher, self._interruptible = threads, watcher, interruptible

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def call(self, run: PipelineRun) -> Awaitable[object]:
        timeout_s = timeout_of(run.claim)
        return self._returned(run) if timeout_s is None else self._within(timeout_s, run)

    async def _within(self, timeout_s: float, run: PipelineRun) -> object:
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await self._returned(run)
        except TimeoutError:
            if limit.expired():
                raise TaskTimeout(timeout_s=timeout_s) from None
            raise

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        await work

    def is_own(self, error: BaseException) -> bool:
        """Return True for a cancellation from outside, and for KeyboardInterrupt if interruptible."""
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            return task is not None and task.cancelling() > 0
        return self._interruptible and isinstance(error, KeyboardInterrupt)

    def met(self, claim: Claim, error: BaseException) -> None:
        if self._watcher is not None:
            self._watcher(claim, error)

    async def _returned(self, run: PipelineRun) -> object:
        function = run.function
        if not self._threads or inspect.iscoroutinefunction(function):
            returned = function(**run.kwargs)
        else:
            returned = await _on_thread(function, run.kwargs)
        return await returned if inspect.isawaitable(returned) else returned


async def _on_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> object:
    """Run a function on a daemon thread, so that a body that hangs blocks neither others nor the process's exit."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    surroundings = contextvars.copy_context()
    returned: list[object] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            returned.append(surroundings.run(function, **kwargs))
        except BaseException as error:
            raised.append(error)
        with suppress(RuntimeError):  # the loop is closed, so no one waits for the result
            loop.call_soon_threadsafe(ended.set)

    thread = threading.Thread(target=work, name=f"aaiclick-{function.__name__}", daemon=True)
    running = RUNNING.get()
    if running is not None:
        running.thread = thread
    thread.start()
    await ended.wait()
    if raised:
        raise Raised(raised[0])
    return returned[0]
