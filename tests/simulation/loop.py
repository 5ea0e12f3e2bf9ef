"""An event loop in which time is virtual, and gates at which the coroutines of a simulated process stop.

Nothing sleeps: when nothing can run, time leaps to the next timer. A shut gate is a process under SIGSTOP, a gate that
never opens again is one under SIGKILL: in both, not one more step is taken, and nothing is cleaned up.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from typing import Any


class Stalled(Exception):
    """Nothing can run, and no timer will ever go off."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Leaps instead of waiting."""

    def __init__(self) -> None:
        self._leapt = 0.0
        super().__init__(_Leaper(self))
        self._clock_resolution = 1e-6
        self.set_task_factory(_gated_task)  # type: ignore[arg-type]

    def time(self) -> float:
        return self._leapt

    def leap(self, seconds: float) -> None:
        self._leapt += seconds


class _Leaper(selectors.SelectSelector):
    """Where a loop would wait for sockets; there are none."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stalled
        self._loop.leap(max(0.0, timeout))
        return []


# ---------------------------------------------------------------- gates


class Gate:
    """Holds up every coroutine that was begun behind it while it is shut."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_shut = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.on_failure: Callable[[BaseException], None] = _ignored
        self._waiting: list[asyncio.Future[None]] = []

    def ended(self, task: asyncio.Task[Any]) -> None:
        """A coroutine is over; what it raised is told."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.on_failure(error)

    def shut(self) -> None:
        self.is_shut = True

    def open(self) -> None:
        self.is_shut = False
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """What a task waits for at the shut gate, in the form in which a coroutine yields it."""
        future = asyncio.get_running_loop().create_future()
        future._asyncio_future_blocking = True
        self._waiting.append(future)
        return future

    def begin(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Task[Any]:
        """Start a coroutine behind this gate, with all that it will start; the gate keeps hold of it."""
        context = copy_context()
        context.run(GATE.set, self)
        return asyncio.get_running_loop().create_task(work(), context=context)


def _ignored(error: BaseException) -> None:
    """Nobody wants to know."""


GATE: ContextVar[Gate | None] = ContextVar("GATE", default=None)


class _Gated(Coroutine[Any, Any, Any]):
    """A coroutine that takes its next step only while its gate is open."""

    def __init__(self, inner: Coroutine[Any, Any, Any], gate: Gate) -> None:
        self._inner = inner
        self._gate = gate
        self._error: BaseException | None = None
        """What is to be thrown into it when the gate opens."""

    def send(self, value: Any) -> Any:
        if self._gate.is_shut:
            return self._gate.wait()
        if self._error is not None:
            error, self._error = self._error, None
            return self._inner.throw(error)
        return self._inner.send(value)

    def throw(self, error: Any, *rest: Any) -> Any:
        if self._gate.is_shut:
            self._error = self._error or error
            return self._gate.wait()
        self._error = None
        return self._inner.throw(error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()


def _gated_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], context: Context | None = None, **more: Any
) -> asyncio.Task[Any]:
    gate = (context or copy_context()).get(GATE)
    if gate is None:
        return asyncio.Task(work, loop=loop, context=context, **more)
    task = asyncio.Task(_Gated(work, gate), loop=loop, context=context, **more)
    task.add_done_callback(gate.ended)
    gate.tasks = [each for each in gate.tasks if not each.done()] + [task]
    return task
