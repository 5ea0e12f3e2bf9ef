"""Who was refused how often: counted here, and written down now and then among what was changed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.orchestration.access.audit import add_count, end_count
from aaiclick.orchestration.models.token import Token

COUNTED = frozenset({400, 401, 403, 408, 413, 429, 431})
KINDS_MAX = 50
"""So many are told apart; the others are counted as one of each status."""

WRITE_EVERY_S = 10.0
ENTRY_S = 3600.0
"""Then another entry is begun."""

NOBODY, OTHERS = "nobody", "others"

log = logging.getLogger("aaiclick.server")


class Refused(NamedTuple):
    """What is counted as one."""

    status: int
    actor_id: int | None
    actor: str


@dataclass
class _Count:
    began: float
    number: int = 0
    written: int = 0
    entry_id: int | None = None


class Refusals:
    """The counts of one server."""

    def __init__(self) -> None:
        self._counts: dict[Refused, _Count] = {}

    def note(self, status: int, token: Token | None) -> None:
        """Somebody was answered so. Of strangers, everything that is wrong with what they send counts."""
        if status not in COUNTED and (token is not None or not 400 <= status < 500):
            return
        kind = Refused(status, None, NOBODY) if token is None else Refused(status, token.id, token.name)
        if kind not in self._counts and len(self._counts) >= KINDS_MAX:
            kind = Refused(status, None, OTHERS)
        self._counts.setdefault(kind, _Count(SYSTEM_CLOCK.monotonic())).number += 1

    async def run(self) -> None:
        """Write now and then, until cancelled."""
        backoff = Backoff()
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            with backoff.told("writing down who was refused"):  # what was counted is kept
                await self.write()

    async def end(self) -> None:
        """Write what is left, if that can be."""
        try:
            await self.write()
        except Exception as error:  # the server ends without it
            log.warning("refusals were not written down: %s", error)

    async def write(self) -> None:
        """One entry for each kind and hour, brought up to date."""
        for kind, count in list(self._counts.items()):
            number = count.number
            if number > count.written:
                outcome = f"{number} times"
                if count.entry_id is None:
                    target = f"{kind.status} {HTTPStatus(kind.status).phrase}"
                    count.entry_id = await add_count(kind.actor_id, kind.actor, target, outcome)
                else:
                    await end_count(count.entry_id, outcome)
                count.written = number
            if SYSTEM_CLOCK.monotonic() - count.began > ENTRY_S and count.number == number:
                del self._counts[kind]
