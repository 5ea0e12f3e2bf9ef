"""Firing schedules: due times become jobs, queued times run after the earlier run, backfills get their next runs.

With no leader nothing fires. With two leaders each time still has one run, because of the lock of the entry's row and
the primary key of `fires`. Each step of an entry is one transaction, so a crash leaves all of it or nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from aaiclick.backoff import Backoffs
from aaiclick.errors import InputError
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.factories import trace_submit
from aaiclick.orchestration.models import RegisteredJob
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.registered_jobs import scheduled_run
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from aaiclick.orchestration.rules.schedules.fires import COUNTED_MAX
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.schedules import backfills, firing
from aaiclick.orchestration.store.schedules.firing import Fired
from aaiclick.orchestration.store.session import Session

log = logging.getLogger("aaiclick")

T = TypeVar("T")

Page = Callable[[Database, Any], Awaitable[dict[Any, int]]]
"""Returns the next items after a position in their order (None: from the start), each with the id of its entry."""

STEPS_MAX = 200
"""Transactions that one round may take, so that other repairs get their turn and the term is renewed in time."""


UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
"""Errors of reading an entry that another version or a person wrote, or whose values are too large here."""


class Scheduler:
    """Fires the due times of registered jobs, and logs the entries that cannot be fired."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._made: list[Submission] = []
        """The submissions made in the current transaction."""
        self._backoffs = Backoffs(level=logging.ERROR)
        self._after: dict[Page, Any] = {}
        """For each kind of page that this round did not finish, the position where the next round continues."""
        self._left = self._done = 0

    @property
    def unfinished(self) -> bool:
        """Whether the last round stopped before its work was done."""
        return bool(self._after)

    async def fire(self) -> int:
        """Run one round, and return the number of steps that did something."""
        await provide_ids(self.database)
        self._left, self._done = STEPS_MAX, 0
        for page, step in ((_due, self._fire), (_queued, self._run_queued), (_filling, self._advance)):
            await self._work_off(page, step)
        return self._done

    async def _work_off(self, page: Page, step: Callable[[Any, int], Awaitable[bool]]) -> None:
        """Call `step` for each item, page by page, until no item or no transaction of this round is left.

        A step returns whether it should be repeated at once.
        """
        after = self._after.pop(page, None)
        while True:
            items = await page(self.database, after)
            for item, entry_id in items.items():
                again = True
                while again and self._left > 0:
                    again = await step(item, entry_id)
                if again:
                    self._after[page] = after
                    return
                after = item
            if len(items) < firing.AT_ONCE:
                return

    async def _fire(self, _: Any, entry_id: int) -> bool:
        fired = await self._try(entry_id, partial(firing.fire_entry, entry_id=entry_id, build=self._build))
        if fired is not None:
            tell(fired)
        return False

    async def _run_queued(self, _: Any, entry_id: int) -> bool:
        step = partial(firing.run_queued, entry_id=entry_id, build=self._build)
        return bool(await self._try(entry_id, step))

    async def _advance(self, backfill_id: int, entry_id: int) -> bool:
        step = partial(backfills.advance, backfill_id=backfill_id, entry_id=entry_id, build=self._build)
        return bool(await self._try(entry_id, step))

    async def _try(self, entry_id: int, step: Callable[[Session], Awaitable[T]]) -> T | None:
        """Run a step in a transaction. If the entry cannot be fired, log why and return None.

        So an entry with a time zone unknown to this machine, for example, does not block the others.
        """
        self._left -= 1
        began_ns = time.time_ns()  # for the span of the submission

        async def work(session: Session) -> T:
            self._made.clear()  # a transaction that is retried has stored nothing
            return await step(session)

        try:
            with arguments_from_outside(False):  # whatever else runs in this process; a backfill sets it itself
                answer = await self.database.transact(work)
        except (InputError, *UNREADABLE) as error:
            self._backoffs.of(entry_id).met(f"firing registered job {entry_id}", error)
            return None
        self._backoffs.over(entry_id)
        self._done += bool(answer)
        for made in self._made:
            assert made.new_job is not None
            trace_submit(made.new_job, len(made.tasks), began_ns)
        self._made.clear()
        return answer

    def _build(self, entry: RegisteredJob, fire_at: datetime, kwargs: Mapping[str, Any] | None = None) -> Submission:
        made = scheduled_run(entry, fire_at, kwargs)
        self._made.append(made)
        return made


async def _due(database: Database, after: Any) -> dict[Any, int]:
    page = await database.read(partial(firing.due_entries, after=after))
    return {place: place[1] for place in page}


async def _queued(database: Database, after: Any) -> dict[Any, int]:
    page = await database.read(partial(firing.queued_entries, after=after))
    return dict(zip(page, page, strict=True))


async def _filling(database: Database, after: Any) -> dict[Any, int]:
    return dict(await database.read(partial(backfills.open_backfills, after=after)))


def tell(fired: Fired) -> None:
    """Log the times that were missed, skipped or queued."""
    if fired.missed:
        count = f"more than {COUNTED_MAX}" if fired.missed > COUNTED_MAX else str(fired.missed)
        log.warning("registered job %r: %s missed times do not run", fired.name, count)
    if fired.skipped:
        log.warning(
            "registered job %r: %d times were skipped: an earlier run is still going on", fired.name, fired.skipped
        )
    if fired.queued:
        log.info("registered job %r: %d times wait for an earlier run", fired.name, fired.queued)
