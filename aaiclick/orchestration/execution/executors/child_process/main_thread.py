"""Calls bodies in the main thread of a process that runs one at a time, which has no loop until one is needed."""

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
    """What can be read when the worker may have asked to end the run."""

    def fileno(self) -> int: ...


def step(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine comes to that never waits: whatever does so inside of it has a loop of its own."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("it waits for a loop that does not run")


class MainThread:
    """Calls one body: a plain function outside of any loop, whatever is to be awaited in a loop of the run's own.

    How long the body may take is the worker's to watch, which can end this process.
    """

    def __init__(self, heard: Heard, asking: RunRequests, growth: Growth) -> None:
        self._heard, self._asking, self._growth = heard, asking, growth
        self._pid = os.getpid()
        self._runner = asyncio.Runner()
        self._surroundings: ChildEnvironment | None = None
        self._cancelled = False
        """The worker has asked, and what was awaited then was cancelled: what comes after it goes on."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        """What the body left in its loop ends, and what it changed around it is put back."""
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
        except StopIteration as error:  # a coroutine, as this is one, cannot raise it
            raise Raised(error) from None
        finally:
            if os.getpid() != self._pid:  # the body forked, and this is the copy: it has nothing to report
                os._exit(0)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._run(self._until_asked(work))

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        self._run(work)

    def is_own(self, error: BaseException) -> bool:
        """Whatever reaches this process is about the run."""
        return False

    def met(self, claim: Claim, error: BaseException) -> None:
        """Nobody watches."""

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the surroundings of now: the loop may be older."""
        try:
            return self._runner.run(work, context=contextvars.copy_context())
        except BaseException:
            if os.getpid() == self._pid and asyncio.all_tasks(self._runner.get_loop()):
                self._runner.run(
                    _end_others()
                )  # a signal may strike between two steps of a loop: the work is still there
            raise

    async def _until_asked(self, work: Awaitable[T]) -> T:
        """What it comes to; it is cancelled when the worker asks, once for each run."""
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
    """End all that goes on in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
