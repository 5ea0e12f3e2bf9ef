"""Commands are plain functions; what they call is asynchronous."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from aaiclick.cli.afar import afar, check_digits, left
from aaiclick.cli.errors import INTERRUPTED

if TYPE_CHECKING:
    from types import FrameType

    from aaiclick.orchestration.queries.short_ids import Kind

T = TypeVar("T")

STDERR = 2


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. Ctrl-C lets it close what it has opened; a second one does not wait for that."""
    import asyncio  # a third of what `aaiclick --help` takes, which needs none

    try:
        return asyncio.run(_hurried(left(work)))
    finally:
        if signal.getsignal(signal.SIGINT) is _leave_now:
            signal.signal(signal.SIGINT, signal.default_int_handler)


async def _hurried(work: Coroutine[Any, Any, T]) -> T:
    """asyncio obeys the first Ctrl-C; the next would raise wherever the closing is, and be told with a traceback."""
    import threading  # by now asyncio has loaded it

    obey = signal.getsignal(signal.SIGINT)
    elsewhere = threading.current_thread() is not threading.main_thread()
    if elsewhere or not callable(obey) or obey is signal.default_int_handler:  # nobody hears it, or not here
        return await work

    def once(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, _leave_now)
        obey(number, frame)

    signal.signal(signal.SIGINT, once)
    try:
        return await work
    finally:
        if signal.getsignal(signal.SIGINT) is once:
            signal.signal(signal.SIGINT, obey)


def _leave_now(*_: object) -> None:
    with suppress(OSError):
        os.write(STDERR, b"aaiclick: interrupted\n")  # print() may be what is interrupted
    os._exit(INTERRUPTED)


def with_id(kind: Kind, typed: str, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
    """Find the id that was typed, whole or shortened, and run this with it, on the same connection."""
    return wait_for(_with_id(kind, typed, work))


async def _with_id(kind: Kind, typed: str, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
    if (api := afar()) is not None:
        return await work(await api.find_id(kind, check_digits(typed)))
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light
    from aaiclick.orchestration.queries.short_ids import find_id  # here, to keep start-up light

    async with orch_context():
        return await work(await find_id(kind, typed))
