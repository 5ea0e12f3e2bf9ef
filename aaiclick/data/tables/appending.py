"""Adds rows that ClickHouse computes to a table exactly once, even if the engine is lost at any moment.

The rows are first written into a staging table, which is made again if it is unknown how far that got. Its parts
(ClickHouse's data files) have UUIDs, which they keep when the target table attaches them without copying. So it can be
told which parts the target already has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aaiclick.data.clients.contract import DataClient, Settings
from aaiclick.data.sql import quoting
from aaiclick.data.tables.lifetimes import LOST_MAX, make_anew, new_mark
from aaiclick.errors import DataUnreachable

if TYPE_CHECKING:
    from aaiclick.data.context import Context

NAMED_PIECES = (
    "assign_part_uuids = 1, max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1"
)
"""Table settings: parts have UUIDs, and are never merged into others."""

Insert = Callable[[str], str]
"""Given the name of a table, returns the statement that inserts the rows into it."""

Count = Callable[[], Awaitable[int]]
"""Returns the number of rows that the statement will insert."""


async def add_rows(context: Context, table: str, insert: Insert, settings: Settings, count: Count) -> int:
    """Add the rows that a statement inserts, and return their number.

    A server outlives this process. So with a server, and for a table whose engine has no parts, one plain INSERT is
    used, and `count` is called before it.
    """
    client = context.client
    engine = await _engine_of(client, table) if context.reads_files else None
    if engine is None:
        before = await count()
        await client.command(insert(table), settings)
        return before
    keeper, mark = await context._lifetime.new_table(), new_mark()
    new, comment = quoting.name(keeper.table), quoting.text(mark)
    creation = f"CREATE TABLE {new} AS {quoting.name(table)} ENGINE = {engine} COMMENT {comment}"

    async def make() -> None:
        await client.command(creation)
        await client.command(insert(keeper.table), settings)

    await make_anew(client, keeper.table, mark, make)
    return await _hand_over(client, keeper.table, table)


async def _engine_of(client: DataClient, table: str) -> str | None:
    """Return the engine clause of a staging table for this table; None if the table's engine has no parts."""
    found = await client.rows(
        f"SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = {quoting.text(table)}"  # noqa: S608 (quoted)
    )
    full = next(iter(found.columns[0]), "")
    if not full.partition(" ")[0].partition("(")[0].endswith("MergeTree"):
        return None
    return f"{full}{',' if ' SETTINGS ' in full else ' SETTINGS'} {NAMED_PIECES}"


async def _hand_over(client: DataClient, staged: str, table: str) -> int:
    """Attach the parts of the staging table to the table, and return the number of rows.

    After a lost connection, only the parts that the table lacks are attached.
    """
    pieces = await _pieces(client, staged)
    count, lost = sum(rows for _, rows in pieces.values()), 0
    while pieces:
        try:
            if lost:
                pieces = await _without(client, staged, table)
            if pieces:
                await client.command(
                    f"ALTER TABLE {quoting.name(table)} ATTACH PARTITION ALL FROM {quoting.name(staged)}"
                )
            break
        except DataUnreachable:
            lost += 1
            if lost > LOST_MAX:
                raise
    return count


async def _without(client: DataClient, staged: str, table: str) -> dict[str, tuple[str, int]]:
    """Drop the staged parts that the table already has, and return the others."""
    await client.command(f"SYSTEM WAIT LOADING PARTS {quoting.name(table)}")  # merged parts load in the background
    there, left = await _pieces(client, table, active="1"), await _pieces(client, staged)
    for uuid in left.keys() & there.keys():
        await client.command(f"ALTER TABLE {quoting.name(staged)} DROP PART {quoting.text(left[uuid][0])}")
    return {uuid: piece for uuid, piece in left.items() if uuid not in there}


async def _pieces(client: DataClient, table: str, active: str = "active") -> dict[str, tuple[str, int]]:
    """Return the parts of a table by UUID: the name of each, and its number of rows."""
    found = await client.rows(
        "SELECT toString(uuid), name, toInt64(rows) FROM system.parts WHERE database = currentDatabase()"  # noqa: S608 (quoted)
        f" AND table = {quoting.text(table)} AND {active}"
    )
    return {uuid: (name, rows) for uuid, name, rows in zip(*found.columns, strict=True)}
