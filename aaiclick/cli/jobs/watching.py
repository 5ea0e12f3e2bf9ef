"""`--watch`: show a thing again whenever it has changed, until it moves no more or Ctrl-C is pressed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import typer

from aaiclick.cli.afar import surroundings
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import is_terminal, show_text

T = TypeVar("T")

LOOK_EVERY_S = 1.0
SHARE = 5
"""The pause between two reads is at least this many times as long as a read: expensive reads happen less often."""

CLEARED = "\x1b[H\x1b[J"
"""To a terminal: from its first line on, nothing."""

Watch = Annotated[bool, typer.Option("--watch", help="Show it again at every change, until it ends or Ctrl-C.")]


def watch(
    read: Callable[[], Coroutine[Any, Any, T]],
    show: Callable[[T], None],
    *,
    is_over: Callable[[T], bool] = lambda _: False,
    as_json: bool = False,
) -> None:
    """Read again and again, and show the answer when it has changed.

    A terminal shows only the newest answer. Elsewhere each change is a block after an empty line, or a line of JSON.
    Ctrl-C ends it without an error.
    """
    with suppress(KeyboardInterrupt):
        wait_for(_watch(read, show, is_over, as_json))


async def _watch(
    read: Callable[[], Coroutine[Any, Any, T]], show: Callable[[T], None], is_over: Callable[[T], bool], as_json: bool
) -> None:
    import asyncio  # here, to keep start-up light
    import time

    shown: list[T] = []
    async with surroundings():
        while True:
            began = time.monotonic()
            now = await read()
            took_s = time.monotonic() - began
            if now not in shown:
                _make_room(bool(shown), as_json)
                show(now)
                if sys.stdout is not None:
                    sys.stdout.flush()
                shown = [now]
            if is_over(now):
                return
            await asyncio.sleep(max(LOOK_EVERY_S, SHARE * took_s))


def _make_room(again: bool, as_json: bool) -> None:
    if as_json:
        return
    if is_terminal():
        sys.stdout.write(CLEARED)
    elif again:
        show_text("")
