"""Reading and writing whole tables, to copy one database to another: in pages, in the order of the primary key.

Pages are read as plain values through the columns' types, so that they are the same on every database, and compared by
a sum over the digests of their rows, which does not depend on the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, Table, and_, delete, func, or_, select, update

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.store import schema as schema  # registers all tables
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, installation, machine_ids, metadata, terms, workers

Key = tuple[Any, ...]
Page = Sequence[Any]

SUMS = 2**256


def copied_tables() -> list[Table]:
    """Return the tables that are copied row by row: all but the rights to make ids."""
    return [table for table in metadata.sorted_tables if table is not machine_ids]


def columns_of(table: Table) -> list[Column[Any]]:
    """Return the columns that can be written: all but those that the database computes."""
    return [column for column in table.columns if column.computed is None]


@dataclass(frozen=True)
class Tally:
    """What is in a table: how many rows, the sum of their digests, and the newest id that was made by a process."""

    rows: int = 0
    total: int = 0
    newest_id: int = 0

    @property
    def digest(self) -> str:
        return f"{self.total:064x}"

    def plus(self, table: Table, page: Page) -> Tally:
        """Return the tally with these rows added."""
        total, newest_id, made = self.total, self.newest_id, _made_id(table)
        for row in page:
            total += int.from_bytes(hashlib.sha256(repr(tuple(row)).encode("utf-8", "backslashreplace")).digest())
            if made is not None:
                newest_id = max(newest_id, row._mapping[made])
        return Tally(self.rows + len(page), total % SUMS, newest_id)


def _made_id(table: Table) -> str | None:
    """Return the column of ids that processes make; None if the table's rows have none, or the database's."""
    column = table.columns.get("id")
    return "id" if table is not events and column is not None and isinstance(column.type, BigInteger) else None


# ---------------------------------------------------------------- pages


async def read_page(session: Session, table: Table, after: Key | None, limit: int) -> Page:
    """Return the next rows of a table behind a key, or its first ones."""
    keys = _keys(session, table)
    chosen = select(*columns_of(table)).order_by(*keys).limit(limit)
    return await session.rows(chosen if after is None else chosen.where(_behind(keys, after)))


def key_of(table: Table, row: Any) -> Key:
    """Return the primary key of a row."""
    return tuple(row._mapping[column.name] for column in table.primary_key.columns)


async def last_key(session: Session, table: Table) -> Key | None:
    """Return the last primary key of a table; None if it is empty."""
    keys = _keys(session, table)
    plain = list(table.primary_key.columns)
    row = await session.first(select(*plain).order_by(*(key.desc() for key in keys)).limit(1))
    return None if row is None else tuple(row)


def _keys(session: Session, table: Table) -> list[ColumnElement[Any]]:
    return [session.dialect.copies.in_byte_order(column) for column in table.primary_key.columns]


def _behind(keys: Sequence[ColumnElement[Any]], after: Key) -> ColumnElement[bool]:
    """Return the condition that a row's key comes after another; not as a comparison of tuples, for MariaDB's sake."""
    behind = keys[-1] > after[-1]
    for key, value in zip(reversed(keys[:-1]), reversed(after[:-1]), strict=True):
        behind = or_(key > value, and_(key == value, behind))
    return and_(keys[0] >= after[0], behind)


async def write_page(session: Session, table: Table, page: Page) -> None:
    """Insert rows that were read elsewhere."""
    await session.insert(table, [dict(row._mapping) for row in page])


async def count_rows(session: Session, table: Table) -> int:
    return int(await session.scalar(select(func.count()).select_from(table)))


async def empty_table(session: Session, table: Table) -> None:
    """Delete all rows of a table that a copy has filled."""
    await session.run(delete(table))


# ---------------------------------------------------------------- around a copy


async def who_is_live(session: Session) -> list[str]:
    """Return who works on a database now, in words: workers whose session is not over, and a leader."""
    live = (workers.c.status != WorkerStatus.STOPPED, workers.c.expires_at > session.dialect.now())
    chosen = select(workers.c.id, workers.c.hostname, workers.c.pid).where(*live).order_by(workers.c.id).limit(5)
    found = [f"worker {row.id} ({row.hostname}, pid {row.pid})" for row in await session.rows(chosen)]
    leading = select(terms.c.holder).where(terms.c.expires_at > session.dialect.now()).limit(1)
    if not found and await session.first(leading) is not None:
        found.append("a leader (worker start, or control)")
    return found


async def what_is_there(session: Session) -> list[str]:
    """Return the tables that have rows, but for those that a database has that nobody has used."""
    unused = (installation,)
    wanted = [table for table in copied_tables() if table not in unused]
    return [table.name for table in wanted if await session.first(select(*table.primary_key).limit(1)) is not None]


async def take_installation(session: Session) -> None:
    """Make room for the name of the installation that is copied."""
    await session.run(delete(installation))


async def raise_machine_ids(session: Session, high_water_ms: dict[int, int]) -> None:
    """Let ids be made with each of these machine ids from its time on, not before."""
    there = {row.machine_id: row.high_water_ms for row in await session.rows(select(machine_ids))}
    for machine_id, ms in sorted(high_water_ms.items()):
        if machine_id not in there:
            await session.insert(machine_ids, [{"machine_id": machine_id, "high_water_ms": ms}])
        elif there[machine_id] < ms:
            mine = update(machine_ids).where(machine_ids.c.machine_id == machine_id)
            await session.run(mine.values(high_water_ms=ms))


async def read_machine_ids(session: Session) -> dict[int, int]:
    """Return up to when ids may have been made with each machine id, in milliseconds."""
    return {row.machine_id: row.high_water_ms for row in await session.rows(select(machine_ids))}


async def count_on(session: Session) -> None:
    """Let the numbers that the database itself gives go on behind those that were copied."""
    for table in copied_tables():
        for column in table.primary_key.columns:
            if column.autoincrement is True and await count_rows(session, table):
                await session.dialect.copies.count_on(session, column)
