"""How a version comes to be: it is made as a table of the context, and gets its name in one statement.

A name that is taken is refused by ClickHouse. So of several writers that start from the same version one gets the next
number, and the others start again from what it made. Whatever dies on the way leaves tables of its context, which are
swept as those are; the versions before are as they were.
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
"""So often others may be quicker; each time one of them got on."""

BEFORE_MAX = 100
TOKENS_MAX = 1_000

SETTLE_S_MAX = 60.0
SETTLE_EVERY_S = 0.02

TAKEN, GONE = 57, 60
"""What ClickHouse says of a name that is taken, and of a table that is not there."""


class MadeVersion(NamedTuple):
    """A table that is to become a version."""

    table: Keeper
    schema: Schema


class Published(NamedTuple):
    """The version that counts after a call; `is_new`: the call made it."""

    table: str
    is_new: bool
    before: Version | None
    """The version that it was made from."""
    schema: Schema | None = None


Make = Callable[[Version | None], Awaitable[MadeVersion | None]]
"""Makes a table from the latest version; None if that is to stay as it is."""


class Change(NamedTuple):
    """What is to be made of an Object, and what is written beside it."""

    table: str
    """The table that the Object would have without versions."""
    operation: str
    make: Make
    keep: int | None = None
    token: str | None = None
    is_whole: bool = False
    """Whether it is the same whatever there was before: then it is made once."""


async def publish(context: Context, change: Change) -> Published:
    """Make a version from the latest, and let it be the latest; again, if another was quicker."""
    client, made = context.client, None
    if not client.tables.keeps_versions:
        cause = "on a ClickHouse cluster (AAICLICK_CH_CLUSTER) Objects have no versions"
        hint = "Make it under a new name, or delete it before; insert() adds rows."
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
    cause = f"others made versions of it in between, {TRIES_MAX} times"
    raise Conflict(what=called(change.table), verb="changed", cause=cause, hint="Try it again.")


def called(table: str) -> str:
    """An Object, in a refusal."""
    return f"The Object {name_of(table) or table}"


def _check(change: Change) -> None:
    if change.keep is not None and (type(change.keep) is not int or change.keep < 1):
        raise InputError(field="keep", value=shown(repr(change.keep)), rule="it is at least 1", hint="")
    if is_mentioned(f"{change.table} {change.token or ''}"):
        hint = "Call it otherwise."
        raise InputError(field="token", value="a secret", rule="it is written into a comment", hint=hint)


async def _made(client: DataClient, change: Change, before: Version | None) -> MadeVersion | None:
    """Nobody sees it yet: what was lost on the way is made anew."""
    for _ in range(LOST_MAX):
        try:
            return await change.make(before)
        except DataUnreachable:
            continue
    return await change.make(before)


async def _is_past(client: DataClient, table: str, before: Version, error: Exception) -> bool:
    """Whether an error came of it that the version from which something was made is not there any more."""
    if isinstance(error, DataRefused) and error.facts["code"] not in (TAKEN, GONE):
        return False
    return before.table not in {each.table for each in await versions_of(client, table)}


# ---------------------------------------------------------------- from rows as they come to versions


async def _latest(context: Context, table: str) -> Version | None:
    """The latest version, into whose table nobody inserts any more."""
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
        except (DataUnreachable, ObjectNotFound):  # it is looked again how far that got
            continue


async def _settled(client: DataClient, table: str) -> None:
    """Wait for inserts that began while the table had its name; those that come later do not find it."""
    name = re.escape(table)
    busy = (
        "SELECT count() FROM system.processes WHERE query_kind IN ('Insert', 'AsyncInsertFlush', 'Alter')"  # noqa: S608 (quoted)
        f" AND match(query, {quoting.text(f'(^|[^A-Za-z0-9_.@-]){name}($|[^A-Za-z0-9_.@-])')})"
    )
    until = time.monotonic() + SETTLE_S_MAX
    while (await client.rows(busy)).columns[0][0]:
        if time.monotonic() > until:
            hint = "Try it again when they are done."
            raise Conflict(what=called(table), verb="changed", cause="rows are inserted into it", hint=hint)
        await asyncio.sleep(SETTLE_EVERY_S)


# ---------------------------------------------------------------- the one statement


async def _commit(context: Context, change: Change, made: MadeVersion, before: Version | None) -> Published | None:
    """Let a table be the next version; None if another was quicker."""
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
        await drop(client, draft)  # from now on it is not run, if it was not
    context._lifetime.hand_over(made.table)  # it has another name now, or is dropped
    made.table.dropped = True
    if not await _counts(client, change.table, facts["made"], before):
        return None
    await _retire(client, change.table, number - facts.get("keep", KEPT))
    return Published(target, True, before, made.schema)


async def _facts(
    context: Context, change: Change, made: MadeVersion, before: Version | None, number: int
) -> dict[str, Any]:
    """What is kept of a version, in the comment of its table."""
    rows = await context.client.rows(f"SELECT count() FROM {quoting.name(made.table.table)}")  # noqa: S608 (quoted)
    facts: dict[str, Any] = {**context.facts, "made": new_mark(), "number": number, "operation": change.operation}
    facts |= {"at": now(), "rows": int(rows.columns[0][0])}
    keep = change.keep or (before.facts.get("keep") if before else None)
    tokens = [*(before.tokens if before else ()), *([change.token] if change.token else ())]
    chain = [*before.before, before.mark] if before else []
    optional = {"keep": keep, "tokens": tokens[-TOKENS_MAX:], "before": chain[-BEFORE_MAX:]}
    return facts | {name: fact for name, fact in optional.items() if fact}


async def _counts(client: DataClient, table: str, mark: str, before: Version | None) -> bool:
    """Whether the version with this mark counts: it is the latest, or those after it came from it.

    A name may be free because its version is long past, or because the Object was deleted: what got it then is
    withdrawn. Nobody took it for the latest, or it has nothing to stand on.
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
    """Drop the versions up to this one. Who reads one of them reads it to its end.

    Later ones are left to those who made later ones: the one before a version is there until that one counts.
    """
    with suppress(AaiclickError):  # whoever makes the next version tries it again
        for each in await versions_of(client, table):
            if each.number <= number and not each.is_plain:
                await client.command(f"DROP TABLE IF EXISTS {quoting.name(each.table)}")


async def withdraw_plain(client: DataClient, table: str, mark: str) -> bool:
    """Drop a new table without versions, if there were versions of its name before; whether there were."""
    versions = await versions_of(client, table)
    if not versions or versions[-1].is_plain or any(mark in (each.mark, *each.before) for each in versions):
        return False
    await drop(client, table)
    return True


async def repeated(client: DataClient, statement: str) -> None:
    """Run a statement that may be run twice; again, if its answer is lost."""
    for _ in range(LOST_MAX):
        try:
            return await client.command(statement)
        except DataUnreachable:
            continue
    await client.command(statement)
