"""Publish a version: it is made as a temporary table of the context, and one RENAME gives it its name.

ClickHouse refuses a name that is taken. So of several writers that start from the same version, one gets the next
number, and the others start again from what it made. A writer that dies on the way leaves temporary tables, which are
dropped as those of any context that died; the versions before stay as they were.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.provenance.column_sources import SAME
from aaiclick.data.sql import quoting
from aaiclick.data.tables.lifetimes import LOST_MAX, Keeper, drop, new_mark
from aaiclick.data.tables.table_names import name_of, version_table
from aaiclick.data.typing.schema import Schema
from aaiclick.data.versions.catalog import KEPT, Version, now, versions_of
from aaiclick.errors import AaiclickError, Conflict, DataRefused, DataUnreachable, InputError, ObjectNotFound
from aaiclick.telemetry.masks import is_mentioned
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient
    from aaiclick.data.context import Context

TRIES_MAX = 200
"""How often a writer may lose the race for the next number; each time, another writer has made progress."""

BEFORE_MAX = 100
TOKENS_MAX = 1_000

SETTLE_S_MAX = 60.0
SETTLE_EVERY_S = 0.02

TAKEN, GONE = 57, 60
"""ClickHouse's error codes for a table that exists already, and for one that does not exist."""


class MadeVersion(NamedTuple):
    """A temporary table that is to become a version."""

    table: Keeper
    schema: Schema


class Published(NamedTuple):
    """The current version after a call; `is_new` if the call made it."""

    table: str
    is_new: bool
    before: Version | None
    """The version that it was made from."""
    schema: Schema | None = None


Make = Callable[[Version | None], Awaitable[MadeVersion | None]]
"""Makes a table from the latest version, which is None if there is none; returns None if nothing changes."""


class Change(NamedTuple):
    """A change of an Object, and the facts that are written into the comment of the version."""

    table: str
    """The name of the Object's table without a version."""
    operation: str
    make: Make
    keep: int | None = None
    token: str | None = None
    is_whole: bool = False
    """Whether the table does not depend on the version before: then it is made once, however often the race is lost."""


async def publish(context: Context, change: Change) -> Published:
    """Make a version from the latest one and publish it; start again if another writer was quicker.

    Nothing is made if the token was used before, or if `make` returns None. Raise Conflict after TRIES_MAX attempts,
    and on a cluster, where Objects have no versions.
    """
    client, made = context.client, None
    if not client.tables.keeps_versions:
        cause = "on a ClickHouse cluster (AAICLICK_CH_CLUSTER) Objects have no versions"
        hint = "Use a new name, or delete the Object first; insert() adds rows."
        raise Conflict(what=called(change.table), verb=f"changed by {change.operation}", cause=cause, hint=hint)
    _check(change)
    for attempt in range(TRIES_MAX):
        before = await _latest(context, change.table)
        if before is not None and change.token is not None and change.token in before.tokens:
            return Published(before.table, False, before)
        try:
            if made is None or not change.is_whole:
                made = await _made(client, change, before)
            if made is None:
                assert before is not None, "only what is there can stay as it is"
                return Published(before.table, False, before)
            published = await _commit(context, change, made, before)
            made = None if made.table.dropped else made
        except (DataRefused, ObjectNotFound) as error:
            if before is None or not await _is_past(client, change.table, before, error):
                raise
            published = None
        if published is not None:
            return published
        await asyncio.sleep(min(0.001 * attempt, 0.05))
    cause = f"other writers published versions in between, {TRIES_MAX} times"
    raise Conflict(what=called(change.table), verb="changed", cause=cause, hint="Try it again.")


def called(table: str) -> str:
    """Return the name of an Object for an error message."""
    return f"The Object {name_of(table) or table}"


def _check(change: Change) -> None:
    if change.keep is not None and (type(change.keep) is not int or change.keep < 1):
        raise InputError(field="keep", value=shown(repr(change.keep)), rule="it must be at least 1", hint="")
    if is_mentioned(f"{change.table} {change.token or ''}"):
        hint = "Call it otherwise."
        raise InputError(field="token", value="a secret", rule="it is written into a comment", hint=hint)


async def _made(client: DataClient, change: Change, before: Version | None) -> MadeVersion | None:
    """Run `make`, again if the connection fails: no other process sees the unfinished table."""
    for _ in range(LOST_MAX):
        try:
            return await change.make(before)
        except DataUnreachable:
            continue
    return await change.make(before)


async def _is_past(client: DataClient, table: str, before: Version, error: Exception) -> bool:
    """Return whether an error arose because the version from which a table was made is gone."""
    if isinstance(error, DataRefused) and error.facts["code"] not in (TAKEN, GONE):
        return False
    return before.table not in {each.table for each in await versions_of(client, table)}


# ---------------------------------------------------------------- from plain inserts to versions


async def _latest(context: Context, table: str) -> Version | None:
    """Return the latest version, once no more rows are being inserted into its table; None if there is no Object.

    The table of an Object without versions is renamed to its first version here.
    """
    client, first = context.client, version_table(table, 1)
    while True:
        versions = await versions_of(client, table)
        if not versions:
            return None
        latest = versions[-1]
        if not latest.is_plain:
            if latest.number == 1:
                await _settled(client, table)
            return latest
        try:
            await client.command(f"RENAME TABLE {quoting.name(table)} TO {quoting.name(first)}")
            await context.note("rename", first, [table], "", SAME)
        except DataRefused as error:
            if error.facts["code"] not in (TAKEN, GONE):
                raise
        except (DataUnreachable, ObjectNotFound):  # the next look tells whether it was renamed
            continue


async def _settled(client: DataClient, table: str) -> None:
    """Wait for inserts that began while the table had its plain name; later ones do not find it.

    Raise Conflict after SETTLE_S_MAX seconds.
    """
    name = re.escape(table)
    busy = (
        "SELECT count() FROM system.processes WHERE query_kind IN ('Insert', 'AsyncInsertFlush', 'Alter')"  # noqa: S608 (quoted)
        f" AND match(query, {quoting.text(f'(^|[^A-Za-z0-9_.@-]){name}($|[^A-Za-z0-9_.@-])')})"
    )
    until = time.monotonic() + SETTLE_S_MAX
    while (await client.rows(busy)).columns[0][0]:
        if time.monotonic() > until:
            hint = "Try again when they are done."
            raise Conflict(what=called(table), verb="changed", cause="rows are being inserted into it", hint=hint)
        await asyncio.sleep(SETTLE_EVERY_S)


# ---------------------------------------------------------------- the one statement


async def _commit(context: Context, change: Change, made: MadeVersion, before: Version | None) -> Published | None:
    """Publish a table as the next version; return None if another writer was quicker."""
    client, draft = context.client, made.table.table
    number = before.number + 1 if before else 1
    target = version_table(change.table, number) if before else change.table
    facts = await _facts(context, change, made, before, number)
    comment = quoting.text(made.schema.table_comment(**facts))
    await repeated(client, f"ALTER TABLE {quoting.name(draft)} MODIFY COMMENT {comment}")
    try:
        await client.command(f"RENAME TABLE {quoting.name(draft)} TO {quoting.name(target)}")
    except DataRefused as error:
        if error.facts["code"] != TAKEN:
            raise
        return None
    except DataUnreachable:
        await drop(client, draft)  # a rename that has not run by now cannot run any more
    context._lifetime.hand_over(made.table)  # its table has another name now, or is dropped
    made.table.dropped = True
    if not await _counts(client, change.table, facts["made"], before):
        return None
    await _retire(client, change.table, number - facts.get("keep", KEPT))
    return Published(target, True, before, made.schema)


async def _facts(
    context: Context, change: Change, made: MadeVersion, before: Version | None, number: int
) -> dict[str, Any]:
    """Return the facts of a version that are written into the comment of its table."""
    rows = await context.client.rows(f"SELECT count() FROM {quoting.name(made.table.table)}")  # noqa: S608 (quoted)
    facts: dict[str, Any] = {**context.facts, "made": new_mark(), "number": number, "operation": change.operation}
    facts |= {"at": now(), "rows": int(rows.columns[0][0])}
    keep = change.keep or (before.facts.get("keep") if before else None)
    tokens = [*(before.tokens if before else ()), *([change.token] if change.token else ())]
    chain = [*before.before, before.mark] if before else []
    optional = {"keep": keep, "tokens": tokens[-TOKENS_MAX:], "before": chain[-BEFORE_MAX:]}
    return facts | {name: fact for name, fact in optional.items() if fact}


async def _counts(client: DataClient, table: str, mark: str, before: Version | None) -> bool:
    """Return whether the version with this mark is valid: it is the latest, or later ones were made from it.

    Its number may have been free because the version of that number was dropped long ago, or because the Object was
    deleted. A version that got such a number is dropped: it was never the latest, or the one it was made from is gone.
    """
    versions = await versions_of(client, table)
    if versions and mark in versions[-1].before:
        return True
    ours = next((each for each in versions if each.mark == mark), None)
    if ours is None:
        return False
    is_grounded = before is None or before.table in {each.table for each in versions}
    if ours is versions[-1] and is_grounded:
        return True
    await drop(client, ours.table)
    return False


async def _retire(client: DataClient, table: str, number: int) -> None:
    """Drop the versions up to this number. Queries that read one of them still read it to its end.

    Later ones are left to the writers of later versions: the one before a version must exist until that version is
    known to be valid.
    """
    with suppress(AaiclickError):  # the writer of the next version tries it again
        for each in await versions_of(client, table):
            if each.number <= number and not each.is_plain:
                await client.command(f"DROP TABLE IF EXISTS {quoting.name(each.table)}")


async def withdraw_plain(client: DataClient, table: str, mark: str) -> bool:
    """Drop a new table without a version if its Object has versions already; return whether it was dropped."""
    versions = await versions_of(client, table)
    if not versions or versions[-1].is_plain or any(mark in (each.mark, *each.before) for each in versions):
        return False
    await drop(client, table)
    return True


async def repeated(client: DataClient, statement: str) -> None:
    """Run an idempotent statement; run it again if the connection fails."""
    for _ in range(LOST_MAX):
        try:
            return await client.command(statement)
        except DataUnreachable:
            continue
    await client.command(statement)
