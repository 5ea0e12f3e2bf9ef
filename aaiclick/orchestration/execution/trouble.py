"""Trying again: ever later, and without filling the log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aaiclick.clock import Clock

log = logging.getLogger("aaiclick")

TROUBLE_S_MIN, TROUBLE_S_MAX = 0.05, 2.0
"""How long after a call that failed the next is tried."""

T = TypeVar("T")


class Trouble:
    """Backs off, and says once that something is wrong, and once that it is over."""

    def __init__(self) -> None:
        self.pause_s = 0.0
        self._said = ""

    def met(self, what: str, error: Exception) -> None:
        """It went wrong again."""
        self.pause_s = min(max(self.pause_s * 2, TROUBLE_S_MIN), TROUBLE_S_MAX)
        said = f"{what}: {type(error).__name__}: {error}"
        if said != self._said:
            log.warning("%s (trying again)", said)
            self._said = said

    def over(self) -> None:
        """It went well."""
        if self._said:
            log.warning("the database answers again")
        self.pause_s, self._said = 0.0, ""


async def insist(what: str, call: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Call until it goes well."""
    trouble = Trouble()
    while True:
        try:
            return await call()
        except Exception as error:
            trouble.met(what, error)
            await clock.sleep(trouble.pause_s)
