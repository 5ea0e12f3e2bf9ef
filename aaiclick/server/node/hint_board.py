"""The hints that this server has heard, for all calls that wait for some."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aaiclick.backoff import Backoff
from aaiclick.orchestration.bus.local import ALL_HINTS

HEAR_S = 60.0


class HintBoard:
    """Hints with the number of the time at which each was last told.

    A place on the board is a text, `BOARD.NUMBER`. Whoever comes from the board of another server is told all hints:
    some of them may have been told meanwhile.
    """

    def __init__(self) -> None:
        self._name = secrets.token_hex(4)
        self._number = 0
        self._told: dict[str, int] = {}
        self._waiting: dict[asyncio.Future[None], None] = {}  # woken in the order in which they came

    @property
    def place(self) -> str:
        """The present place: whoever comes back with it hears what is told from now on."""
        return f"{self._name}.{self._number}"

    def tell(self, hints: frozenset[str]) -> None:
        """Put up hints, and wake whoever waits."""
        if not hints:
            return
        self._number += 1
        self._told.update(dict.fromkeys(hints, self._number))
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    def since(self, place: str) -> list[str]:
        """Return the hints that were told after this place; none for an empty place, which is the present one."""
        if not place:
            return []
        name, _, number = place.partition(".")
        if name != self._name or not (number.isascii() and number.isdigit()) or len(number) > 18:
            return sorted(ALL_HINTS)
        return sorted(hint for hint, told in self._told.items() if told > int(number))

    async def wait(self, place: str, seconds: float, *ends: asyncio.Event, hints: frozenset[str] = ALL_HINTS) -> None:
        """Wait until one of the hints is told after this place, one of the events is set, or the time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        place = place or self.place
        others: list[asyncio.Future[Any]] = [asyncio.ensure_future(end.wait()) for end in ends]
        try:
            while hints.isdisjoint(self.since(place)) and not any(end.is_set() for end in ends):
                if (left_s := deadline - loop.time()) <= 0:
                    return
                told: asyncio.Future[None] = loop.create_future()
                self._waiting[told] = None
                try:
                    await asyncio.wait({told, *others}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._waiting.pop(told)
        finally:
            for other in others:
                other.cancel()

    async def listen(self, hear: Callable[[float], Awaitable[frozenset[str]]]) -> None:
        """Put up whatever is heard, until cancelled."""
        backoff = Backoff()
        with suppress(asyncio.CancelledError):
            while True:
                with backoff.told("hearing hints for workers"):
                    self.tell(await hear(HEAR_S))
                await asyncio.sleep(backoff.pause_s)
