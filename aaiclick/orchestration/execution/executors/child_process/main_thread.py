"""The Caller for child processes: it calls bodies in the main thread, with an event loop only if one is needed."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, TypeVar

from aaiclick.orchestration.execution.executors.child_process.child_environment import ChildEnvironment, Growth
from aaiclick.orchestration.execution.executors.child_process.run_requests import RunRequests
from aaiclick.orchestration.execution.runs.current import cancel_requested
from aaiclick.orchestration.execution.runs.pipeline import PipelineRun, Raised
from aaiclick.orchestration.models import Claim

T = TypeVar("T")


class Heard(Protocol):
    """Has a descriptor that is readable when the worker may have asked to end the run."""

    def fileno(self) -> int: ...


def step(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends and return its value. What it awaits must run in a loop of its own."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("it waits for an event loop that is not running")


class MainThread:
    """Calls one body: a plain function outside of any loop, coroutines in a loop of the run's own.

    The worker enforces the time limit, since it can kill this process.
    """

    def __init__(self, heard: Heard, asking: RunRequests, growth: Growth) -> None:
        self._heard, self._asking, self._growth = heard, asking, growth
        self._pid = os.getpid()
        self._runner = asyncio.Runner()
        self._surroundings: ChildEnvironment | None = None
        self._cancelled = False
        """Whether the worker has asked to end the run and an await was cancelled. Later awaits are not cancelled."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        """Close the run's loop, which cancels the tasks left in it, and restore the process's environment."""
        if os.getpid() != self._pid:  # the body forked, and this is the copy
            return
        try:
            self._runner.close()
        finally:
            self._asking.loop_goes_on = False
            if self._surroundings is not None:
                self._surroundings.restore()

    async def call(self, run: PipelineRun) -> object:
        self._surroundings = ChildEnvironment()
        self._growth.imported()
        self._asking.loop_goes_on = True
        try:
            returned = run.function(**run.kwargs)
            return self._run(self._until_asked(returned)) if inspect.isawaitable(returned) else returned
        except StopIteration as error:  # a coroutine, such as this one, cannot raise StopIteration
            raise Raised(error) from None
        finally:
            if os.getpid() != self._pid:  # the body forked, and this is the copy: it has nothing to report
                os._exit(0)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._run(self._until_asked(work))

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        self._run(work)

    def is_own(self, error: BaseException) -> bool:
        """Return False: all errors in this process concern the run."""
        return False

    def met(self, claim: Claim, error: BaseException) -> None:
        """Do nothing: child processes have no debugger."""

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the run's loop, with the current context variables: the loop may be older than these."""
        try:
            return self._runner.run(work, context=contextvars.copy_context())
        except BaseException:
            if os.getpid() == self._pid and asyncio.all_tasks(self._runner.get_loop()):
                # a signal may interrupt the loop between two steps, which leaves the task pending
                self._runner.run(_end_others())
            raise

    async def _until_asked(self, work: Awaitable[T]) -> T:
        """Await and return the value. It is cancelled when the worker asks to end the run, but only once per run."""
        if self._cancelled:
            return await work
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def look() -> None:
            if cancel_requested():
                loop.remove_reader(self._heard)
                self._cancelled = True
                task.cancel()

        loop.add_reader(self._heard, look)
        try:
            return await work
        finally:
            loop.remove_reader(self._heard)


async def _end_others() -> None:
    """Cancel all other tasks of this loop, and wait for them."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
