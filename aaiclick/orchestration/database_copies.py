"""Copying the state to another database: SQLite, PostgreSQL and MariaDB, in any direction.

The target is marked in its version table until the copy is finished, so that nobody works there before. A copy that was
cut off goes on behind the last row of each table. At the end both sides are read again and compared.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aaiclick.errors import Conflict, SchemaError
from aaiclick.ids import id_time
from aaiclick.orchestration.coordinator.claiming import installation_of
from aaiclick.orchestration.store import copies, schema
from aaiclick.orchestration.store.copies import Key, Page, Tally
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.rejections import is_duplicate
from aaiclick.orchestration.store.session import Session
from aaiclick.urls import mask_url, sqlite_file

PAGE_ROWS, PAGE_ROWS_MAX = 100, 5_000
PAGE_BYTES = 2_000_000
"""How much a page is to have: small enough for one statement, large enough to be quick."""

PASSES = 2
"""How often a table is copied, if what was copied is not what is there: somebody may have written meanwhile."""

CLOCK_S_MAX = 60.0
"""How long to wait for the clock of the target to pass the newest id."""

log = logging.getLogger("aaiclick")

Seen = Callable[[str, int, int], object]
"""Told how far a table is: its name, and how many rows of how many."""


@dataclass(frozen=True)
class CopiedTable:
    """A table that is the same on both sides: the number of its rows, and the sum of their digests."""

    name: str
    rows: int
    digest: str


async def copy_database(
    source_url: str, target_url: str, *, while_live: bool = False, seen: Seen = lambda name, done, all_: None
) -> list[CopiedTable]:
    """Copy everything from one database to another, and return the tables.

    The target must be empty, or hold the beginning of this copy. Raises Conflict if somebody works on either, unless
    `while_live`; and if the two differ in the end, because the source has changed meanwhile.
    """
    if _is_same(source_url, target_url):
        raise Conflict(what="A database", verb="copied to itself", cause="both addresses name it", hint="")
    async with _opened_source(source_url) as source:
        name = schema.COPYING + hashlib.sha256((await installation_of(source)).encode()).hexdigest()[:20]
        await _prepare(target_url, name)
        target = await Database.open(target_url, check=False)
        try:
            for database in () if while_live else (source, target):
                await _refuse_live(database)
            await _begin(target, name)
            return await _copy(source, target, seen)
        finally:
            await target.close()


async def _copy(source: Database, target: Database, seen: Seen) -> list[CopiedTable]:
    left = {table.name: table for table in copies.copied_tables()}
    same: dict[str, Tally] = {}
    for attempt in range(PASSES):
        for table in left.values():
            if attempt:
                await target.transact(lambda session, table=table: copies.empty_table(session, table))  # type: ignore[misc]
            await _copy_table(source, target, table, seen)
        for name, table in list(left.items()):
            here, there = await _tally(source, table), await _tally(target, table)
            if (here.rows, here.total) == (there.rows, there.total):
                same[name] = there
                del left[name]
    if left:
        cause = f"these tables are not the same on both sides: {', '.join(sorted(left))}"
        hint = "The source has changed meanwhile. Stop what writes there, and run the command again."
        raise Conflict(what="The copy", verb="finished", cause=cause, hint=hint)
    await _finish(source, target, max(tally.newest_id for tally in same.values()))
    return [CopiedTable(name, tally.rows, tally.digest) for name, tally in sorted(same.items())]


# ---------------------------------------------------------------- before


def _is_same(one: str, other: str) -> bool:
    files = sqlite_file(one), sqlite_file(other)
    if None not in files:
        return files[0].resolve() == files[1].resolve()  # type: ignore[union-attr]
    return one == other


@asynccontextmanager
async def _opened_source(url: str) -> AsyncIterator[Database]:
    """Open the source; a SQLite file that is not there is not made."""
    if (await schema.verdict_of(url)).kind == "empty":
        hint = "AAICLICK_SQL_URL names the database that is copied."
        raise SchemaError(url=mask_url(url), found="not there yet", needed=schema.HEAD, hint=hint)
    source = await Database.open(url)
    try:
        yield source
    finally:
        await source.close()


async def _prepare(url: str, name: str) -> None:
    """Give an empty target its schema. Raises SchemaError for one whose schema is another."""
    verdict = await schema.verdict_of(url)
    if verdict.kind == "empty":
        await schema.upgrade(url)
    elif verdict.kind not in ("current", "copying"):
        raise SchemaError(url=mask_url(url), found=verdict.found, needed=schema.HEAD, hint=verdict.hint)


async def _refuse_live(database: Database) -> None:
    if live := await database.read(copies.who_is_live):
        hint = "Stop them: aaiclick worker stop ID, or end their processes. To copy nevertheless, see --help."
        cause = f"{', '.join(live)} works on {mask_url(database.url)}"
        raise Conflict(what="The database", verb="copied", cause=cause, hint=hint)


async def _begin(target: Database, name: str) -> None:
    """Mark the target as that of this copy. Raises Conflict if it holds something else."""

    async def work(session: Session) -> None:
        version = await schema.get_version(session)
        if version == name:
            return
        found = await copies.what_is_there(session)
        if version != schema.HEAD or found:
            cause = f"it has rows in {', '.join(found[:5])}" if found else "it holds the beginning of another copy"
            hint = "Give it an empty database."
            raise Conflict(what=mask_url(target.url), verb="copied to", cause=cause, hint=hint)
        await copies.take_installation(session)
        await schema.set_version(session, name)

    await target.transact(work)


# ---------------------------------------------------------------- rows


async def _copy_table(source: Database, target: Database, table: Any, seen: Seen) -> None:
    """Copy the rows of a table that are behind the last one that is there."""
    every = await source.read(lambda session: copies.count_rows(session, table))
    after = await target.read(lambda session: copies.last_key(session, table))
    done = 0 if after is None else await target.read(lambda session: copies.count_rows(session, table))
    if every:
        seen(table.name, done, every)
    async for page in _pages(source, table, after):
        await _write(target, table, page)
        done += len(page)
        seen(table.name, done, max(done, every))


async def _write(target: Database, table: Any, page: Page) -> None:
    try:
        await target.transact(lambda session: copies.write_page(session, table, page))
    except Exception as error:
        if not is_duplicate(error):
            raise
        cause = f"somebody else writes {table.name} there: another copy?"
        raise Conflict(what=mask_url(target.url), verb="copied to", cause=cause, hint="Let one of them end.") from error


async def _pages(database: Database, table: Any, after: Key | None = None) -> AsyncIterator[Page]:
    """Yield the rows of a table in pages of about PAGE_BYTES."""
    limit = PAGE_ROWS
    while True:
        page = await _page(database, table, after, limit)
        if not page:
            return
        yield page
        after = copies.key_of(table, page[-1])
        size = sum(len(value) for row in page for value in row if isinstance(value, str)) + 100 * len(page)
        limit = min(PAGE_ROWS_MAX, max(1, len(page) * PAGE_BYTES // size))


async def _page(database: Database, table: Any, after: Key | None, limit: int) -> Page:
    try:
        return await database.read(lambda session: copies.read_page(session, table, after, limit))
    except ValueError as error:  # such as a date that is none, which MariaDB may hold
        where = "from the first row on" if after is None else f"behind {after}"
        cause = f"a row of {table.name} {where} cannot be read: {error}"
        raise Conflict(what=mask_url(database.url), verb="copied", cause=cause, hint="Mend that row.") from error


async def _tally(database: Database, table: Any) -> Tally:
    tally = Tally()
    async for page in _pages(database, table):
        tally = tally.plus(table, page)
    return tally


# ---------------------------------------------------------------- after


async def _finish(source: Database, target: Database, newest_id: int) -> None:
    """Let ids and numbers go on behind those that were copied; then let everybody in."""
    await _wait_for_clock(target, newest_id)
    high_water_ms = await source.read(copies.read_machine_ids)

    async def work(session: Session) -> None:
        await copies.raise_machine_ids(session, high_water_ms)
        await copies.count_on(session)
        await schema.set_version(session, schema.HEAD)

    await target.transact(work)


async def _wait_for_clock(target: Database, newest_id: int) -> None:
    """Wait until the target's time is past the newest id: new ones are made of that time, and so cannot be the same."""
    if not newest_id:
        return
    newest = id_time(newest_id) + timedelta(milliseconds=2)
    while (behind_s := (newest - await target.read(Session.now)).total_seconds()) > 0:
        if behind_s > CLOCK_S_MAX:
            cause = f"its clock is {behind_s:.0f} s behind the newest id, so that new ids could be the same as old ones"
            raise Conflict(what=mask_url(target.url), verb="used", cause=cause, hint="Set the clock, and run it again.")
        log.warning("The clock of the target is %.1f s behind the newest id: waiting.", behind_s)
        await asyncio.sleep(min(behind_s, 1.0))
