"""Keeps a replica's file like the coordinator's database: a first copy, then what events tell, and looks at the rest.

All goes one after the other: an answer is written before the next question is asked. So no older row ever replaces a
newer one, and a replica that is killed goes on where its file says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from aaiclick.backoff import Backoff, one_line
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.coordinator.http.protocol import Ask
from aaiclick.orchestration.coordinator.http.replica_protocol import AskChanges, AskPage, AskWorkers, OfReplica
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.replicas import applying
from aaiclick.orchestration.store.replicas.applying import ReplicaState
from aaiclick.orchestration.store.replicas.replicated import (
    BY_LOOKS,
    PAGE_ROWS_MAX,
    REPLICATED,
    Choice,
    Rows,
)
from aaiclick.orchestration.store.replicas.source import Changes, SourcePage, Start
from aaiclick.orchestration.store.session import Session
from aaiclick.server.replicas.progress import Progress

ASK_EVERY_S = 0.2
"""Seconds between two questions for changes, while there are none."""

LOOK_EVERY_S = 2.0
"""Seconds between two looks at the small tables: workers, nodes, registered jobs and backfills."""

SWEEP_EVERY_S = 5.0
SWEEP_ROWS = 5_000
"""At this pace the other tables are compared from start to end, again and again, for what no event tells."""

PAGE_ROWS_MIN, PAGE_BYTES = 100, 2_000_000
"""How much an answer is to have."""

SWEPT = ("jobs", "groups", "tasks", "dependencies", "runs", "events", "fires", "workers")

T = TypeVar("T")


class Calls(Protocol):
    """Makes calls to the coordinator."""

    async def ask(self, verb: str, asked: Ask, kind: type[T]) -> T:
        """Make a call and return its answer."""


class Feeder:
    """Feeds one replica."""

    def __init__(self, database: Database, calls: Calls, progress: Progress, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database, self.progress = database, progress
        self._calls, self._clock = calls, clock
        self._limit = PAGE_ROWS_MIN
        self._look_at = self._sweep_at = 0.0
        self._sweep = Choice(SWEPT[0])

    async def run(self) -> None:
        """Feed the replica until cancelled. While the coordinator does not answer, it is asked again and again."""
        backoff = Backoff(self._clock)
        while True:
            is_more = False
            try:
                is_more = await self.step()
                backoff.over()
            except Exception as error:  # whatever it is, the replica goes on answering, and says how old that is
                self.progress.trouble = one_line(error)
                backoff.met("copying from the coordinator", error)
            await self._clock.sleep(0.0 if is_more else max(ASK_EVERY_S, backoff.pause_s))

    async def step(self) -> bool:
        """Copy, or follow; return whether there is more to do at once."""
        state = self.progress.state
        if not state.installation or state.looking:
            await self.compare_all()
            return True
        is_more = await self.follow()
        if self.progress.state.looking:
            return True
        now = self._clock.monotonic()
        if now >= self._look_at:
            await self.look()
            self._look_at = self._clock.monotonic() + LOOK_EVERY_S
        if now >= self._sweep_at and not is_more:
            await self.sweep()
            self._sweep_at = self._clock.monotonic() + SWEEP_EVERY_S
        return is_more

    # ---------------------------------------------------------------- all tables

    async def compare_all(self) -> None:
        """Make all tables those of the coordinator. What is the same already is not sent: after a cut it goes on."""
        state = self.progress.state
        if not state.looking:
            state = await self._begin()
        names = list(REPLICATED)
        for name in names[names.index(state.looking) :]:
            choice = Choice(name, after=state.looked_at, upto=state.then_cursor if name == "events" else None)
            following = names[names.index(name) + 1 :]
            state = await self._compare_table(choice, state, next(iter(following), ""))
        state = msgspec.structs.replace(
            state, is_whole=True, cursor=state.then_cursor, mark=state.then_mark, as_of=state.then_as_of
        )
        await self._write(partial(applying.cut_events, last=state.cursor), state)

    async def _begin(self) -> ReplicaState:
        """Note where following goes on after the comparison, before anything is read."""
        start = await self._ask("replica_start", OfReplica(), Start)
        self.progress.heard(start.now)
        self.progress.counts.copies += 1
        state = self.progress.state
        is_other = state.installation not in ("", start.installation)
        state = ReplicaState(self.progress.coordinator) if is_other else state
        state = msgspec.structs.replace(
            state,
            coordinator=self.progress.coordinator,
            installation=start.installation,
            looking=next(iter(REPLICATED)),
            looked_at=None,
            then_cursor=start.cursor,
            then_mark=start.mark,
            then_as_of=start.now,
        )
        await self._write(applying.empty_all if is_other else _nothing, state)
        return state

    async def _compare_table(self, choice: Choice, state: ReplicaState, following: str) -> ReplicaState:
        """Compare a table page by page; the next page is asked for while one is written."""
        asking = asyncio.ensure_future(self._page(choice))
        try:
            while True:
                page = await asking
                self._check(page, state)
                this, last = choice, page.last
                place = (choice.table, list(last)) if last is not None else (following, None)
                state = msgspec.structs.replace(state, looking=place[0], looked_at=place[1])
                if last is not None:
                    choice = choice._replace(after=last)
                    asking = asyncio.ensure_future(self._page(choice))
                    await asyncio.sleep(0)  # the question goes out before the writing begins
                await self._write(partial(applying.put_page, choice=this, page=page), state)
                if last is None:
                    return state
        finally:
            asking.cancel()

    def _check(self, page: SourcePage, state: ReplicaState) -> None:
        if page.installation != state.installation:
            self.progress.state = ReplicaState(self.progress.coordinator)  # the next step begins anew
            raise ConnectionError("another installation answers now")

    # ---------------------------------------------------------------- events

    async def follow(self) -> bool:
        """Take the next changes; return whether there may be more."""
        state, limit = self.progress.state, self._limit
        ask = AskChanges(after=state.cursor, mark=state.mark, limit=limit)
        found = await self._ask("replica_changes", ask, Changes)
        self.progress.heard(found.now)
        if found.lost or found.installation != state.installation:
            await self._begin()
            return True
        as_of = found.now if found.newest == found.cursor else max(state.as_of, found.mark)
        state = msgspec.structs.replace(state, cursor=found.cursor, mark=found.mark, as_of=as_of)
        if not found.events:
            self.progress.moved(state)
            return False
        for job_id, since in found.grown:
            await self._pull_job(job_id, since)
        await self._write(partial(applying.put_changes, found=found), state)
        self.progress.counts.events += len(found.events)
        grown = [job_id for job_id, _ in found.grown]
        for job_id in await self.database.read(partial(applying.incomplete, job_ids=grown)):
            await self._pull_job(job_id, None)
        size = _bytes_of([*found.events, *(row for rows in found.rows.values() for row in rows)])
        self._limit = max(PAGE_ROWS_MIN, min(PAGE_ROWS_MAX, limit * PAGE_BYTES // max(1, size)))
        return len(found.events) == limit

    async def _pull_job(self, job_id: int, since: str | None) -> None:
        """Copy the graph of one job, or its new tasks and groups, with all edges."""
        for table in ("groups", "tasks", "dependencies"):
            later = None if table == "dependencies" else since
            await self._take(Choice(table, job_id=job_id, since=later))

    # ---------------------------------------------------------------- the rest

    async def look(self) -> None:
        """Make the small tables those of the coordinator."""
        for table in BY_LOOKS:
            await self._take(Choice(str(table.name)))
        known = await self.database.read(applying.live_workers)
        rows = await self._ask("replica_workers", AskWorkers(known=known), list[list])  # type: ignore[type-arg]
        await self._write(partial(applying.put_workers, rows=rows, known=known))

    async def sweep(self, rows: int = SWEEP_ROWS) -> None:
        """Compare about so many more rows of the other tables, and begin again after the last."""
        for _ in SWEPT:
            rows -= await self._sweep_on(rows)
            if rows <= 0:
                return

    async def _sweep_on(self, rows: int) -> int:
        """Compare one more page; return how many rows it has."""
        choice = self._sweep
        if choice.table == "events":
            choice = choice._replace(upto=self.progress.as_of_seq)
        page = await self._page(choice, limit=min(rows, PAGE_ROWS_MAX))
        self._check(page, self.progress.state)
        await self._put(choice, page)
        if page.last is not None:
            self._sweep = choice._replace(after=page.last)
        else:
            self._sweep = Choice(SWEPT[(SWEPT.index(choice.table) + 1) % len(SWEPT)])
        return page.count

    # ---------------------------------------------------------------- one question

    async def _take(self, choice: Choice) -> None:
        """Make a stretch of a table that of the coordinator."""
        while True:
            page = await self._page(choice)
            self._check(page, self.progress.state)
            await self._put(choice, page)
            if page.last is None:
                return
            choice = choice._replace(after=page.last)

    async def _put(self, choice: Choice, page: SourcePage) -> None:
        if not page.same:
            await self._write(partial(applying.put_page, choice=choice, page=page))

    async def _page(self, choice: Choice, limit: int | None = None) -> SourcePage:
        limit = limit or self._limit
        digest = ""
        if choice.since is None:
            digest = await self.database.read(partial(applying.digest_here, choice=choice, limit=limit))
        page = await self._ask("replica_page", AskPage.of(choice, limit, digest), SourcePage)
        self.progress.counts.pages += 1
        self.progress.counts.same_pages += page.same
        self.progress.counts.rows += len(page.rows)
        if page.rows:
            self._limit = max(PAGE_ROWS_MIN, min(PAGE_ROWS_MAX, len(page.rows) * PAGE_BYTES // _bytes_of(page.rows)))
        return page

    async def _ask(self, verb: str, asked: Ask, kind: type[T]) -> T:
        self.progress.counts.calls += 1
        return await self._calls.ask(verb, asked, kind)

    async def _write(self, work: Callable[[Session], Awaitable[object]], state: ReplicaState | None = None) -> None:
        """Write something in one transaction with the place that it leads to, if it leads to one."""

        async def both(session: Session) -> None:
            await work(session)
            if state is not None:
                await applying.write_state(session, state)

        await self.database.transact(both)
        if state is not None:
            self.progress.moved(state)


async def _nothing(session: Session) -> None:
    """Write nothing."""


def _bytes_of(rows: Rows | Sequence[Sequence[object]]) -> int:
    return sum(len(value) for row in rows for value in row if isinstance(value, str)) + 100 * len(rows)
