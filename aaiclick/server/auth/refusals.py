"""Counts refused requests by status and actor, and writes the counts to the audit every WRITE_EVERY_S seconds."""

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
"""Pairs of status and actor with a count of their own; all further actors share one count per status."""

WRITE_EVERY_S = 10.0
ENTRY_S = 3600.0
"""Seconds after which a count ends, and further refusals begin a new audit entry."""

NOBODY, OTHERS = "nobody", "others"

log = logging.getLogger("aaiclick.server")


class Refused(NamedTuple):
    """The key of a count."""

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
    """The counts of refusals of one server."""

    def __init__(self) -> None:
        self._counts: dict[Refused, _Count] = {}

    def note(self, status: int, token: Token | None) -> None:
        """Count an answer if it is a refusal: the statuses of COUNTED, and without a token every 4xx."""
        if status not in COUNTED and (token is not None or not 400 <= status < 500):
            return
        kind = Refused(status, None, NOBODY) if token is None else Refused(status, token.id, token.name)
        if kind not in self._counts and len(self._counts) >= KINDS_MAX:
            kind = Refused(status, None, OTHERS)
        self._counts.setdefault(kind, _Count(SYSTEM_CLOCK.monotonic())).number += 1

    async def run(self) -> None:
        """Write the counts every WRITE_EVERY_S seconds, until cancelled."""
        backoff = Backoff()
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            with backoff.told("recording refused requests"):  # on failure the counts are kept
                await self.write()

    async def end(self) -> None:
        """Write the remaining counts at the end of the server; a failure is logged."""
        try:
            await self.write()
        except Exception as error:  # it must not keep the server from ending
            log.warning("refused requests were not recorded: %s", error)

    async def write(self) -> None:
        """Add or update the audit entry of each count that has grown, and drop counts older than ENTRY_S."""
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
