"""Schedules are fired here: what is due becomes jobs, what waits for an earlier run or in a backfill gets its turn.

Correct with no leader (nothing fires) and with two (each time has one run): the entry's lock and the key of `fires` see
to that. A crash at any point leaves all of an entry's step, or nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from aaiclick.errors import InputError, ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.registered_jobs import scheduled_run
from aaiclick.orchestration.rules.schedules import COUNTED_MAX
from aaiclick.orchestration.store import backfills, schedules
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.machine_ids import provide_ids
from aaiclick.orchestration.store.schedules import Fired
from aaiclick.orchestration.store.session import Session

log = logging.getLogger("aaiclick")

T = TypeVar("T")

ROUNDS_MAX = 1_000
"""Pages of entries, and steps of one of them, that one round may take."""


class Scheduler:
    """Fires what is due, and says once of each entry that it cannot."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._said: dict[int, str] = {}

    async def fire(self) -> int:
        """One round; gives the number of runs that were started for times that had come."""
        await provide_ids(self.database)
        return await self._fire_due() + await self._run_queued() + await self._advance_backfills()

    async def _fire_due(self) -> int:
        started = after = 0
        for _ in range(ROUNDS_MAX):
            page = await self.database.read(partial(schedules.due_entries, after=after))
            for entry_id in page:
                step = partial(schedules.fire_entry, entry_id=entry_id, build=scheduled_run)
                fired = await self._try(entry_id, step)
                if fired is not None:
                    tell(fired)
                    started += fired.run
            if len(page) < schedules.AT_ONCE:
                break
            after = page[-1]
        return started

    async def _run_queued(self) -> int:
        started = after = 0
        for _ in range(ROUNDS_MAX):
            page = await self.database.read(partial(schedules.queued_entries, after=after))
            for entry_id in page:
                started += await self._repeat(
                    entry_id, partial(schedules.run_queued, entry_id=entry_id, build=scheduled_run)
                )
            if len(page) < schedules.AT_ONCE:
                break
            after = page[-1]
        return started

    async def _advance_backfills(self) -> int:
        steps = after = 0
        for _ in range(ROUNDS_MAX):
            page = await self.database.read(partial(backfills.open_backfills, after=after))
            for backfill_id, entry_id in page:
                step = partial(backfills.advance, backfill_id=backfill_id, entry_id=entry_id, build=scheduled_run)
                steps += await self._repeat(entry_id, step)
            if len(page) < schedules.AT_ONCE:
                break
            after = page[-1][0]
        return steps

    async def _repeat(self, entry_id: int, step: Callable[[Session], Awaitable[int]]) -> int:
        """A transaction each, until nothing is left to do at once."""
        done = 0
        for _ in range(ROUNDS_MAX):
            more = await self._try(entry_id, step)
            if not more:
                break
            done += more
        return done

    async def _try(self, entry_id: int, step: Callable[[Session], Awaitable[T]]) -> T | None:
        """An entry that cannot be fired, as with a time zone that is not known here, does not hold up the others."""
        try:
            answer = await self.database.transact(step)
        except (InputError, ValueTooLarge, ValueNotPortable) as error:
            if self._said.get(entry_id) != str(error):
                self._said[entry_id] = str(error)
                log.error("registered job %s cannot be fired: %s (trying again)", entry_id, error)
            return None
        self._said.pop(entry_id, None)
        return answer


def tell(fired: Fired) -> None:
    """Say what did not run as its schedule says."""
    if fired.missed:
        count = f"more than {COUNTED_MAX}" if fired.missed > COUNTED_MAX else str(fired.missed)
        log.warning("registered job %r: %s times were missed and are not made up for", fired.name, count)
    if fired.skipped:
        log.warning("registered job %r: %d times were skipped: an earlier run goes on", fired.name, fired.skipped)
    if fired.queued:
        log.info("registered job %r: %d times wait for an earlier run", fired.name, fired.queued)
